/** Links that may be missing, of the whole store or of one page, which are looked for on demand. */

import type { Source } from "./data";
import { addressOf, h, message, replace } from "./dom";
import type { Suggestion } from "./types";

export type Suggesting = Pick<Source, "suggestions" | "accept">;

/** Makes a section with a button that lists suggestions, of one page if it is given. */
export function makeSuggestions(source: Suggesting, write: boolean, page = ""): HTMLElement {
  const shown = h("div", { role: "status" });
  return h("details", { class: "small suggestions" }, h("summary", {}, "Links that may be missing"), h("button", { type: "button", onclick: () => {
    replace(shown, message("Reading all documents\u2026"));
    source.suggestions(page).then(
      (suggestions) => replace(shown, suggestions.length
        ? h("ol", {}, ...suggestions.map((suggestion) => showSuggestion(suggestion, source, write))) : message("None is suggested.")),
      (error: Error) => replace(shown, message(error.message, "error")));
  } }, "Suggest links"), shown);
}

function showSuggestion(suggestion: Suggestion, source: Suggesting, write: boolean): HTMLElement {
  const done = h("span", { role: "status" });
  return h("li", {},
    h("a", { href: addressOf(suggestion.source) }, suggestion.source_page), " \u2192 ",
    h("a", { href: addressOf(suggestion.target) }, suggestion.target_page),
    suggestion.phrase ? ` \u201c${suggestion.phrase}\u201d` : null,
    h("span", { class: "muted" }, ` ${suggestion.passage} `),
    write ? h("button", { type: "button", onclick: () => {
      void source.accept(suggestion.source, suggestion.target).then(
        () => replace(done, " added"), (error: Error) => replace(done, message(error.message, "error")));
    } }, "Add") : null, done);
}

/** Links that may be missing, of the whole store or of one page, which are looked for on demand. */

import type { Source } from "./data";
import { h, message, replace } from "./dom";
import type { Suggestion } from "./types";

export type Suggesting = Pick<Source, "suggestions" | "accept">;

/** Makes a section with a button that lists suggestions, of one page if it is given. */
export function makeSuggestions(source: Suggesting, open: (id: string) => void, write: boolean, page = ""): HTMLElement {
  const shown = h("div", { role: "status" });
  return h("section", {}, h("h3", {}, "Links that may be missing"), h("button", { type: "button", onclick: () => {
    replace(shown, message("Reading all documents\u2026"));
    source.suggestions(page).then(
      (found) => replace(shown, found.length
        ? h("ol", {}, ...found.map((one) => showSuggestion(one, source, open, write))) : message("None is suggested.")),
      (error: Error) => replace(shown, message(error.message, "error")));
  } }, "Suggest links"), shown);
}

function showSuggestion(one: Suggestion, source: Suggesting, open: (id: string) => void, write: boolean): HTMLElement {
  const told = h("span", { role: "status" });
  return h("li", {},
    h("button", { type: "button", class: "plain", onclick: () => open(one.source) }, one.source_page), " \u2192 ",
    h("button", { type: "button", class: "plain", onclick: () => open(one.target) }, one.target_page),
    one.phrase ? ` \u201c${one.phrase}\u201d` : null,
    h("span", { class: "muted" }, ` ${one.passage}`),
    write ? h("button", { type: "button", onclick: () => {
      void source.accept(one.source, one.target).then(
        () => replace(told, " added"), (error: Error) => replace(told, message(error.message, "error")));
    } }, "Add") : null, told);
}

/** The views of a question: the start, with the map and questions to begin with, and the answer to one. */

import { type Open, showAnswer } from "./answer";
import { nameCommunities } from "./communities";
import { drawMap } from "./corpus";
import type { Source } from "./data";
import { count, h, message, replace } from "./dom";
import { drawFacets } from "./facets";
import { type Asked, type AskForm, DEFAULTS, writeAsked } from "./form";
import { makeQuestions } from "./names";
import type { Found, Settings, StoreData } from "./types";

/** Up to how many documents the start draws the map by itself. */
const MOST_MAPPED = 200_000;

/** Shows the start: the field, three questions, and the map. */
export async function showStart(host: HTMLElement, source: Source, store: StoreData, form: AskForm, open: (id: string) => void): Promise<void> {
  const questions = h("ul", { class: "questions", "aria-label": "Questions to begin with" });
  const map = h("figure", { class: "map" });
  replace(host, h("div", { class: "begin" },
    h("div", { class: "hero" }, h("h1", {}, `Ask ${store.name}`), form.element, questions), map));
  form.focus();
  const draw = async (): Promise<void> => {
    replace(map, message("Drawing the map\u2026"));
    try {
      const corpus = await source.corpus();
      if (!host.isConnected) return; // the start was left meanwhile
      if (!corpus.nodes.length) return replace(map, message("The store is empty: index a source first."));
      const communities = nameCommunities(corpus);
      replace(questions, ...makeQuestions(corpus, communities).map((question) =>
        h("li", {}, h("a", { href: writeAsked({ question, settings: [DEFAULTS] }), title: question }, question))));
      replace(map);
      drawMap(map, corpus, communities, open, h("a", { href: "#/corpus" }, "Explore the map"));
    } catch (error) {
      replace(map, message((error as Error).message, "error"));
    }
  };
  if (store.documents > MOST_MAPPED) replace(map, h("p", { class: "map-foot" }, h("button", { type: "button", onclick: () => void draw() }, `Draw the map of ${count(store.documents, "document")}`)));
  else await draw();
}

export class AskView {
  private asked: Asked = { question: "", settings: [DEFAULTS] };
  private host: HTMLElement = h("div");
  private turn = 0;

  constructor(private readonly source: Source, private readonly open: Open) {}

  async show(host: HTMLElement, asked: Asked): Promise<void> {
    [this.host, this.asked] = [h("div", { class: "page-body" }), asked];
    replace(host, this.host);
    await this.search();
  }

  async search(): Promise<void> {
    const turn = ++this.turn;
    replace(this.host, message("Searching\u2026"));
    const { question, settings } = this.asked;
    const results = await Promise.all(settings.map(async (chosen) => {
      try {
        return await this.source.answer(question, chosen);
      } catch (error) {
        return error as Error;
      }
    }));
    if (turn !== this.turn) return;
    const answers = results.map((result) => (result instanceof Error ? null : result));
    const facets = h("div", { class: "facets", role: "group", "aria-label": "Narrow the answer" });
    replace(this.host,
      h("h1", { class: "hush" }, question),
      h("div", { class: settings.length > 1 ? "beside" : "" }, ...results.map((result, at) => (result instanceof Error
        ? message(result.message, "error")
        : showAnswer(result, this.open, settings.length > 1 ? (answers[1 - at] ?? null) : null, settings.length > 1 ? null : facets)))),
      answers[0] ? this.makeAbsence(settings[0] ?? DEFAULTS) : null);
    if (settings.length === 1 && settings[0] && (settings[0].filter || !answers[0]?.doubt)) await drawFacets(facets, this.source, question, settings[0]);
  }

  private makeAbsence(settings: Settings): HTMLElement {
    const shown = h("div", { role: "status" });
    const box = new FindBox(this.source, "Its title, address or words", async (chosen) => {
      replace(shown, message("Looking\u2026"));
      try {
        const why = await this.source.absence(this.asked.question, settings, chosen.id);
        const rank = why.rank === null ? "not among the first 1,000" : `rank ${why.rank}`;
        const parts = Object.entries(why.hit?.parts ?? {}).map(([name, part]) => `${name} ${part.toFixed(4)}`);
        replace(shown,
          h("p", {}, h("b", {}, why.title), ` \u2014 ${rank}`,
            why.hit ? `, score ${why.hit.score.toFixed(4)}` : null,
            parts.length ? ` = ${parts.join(" + ")}` : null,
            why.last === null ? null : `; the last hit has ${why.last.toFixed(4)}`),
          h("ul", {}, ...why.reasons.map((reason) => h("li", {}, reason))));
      } catch (error) {
        replace(shown, message((error as Error).message, "error"));
      }
    });
    return h("details", { class: "foot absence" }, h("summary", {}, "Why is a page not here?"), box.element, shown);
  }
}

/** An input that finds documents as somebody types. */
class FindBox {
  readonly element: HTMLElement;
  private turn = 0;

  constructor(private readonly source: Source, label: string, private readonly choose: (chosen: Found) => void) {
    const list = h("ul", { class: "found", "aria-label": "Documents" });
    const input = h("input", { type: "search", placeholder: label, "aria-label": label, autocomplete: "off" });
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => void this.find(input.value, list), 150);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") list.querySelector("button")?.focus();
    });
    this.element = h("div", { class: "find" }, input, list);
  }

  private async find(text: string, list: HTMLElement): Promise<void> {
    const turn = ++this.turn;
    if (!text.trim()) return replace(list);
    try {
      const matches = await this.source.find(text);
      if (turn !== this.turn) return;
      replace(list, ...matches.map((match) => h("li", {},
        h("button", { type: "button", class: "plain", title: match.page, onclick: () => { replace(list); this.choose(match); } }, match.title))),
        matches.length ? null : h("li", { class: "muted" }, "nothing found"));
    } catch (error) {
      replace(list, h("li", {}, message((error as Error).message, "error")));
    }
  }
}

/** The view of a memory: sessions, their turns and entities, and what a recall takes. */

import type { Source } from "./data";
import { count, h, message, replace } from "./dom";
import type { RecallData, TurnData } from "./types";

export class MemoryView {
  constructor(private readonly source: Source, private readonly openSession: (path: string) => void) {}

  async show(host: HTMLElement, session: string): Promise<void> {
    const body = h("div", { class: "page-body" });
    replace(host, body);
    replace(body, message("Reading\u2026"));
    try {
      const sessions = await this.source.sessions();
      const chosen = sessions.find((one) => one.path === session) ?? sessions[0];
      if (!chosen) return replace(body, message("No conversation is stored."));
      const turns = await this.source.turns(chosen.path);
      replace(body, h("div", { class: "memory" },
        h("nav", { "aria-label": "Sessions" }, h("ul", {}, ...sessions.map((one) => h("li", {},
          h("button", { type: "button", class: "plain", "aria-current": one.path === chosen.path ? "true" : null,
            onclick: () => this.openSession(one.path) }, one.label), ` ${count(one.turns, "turn")}`)))),
        h("div", {}, this.makeRecall(chosen.path), h("ol", { class: "turns" }, ...turns.map(showTurn))),
      ));
    } catch (error) {
      replace(body, message((error as Error).message, "error"));
    }
  }

  private makeRecall(session: string): HTMLElement {
    const shown = h("div", { role: "status" });
    const question = h("input", { type: "search", placeholder: "What would be recalled for\u2026", "aria-label": "Question" });
    const form = h("form", { class: "row recall" }, question, h("button", { type: "submit" }, "Recall"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      replace(shown, message("Recalling\u2026"));
      this.source.recall(session, question.value).then(
        (found) => replace(shown, ...showRecall(found)), (error: Error) => replace(shown, message(error.message, "error")));
    });
    return h("section", {}, form, shown);
  }
}

function showTurn(turn: TurnData): HTMLElement {
  return h("li", {},
    h("p", { class: "muted" }, turn.time.slice(0, 16).replace("T", " ")),
    h("p", { class: "query", dir: "auto" }, turn.query),
    turn.response === null ? null : h("p", { class: "response", dir: "auto" }, turn.response),
    turn.entities.length ? h("p", { class: "muted" }, `about ${turn.entities.join(", ")}`) : null,
    turn.sources.length ? h("p", { class: "muted" }, `from ${turn.sources.join(", ")}`) : null);
}

function showRecall(found: RecallData): (HTMLElement | null)[] {
  return [
    found.resolved === found.question ? null : h("p", {}, "searched as ", h("q", {}, found.resolved)),
    found.reason ? message(found.reason) : null,
    h("ol", {}, ...found.turns.map(({ score, turn }) => h("li", {}, `${score.toFixed(3)} `, turn.query,
      turn.response ? ` \u2014 ${turn.response}` : null))),
    h("details", {}, h("summary", {}, "Prompt"), h("pre", { class: "prompt", tabindex: 0 }, found.prompt)),
  ];
}

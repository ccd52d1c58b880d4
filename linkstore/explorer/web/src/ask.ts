/** The view of a question: its hits by page, their graph, what was cut, and why a document is not there. */

import type { Source } from "./data";
import { count, h, message, replace, sourceLink, webAddress } from "./dom";
import { GraphView } from "./graphview";
import type { Answer, Cut, Found, Graph, GraphNode, Hit, Settings, StoreData } from "./types";

const COLOURS = { start: "--start", hit: "--hit", way: "--way" } as const;

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export interface Asked {
  question: string;
  settings: Settings[];
}

export const DEFAULTS: Settings = { strategy: "pagerank", k: 10, depth: null, kinds: null, filter: null };

/** Reads the question and the settings of a permalink. */
export function readAsked(query: URLSearchParams): Asked {
  const settings = query.getAll("s").slice(0, 2).map((text) => {
    try {
      return { ...DEFAULTS, ...(JSON.parse(text) as Partial<Settings>) };
    } catch {
      return DEFAULTS;
    }
  });
  return { question: query.get("q") ?? "", settings: settings.length ? settings : [DEFAULTS] };
}

export function writeAsked({ question, settings }: Asked): string {
  const query = new URLSearchParams({ q: question });
  for (const one of settings) {
    const changed = Object.entries(one).filter(([name, value]) => value !== DEFAULTS[name as keyof Settings]);
    query.append("s", JSON.stringify(Object.fromEntries(changed)));
  }
  return `#/ask?${query.toString()}`;
}

/** Shows one answer: hits, graph and cuts. */
export function showAnswer(answer: Answer, open: (id: string) => void, other: Answer | null = null): HTMLElement {
  const picture = h("div", { class: "graph" });
  const section = h("section", { class: "answer", "aria-label": answer.strategy },
    h("h2", {}, answer.strategy),
    answer.seconds === undefined ? null
      : h("p", { class: "muted" }, `${count(answer.hits.length, "hit")} in ${(answer.seconds * 1000).toFixed(0)} ms`),
    answer.reason ? message(`No hit: ${answer.reason}`) : null,
    answer.doubt ? message(`Probably nothing here is about this: ${answer.doubt}. The nearest all the same:`) : null,
    h("div", { class: "columns" },
      h("ol", { class: "pages" }, ...answer.pages.map((page) => showPage(answer, page.hits, open, other))),
      answer.graph.nodes.length ? picture : null,
    ),
    showCuts(answer.cuts),
  );
  if (answer.graph.nodes.length) requestAnimationFrame(() => drawAnswer(picture, answer, open));
  return section;
}

function drawAnswer(host: HTMLElement, answer: Answer, open: (id: string) => void): void {
  const best = Math.max(...answer.graph.nodes.map((node) => node.score ?? 0), 1e-9);
  const legend = h("p", { class: "legend" }, ...(["start", "hit", "way"] as const).map((role) =>
    h("span", { class: `key ${role}` }, { start: "start", hit: "found by links", way: "on the way" }[role])));
  host.append(legend);
  const [width, rows] = [Math.max(host.clientWidth - 16, 280), countRows(answer.graph)];
  const fixed = { width, height: Math.min(Math.max(40 * rows + 40, 260), 900) };
  const places = placeInColumns(answer.graph, fixed);
  new GraphView(host, { name: "Graph of the answer", open, fixed }).show(
    answer.graph.nodes.map((node) => ({
      id: node.id,
      label: nameNode(node.title),
      size: 5 + 9 * Math.max(0, (node.score ?? 0) / best),
      color: colour(COLOURS[node.role]),
      note: describeRole(node),
      at: places.get(node.id) ?? [0, 0],
    })),
    answer.graph.edges.map((edge) => ({
      source: edge.source, target: edge.target, label: edge.label ?? edge.kind, strong: edge.followed,
    })),
  );
}

/** Puts the heading before the title of its page: of several chunks of a page, their headings tell them apart. */
export function nameNode(title: string): string {
  const [page, ...headings] = title.split(" > ");
  return headings.length ? `${headings.at(-1)} \u2014 ${page}` : title;
}

function describeRole(node: GraphNode): string {
  const score = node.score === null ? "" : `, score ${node.score.toFixed(3)}`;
  return `(${node.role === "start" ? "start" : node.role === "way" ? "on the way" : `${count(node.depth, "link")} away`}${score})`;
}

/** Returns the number of nodes in the longest column. */
function countRows(graph: Graph): number {
  const rows = new Map<number, number>();
  for (const { depth } of graph.nodes) rows.set(depth, (rows.get(depth) ?? 0) + 1);
  return Math.max(...rows.values());
}

/** Places nodes in columns by depth, each column in the order of what its nodes are linked with. */
function placeInColumns(graph: Graph, space: { width: number; height: number }): Map<string, [number, number]> {
  const depths = [...new Set(graph.nodes.map((node) => node.depth))].sort((one, other) => one - other);
  const columns = depths.map((depth) => graph.nodes.filter((node) => node.depth === depth).map((node) => node.id));
  const linked = new Map<string, string[]>(graph.nodes.map((node) => [node.id, []]));
  for (const { source, target } of graph.edges) {
    linked.get(source)?.push(target);
    linked.get(target)?.push(source);
  }
  const height = new Map<string, number>();
  const spread = (column: string[]): void => column.forEach((id, at) => height.set(id, 0.5 - (at + 0.5) / column.length));
  columns.forEach(spread);
  for (let round = 0; round < 4; round += 1) {
    for (const column of columns) {
      const wanted = new Map(column.map((id) => {
        const others = (linked.get(id) ?? []).map((other) => height.get(other) ?? 0);
        return [id, others.length ? others.reduce((sum, one) => sum + one, 0) / others.length : (height.get(id) ?? 0)];
      }));
      column.sort((one, other) => (wanted.get(other) ?? 0) - (wanted.get(one) ?? 0));
      spread(column);
    }
  }
  // Each second node is a little aside, so that lines between nodes of one column are seen.
  const column = space.width / depths.length;
  return new Map(columns.flatMap((ids, at) => ids.map((id, row): [string, [number, number]] => [id, [
    column * (at + 0.5 + (ids.length > 2 ? 0.12 * (row % 2 ? 1 : -1) : 0)),
    space.height / 2 + 8 + (height.get(id) ?? 0) * (space.height - 40),
  ]])));
}

function showPage(answer: Answer, hits: number[], open: (id: string) => void, other: Answer | null): HTMLElement {
  const first = answer.hits[hits[0] ?? 0];
  if (!first) return h("li");
  return h("li", {},
    h("h3", { dir: "auto" }, sourceLink(first.title, first.url, first.passage)),
    first.page === first.title ? null : h("p", { class: "muted page" }, first.page),
    ...hits.map((at) => answer.hits[at]).filter((hit): hit is Hit => hit !== undefined)
      .map((hit) => showHit(hit, answer.hits.indexOf(hit), open, other)),
  );
}

function showHit(hit: Hit, rank: number, open: (id: string) => void, other: Answer | null): HTMLElement {
  const parts = Object.entries(hit.parts);
  return h("article", { class: "hit", "data-id": hit.id },
    h("p", { class: "head" },
      h("span", { class: "rank" }, `${rank + 1}.`),
      h("button", { type: "button", class: "plain", dir: "auto", onclick: () => open(hit.id) }, hit.headings.at(-1) ?? hit.id),
      h("span", { class: "score", title: parts.map(([name, part]) => `${name} ${part.toFixed(4)}`).join(" + ") },
        hit.score.toFixed(3)),
      other ? showMove(rank, other.hits.findIndex((one) => one.id === hit.id)) : null,
    ),
    h("p", { class: "snippet", dir: "auto" }, hit.snippet, " ",
      hit.passage && webAddress(hit.url) ? sourceLink("open at the passage", hit.url, hit.passage) : null),
    hit.chains.length
      ? h("ul", { class: "ways" }, ...hit.chains.slice(0, 5).map((chain) => h("li", {}, chain)))
      : hit.depth ? h("p", { class: "way" }, ...hit.path.map((step, at) => at === 0
          ? h("span", {}, step.id)
          : h("span", {}, ` \u2192 ${step.label ?? step.kind ?? ""} \u2192 `, step.id))) : null,
  );
}

function showMove(rank: number, before: number): HTMLElement {
  if (before < 0) return h("span", { class: "move new" }, "new");
  const moved = before - rank;
  return h("span", { class: "move" }, moved === 0 ? "=" : moved > 0 ? `\u2191${moved}` : `\u2193${-moved}`);
}

function showCuts(cuts: Cut[]): HTMLElement | null {
  if (!cuts.length) return null;
  return h("details", { class: "cuts" },
    h("summary", {}, `Left out: ${cuts.map((cut) => `${cut.reason} ${cut.count.toLocaleString("en")}`).join(", ")}`),
    h("ul", {}, ...cuts.map((cut) => h("li", {},
      h("b", {}, cut.reason), `: ${cut.count.toLocaleString("en")} `,
      cut.depth === null ? "in the result" : `at depth ${cut.depth}`, ` \u2014 ${cut.detail}`))),
  );
}

export class AskView {
  private readonly results = h("div", { class: "results" });
  private asked: Asked = { question: "", settings: [DEFAULTS] };
  private turn = 0;

  constructor(
    private readonly source: Source,
    private readonly store: StoreData,
    private readonly open: (id: string) => void,
  ) {}

  async show(host: HTMLElement, asked: Asked): Promise<void> {
    this.asked = asked;
    replace(host, this.makeForm(), this.results);
    if (asked.question) await this.search();
    else replace(this.results, message(`Ask something of ${count(this.store.documents, "document")}.`));
  }

  private makeForm(): HTMLElement {
    const question = h("input", {
      name: "q", type: "search", value: this.asked.question, placeholder: "Question", "aria-label": "Question",
      required: true, autofocus: true,
    });
    const rows = this.asked.settings.map((settings, at) => this.makeSettings(settings, at));
    const compare = h("input", { type: "checkbox", name: "compare", checked: rows.length > 1 });
    const form = h("form", { class: "ask", role: "search" },
      h("div", { class: "row" }, question, h("button", { type: "submit" }, "Search")),
      ...rows,
      h("label", { class: "compare" }, compare, " compare two settings"),
    );
    compare.addEventListener("change", () => {
      const settings = this.readSettings(form);
      const second: Settings = { ...(settings[0] ?? DEFAULTS), depth: 0 };
      if (!this.listDepths(second.strategy).includes(0)) Object.assign(second, { strategy: "similarity", depth: null, kinds: null });
      location.hash = writeAsked({
        question: question.value, settings: compare.checked ? [settings[0] ?? DEFAULTS, second] : settings.slice(0, 1),
      });
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      try {
        const next = writeAsked({ question: question.value, settings: this.readSettings(form) });
        if (location.hash === next) void this.search();
        else location.hash = next;
      } catch (error) {
        replace(this.results, message(String((error as Error).message), "error"));
      }
    });
    return form;
  }

  private makeSettings(settings: Settings, at: number): HTMLElement {
    const strategy = h("select", { name: `strategy${at}` },
      ...this.store.strategies.map((one) => h("option", { value: one.name, selected: one.name === settings.strategy }, one.name)));
    const depth = h("select", { name: `depth${at}` });
    const kinds = h("input", {
      name: `kinds${at}`, value: (settings.kinds ?? []).join(", "), placeholder: "all", list: "kinds",
    });
    const adapt = (): void => {
      const chosen = depth.value || String(settings.depth ?? "");
      const depths = this.listDepths(strategy.value);
      replace(depth, ...["", ...depths.map(String)].map((value) =>
        h("option", { value, selected: value === chosen }, value || "default")));
      depth.disabled = !depths.length;
      kinds.disabled = !this.store.strategies.find((one) => one.name === strategy.value)?.kinds;
    };
    strategy.addEventListener("change", adapt);
    adapt();
    return h("fieldset", { class: "settings" },
      h("legend", {}, this.asked.settings.length > 1 ? `Settings ${at + 1}` : "Settings"),
      h("label", {}, "strategy ", strategy),
      h("label", {}, "depth ", depth),
      h("label", {}, "results ", h("input", { name: `k${at}`, type: "number", min: 1, max: 100, value: settings.k })),
      h("label", {}, "link kinds ", kinds),
      h("label", {}, "filter ", h("input", {
        name: `filter${at}`, value: settings.filter ? JSON.stringify(settings.filter) : "", placeholder: '{"lang": "en"}',
      })),
    );
  }

  private listDepths(strategy: string): number[] {
    return this.store.strategies.find((one) => one.name === strategy)?.depths ?? [];
  }

  private readSettings(form: HTMLFormElement): Settings[] {
    const data = new FormData(form);
    return this.asked.settings.map((_, at) => {
      const text = (name: string): string => String(data.get(`${name}${at}`) ?? "").trim();
      const kinds = text("kinds").split(",").map((kind) => kind.trim()).filter(Boolean);
      let filter: Settings["filter"] = null;
      if (text("filter")) {
        try {
          filter = JSON.parse(text("filter")) as Record<string, unknown>;
        } catch {
          throw new Error(`the filter is not JSON such as {"lang": "en"}: ${text("filter")}`);
        }
      }
      return {
        strategy: text("strategy"), k: Number(text("k")) || DEFAULTS.k,
        depth: text("depth") === "" ? null : Number(text("depth")), kinds: kinds.length ? kinds : null, filter,
      };
    });
  }

  private async search(): Promise<void> {
    const turn = ++this.turn;
    replace(this.results, message("Searching\u2026"));
    const { question, settings } = this.asked;
    const found = await Promise.all(settings.map(async (one) => {
      try {
        return await this.source.answer(question, one);
      } catch (error) {
        return error as Error;
      }
    }));
    if (turn !== this.turn) return;
    const answers = found.map((one) => (one instanceof Error ? null : one));
    replace(this.results,
      h("div", { class: settings.length > 1 ? "beside" : "" }, ...found.map((one, at) => one instanceof Error
        ? message(one.message, "error")
        : showAnswer(one, this.open, settings.length > 1 ? (answers[1 - at] ?? null) : null))),
      answers[0] ? this.makeAbsence(settings[0] ?? DEFAULTS) : null,
    );
  }

  private makeAbsence(settings: Settings): HTMLElement {
    const told = h("div", { role: "status" });
    const box = new FindBox(this.source, "Why not this document? Its title, URL or id", async (found) => {
      replace(told, message("Looking\u2026"));
      try {
        const why = await this.source.absence(this.asked.question, settings, found.id);
        const rank = why.rank === null ? "not among the first 1,000" : `rank ${why.rank}`;
        const parts = Object.entries(why.hit?.parts ?? {}).map(([name, part]) => `${name} ${part.toFixed(4)}`);
        replace(told,
          h("p", {}, h("b", {}, why.title), ` \u2014 ${rank}`,
            why.hit ? `, score ${why.hit.score.toFixed(4)}` : null,
            parts.length ? ` = ${parts.join(" + ")}` : null,
            why.last === null ? null : `; the last hit has ${why.last.toFixed(4)}`),
          h("ul", {}, ...why.reasons.map((reason) => h("li", {}, reason))));
      } catch (error) {
        replace(told, message((error as Error).message, "error"));
      }
    });
    return h("section", { class: "absence", "aria-label": "Why not this document?" }, box.element, told);
  }
}

/** An input that finds documents as somebody types. */
export class FindBox {
  readonly element: HTMLElement;
  private turn = 0;

  constructor(private readonly source: Source, label: string, private readonly choose: (found: Found) => void) {
    const list = h("ul", { class: "found", role: "listbox", "aria-label": "Documents" });
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
      const found = await this.source.find(text);
      if (turn !== this.turn) return;
      replace(list, ...found.map((one) => h("li", { role: "option" },
        h("button", { type: "button", class: "plain", onclick: () => { replace(list); this.choose(one); } },
          one.title, one.page === one.title ? null : h("span", { class: "muted" }, ` ${one.page}`)))),
        found.length ? null : h("li", { class: "muted" }, "nothing found"));
    } catch (error) {
      replace(list, h("li", {}, message((error as Error).message, "error")));
    }
  }
}

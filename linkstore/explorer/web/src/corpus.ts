/** The view of a whole store: its map, what it looks like in words, its groups, centres and gaps, and what needs attention. */

import { nameCommunities } from "./communities";
import type { Source } from "./data";
import { addressOf, count, h, message, replace } from "./dom";
import { GraphView } from "./graphview";
import { describeCorpus, listCommunities } from "./report";
import { makeSuggestions } from "./suggestions";
import type { Checkup, Corpus, CorpusNode } from "./types";

/** Colours that are told apart in both themes, and one for all others. */
const PALETTE = [
  "#4f86d9", "#e0714f", "#3fa87a", "#c79a1e", "#8d6fd1", "#2ba3b5", "#d0609a", "#86993a", "#a9744b", "#6a7fa6", "#bf5566",
];
const OTHER = "#9a9a94";
const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const CENTRES = 10;
/** The share of the pages that a group has at least, whose centre is named before other pages. */
const LEAST_NAMED = 0.01;

/** Places each community on a disc, the largest in the middle, all as the seeds of a sunflower. */
function placeCommunities(nodes: CorpusNode[], communities: string[]): [number, number][] {
  const members = new Map<string, number[]>();
  communities.forEach((community, at) => members.set(community, [...(members.get(community) ?? []), at]));
  const places: [number, number][] = [];
  let before = 0;
  [...members.values()].sort((one, other) => other.length - one.length).forEach((community, number) => {
    const [away, angle] = [number ? 14 * Math.sqrt(before + community.length / 2) : 0, number * GOLDEN];
    community.sort((one, other) => (nodes[other]?.rank ?? 0) - (nodes[one]?.rank ?? 0)).forEach((at, seed) => {
      const far = 10 * Math.sqrt(seed);
      places[at] = [away * Math.cos(angle) + far * Math.cos(seed * GOLDEN), away * Math.sin(angle) + far * Math.sin(seed * GOLDEN)];
    });
    before += community.length;
  });
  return places;
}

/** Returns the colour of each node by the value it has, and the values with their colours, the most frequent first. */
function chooseColours(nodes: CorpusNode[], valueOf: (at: number) => string): [Map<string, string>, { value: string; ids: string[]; color: string }[]] {
  const members = new Map<string, string[]>();
  nodes.forEach(({ id }, at) => members.set(valueOf(at), [...(members.get(valueOf(at)) ?? []), id]));
  const ordered = [...members].sort((one, other) => other[1].length - one[1].length || (one[0] < other[0] ? -1 : 1));
  const entries = ordered.slice(0, PALETTE.length).map(([value, ids], at) => ({ value, ids, color: PALETTE[at] ?? OTHER }));
  const rest = ordered.slice(PALETTE.length);
  if (rest.length) entries.push({ value: `${rest.length} others`, ids: rest.flatMap(([, ids]) => ids), color: OTHER });
  return [new Map(entries.flatMap(({ ids, color }) => ids.map((id) => [id, color]))), entries];
}

/** Draws the map of a store into an element. */
export function drawMap(host: HTMLElement, corpus: Corpus, communities: string[], open: (id: string) => void, more: HTMLElement | null = null): GraphView {
  const most = Math.max(...corpus.nodes.map((node) => node.rank), 1e-12);
  const places = placeCommunities(corpus.nodes, communities);
  const [colours] = chooseColours(corpus.nodes, (at) => communities[at] ?? "");
  const centres = new Set(listCommunities(communities).filter(([, places]) => places.length >= LEAST_NAMED * communities.length).map(([id]) => id));
  const view = new GraphView(host, {
    name: "Map of the store", open, still: more !== null, more, keep: `linkstore-places-${corpus.pages}-${corpus.links}`,
  });
  view.show(
    corpus.nodes.map((node, at) => ({
      id: node.id,
      label: node.title,
      size: 2.5 + (corpus.nodes.length > 40 ? 6 : 9) * Math.sqrt(node.rank / most),
      color: colours.get(node.id) ?? OTHER,
      detail: `(${count(node.degree, "link")})`,
      at: places[at] ?? [0, 0],
      centre: centres.has(node.id),
    })),
    corpus.edges.map(([source, target, weight]) => ({
      source: corpus.nodes[source]?.id ?? "", target: corpus.nodes[target]?.id ?? "", label: count(weight, "link"), hidden: isBusy(corpus, [source, target]),
    })),
  );
  return view;
}

/** Whether an end of a link is linked with so many that all its links would cover the picture. */
function isBusy(corpus: Corpus, [source, target]: readonly number[]): boolean {
  const degree = (at: number | undefined): number => corpus.nodes[at ?? -1]?.degree ?? 0;
  return Math.max(degree(source), degree(target)) > Math.max(60, corpus.nodes.length / 10);
}

export class CorpusView {
  private view: GraphView | null = null;
  private turn = 0;
  private communities: string[] = [];
  private readonly groups = h("ul", { class: "groups" });
  private text = "";
  private until = "";
  private chosen: Set<string> | null = null;

  constructor(
    private readonly source: Pick<Source, "corpus" | "checkup" | "suggestions" | "accept"> | null,
    private readonly open: (id: string) => void,
    private readonly write: boolean,
  ) {}

  async show(host: HTMLElement, given: Corpus | null = null): Promise<void> {
    const turn = ++this.turn;
    replace(host, h("div", { class: "page-body" }, message("Reading the store\u2026")));
    try {
      const corpus = given ?? (await this.source?.corpus());
      if (corpus && turn === this.turn) this.fill(host, corpus);
    } catch (error) {
      if (turn === this.turn) replace(host, h("div", { class: "page-body" }, message((error as Error).message, "error")));
    }
  }

  private fill(host: HTMLElement, corpus: Corpus): void {
    if (!corpus.nodes.length) return replace(host, h("div", { class: "page-body" }, message("The store is empty: index a source first.")));
    this.communities = nameCommunities(corpus);
    [this.text, this.until, this.chosen] = ["", "", null];
    const search = h("input", { type: "search", placeholder: "Find a page", "aria-label": "Search the drawn pages" });
    search.addEventListener("input", () => {
      this.text = search.value.trim().toLowerCase();
      this.markChosen(corpus);
    });
    const map = h("div", { class: "map" });
    replace(host, h("div", { class: "atlas" }, map,
      h("div", { class: "panel" },
        h("section", { class: "report" }, h("h1", { class: "hush" }, "Map"), ...describeCorpus(corpus, this.communities).map((sentence) => h("p", {}, sentence))),
        h("section", {}, h("div", { class: "row" }, search, this.chooseColouring(corpus)), this.makeSlider(corpus), this.groups),
        this.listCentres(corpus),
        this.listOrphans(corpus), this.listHubs(corpus), this.drawDegrees(corpus), this.makeCheckup(),
        this.source && makeSuggestions(this.source, this.write))));
    this.view?.stop();
    requestAnimationFrame(() => {
      if (!map.isConnected) return;
      const view = (this.view = drawMap(map, corpus, this.communities, this.open));
      map.prepend(h("div", { class: "map-tools", role: "group", "aria-label": "Map" },
        ...([["+", "Nearer", () => view.zoom(true)], ["\u2212", "Further", () => view.zoom(false)], ["\u2922", "Whole map", () => view.zoomTo(null)]] as const).map(([sign, title, act]) =>
          h("button", { type: "button", title, "aria-label": title, onclick: act }, sign))));
    });
    this.drawLegend(corpus, "group");
  }

  private chooseColouring(corpus: Corpus): HTMLElement | null {
    const folders = new Set(corpus.nodes.map(({ folder }) => folder));
    const fields = ["group", ...(folders.size > 1 ? ["folder"] : []), ...Object.keys(corpus.fields)];
    const select = h("select", { "aria-label": "Colour by" }, ...fields.map((name) => h("option", { value: name }, `by ${name}`)));
    select.addEventListener("change", () => this.drawLegend(corpus, select.value));
    return fields.length > 1 ? select : null;
  }

  /** Draws the legend, whose entries are filters: one brings its pages close and dims all others. */
  private drawLegend(corpus: Corpus, colouring: string): void {
    const titles = new Map(corpus.nodes.map((node) => [node.id, node.title]));
    const [colours, entries] = chooseColours(corpus.nodes, (at) => {
      const node = corpus.nodes[at] as CorpusNode;
      if (colouring === "group") return titles.get(this.communities[at] ?? "") ?? "";
      return colouring === "folder" ? node.folder || "(top)" : (node.fields[colouring] ?? "(none)");
    });
    this.view?.colour(colours);
    this.chosen = null;
    const buttons = entries.map(({ value, ids, color }) => {
      const dot = h("span", { class: "key" });
      dot.style.background = color;
      const button = h("button", { type: "button", "aria-pressed": "false", title: value, onclick: () => {
        const pressed = button.getAttribute("aria-pressed") === "true";
        for (const other of buttons) other.setAttribute("aria-pressed", String(!pressed && other === button));
        this.chosen = pressed ? null : new Set(ids);
        this.markChosen(corpus);
        this.view?.zoomTo(this.chosen);
      } }, dot, h("bdi", {}, value), h("span", { class: "count" }, ids.length.toLocaleString("en")));
      return button;
    });
    replace(this.groups, ...buttons.map((button) => h("li", {}, button)));
    this.markChosen(corpus);
  }

  private markChosen(corpus: Corpus): void {
    const [field] = corpus.dates;
    if (!this.text && !this.until && !this.chosen) return this.view?.mark(null);
    this.view?.mark(new Set(corpus.nodes.filter((node) =>
      (!this.text || `${node.title} ${node.page}`.toLowerCase().includes(this.text))
      && (!this.until || !field || (node.fields[field] ?? "") <= this.until)
      && (!this.chosen || this.chosen.has(node.id)),
    ).map((node) => node.id)));
  }

  private makeSlider(corpus: Corpus): HTMLElement | null {
    const [field] = corpus.dates;
    if (!field) return null;
    const dates = [...new Set(corpus.nodes.map((node) => node.fields[field]).filter((date) => date !== undefined))].sort();
    if (dates.length < 2) return null;
    const shown = h("output", {}, dates.at(-1)?.slice(0, 10) ?? "");
    const slider = h("input", { type: "range", min: 0, max: dates.length - 1, value: dates.length - 1, "aria-label": `${field}, up to` });
    slider.addEventListener("input", () => {
      this.until = Number(slider.value) === dates.length - 1 ? "" : (dates[Number(slider.value)] ?? "");
      shown.textContent = dates[Number(slider.value)]?.slice(0, 10) ?? "";
      this.markChosen(corpus);
    });
    return h("label", { class: "row small" }, `${field} up to `, slider, " ", shown);
  }

  private titleLink(id: string, title: string): HTMLElement {
    return this.source ? h("a", { href: addressOf(id), dir: "auto" }, title) : h("span", { dir: "auto" }, title);
  }

  /** Lists the pages that links lead to most; to point at one shows it on the map. */
  private listCentres(corpus: Corpus): HTMLElement | null {
    if (!corpus.links) return null;
    const ranked = [...corpus.nodes].filter(({ degree }) => degree).sort((node, other) => other.rank - node.rank).slice(0, CENTRES)
      .sort((node, other) => other.degree - node.degree);
    return h("section", { class: "centres" }, h("h2", { class: "label" }, "Centres"),
      h("ol", {}, ...ranked.map((node) => {
        const item = h("li", {}, this.titleLink(node.id, node.title), h("span", { class: "muted" }, ` ${count(node.degree, "link")}`));
        for (const [name, id] of [["pointerenter", node.id], ["focusin", node.id], ["pointerleave", null], ["focusout", null]] as const) {
          item.addEventListener(name, () => this.view?.select(id));
        }
        return item;
      })));
  }

  private listHubs(corpus: Corpus): HTMLElement | null {
    return corpus.hubs.length ? h("details", { class: "small" }, h("summary", {}, count(corpus.hubs.length, "hub")),
      h("p", { class: "muted" }, "What very many pages share; these links are not drawn."),
      h("ol", {}, ...corpus.hubs.map((hub) => h("li", {}, `${hub.kind} ${hub.tag}: ${count(hub.pages, corpus.noun)}`)))) : null;
  }

  private listOrphans(corpus: Corpus): HTMLElement | null {
    return corpus.orphans.count ? h("details", { class: "small orphans" }, h("summary", {}, `Without links: ${count(corpus.orphans.count, corpus.noun)}`),
      h("ul", {}, ...corpus.orphans.first.map(({ id, title }) => h("li", {}, this.titleLink(id, title))),
        corpus.orphans.count > corpus.orphans.first.length ? h("li", { class: "muted" }, `and ${corpus.orphans.count - corpus.orphans.first.length} more`) : null)) : null;
  }

  private drawDegrees(corpus: Corpus): HTMLElement {
    const most = Math.max(...corpus.degrees, 1);
    const name = (at: number): string => (at < 2 ? String(at) : `${2 ** (at - 1)}\u2013${2 ** at - 1}`);
    return h("details", { class: "small" }, h("summary", {}, "How many links pages have"), h("table", { class: "bars" }, h("tbody", {},
      ...corpus.degrees.map((pages, at) => {
        const bar = h("span", { class: "bar-length" });
        bar.style.width = `${(100 * pages) / most}%`;
        return h("tr", {}, h("th", { scope: "row" }, name(at)), h("td", {}, bar), h("td", {}, pages.toLocaleString("en")));
      }))));
  }

  private makeCheckup(): HTMLElement | null {
    const source = this.source;
    if (!source) return null;
    const shown = h("div", { role: "status" });
    return h("details", { class: "small checkup" }, h("summary", {}, "What needs attention"), h("button", { type: "button", onclick: () => {
      replace(shown, message("Reading all documents\u2026"));
      source.checkup().then((checkup) => replace(shown, ...this.showCheckup(checkup)),
        (error: Error) => replace(shown, message(error.message, "error")));
    } }, "Examine the store"), shown);
  }

  private showCheckup(checkup: Checkup): HTMLElement[] {
    const dangling = Object.entries(checkup.dangling).map(([kind, number]) => `${kind}: ${number.toLocaleString("en")}`);
    return [
      h("p", {}, checkup.findings.length ? "" : "Nothing needs attention."),
      h("ul", {}, ...checkup.findings.map((finding) => h("li", { class: finding.severity },
        h("b", {}, finding.check), `: ${finding.text}`, finding.examples.length ? ` (${finding.examples.join(", ")})` : null))),
      h("p", {}, dangling.length ? `Links that lead to no document: ${dangling.join(", ")}` : ""),
    ];
  }
}

/** The view of a whole store: pages and links, communities, hubs, orphans, and what needs attention. */

import { nameCommunities } from "./communities";
import type { Source } from "./data";
import { count, h, message, replace } from "./dom";
import { GraphView } from "./graphview";
import { makeSuggestions } from "./suggestions";
import type { Checkup, Corpus, CorpusNode } from "./types";

/** Twelve colours that are told apart in both themes, the last for all others. */
const PALETTE = [
  "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#e17c05", "#5f4690", "#38a6a5", "#94346e", "#73af48",
];
const OTHER = "#999999";

const GOLDEN = Math.PI * (3 - Math.sqrt(5));

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

export class CorpusView {
  private view: GraphView | null = null;
  private host: HTMLElement = h("div");
  private turn = 0;
  private readonly legend = h("ul", { class: "legend" });
  private readonly picture = h("div", { class: "graph large" });
  private colouring = "community";
  private communities: string[] = [];
  private text = "";
  private until = "";

  constructor(
    private readonly source: Pick<Source, "corpus" | "checkup" | "suggestions" | "accept"> | null,
    private readonly open: (id: string) => void,
    private readonly write: boolean,
  ) {}

  async show(host: HTMLElement, given: Corpus | null = null): Promise<void> {
    this.host = host;
    const turn = ++this.turn;
    replace(this.host, message("Reading the store\u2026"));
    try {
      const corpus = given ?? (await this.source?.corpus());
      if (corpus && turn === this.turn) this.fill(corpus);
    } catch (error) {
      if (turn === this.turn) replace(this.host, message((error as Error).message, "error"));
    }
  }

  private fill(corpus: Corpus): void {
    if (!corpus.nodes.length) return replace(this.host, message("The store is empty: index a source first."));
    this.communities = nameCommunities(corpus);
    const fields = ["community", "folder", ...Object.keys(corpus.fields)];
    const colour = h("select", { "aria-label": "Colour by" },
      ...fields.map((name) => h("option", { value: name, selected: name === this.colouring }, name)));
    colour.addEventListener("change", () => {
      this.colouring = colour.value;
      this.draw(corpus);
    });
    const search = h("input", { type: "search", placeholder: "Title or URL", "aria-label": "Search the drawn pages" });
    search.addEventListener("input", () => {
      this.text = search.value.trim().toLowerCase();
      this.markFound(corpus);
    });
    const sampled = corpus.nodes.length < corpus.pages
      ? `${corpus.nodes.length.toLocaleString("en")} of ${count(corpus.pages, corpus.noun)} are drawn, those with the highest PageRank. `
      : `${count(corpus.pages, corpus.noun)}, `;
    replace(this.host,
      h("p", {}, `${sampled}${count(corpus.links, "link")}.`),
      h("p", { class: "row" }, h("label", {}, "colour by ", colour), search, this.makeSlider(corpus)),
      this.legend,
      this.picture,
      corpus.edges.some((edge) => this.isBusy(corpus, edge)) && h("p", { class: "muted" },
        "Links of pages that are linked with very many others are drawn while the pointer is on them."),
      h("div", { class: "facts" }, this.listHubs(corpus), this.listOrphans(corpus), this.drawDegrees(corpus),
        this.makeCheckup(), this.source && makeSuggestions(this.source, this.open, this.write)),
    );
    requestAnimationFrame(() => this.draw(corpus));
  }

  private draw(corpus: Corpus): void {
    const [colours, entries] = this.chooseColours(corpus);
    replace(this.legend, ...entries.map(([name, colour]) => {
      const key = h("span", { class: "dot" });
      key.style.background = colour;
      return h("li", { title: name }, key, h("bdi", {}, name));
    }));
    const most = Math.max(...corpus.nodes.map((node) => node.rank), 1e-12);
    const places = placeCommunities(corpus.nodes, this.communities);
    this.view?.stop();
    replace(this.picture);
    this.view = new GraphView(this.picture, {
      name: "Pages of the store", open: this.open, keep: `linkstore-places-${corpus.pages}-${corpus.links}`,
    });
    this.view.show(
      corpus.nodes.map((node, at) => ({
        id: node.id,
        label: node.title,
        size: 2.5 + (corpus.nodes.length > 40 ? 6 : 9) * Math.sqrt(node.rank / most),
        color: colours(node),
        note: `(${count(node.degree, "link")})`,
        at: places[at] ?? [0, 0],
      })),
      corpus.edges.map(([source, target, weight]) => {
        const [one, other] = [corpus.nodes[source], corpus.nodes[target]];
        const hidden = this.isBusy(corpus, [source, target]);
        return { source: one?.id ?? "", target: other?.id ?? "", label: count(weight, "link"), strong: false, hidden };
      }),
    );
    this.markFound(corpus);
  }

  /** Whether an end of a link is linked with so many that all its links would cover the picture. */
  private isBusy(corpus: Corpus, [source, target]: readonly number[]): boolean {
    const degree = (at: number | undefined): number => corpus.nodes[at ?? -1]?.degree ?? 0;
    return Math.max(degree(source), degree(target)) > Math.max(60, corpus.nodes.length / 10);
  }

  private chooseColours(corpus: Corpus): [(node: CorpusNode) => string, [string, string][]] {
    const titles = new Map(corpus.nodes.map((node) => [node.id, node.title]));
    const community = new Map(corpus.nodes.map((node, at) => [node.id, titles.get(this.communities[at] ?? "") ?? ""]));
    const value = (node: CorpusNode): string => {
      if (this.colouring === "community") return community.get(node.id) ?? "";
      if (this.colouring === "folder") return node.folder || "(top)";
      return node.fields[this.colouring] ?? "(none)";
    };
    const sizes = new Map<string, number>();
    for (const node of corpus.nodes) sizes.set(value(node), (sizes.get(value(node)) ?? 0) + 1);
    const order = [...sizes].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).map(([name]) => name);
    const shown = order.slice(0, PALETTE.length);
    const entries = shown.map((name, at): [string, string] => [`${name} (${sizes.get(name)})`, PALETTE[at] ?? OTHER]);
    if (order.length > shown.length) entries.push([`${order.length - shown.length} others`, OTHER]);
    return [(node) => PALETTE[shown.indexOf(value(node))] ?? OTHER, entries];
  }

  private markFound(corpus: Corpus): void {
    const [field] = corpus.dates;
    if (!this.text && !this.until) return this.view?.mark(null);
    this.view?.mark(new Set(corpus.nodes.filter((node) =>
      (!this.text || `${node.title} ${node.page}`.toLowerCase().includes(this.text))
      && (!this.until || !field || (node.fields[field] ?? "") <= this.until),
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
      this.markFound(corpus);
    });
    return h("label", {}, `${field} up to `, slider, " ", shown);
  }

  private listHubs(corpus: Corpus): HTMLElement | null {
    return corpus.hubs.length ? h("section", {}, h("h3", {}, "Hubs"),
      h("p", { class: "muted" }, "Link groups of many pages; their links are not drawn."),
      h("ol", {}, ...corpus.hubs.map((hub) => h("li", {}, `${hub.kind} ${hub.tag}: ${count(hub.pages, corpus.noun)}`)))) : null;
  }

  private listOrphans(corpus: Corpus): HTMLElement {
    return h("section", {}, h("h3", {}, "Without links"),
      corpus.orphans.count === 0 ? h("p", {}, `Every ${corpus.noun} is linked with another.`)
        : h("p", {}, count(corpus.orphans.count, corpus.noun)),
      h("ul", {}, ...corpus.orphans.first.map(({ id, title }) => h("li", {},
        h("button", { type: "button", class: "plain", onclick: () => this.open(id) }, title)))));
  }

  private drawDegrees(corpus: Corpus): HTMLElement {
    const most = Math.max(...corpus.degrees, 1);
    const name = (at: number): string => (at < 2 ? String(at) : `${2 ** (at - 1)}\u2013${2 ** at - 1}`);
    return h("section", {}, h("h3", {}, "Numbers of links"), h("table", { class: "bars" }, h("tbody", {},
      ...corpus.degrees.map((pages, at) => {
        const bar = h("span", { class: "bar" });
        bar.style.width = `${(100 * pages) / most}%`;
        return h("tr", {}, h("th", { scope: "row" }, name(at)), h("td", {}, bar), h("td", {}, pages.toLocaleString("en")));
      }))));
  }

  private makeCheckup(): HTMLElement | null {
    const source = this.source;
    if (!source) return null;
    const shown = h("div", { role: "status" });
    return h("section", {}, h("h3", {}, "Needs attention"), h("button", { type: "button", onclick: () => {
      replace(shown, message("Reading all documents\u2026"));
      source.checkup().then((found) => replace(shown, ...this.showCheckup(found)),
        (error: Error) => replace(shown, message(error.message, "error")));
    } }, "Examine the store"), shown);
  }

  private showCheckup(found: Checkup): HTMLElement[] {
    const dangling = Object.entries(found.dangling).map(([kind, number]) => `${kind}: ${number.toLocaleString("en")}`);
    return [
      h("p", {}, found.findings.length ? "" : "Nothing needs attention."),
      h("ul", {}, ...found.findings.map((one) => h("li", { class: one.severity },
        h("b", {}, one.check), `: ${one.text}`, one.examples.length ? ` (${one.examples.join(", ")})` : null))),
      h("p", {}, dangling.length ? `Links that lead to no document: ${dangling.join(", ")}` : ""),
    ];
  }
}

/** The view of a document: its text, its links in both directions, and what is around it. */

import type { Source } from "./data";
import { colour, nameNode } from "./ask";
import { count, h, message, replace, sourceLink } from "./dom";
import { GraphView } from "./graphview";
import { makeSuggestions } from "./suggestions";
import type { DocumentData, LinkList } from "./types";

export class DocumentView {
  private host: HTMLElement = h("div");
  private turn = 0;

  constructor(
    private readonly source: Source,
    private readonly open: (id: string, hops?: number) => void,
    private readonly write: boolean,
  ) {}

  async show(host: HTMLElement, id: string, hops: number): Promise<void> {
    this.host = host;
    const turn = ++this.turn;
    replace(this.host, message("Reading\u2026"));
    try {
      const found = await this.source.document(id, hops);
      if (turn === this.turn) this.fill(found, hops);
    } catch (error) {
      if (turn === this.turn) replace(this.host, message((error as Error).message, "error"));
    }
  }

  private fill(found: DocumentData, hops: number): void {
    const picture = h("div", { class: "graph" });
    const choose = h("select", { "aria-label": "Hops", onchange: ((event: Event) =>
      this.open(found.id, Number((event.target as HTMLSelectElement).value))) as EventListener },
      ...[1, 2, 3].map((value) => h("option", { value, selected: value === hops }, count(value, "hop"))));
    const missing = found.outgoing.filter((link) => link.count === 0 && !link.more);
    replace(this.host,
      h("h2", { dir: "auto" }, sourceLink(found.name, found.url)),
      h("p", { class: "muted" }, found.id),
      h("div", { class: "columns" },
        h("div", {},
          h("pre", { class: "text", tabindex: 0, dir: "auto" }, found.text),
          found.cut ? h("p", { class: "muted" }, `and ${count(found.cut, "character")} more`) : null,
          this.listLinks("Links to", found.outgoing.filter((link) => !missing.includes(link))),
          this.listLinks("Linked from", found.incoming.filter((link) => link.count || link.more)),
          missing.length ? h("details", {}, h("summary", {}, `Leads nowhere: ${count(missing.length, "link")}`),
            h("ul", {}, ...missing.map((link) => h("li", {}, `${link.kind}: ${link.label ?? link.tag}`)))) : null,
          makeSuggestions(this.source, this.open, this.write, found.page),
          this.showMetadata(found.metadata),
        ),
        h("div", {}, h("p", {}, "Around it, ", choose,
          found.graph.cut ? ` (the nearest ${found.graph.nodes.length} are drawn)` : null), picture),
      ),
    );
    const own = found.graph.edges.filter((edge) => [edge.source, edge.target].includes(found.id)).length;
    requestAnimationFrame(() => new GraphView(picture, { name: `What is around ${found.name}`, open: this.open }).show(
      found.graph.nodes.map((node, at) => ({
        id: node.id,
        label: nameNode(node.title),
        size: node.depth === 0 ? 12 : 8 - node.depth,
        color: colour(["--start", "--hit", "--way", "--far"][node.depth] ?? "--far"),
        note: node.depth ? `(${count(node.depth, "link")} away)` : "(this document)",
        at: [node.depth * Math.cos(at), node.depth * Math.sin(at)] as [number, number],
      })),
      found.graph.edges.map((edge) => ({
        source: edge.source, target: edge.target, label: edge.label ?? edge.kind, strong: own < 16 && [edge.source, edge.target].includes(found.id),
      })),
    ));
  }

  private listLinks(title: string, links: LinkList[]): HTMLElement | null {
    if (!links.length) return null;
    const kinds = new Map<string, LinkList[]>();
    for (const link of links) kinds.set(link.kind, [...(kinds.get(link.kind) ?? []), link]);
    return h("section", { class: "links" }, h("h3", {}, title), ...[...kinds].map(([kind, listed]) =>
      h("details", { open: kinds.size < 4 }, h("summary", {}, `${kind}: ${count(listed.length, "link")}`),
        h("ul", {}, ...listed.map((link) => h("li", {},
          h("span", { class: "muted" }, `${link.label ?? link.tag}: `),
          link.more ? "a hub, not listed" : null,
          ...link.documents.map((one, at) => h("span", {}, at ? ", " : "",
            h("button", { type: "button", class: "plain", onclick: () => this.open(one.id) }, one.title))),
          link.count > link.documents.length ? ` and ${link.count - link.documents.length} more` : null,
        ))))));
  }

  private showMetadata(metadata: Record<string, unknown>): HTMLElement | null {
    const names = Object.keys(metadata);
    if (!names.length) return null;
    return h("details", {}, h("summary", {}, "Metadata"), h("table", {}, h("tbody", {}, ...names.map((name) =>
      h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, JSON.stringify(metadata[name])))))));
  }
}

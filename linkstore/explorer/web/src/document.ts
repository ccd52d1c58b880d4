/** The view of a document: its whole page, with its sections, its links in both directions, and the pages around it. */

import type { Source } from "./data";
import { Diagram, type DiagramEdge, type DiagramNode } from "./diagram";
import { addressOf, count, h, message, outLink, replace } from "./dom";
import { nameNode } from "./names";
import { addPreview } from "./preview";
import { makeSuggestions } from "./suggestions";
import { linkLabels, markWords, renderText } from "./text";
import type { Chunk, DocumentData, Other, PageLink } from "./types";

/** How many pages around one are drawn at most: those with the most links. */
const MOST_AROUND = 30;
const MOST_LISTED = 8;

export class DocumentView {
  private turn = 0;

  constructor(private readonly source: Source, private readonly open: (id: string) => void, private readonly write: boolean) {}

  async show(host: HTMLElement, id: string, question: string): Promise<void> {
    const turn = ++this.turn;
    replace(host, h("div", { class: "page-body" }, message("Reading\u2026")));
    try {
      const page = await this.source.document(id, question);
      if (turn === this.turn) this.fill(host, page);
    } catch (error) {
      if (turn === this.turn) replace(host, h("div", { class: "page-body" },
        h("div", { class: "nothing" }, h("h2", {}, "This page cannot be shown"), message((error as Error).message, "error"),
          h("p", {}, h("a", { href: "#/corpus" }, "Look for it on the map")))));
    }
  }

  private fill(host: HTMLElement, page: DocumentData): void {
    const title = page.title ?? page.name;
    const sections: { text: string; level: number; element: HTMLElement }[] = [];
    const chunks = showChunks(page, (text, level, element) => sections.push({ text, level, element }));
    replace(host, h("div", { class: "reader" },
      h("header", {}, h("h1", { dir: "auto" }, title), outLink("Open the source", page.url, page.passage)),
      this.listSections(sections),
      h("article", { "aria-label": title }, ...chunks.values(),
        page.left_out ? h("p", { class: "muted" }, `and ${count(page.left_out, "more passage")}`) : null),
      h("aside", { "aria-label": "Links of the page" },
        this.drawAround(page, title),
        listLinks("Links to", page.outgoing, page, (link) => link.at ?? ""),
        listLinks("Linked from", page.incoming, page, () => ""),
        this.listNowhere(page),
        makeSuggestions(this.source, this.write, page.page),
        this.showDetails(page))));
    const passage = chunks.get(page.id);
    if (passage && page.chunks[0]?.id !== page.id) passage.scrollIntoView({ block: "start" });
    else scrollTo(0, 0);
  }

  private listSections(sections: { text: string; level: number; element: HTMLElement }[]): HTMLElement | null {
    if (sections.length < 2) return null;
    const links = sections.map(({ text, level, element }) => h("a", {
      href: location.hash, class: `deep-${Math.min(level - 1, 2)}`, dir: "auto",
      onclick: ((event: Event) => {
        event.preventDefault();
        element.scrollIntoView({ block: "start", behavior: "smooth" });
        element.focus({ preventScroll: true });
      }) as EventListener,
    }, text));
    const seen = new IntersectionObserver(() => {
      const at = sections.filter(({ element }) => element.getBoundingClientRect().top < 120).length - 1;
      links.forEach((link, place) => (place === at ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    }, { rootMargin: "0px 0px -80% 0px" });
    for (const { element } of sections) seen.observe(element);
    const narrow = matchMedia("(max-width: 1080px)").matches;
    return h("nav", { class: "contents", "aria-label": "Sections" },
      h("details", { open: !narrow }, h("summary", { class: "label" }, "On this page"), h("ul", {}, ...links.map((link) => h("li", {}, link)))));
  }

  /** Draws the pages that a page is linked with: those with the most links, up to thirty. */
  private drawAround(page: DocumentData, title: string): HTMLElement | null {
    const links = new Map<string, { ids: string[]; in: number; out: number; label: string }>();
    const add = (link: PageLink, side: "in" | "out"): void => {
      const key = page.others[link.id]?.page ?? link.id;
      const entry = links.get(key) ?? { ids: [], in: 0, out: 0, label: link.label ?? link.kind };
      entry.ids.push(link.id);
      entry[side] += 1;
      links.set(key, entry);
    };
    for (const link of page.outgoing) add(link, "out");
    for (const link of page.incoming) add(link, "in");
    const ranked = [...links].sort(([, entry], [, other]) => other.in + other.out - entry.in - entry.out);
    if (!ranked.length) return null;
    const shown = ranked.slice(0, MOST_AROUND);
    const most = Math.max(...shown.map(([, entry]) => entry.in + entry.out));
    const centre = `\n${page.page}`;
    const nodes: DiagramNode[] = [
      { id: centre, label: title, role: "centre", weight: 1.2, depth: 0, detail: "this page" },
      ...shown.map(([key, entry]): DiagramNode => {
        const other = page.others[entry.ids[0] ?? ""];
        return {
          id: key, label: other?.title ?? other?.name ?? key, role: "hit", depth: 0, weight: (0.9 * (entry.in + entry.out)) / most,
          detail: `${count(entry.in + entry.out, "link")}`, preview: () => previewOf(other),
        };
      }),
    ];
    const drawn = new Set(shown.map(([key]) => key));
    const edges = new Map<string, DiagramEdge>();
    for (const [key, entry] of shown) {
      if (entry.out) edges.set(`>${key}`, { source: centre, target: key, label: entry.label, followed: false });
      else edges.set(`<${key}`, { source: key, target: centre, label: entry.label, followed: false });
    }
    for (const [from, to] of page.between) {
      const [source, target] = [page.others[from]?.page ?? from, page.others[to]?.page ?? to];
      if (source !== target && drawn.has(source) && drawn.has(target)) edges.set([source, target].sort().join("\n"), { source, target, label: "", followed: false });
    }
    const diagram = new Diagram(nodes, [...edges.values()], {
      name: `What is linked with ${title}`, open: (id) => (id === centre ? undefined : this.open(links.get(id)?.ids[0] ?? id)),
      height: (width) => (innerWidth <= 1080 ? Math.min(300, 0.7 * width) : Math.min(460, 1.15 * width)),
    });
    return h("section", { class: "around" }, diagram.element, h("p", { class: "small muted" },
      `Linked with ${count(ranked.length, "page")}`, ranked.length > shown.length ? `: the ${shown.length} with the most links, and ${(ranked.length - shown.length).toLocaleString("en")} more` : null));
  }

  private listNowhere(page: DocumentData): HTMLElement | null {
    if (!page.nowhere.length && !page.hubs.length) return null;
    return h("details", { class: "small" }, h("summary", {}, `${count(page.nowhere.length + page.hubs.length, "link")} out of the store`),
      h("ul", { class: "links" },
        ...page.nowhere.map(({ label, tag }) => h("li", { title: tag }, outLink(label ?? tag, tag) ?? (label ?? tag))),
        ...page.hubs.map((name) => h("li", {}, name, " (shared by more than 1,000 documents)"))));
  }

  private showDetails(page: DocumentData): HTMLElement {
    const facts = { id: page.id, ...page.metadata };
    return h("details", { class: "small" }, h("summary", {}, "Details"), h("table", { class: "facts-table" }, h("tbody", {},
      ...Object.entries(facts).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, typeof value === "string" ? value : JSON.stringify(value)))))));
  }
}

/** Makes the chunks of a page, by id, and lists the headings that begin in each. */
function showChunks(page: DocumentData, list: (text: string, level: number, element: HTMLElement) => void): Map<string, HTMLElement> {
  const chunks = new Map<string, HTMLElement>();
  let before: string[] = [];
  for (const chunk of page.chunks) {
    const own = chunk.headings[0] === page.title ? chunk.headings.slice(1) : chunk.headings;
    const same = own.findIndex((heading, at) => heading !== before[at]);
    const begun = same < 0 ? [] : own.slice(same).map((heading, at) => {
      const level = same + at + 1;
      const element = h(level === 1 ? "h2" : "h3", { class: "section", dir: "auto", tabindex: -1 }, heading);
      list(heading, level, element);
      return element;
    });
    before = own;
    const text = h("div", { class: "text" }, ...renderText(chunk.text, chunk.headings.length > 0));
    linkLabels(text, labelsOf(chunk, page));
    if (chunk.id === page.id) markWords(text, page.words);
    const passage = chunk.id === page.id && (page.words.length > 0 || chunks.size > 0);
    chunks.set(chunk.id, h("div", { class: `chunk${passage ? " passage" : ""}` }, ...begun, text));
  }
  return chunks;
}

/** Returns what the texts of a chunk's links lead to. */
function labelsOf(chunk: Chunk, page: DocumentData): Map<string, () => HTMLElement> {
  const labels = new Map<string, () => HTMLElement>();
  for (const link of page.outgoing) {
    if (link.at === chunk.id && link.label && link.kind !== "section" && !labels.has(link.label)) labels.set(link.label, () => otherLink(link.id, page, "inner"));
  }
  for (const { tag, label } of page.nowhere) {
    if (label && !labels.has(label) && outLink(label, tag)) labels.set(label, () => outLink(label, tag) as HTMLElement);
  }
  return labels;
}

function previewOf(other: Other | undefined): { title: string; text: string } | null {
  return other ? { title: nameNode(other.name), text: other.text } : null;
}

/** Makes a link to a document that shows, under the pointer, how it begins. */
function otherLink(id: string, page: DocumentData, kind = ""): HTMLElement {
  const other = page.others[id];
  return addPreview(h("a", { href: addressOf(id), class: kind || null, dir: "auto" }, other?.title ?? other?.name ?? id), () => previewOf(other));
}

/** Lists links by kind and page, with their texts. */
function listLinks(title: string, links: PageLink[], page: DocumentData, place: (link: PageLink) => string): HTMLElement | null {
  if (!links.length) return null;
  const kinds = new Map<string, Map<string, PageLink[]>>();
  for (const link of links) {
    const pages = kinds.get(link.kind) ?? new Map<string, PageLink[]>();
    const key = page.others[link.id]?.page ?? link.id;
    pages.set(key, [...(pages.get(key) ?? []), link]);
    kinds.set(link.kind, pages);
  }
  return h("section", { class: "links" }, h("h3", {}, title), ...[...kinds].map(([kind, pages]) => {
    const rows = [...pages.values()].map((own) => {
      const texts = [...new Set(own.map(({ label }) => label).filter((label): label is string => Boolean(label)))];
      const [first] = own as [PageLink, ...PageLink[]];
      const name = page.others[first.id]?.title;
      const told = texts.filter((text) => text !== name).slice(0, 3);
      return h("li", { title: place(first) || null }, otherLink(first.id, page),
        told.length ? h("span", { class: "from" }, told.map((text) => `\u201c${text}\u201d`).join(", "), texts.length > 3 ? `, and ${texts.length - 3} more` : null) : null);
    });
    return h("div", { class: "kind" }, h("p", { class: "label" }, `${kind} \u00b7 ${count(pages.size, "page")}`),
      h("ul", {}, ...rows.slice(0, MOST_LISTED)),
      rows.length > MOST_LISTED ? h("details", { class: "small" }, h("summary", {}, `and ${rows.length - MOST_LISTED} more`), h("ul", {}, ...rows.slice(MOST_LISTED))) : null);
  }));
}

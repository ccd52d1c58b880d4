/** One answer: its hits by page, the picture of their links, and what was left out. */

import { Diagram, type DiagramEdge, type DiagramNode, makeLegend } from "./diagram";
import { addressOf, count, h, message, outLink, svg, webAddress } from "./dom";
import { GRADES, describeMatch, gradeHit, gradePage, nameNode } from "./names";
import type { Answer, Cut, Hit } from "./types";

/** Opens a document; without it, as in a file, titles are no links. */
export type Open = ((id: string) => void) | null;

const SHOWN_PASSAGES = 2;
/** Of fewer pages, the picture shows the passages. */
const FEWEST_PAGES = 3;

/** Shows an answer, with the element of its facets if there is one; beside another one, also what moved. */
export function showAnswer(answer: Answer, open: Open, other: Answer | null = null, facets: HTMLElement | null = null): HTMLElement {
  if (answer.doubt !== null) return showNothing(answer, open, other, facets);
  const [nodes, edges] = summarize(answer);
  const list = h("ol", { class: "pages" }, ...answer.pages.map(({ hits }) => showPage(answer, hits, open, other)));
  const picture = edges.length && !other ? drawPicture(nodes, edges, list, open) : null;
  return h("section", { class: "answer", "aria-label": "Answer" },
    other ? h("h2", { class: "label" }, answer.strategy) : null,
    summarizeInWords(answer, facets),
    answer.reason ? message(`Nothing was found: ${answer.reason}.`) : null,
    h("div", { class: `columns${picture ? "" : " alone"}` }, list, picture),
    showCuts(answer.cuts));
}

function summarizeInWords(answer: Answer, facets: HTMLElement | null): HTMLElement | null {
  if (!answer.hits.length) return facets;
  const brought = answer.hits.filter(({ depth }) => depth > 0).length;
  const match = describeMatch(answer);
  return h("div", { class: "summary" },
    h("b", {}, count(answer.pages.length, "page")),
    match ? h("span", {}, match) : null,
    brought ? h("span", { class: "by" }, `${brought} of ${answer.hits.length} were found only by links`) : null,
    answer.seconds === undefined ? null : h("span", { title: answer.strategy }, answer.seconds < 1 ? `${Math.max(1, Math.round(answer.seconds * 1000))} ms` : `${answer.seconds.toFixed(1)} s`), facets);
}

/** Says that nothing here is about the question; what is nearest all the same is behind a button. */
function showNothing(answer: Answer, open: Open, other: Answer | null, facets: HTMLElement | null): HTMLElement {
  return h("section", { class: "answer", "aria-label": "Answer" }, facets,
    h("div", { class: "nothing" },
      svg("svg", { viewBox: "0 0 72 72", "aria-hidden": "true" }, svg("circle", { cx: 36, cy: 36, r: 30 }), svg("circle", { cx: 36, cy: 36, r: 12 })),
      h("h2", {}, "Nothing here seems to be about this"),
      h("p", { class: "muted", title: answer.doubt }, `${capitalize(nameDoubt(answer.doubt ?? ""))}.`)),
    h("details", { class: "nearest" }, h("summary", {}, `Show the ${count(answer.pages.length, "page")} that come nearest all the same`),
      h("ol", { class: "pages" }, ...answer.pages.map(({ hits }) => showPage(answer, hits, open, other)))),
    showCuts(answer.cuts));
}

function nameDoubt(doubt: string): string {
  return doubt.replace(/, and the most similar one has -?[\d.]+$/, ", and none is similar to the question");
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Makes a link to a document, or plain text where there is nothing to open. */
function titleLink(text: string, id: string, question: string, open: Open): HTMLElement {
  return open ? h("a", { href: addressOf(id, question), dir: "auto" }, text) : h("span", { dir: "auto" }, text);
}

function showPage(answer: Answer, places: number[], open: Open, other: Answer | null): HTMLElement {
  const hits = places.map((at) => answer.hits[at]).filter((hit): hit is Hit => hit !== undefined);
  const [first] = hits;
  if (!first) return h("li");
  const grade = gradePage(hits, answer);
  const passages = hits.map((hit) => showHit(hit, answer, open, hits.length > 1 || hit.headings.length > 1, other));
  return h("li", { class: "result", "data-page": first.page },
    h("div", { class: "head" },
      h("h2", {}, titleLink(first.title ?? first.name, first.id, answer.question, open)),
      h("span", { class: `grade ${grade}`, title: GRADES[grade].means }, GRADES[grade].word)),
    webAddress(first.url) ? h("p", { class: "source" }, outLink(describePlace(first.url), first.url, first.passage)) : null,
    ...passages.slice(0, SHOWN_PASSAGES),
    passages.length > SHOWN_PASSAGES ? h("details", { class: "further" },
      h("summary", {}, `${count(passages.length - SHOWN_PASSAGES, "more passage")} of this page`),
      ...passages.slice(SHOWN_PASSAGES)) : null);
}

function describePlace(url: string | null): string {
  return (url ?? "").replace(/^https?:\/\/(?:www\.)?/i, "").replace(/[?#].*$/, "").replace(/\/$/, "").replaceAll("/", " \u203a ");
}

function showHit(hit: Hit, answer: Answer, open: Open, named: boolean, other: Answer | null): HTMLElement {
  const heading = hit.headings.length > 1 || !hit.title ? (hit.headings.at(-1) ?? hit.name) : null;
  const parts = Object.entries(hit.parts).map(([name, part]) => `${name} ${part.toFixed(4)}`);
  const grade = gradeHit(hit, answer);
  const details = `${GRADES[grade].word}: similarity ${hit.similarity.toFixed(3)}; score ${hit.score.toFixed(3)}${parts.length > 1 ? ` = ${parts.join(" + ")}` : ""}; ${hit.id}`;
  return h("article", { class: "hit", "data-id": hit.id, title: details },
    named && heading && heading !== hit.title || other ? h("div", { class: "head" },
      h("h3", {}, titleLink(heading ?? hit.title ?? hit.name, hit.id, answer.question, open)),
      other ? showMove(answer.hits.indexOf(hit), other.hits.findIndex(({ id }) => id === hit.id)) : null) : null,
    h("p", { class: "snippet", dir: "auto" }, ...hit.snippet.map((part, at) => (at % 2 ? h("mark", {}, part) : part))),
    ...showWays(hit, answer, open));
}

/** Shows by which links a hit was found: titles and link texts, the best way first. */
function showWays(hit: Hit, answer: Answer, open: Open): HTMLElement[] {
  const names = new Map([...answer.graph.nodes.map(({ id, title }): [string, string] => [id, nameNode(title)]), ...answer.hits.map(({ id, name }): [string, string] => [id, nameNode(name)])]);
  const name = (id: string): Node => titleLink(names.get(id) ?? id, id, answer.question, open);
  const via = (label: string | null, kind: string | null): Node => (label ? h("q", {}, label) : h("em", { class: "via" }, kind ?? ""));
  if (hit.chains.length) {
    return hit.chains.slice(0, 3).map(([start, ...triples]) => {
      let at = start;
      return h("p", { class: "way" }, name(start), ...triples.flatMap((triple) => {
        const away = at === triple.subject;
        at = away ? triple.object : triple.subject;
        return [away ? " \u2192 " : " \u2190 ", via(triple.label, triple.kind), away ? " \u2192 " : " \u2190 ", name(at)];
      }));
    });
  }
  if (!hit.depth) return [];
  return [h("p", { class: "way" }, ...hit.path.flatMap((step, at) => (at ? [" \u2192 ", via(step.label, step.kind), " \u2192 ", name(step.id)] : [name(step.id)])))];
}

function showMove(rank: number, before: number): HTMLElement {
  if (before < 0) return h("span", { class: "move new" }, "new");
  const moved = before - rank;
  return h("span", { class: "move" }, moved === 0 ? "=" : moved > 0 ? `\u2191${moved}` : `\u2193${-moved}`);
}

/** What the reasons of cuts mean. */
const CUTS: Record<string, string> = {
  hub: "in hubs", beam: "outside the beam", filter: "by the filter", min_similarity: "not similar enough", max_nodes: "beyond the most nodes",
  k: "below the last result", per_page: "of pages with enough results", lexical: "of its words", missing: "not in the store", paths: "further paths",
};

function showCuts(cuts: Cut[]): HTMLElement | null {
  if (!cuts.length) return null;
  return h("details", { class: "foot" },
    h("summary", {}, `Left out: ${cuts.map((cut) => `${cut.count.toLocaleString("en")} ${CUTS[cut.reason] ?? cut.reason}`).join(", ")}`),
    h("ul", {}, ...cuts.map((cut) => h("li", {},
      h("b", {}, cut.reason), `: ${cut.count.toLocaleString("en")} `, cut.depth === null ? "in the result" : `at depth ${cut.depth}`, ` \u2014 ${cut.detail}`))));
}

/** Returns the picture's nodes and links: pages, or passages where there are hardly any pages. */
function summarize(answer: Answer): [DiagramNode[], DiagramEdge[]] {
  const hits = new Map(answer.hits.map((hit) => [hit.id, hit]));
  const pageOf = new Map(answer.graph.nodes.map((node) => [node.id, hits.get(node.id)?.page ?? node.page ?? node.id]));
  const byPage = new Set(pageOf.values()).size >= FEWEST_PAGES;
  const keyOf = (id: string): string => (byPage ? (pageOf.get(id) ?? id) : id);
  const best = Math.max(...answer.hits.map(({ score }) => score), 1e-9);
  const order = ["start", "hit", "way"];
  const nodes = new Map<string, DiagramNode>();
  for (const node of answer.graph.nodes) {
    const [key, hit] = [keyOf(node.id), hits.get(node.id)];
    const weight = Math.max(0, (node.score ?? 0) / best);
    const known = nodes.get(key);
    const role = known && order.indexOf(known.role) < order.indexOf(node.role) ? known.role : node.role;
    const depth = Math.min(known?.depth ?? Infinity, node.depth);
    nodes.set(key, {
      id: key, label: known?.label ?? (byPage ? (hit?.title ?? node.title.split(" > ")[0] ?? node.title) : nameNode(node.title)), role, depth,
      weight: Math.max(known?.weight ?? 0, weight), detail: role === "start" ? "matches the question" : role === "way" ? "on the way" : `found by links, ${count(depth, "link")} away`,
    });
  }
  const edges = new Map<string, DiagramEdge>();
  for (const edge of answer.graph.edges) {
    const [source, target] = [keyOf(edge.source), keyOf(edge.target)];
    const known = edges.get(`${source}\n${target}`);
    if (source !== target && (!known || (edge.followed && !known.followed))) {
      edges.set(`${source}\n${target}`, { source, target, label: edge.label ?? edge.kind, followed: edge.followed });
    }
  }
  const drawn = [...edges.values()].filter(({ source, target, followed }) => followed || !edges.get(`${target}\n${source}`)?.followed);
  return [[...nodes.values()], drawn];
}

function drawPicture(nodes: DiagramNode[], edges: DiagramEdge[], list: HTMLElement, open: Open): HTMLElement {
  const rows = new Map<string, Element>([...list.querySelectorAll<HTMLElement>("[data-page], [data-id]")].map((row) => [row.dataset.page ?? row.dataset.id ?? "", row]));
  const rowOf = (id: string): Element | null => rows.get(id)?.closest(".result") ?? null;
  const diagram = new Diagram(nodes, edges, {
    name: "How the pages of the answer are linked",
    open: (id) => {
      const row = rows.get(id);
      const hit = row?.matches(".hit") ? row : row?.querySelector(".hit");
      if (open) open((hit as HTMLElement | null | undefined)?.dataset.id ?? id);
      else row?.scrollIntoView({ block: "nearest" });
    },
    hover: (id) => {
      for (const row of rows.values()) row.classList.toggle("lit", id !== null && row === rowOf(id));
    },
    height: (width) => (width < 480 ? 260 : innerWidth <= 1080 ? 320 : Math.max(320, Math.min(innerHeight - 220, 0.9 * width, 640, 160 + 60 * nodes.length))),
  });
  for (const [id, row] of rows) {
    const light = (node: string | null) => (): void => diagram.light(node);
    if (!nodes.some((node) => node.id === id)) continue;
    row.addEventListener("pointerenter", light(id));
    row.addEventListener("pointerleave", light(null));
    row.addEventListener("focusin", light(id));
    row.addEventListener("focusout", light(null));
  }
  return h("div", { class: "picture" }, diagram.element, makeLegend(new Set(nodes.map(({ role }) => role))));
}

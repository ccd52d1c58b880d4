/**
 * Texts of a store as elements: what linkstore has read is plain text with lists, tables and code; other texts may be
 * Markdown or HTML. All elements are made by name from a list; of their attributes only addresses on the web are kept.
 */

import { type Child, h, webAddress } from "./dom";

/** Makes the elements of a text. `plain` texts are those that linkstore has read from a page. */
export function renderText(text: string, plain: boolean): Node[] {
  if (plain) return renderPlain(text);
  if (isHtml(text)) return renderHtml(text);
  return isMarkdown(text) ? renderMarkdown(text) : renderPlain(text);
}

function isHtml(text: string): boolean {
  return /^\s*<(?:!doctype\s+html|html|body|main|article|section|div|p|h[1-6]|ul|ol|dl|table|blockquote|pre)\b[^>]*>/i.test(text)
    && text.includes("</");
}

function isMarkdown(text: string): boolean {
  return /^(?:#{1,6} \S|```|~~~)/m.test(text) || /\[[^\]\n]{1,300}\]\([^)\s]{1,2000}\)|\*\*[^\s*][^*\n]{0,500}\*\*/.test(text);
}

const CODE = /^(?:\s*(?:>>>|\.\.\. |\$ |#!|@\w|from \S+ import |import \w|def \w|class \w|return\b|if __name__|elif |else:|try:|except|with \w.*:$|for \w.*:$|while .*:$)|\s*[\w.]+ = \S|\s*[\w.]+\(.*\)$|.*[{};]$| {2,}\S|\t)/;

function isCode(lines: string[]): boolean {
  return lines.filter((line) => CODE.test(line)).length * 2 > lines.length;
}

function splitCells(line: string): string[] {
  return line.replace(/^\s*\|/, "").replace(/\|\s*$/, "").split(/\s*\|\s*/).map((cell) => cell.trim());
}

function makeTable(rows: string[][], inline: (text: string) => Child[]): HTMLElement {
  const [head, ...body] = rows;
  return h("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Table" }, h("table", {},
    h("thead", {}, h("tr", {}, ...(head ?? []).map((cell) => h("th", { scope: "col" }, ...inline(cell))))),
    h("tbody", {}, ...body.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, ...inline(cell))))))));
}

function makeCode(text: string): HTMLElement {
  return h("pre", { tabindex: 0 }, h("code", {}, text));
}

/** Makes the blocks of a text whose paragraphs stand apart, with lists as lines that begin with a dash. */
function renderPlain(text: string): Node[] {
  const blocks: Node[] = [];
  let code: string[] = [];
  const endCode = (): void => {
    if (code.length) blocks.push(makeCode(code.join("\n\n")));
    code = [];
  };
  for (const block of text.split(/\n[ \t]*\n/)) {
    if (!block.trim()) continue;
    for (const { kind, lines } of splitRuns(block.replace(/^\n+|\s+$/g, "").split("\n"))) {
      if (kind === "text" && isCode(lines)) {
        code.push(lines.join("\n"));
        continue;
      }
      endCode();
      if (kind === "table") blocks.push(makeTable(lines.map(splitCells), (cell) => [cell]));
      else if (kind === "list") blocks.push(h("ul", {}, ...lines.map((line) => h("li", { dir: "auto" }, line.replace(/^\s*- /, "")))));
      else blocks.push(h("p", { dir: "auto" }, lines.join("\n")));
    }
  }
  endCode();
  return blocks;
}

interface Run {
  kind: "text" | "list" | "table";
  lines: string[];
}

/** Splits lines into lists, tables of lines with equally many cells, and text. */
function splitRuns(lines: string[]): Run[] {
  const cells = lines.map((line) => line.split(" | ").length);
  const runs: Run[] = [];
  lines.forEach((line, at) => {
    const tabular = (cells[at] ?? 1) > 1 && (cells[at] === cells[at - 1] || cells[at] === cells[at + 1]);
    const kind = /^\s*- /.test(line) ? "list" : tabular ? "table" : "text";
    const last = runs.at(-1);
    if (last?.kind === kind && (kind !== "table" || cells[at] === cells[at - 1])) last.lines.push(line);
    else runs.push({ kind, lines: [line] });
  });
  return runs;
}

/** Lengths are bounded, so that a text of brackets takes no longer than others. */
const INLINE = /`([^`\n]{1,500})`|!?\[([^\]\n]{0,300})\]\(<?([^\s)>]{0,2000})>?[^)\n]{0,300}\)|\*\*([^\s*][^*\n]{0,500})\*\*|\*([^\s*][^*\n]{0,500})\*|<(https?:\/\/[^>\s]{1,2000})>/g;

function renderInline(text: string): Child[] {
  const parts: Child[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    parts.push(text.slice(at, match.index));
    const [whole, code, label, url, strong, emphasis, address] = match;
    if (code !== undefined) parts.push(h("code", {}, code));
    else if (label !== undefined) parts.push(makeAnchor(url ?? "", [label]));
    else if (strong !== undefined) parts.push(h("strong", {}, ...renderInline(strong)));
    else if (emphasis !== undefined) parts.push(h("em", {}, emphasis));
    else if (address !== undefined) parts.push(makeAnchor(address, [address]));
    at = match.index + whole.length;
  }
  return [...parts, text.slice(at)];
}

function makeAnchor(url: string, children: Child[]): Node {
  const address = webAddress(url);
  return address ? h("a", { class: "out", href: address, target: "_blank", rel: "noopener noreferrer" }, ...children) : h("span", {}, ...children);
}

type Heading = "h3" | "h4" | "h5" | "h6";

function headingTag(level: number): Heading {
  return `h${Math.min(level + 2, 6)}` as Heading;
}

/** Makes the blocks of a Markdown text (https://commonmark.org): headings, code, quotes, lists, tables, paragraphs. */
function renderMarkdown(text: string): Node[] {
  const blocks: Node[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const take = (goesOn: (line: string) => boolean): string[] => {
      const from = at;
      do at += 1; while (at < lines.length && goesOn(lines[at] ?? ""));
      return lines.slice(from, at);
    };
    const fence = /^\s*(```+|~~~+)/.exec(line)?.[1];
    const heading = /^(#{1,6}) +(.*?)[ #]*$/.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const body = take((other) => !other.trim().startsWith(fence)).slice(1);
      at += 1;
      blocks.push(makeCode(body.join("\n")));
    } else if (heading) {
      at += 1;
      blocks.push(h(headingTag(heading[1]?.length ?? 1), { dir: "auto" }, ...renderInline(heading[2] ?? "")));
    } else if (/^\s*([-*_])(?:\s*\1){2,}\s*$/.test(line)) {
      at += 1;
      blocks.push(h("hr"));
    } else if (/^\s*>/.test(line)) {
      blocks.push(h("blockquote", {}, ...renderMarkdown(take((other) => /^\s*>/.test(other)).map((other) => other.replace(/^\s*> ?/, "")).join("\n"))));
    } else if (/^\s*(?:[-*+]|\d+[.)]) /.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items = take((other) => Boolean(other.trim())).join("\n").split(/\n(?=\s*(?:[-*+]|\d+[.)]) )/);
      blocks.push(h(ordered ? "ol" : "ul", {}, ...items.map((item) =>
        h("li", { dir: "auto" }, ...renderInline(item.replace(/^\s*(?:[-*+]|\d+[.)]) +/, ""))))));
    } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) {
      const rows = take((other) => other.includes("|")).map(splitCells);
      blocks.push(makeTable([rows[0] ?? [], ...rows.slice(2)], renderInline));
    } else {
      const paragraph = take((other) => Boolean(other.trim()) && !/^(?:#{1,6} |\s*(?:```|~~~|>|[-*+] |\d+[.)] ))/.test(other));
      blocks.push(h("p", { dir: "auto" }, ...renderInline(paragraph.join("\n"))));
    }
  }
  return blocks;
}

const ALLOWED = new Set([
  "p", "ul", "ol", "li", "dl", "dt", "dd", "pre", "code", "em", "i", "strong", "b", "s", "blockquote", "br", "hr", "sub", "sup", "kbd",
  "table", "thead", "tbody", "tr", "th", "td", "caption",
] as const);
type Allowed = typeof ALLOWED extends Set<infer Name> ? Name : never;
/** What is left out with all that is in it. */
const DROPPED = new Set([
  "script", "style", "template", "noscript", "iframe", "frame", "frameset", "object", "embed", "applet", "svg", "math", "head", "title",
  "form", "input", "button", "select", "textarea", "audio", "video", "canvas", "dialog",
]);
const DEEPEST = 200;

/** Makes the elements of HTML, which is parsed in a document of its own, where nothing is loaded and no script runs. */
function renderHtml(text: string): Node[] {
  return reduceNodes(new DOMParser().parseFromString(text, "text/html").body, 0);
}

function reduceNodes(parent: Node, depth: number): Node[] {
  return [...parent.childNodes].flatMap((node) => reduceNode(node, depth));
}

function reduceNode(node: Node, depth: number): Node[] {
  if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.textContent ?? "")];
  if (!(node instanceof Element) || depth > DEEPEST) return [];
  const name = node.localName;
  if (DROPPED.has(name)) return [];
  const children = reduceNodes(node, depth + 1);
  if (ALLOWED.has(name as Allowed)) return [h(name as Allowed, name === "pre" ? { tabindex: 0 } : {}, ...children)];
  if (/^h[1-6]$/.test(name)) return [h(headingTag(Number(name[1])), { dir: "auto" }, ...children)];
  if (name === "a") return [makeAnchor(node.getAttribute("href") ?? "", children)];
  if (name === "img") return [document.createTextNode(node.getAttribute("alt") ?? "")];
  return /^(?:div|section|article|main|figure|header|footer|aside|nav|details|summary|figcaption|address)$/.test(name) ? [h("div", {}, ...children)] : children;
}

/** Calls a function for each text in an element that stands in none of some other elements. */
function* walkTexts(root: Node, without: string): Generator<Text> {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const text of texts) if (!text.parentElement?.closest(without)) yield text;
}

/** Puts marks around the words of a question. */
export function markWords(root: Node, words: string[]): void {
  if (!words.length) return;
  const sorted = [...words].sort((word, other) => other.length - word.length);
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_])(${sorted.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})(?![\\p{L}\\p{N}_])`, "u");
  for (const text of walkTexts(root, "mark")) {
    const parts = text.data.split(pattern);
    if (parts.length > 1) text.replaceWith(...parts.map((part, at) => (at % 2 ? h("mark", {}, part) : part)));
  }
}

/** Makes the first place of each label into an anchor, the longest labels first. */
export function linkLabels(root: Node, labels: Map<string, () => HTMLElement>): void {
  for (const label of [...labels.keys()].sort((text, other) => other.length - text.length)) {
    for (const text of walkTexts(root, "a, pre")) {
      const at = findWhole(text.data, label);
      if (at < 0) continue;
      const anchor = labels.get(label)?.();
      if (!anchor) break;
      anchor.textContent = label;
      text.replaceWith(text.data.slice(0, at), anchor, text.data.slice(at + label.length));
      break;
    }
  }
}

/** Returns where a label stands in a text as whole words; -1 if nowhere. */
function findWhole(text: string, label: string): number {
  const letter = /[\p{L}\p{N}_]/u;
  for (let at = text.indexOf(label); at >= 0; at = text.indexOf(label, at + 1)) {
    if (!letter.test(text[at - 1] ?? " ") && !letter.test(text[at + label.length] ?? " ")) return at;
  }
  return -1;
}

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
    for (const { kind, lines } of splitRuns(block.replace(/^\n+|\n+$/g, "").split("\n"))) {
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

/** Elements of HTML that are made again, without their attributes. */
const ALLOWED = new Set([
  "p", "ul", "ol", "li", "dl", "dt", "dd", "pre", "code", "em", "i", "strong", "b", "s", "blockquote", "sub", "sup", "kbd", "table", "thead", "tbody", "tr", "th", "td",
] as const);
type Allowed = typeof ALLOWED extends Set<infer Name> ? Name : never;
/** Blocks that are made again as plain ones. */
const BLOCKS = new Set(["div", "section", "article", "main", "figure", "header", "footer", "aside", "nav", "figcaption", "address"]);
/** What is left out with all that is in it. */
const DROPPED = new Set([
  "script", "style", "template", "noscript", "noembed", "noframes", "iframe", "frameset", "object", "embed", "applet", "svg", "math", "head", "title", "xmp", "plaintext",
  "form", "button", "select", "textarea", "audio", "video", "canvas", "dialog",
]);
/** What ends at the next element of the same kind, which people write without an end tag. */
const SIBLINGS: Record<string, string[]> = { li: ["li"], dt: ["dt", "dd"], dd: ["dt", "dd"], tr: ["tr", "td", "th"], td: ["td", "th"], th: ["td", "th"], p: ["p"] };
/** What they do not end beyond. */
const SCOPES = new Set(["ul", "ol", "dl", "table", "blockquote"]);
const ENTITIES: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", ndash: "\u2013", mdash: "\u2014", hellip: "\u2026", copy: "\u00a9", laquo: "\u00ab", raquo: "\u00bb",
  lsquo: "\u2018", rsquo: "\u2019", ldquo: "\u201c", rdquo: "\u201d", bull: "\u2022", middot: "\u00b7", times: "\u00d7", rarr: "\u2192", larr: "\u2190", szlig: "\u00df",
};
const TAG = /<!--[^]*?(?:-->|$)|<[!?][^>]*>|<(\/?)([a-z][a-z0-9-]*)((?:[^>"']|"[^"]{0,4000}"|'[^']{0,4000}'){0,4000})>/gi;
const DEEPEST = 200;

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal?: string, hexadecimal?: string, name?: string) => {
    if (name) return ENTITIES[name] ?? whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hexadecimal ?? "", 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** Makes the elements of HTML tag by tag: no parser of the browser ever sees it, so nothing in it is loaded or run. */
function renderHtml(text: string): Node[] {
  const root = h("div");
  const open: { name: string; element: Element }[] = [{ name: "", element: root }];
  const close = (names: string[]): void => {
    for (let at = open.length - 1; at > 0 && !(SCOPES.has(open[at]?.name ?? "") && !names.includes(open[at]?.name ?? "")); at -= 1) {
      if (names.includes(open[at]?.name ?? "")) return void open.splice(at);
    }
  };
  let [at, dropped] = [0, ""];
  for (const match of text.matchAll(TAG)) {
    const [whole, slash, tag, attributes] = match;
    const [name, parent] = [(tag ?? "").toLowerCase(), open.at(-1)?.element ?? root];
    if (!dropped) parent.append(decodeEntities(text.slice(at, match.index)));
    at = match.index + whole.length;
    if (dropped) {
      if (slash && name === dropped) dropped = "";
    } else if (slash) close([name]);
    else if (DROPPED.has(name)) dropped = attributes?.endsWith("/") ? "" : name;
    else if (name) {
      close(SIBLINGS[name] ?? (BLOCKS.has(name) || SCOPES.has(name) || /^(?:pre|h[1-6])$/.test(name) ? ["p"] : []));
      const made = makeAllowed(name, attributes ?? "");
      (open.at(-1)?.element ?? root).append(...(made ? [made] : []));
      if (made instanceof Element && !["br", "hr", "img"].includes(name) && open.length < DEEPEST) open.push({ name, element: made });
    }
  }
  if (!dropped) (open.at(-1)?.element ?? root).append(decodeEntities(text.slice(at)));
  return [...root.childNodes];
}

function makeAllowed(name: string, attributes: string): Node | null {
  if (ALLOWED.has(name as Allowed)) return h(name as Allowed, name === "pre" ? { tabindex: 0 } : {});
  if (/^h[1-6]$/.test(name)) return h(headingTag(Number(name[1])), { dir: "auto" });
  if (BLOCKS.has(name)) return h("div");
  if (name === "br" || name === "hr") return h(name);
  const value = (wanted: string): string => {
    const [, double, single, bare] = new RegExp(`\\s${wanted}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, "i").exec(attributes) ?? [];
    return decodeEntities(double ?? single ?? bare ?? "");
  };
  if (name === "a") return makeAnchor(value("href"), []);
  return name === "img" ? document.createTextNode(value("alt")) : null;
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

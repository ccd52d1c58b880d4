/** A picture of few pages and their links, as vectors: sharp, in the colours of the page, and to be walked by keyboard. */

import { h, replace, svg } from "./dom";
import { type Box, type Place, bound, layOut, overlap } from "./layout";
import { type Preview, addPreview } from "./preview";

export interface DiagramNode {
  id: string;
  label: string;
  role: "start" | "hit" | "way" | "far" | "centre";
  /** From 0 to 1; of the heaviest, labels come first. */
  weight: number;
  depth: number;
  /** What a screen reader says after the label. */
  detail: string;
  preview?: () => Preview | null;
}

export interface DiagramEdge {
  source: string;
  target: string;
  label: string;
  followed: boolean;
}

export interface DiagramOptions {
  /** What it shows, in words. */
  name: string;
  open: (id: string) => void;
  /** Called with the node under the pointer or the focus, and with null when it leaves. */
  hover?: (id: string | null) => void;
  /** Returns the height for a width, in pixels. */
  height: (width: number) => number;
}

const LINE = 15;
const LABEL_GAP = 4;
const RESIZE_MS = 120;
/** With more lines, those of links that were not followed have no heads. */
const MOST_ARROWS = 24;

let pen: CanvasRenderingContext2D | null | undefined;

function measure(text: string): number {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return 6.8 * text.length;
  pen.font = "600 12.5px system-ui, sans-serif";
  return pen.measureText(text).width;
}

/** Breaks a label into at most two lines. */
export function wrapLabel(label: string, letters: number): string[] {
  const words = label.split(/\s+/).filter(Boolean);
  let first = "";
  while (words.length && (!first || first.length + 1 + (words[0]?.length ?? 0) <= letters)) first += `${first ? " " : ""}${words.shift()}`;
  return [first, words.join(" ")].filter(Boolean).map((line) => (line.length > letters + 2 ? `${line.slice(0, letters + 1).trimEnd()}\u2026` : line));
}

export class Diagram {
  readonly element: SVGSVGElement;
  private readonly parts = new Map<string, SVGElement>();
  private readonly lines: { edge: DiagramEdge; elements: SVGElement[] }[] = [];
  private places = new Map<string, Place>();
  private focused: string;
  private width = 0;
  private timer = 0;

  constructor(private readonly nodes: DiagramNode[], private readonly edges: DiagramEdge[], private readonly options: DiagramOptions) {
    this.focused = nodes[0]?.id ?? "";
    this.element = svg("svg", {
      class: "diagram", role: "group", "aria-label": `${options.name}. Arrow keys move between pages, Enter opens one.`,
      onkeydown: ((event: KeyboardEvent) => this.press(event)) as EventListener,
    });
    new ResizeObserver(() => {
      const width = Math.round(this.element.getBoundingClientRect().width);
      if (!width || width === this.width) return;
      clearTimeout(this.timer);
      if (this.width) this.timer = window.setTimeout(() => this.draw(width), RESIZE_MS);
      else this.draw(width);
    }).observe(this.element);
  }

  /** Shows a node with its links and neighbours, and all else faintly; null: all alike. */
  light(id: string | null): void {
    const near = new Set(id === null ? [] : [id]);
    for (const { edge, elements } of this.lines) {
      const touched = edge.source === id || edge.target === id;
      if (touched) near.add(edge.source).add(edge.target);
      for (const element of elements) element.classList.toggle("lit", touched);
    }
    for (const [node, element] of this.parts) element.classList.toggle("lit", near.has(node));
    this.element.classList.toggle("lighting", id !== null && this.parts.has(id));
  }

  private draw(width: number): void {
    this.width = width;
    const height = Math.round(this.options.height(width));
    const letters = width < 480 ? 16 : 24;
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.style.height = `${height}px`;
    const labels = new Map(this.nodes.map((node) => [node.id, wrapLabel(node.label, letters)]));
    const boxes = this.nodes.map((node): Box => {
      const lines = labels.get(node.id) ?? [];
      return {
        id: node.id, radius: radiusOf(node), width: Math.max(...lines.map(measure), 0) + 4, height: LINE * lines.length, weight: node.weight, depth: node.depth,
      };
    });
    this.places = layOut(boxes, this.edges.map(({ source, target }) => [source, target]), width, height);
    this.parts.clear();
    this.lines.length = 0;
    const lines = [...this.edges].sort((edge, other) => Number(edge.followed) - Number(other.followed)).map((edge) => this.drawEdge(edge));
    const texts = this.drawEdgeLabels(boxes);
    replace(this.element, svg("defs", {}, makeArrow(""), makeArrow("followed")), ...lines, ...texts,
      ...this.nodes.map((node) => this.drawNode(node, labels.get(node.id) ?? [])));
  }

  private drawNode(node: DiagramNode, lines: string[]): SVGElement {
    const [place, radius] = [this.places.get(node.id) as Place, radiusOf(node)];
    const top = place.y + (place.above ? -radius - LABEL_GAP - LINE * lines.length : radius + LABEL_GAP);
    const hover = (id: string | null) => (): void => {
      this.light(id);
      this.options.hover?.(id);
    };
    const element = svg("g", {
      class: `node ${node.role}${node.weight >= 1 ? " best" : ""}${place.bare ? " bare" : ""}`, role: "link", tabindex: node.id === this.focused ? 0 : -1,
      "aria-label": `${node.label}, ${node.detail}`, "data-id": node.id,
      onclick: () => this.options.open(node.id), onpointerenter: hover(node.id), onpointerleave: hover(null), onfocus: hover(node.id), onblur: hover(null),
    },
      svg("circle", { cx: place.x, cy: place.y, r: radius }),
      svg("text", { "aria-hidden": "true" }, ...lines.map((line, at) =>
        svg("tspan", { x: place.x, y: top + LINE * (at + 0.8) }, line))));
    this.parts.set(node.id, element);
    if (node.preview) addPreview(element, node.preview);
    return element;
  }

  private drawEdge(edge: DiagramEdge): SVGElement | null {
    const ends = this.ends(edge);
    if (!ends) return null;
    const [from, to, start, end] = ends;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [x, y] = [(to.x - from.x) / length, (to.y - from.y) / length];
    const line = svg("line", {
      class: `edge${edge.followed ? " followed" : ""}`, x1: from.x + x * (start + 1), y1: from.y + y * (start + 1),
      x2: to.x - x * (end + 3), y2: to.y - y * (end + 3),
      "marker-end": edge.followed ? "url(#arrow-followed)" : this.edges.length <= MOST_ARROWS ? "url(#arrow)" : null,
    });
    this.lines.push({ edge, elements: [line] });
    return line;
  }

  private ends(edge: DiagramEdge): [Place, Place, number, number] | null {
    const [from, to] = [this.places.get(edge.source), this.places.get(edge.target)];
    const radius = (id: string): number => radiusOf(this.nodes.find((node) => node.id === id) as DiagramNode);
    return from && to && edge.source !== edge.target ? [from, to, radius(edge.source), radius(edge.target)] : null;
  }

  /** Writes the texts of links that were followed where nothing is in the way; those of all others wait for the pointer. */
  private drawEdgeLabels(boxes: Box[]): SVGElement[] {
    const taken = boxes.map((box) => bound(box, this.places.get(box.id) as Place));
    return this.lines.flatMap(({ edge, elements }) => {
      const [from, to] = this.ends(edge) ?? [];
      if (!from || !to || !edge.label) return [];
      const text = edge.label.length > 28 ? `${edge.label.slice(0, 27).trimEnd()}\u2026` : edge.label;
      const half = (measure(text) * 0.94) / 2;
      const spots = [0.5, 0.38, 0.62].map((share) => ({ x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }));
      const around = ({ x, y }: { x: number; y: number }) => ({ left: x - half - 2, right: x + half + 2, top: y - 8, bottom: y + 8 });
      const free = spots.find((spot) => {
        const own = around(spot);
        return own.left > 0 && own.right < this.width && !taken.some((other) => overlap(own, other));
      });
      if (edge.followed && free) taken.push(around(free));
      const { x, y } = free ?? (spots[0] as { x: number; y: number });
      const middle = Math.max(half + 2, Math.min(x, this.width - half - 2));
      const element = svg("g", { class: `edge-label${edge.followed && free ? "" : " bare"}`, "aria-hidden": "true" },
        svg("rect", { x: middle - half - 2, y: y - 8, width: 2 * half + 4, height: 16, rx: 4 }), svg("text", { x: middle, y: y + 4 }, text));
      elements.push(element);
      return [element];
    });
  }

  private press(event: KeyboardEvent): void {
    const direction = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (direction) {
      event.preventDefault();
      this.parts.get(this.focused)?.setAttribute("tabindex", "-1");
      this.focused = nearestTowards(this.places, this.focused, direction);
      const next = this.parts.get(this.focused);
      next?.setAttribute("tabindex", "0");
      next?.focus();
    } else if (event.key === "Enter") this.options.open(this.focused);
  }
}

/** Returns the nearest node in a direction, or the same one where none is. */
export function nearestTowards(places: Map<string, { x: number; y: number }>, id: string, [dx, dy]: [number, number]): string {
  const from = places.get(id);
  if (!from) return id;
  let [best, least] = [id, Infinity];
  for (const [other, { x, y }] of places) {
    const [along, aside] = [(x - from.x) * dx + (y - from.y) * dy, Math.abs((x - from.x) * dy) + Math.abs((y - from.y) * dx)];
    if (other !== id && along > 0 && along + 2 * aside < least) [best, least] = [other, along + 2 * aside];
  }
  return best;
}

function radiusOf(node: DiagramNode): number {
  return node.role === "way" ? 5 : 5 + 7 * Math.sqrt(Math.max(0, Math.min(node.weight, 1)));
}

function makeArrow(name: string): SVGElement {
  return svg("marker", {
    id: name ? `arrow-${name}` : "arrow", class: name, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto",
  }, svg("path", { d: "M0 0.8 8 4 0 7.2z" }));
}

/** Makes the legend of an answer's picture. */
export function makeLegend(roles: Set<string>): HTMLElement {
  const words = { start: "matches the question", hit: "found by links", way: "on the way" } as Record<string, string>;
  return h("ul", { class: "legend" }, ...Object.entries(words).filter(([role]) => roles.has(role)).map(([role, word]) =>
    h("li", {}, h("span", { class: `key ${role}` }), word)));
}

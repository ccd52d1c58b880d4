/** A graph on a canvas, and the same nodes and links as a list: for keyboards, screen readers, and no WebGL. */

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import Sigma from "sigma";
import { count, h, replace } from "./dom";

export interface DrawnNode {
  id: string;
  label: string;
  size: number;
  color: string;
  note?: string;
  /** Where it is drawn at first, from -1 to 1; by default on a circle. */
  at?: [number, number];
}

export interface DrawnEdge {
  source: string;
  target: string;
  label: string;
  strong: boolean;
  /** Whether it is drawn only while one of its ends is selected. */
  hidden?: boolean;
}

export interface GraphOptions {
  /** What the graph shows, in words. */
  name: string;
  /** Called with a node that is opened. */
  open: (id: string) => void;
  /** Under this name the places of nodes are kept; none by default. */
  keep?: string;
  /** The canvas is this large, nodes stay at these of its points, and labels are below them; by default nodes are laid out. */
  fixed?: { width: number; height: number };
}

interface NodeAttributes {
  x: number;
  y: number;
  size: number;
  label: string;
  color: string;
}

interface EdgeAttributes {
  size: number;
  label: string;
  color: string;
  type: string;
  quiet: boolean;
  strong: boolean;
}

const MOST_LISTED = 300;
/** Up to how many nodes all have their label; of more, those whose labels do not cover each other. */
const MOST_LABELLED = 15;
const MOST_EDGE_LABELS = 300;
const SETTLING_MS = 4000;
const STEP_MS = 14;

function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The graphs that hold WebGL contexts, of which a browser allows few. */
const live = new Set<GraphView>();

export class GraphView {
  private renderer: Sigma<NodeAttributes, EdgeAttributes> | null = null;
  private graph = new Graph<NodeAttributes, EdgeAttributes>({ multi: true });
  private selected: string | null = null;
  private marked: Set<string> | null = null;
  private frame = 0;
  private readonly canvas: HTMLElement;
  private readonly list: HTMLElement;
  private readonly status: HTMLElement;
  private nodes: DrawnNode[] = [];
  private edges: DrawnEdge[] = [];

  constructor(host: HTMLElement, private readonly options: GraphOptions) {
    this.status = h("p", { class: "graph-status", role: "status" });
    this.canvas = h("div", {
      class: "graph-canvas",
      tabindex: 0,
      role: "application",
      "aria-label": `${options.name}. Arrow keys walk along links, Enter opens; the same is in the list below.`,
      onkeydown: ((event: KeyboardEvent) => this.press(event)) as EventListener,
    });
    this.list = h("div", { class: "graph-list" });
    const toggle = h("details", {}, h("summary", {}, "As a list"), this.list);
    if (options.fixed) this.canvas.style.height = `${options.fixed.height}px`;
    host.append(this.canvas, this.status, toggle);
  }

  show(nodes: DrawnNode[], edges: DrawnEdge[]): void {
    for (const view of live) if (view === this || !view.canvas.isConnected) view.stop();
    this.nodes = nodes;
    this.edges = edges;
    this.selected = null;
    this.graph = new Graph<NodeAttributes, EdgeAttributes>({ multi: true });
    const places = this.readPlaces();
    nodes.forEach((node, at) => {
      const angle = (2 * Math.PI * at) / Math.max(nodes.length, 1);
      const [x, y] = places?.[node.id] ?? node.at ?? [Math.cos(angle), Math.sin(angle)];
      this.graph.addNode(node.id, { x, y, size: node.size, label: shorten(node.label), color: node.color });
    });
    for (const edge of edges) {
      if (!this.graph.hasNode(edge.source) || !this.graph.hasNode(edge.target)) continue;
      this.graph.addEdge(edge.source, edge.target, {
        size: edge.strong ? 2 : nodes.length > 300 ? 0.4 : 1,
        label: edge.label,
        color: style(edge.strong ? "--link-strong" : "--link"),
        type: nodes.length > 300 ? "line" : "arrow",
        quiet: edge.hidden === true,
        strong: edge.strong,
      });
    }
    this.fillList();
    if (this.draw()) this.settle(this.options.fixed !== undefined || places !== null);
  }

  /** Shows some nodes as they are and all others dimmed; null: all as they are. */
  mark(ids: Set<string> | null): void {
    this.marked = ids;
    this.renderer?.refresh({ skipIndexation: true });
    this.fillList();
  }

  select(id: string | null): void {
    this.selected = id;
    this.renderer?.refresh({ skipIndexation: true });
    if (id && this.graph.hasNode(id)) {
      const links = this.graph.degree(id);
      this.status.textContent = `${this.graph.getNodeAttribute(id, "label")}: ${count(links, "link")}`;
    }
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.renderer?.kill();
    this.renderer = null;
    live.delete(this);
  }

  private draw(): boolean {
    if (!hasWebGL()) {
      this.canvas.hidden = true;
      this.status.textContent = "This browser has no WebGL, so the graph is shown as a list.";
      this.list.parentElement?.setAttribute("open", "");
      return false;
    }
    const all = this.options.fixed !== undefined || this.nodes.length <= MOST_LABELLED;
    const few = this.nodes.length <= MOST_EDGE_LABELS;
    this.renderer = new Sigma<NodeAttributes, EdgeAttributes>(this.graph, this.canvas, {
      allowInvalidContainer: true,
      defaultEdgeType: "arrow",
      renderEdgeLabels: few,
      labelColor: { color: style("--text") },
      edgeLabelColor: { color: style("--muted") },
      labelFont: "system-ui, sans-serif",
      edgeLabelFont: "system-ui, sans-serif",
      labelSize: 12,
      edgeLabelSize: 10,
      labelDensity: all ? 20 : few ? 1 : 0.3,
      labelRenderedSizeThreshold: all ? 0 : few ? 4 : 4.5,
      zIndex: true,
      stagePadding: this.options.fixed ? 0 : 40,
      defaultDrawNodeLabel: makeLabels(this.options.fixed !== undefined),
      defaultDrawNodeHover: drawHover,
      nodeReducer: (id, data) => this.dim(data, this.isBright(id)),
      edgeReducer: (edge, data) => {
        const [source, target] = this.graph.extremities(edge);
        const touched = this.selected === source || this.selected === target;
        const shown = this.dim(data, this.isBright(source) && this.isBright(target));
        if (data.quiet && !touched) return { ...shown, hidden: true };
        return data.strong || touched ? shown : { ...shown, label: "" };
      },
    });
    live.add(this);
    const fixed = this.options.fixed;
    if (fixed) this.renderer.setCustomBBox({ x: [0, fixed.width], y: [0, fixed.height] }).refresh();
    this.renderer.on("clickNode", ({ node }) => this.options.open(node));
    this.renderer.on("enterNode", ({ node }) => this.select(node));
    this.renderer.on("leaveNode", () => this.select(null));
    return true;
  }

  private isBright(id: string): boolean {
    if (this.marked && !this.marked.has(id)) return false;
    const centre = this.selected;
    return centre === null || id === centre || this.graph.areNeighbors(id, centre);
  }

  private dim<T extends { color: string; label?: string | null }>(data: T, bright: boolean): T {
    return bright ? { ...data, zIndex: 1 } : { ...data, color: style("--dimmed"), label: "", zIndex: 0 };
  }

  /** Lays the graph out, some steps a frame, and stops. Without motion, all steps come before the first frame. */
  private settle(settled: boolean): void {
    if (settled || this.graph.order < 2) return;
    const many = this.graph.order > 300;
    const settings = {
      ...forceAtlas2.inferSettings(this.graph),
      adjustSizes: false,
      barnesHutOptimize: many,
      linLogMode: many, // sets communities apart (A. Noack, Journal of Graph Algorithms and Applications 11, 2007)
      outboundAttractionDistribution: many, // pages that link to all others do not pull them together
      gravity: 1,
    };
    const rounds = many ? 120 : 300;
    const iterations = many ? 1 : 30;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const ends = performance.now() + SETTLING_MS;
    let done = 0;
    const step = (): void => {
      const until = performance.now() + (still ? SETTLING_MS : STEP_MS);
      do {
        forceAtlas2.assign(this.graph, { iterations, settings });
        done += iterations;
      } while (done < rounds && performance.now() < until);
      if (done < rounds && performance.now() < ends) this.frame = requestAnimationFrame(step);
      else this.keepPlaces();
    };
    step();
  }

  private readPlaces(): Record<string, [number, number]> | null {
    if (!this.options.keep) return null;
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.options.keep) ?? "null") as Record<string, [number, number]> | null;
      return kept && this.nodes.every((node) => node.id in kept) ? kept : null;
    } catch {
      return null;
    }
  }

  private keepPlaces(): void {
    if (!this.options.keep) return;
    const places: Record<string, [number, number]> = {};
    this.graph.forEachNode((id, { x, y }) => (places[id] = [Math.round(x * 100) / 100, Math.round(y * 100) / 100]));
    try {
      sessionStorage.setItem(this.options.keep, JSON.stringify(places));
    } catch {
      // no room: the graph is laid out anew the next time
    }
  }

  private press(event: KeyboardEvent): void {
    const directions: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
    };
    const direction = directions[event.key];
    if (direction) {
      event.preventDefault();
      this.select(this.selected === null ? (this.nodes[0]?.id ?? null) : this.nextTo(this.selected, direction));
    } else if (event.key === "Enter" && this.selected) {
      this.options.open(this.selected);
    } else if (event.key === "Escape") {
      this.select(null);
    }
  }

  /** Returns the linked node that lies most in a direction, or the node itself where none does. */
  private nextTo(id: string, [dx, dy]: [number, number]): string {
    const from = this.graph.getNodeAttributes(id);
    let best = id;
    let bestCosine = 0.1;
    this.graph.forEachNeighbor(id, (other, { x, y }) => {
      const distance = Math.hypot(x - from.x, y - from.y) || 1;
      const cosine = ((x - from.x) * dx + (y - from.y) * dy) / distance;
      if (other !== id && cosine > bestCosine) [best, bestCosine] = [other, cosine];
    });
    return best;
  }

  private fillList(): void {
    const leaving = new Map<string, DrawnEdge[]>();
    for (const edge of this.edges) {
      const known = leaving.get(edge.source);
      if (known) known.push(edge);
      else leaving.set(edge.source, [edge]);
    }
    const labels = new Map(this.nodes.map((node) => [node.id, node.label]));
    const wanted = this.nodes.filter((node) => !this.marked || this.marked.has(node.id));
    const shown = [...wanted].sort((one, other) => other.size - one.size).slice(0, MOST_LISTED);
    const rows = shown.map((node) =>
      h("li", {},
        h("button", { type: "button", class: "plain", onclick: () => this.options.open(node.id) }, node.label),
        node.note ? ` ${node.note}` : null,
        h("ul", {}, ...(leaving.get(node.id) ?? []).slice(0, 20).map((edge) =>
          h("li", {}, `${edge.label} \u2192 ${labels.get(edge.target) ?? edge.target}`))),
      ));
    const left = wanted.length - shown.length;
    replace(this.list, h("ul", { class: "nodes" }, ...rows), left > 0 && h("p", {}, `and ${left.toLocaleString("en")} more`));
    this.status.textContent = this.marked
      ? `${wanted.length.toLocaleString("en")} of ${count(this.nodes.length, "node")}`
      : `${count(this.nodes.length, "node")}, ${count(this.edges.length, "link")}`;
  }
}

interface Labelled {
  x: number;
  y: number;
  size: number;
  label?: string | null;
}

const LABEL_LETTERS = 36;

function shorten(label: string): string {
  return label.length <= LABEL_LETTERS ? label : `${label.slice(0, LABEL_LETTERS - 1)}\u2026`;
}

/** Returns what draws the label of a node: below it, or beside it where there is room, with a rim that covers lines. */
function makeLabels(below: boolean): (context: CanvasRenderingContext2D, data: Labelled) => void {
  const [rim, text] = [style("--surface"), style("--text")];
  return (context, data) => {
    if (!data.label) return;
    context.font = "12px system-ui, sans-serif";
    const width = context.measureText(data.label).width;
    const room = context.canvas.clientWidth;
    let [x, y] = [data.x + data.size + 3, data.y + 4];
    if (below) [x, y] = [Math.max(2, Math.min(data.x - width / 2, room - width - 2)), data.y + data.size + 13];
    else if (x + width > room) x = Math.max(2, data.x - data.size - 3 - width);
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = rim;
    context.fillStyle = text;
    context.strokeText(data.label, x, y);
    context.fillText(data.label, x, y);
  };
}

/** Draws the label of a node under the pointer in the colours of the page, light or dark. */
function drawHover(context: CanvasRenderingContext2D, data: Labelled): void {
  if (!data.label) return;
  context.font = "600 12px system-ui, sans-serif";
  const width = context.measureText(data.label).width;
  context.fillStyle = style("--surface");
  context.strokeStyle = style("--border");
  context.beginPath();
  context.roundRect(data.x + data.size, data.y - 11, width + 14, 22, 5);
  context.fill();
  context.stroke();
  context.fillStyle = style("--text");
  context.fillText(data.label, data.x + data.size + 7, data.y + 4);
}

let webgl: boolean | null = null;

function hasWebGL(): boolean {
  if (webgl === null) {
    const context = document.createElement("canvas").getContext("webgl2");
    webgl = context !== null;
    context?.getExtension("WEBGL_lose_context")?.loseContext();
  }
  return webgl;
}

/** A map of many nodes on a canvas, and the same as a list: for keyboards, screen readers, and no WebGL. */

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";
import Sigma from "sigma";
import { count, h, replace } from "./dom";
import { type Label, placeLabels } from "./labels";

export interface DrawnNode {
  id: string;
  label: string;
  size: number;
  color: string;
  detail: string;
  /** Where it is drawn at first. */
  at: [number, number];
  /** Whether it is the centre of its community, whose name stands before others. */
  centre: boolean;
}

export interface DrawnEdge {
  source: string;
  target: string;
  label: string;
  /** Whether it is drawn only while one of its ends is selected. */
  hidden: boolean;
}

export interface GraphOptions {
  /** What the graph shows, in words. */
  name: string;
  /** Called with a node that is opened. */
  open: (id: string) => void;
  /** Under this name the places of nodes are kept. */
  keep: string;
  /** Whether the map stays as it is under wheel and fingers. */
  still?: boolean;
  /** What stands below the map, beside the number of its nodes. */
  more?: HTMLElement | null;
}

interface NodeAttributes {
  x: number;
  y: number;
  size: number;
  color: string;
}

interface EdgeAttributes {
  size: number;
  color: string;
  quiet: boolean;
}

const MOST_LISTED = 300;
/** Of more nodes, the layout is another one, and lines are thinner. */
const MANY = 300;
/** Of more nodes, a map that stays as it is names only the centres. */
const FEW = 60;
/** After more rounds, groups that are discs at first run into each other. */
const ROUNDS_OF_MANY = 30;
const SETTLING_MS = 4000;
const STEP_MS = 14;
const ZOOM_MS = 400;

/** The graphs that hold WebGL contexts, of which a browser allows few. */
const live = new Set<GraphView>();

export class GraphView {
  private renderer: Sigma<NodeAttributes, EdgeAttributes> | null = null;
  private graph = new Graph<NodeAttributes, EdgeAttributes>({ multi: true });
  private selected: string | null = null;
  private marked: Set<string> | null = null;
  private frame = 0;
  private readonly canvas: HTMLElement;
  private readonly labels = h("canvas", { class: "graph-labels", "aria-hidden": "true" });
  private readonly list: HTMLElement;
  private readonly status: HTMLElement;
  private nodes: DrawnNode[] = [];
  private edges: DrawnEdge[] = [];
  private byWeight: DrawnNode[] = [];

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
    host.prepend(this.canvas, h("div", { class: "map-foot" }, this.status, options.more, h("details", { class: "as-list" }, h("summary", {}, "As a list"), this.list)));
  }

  show(nodes: DrawnNode[], edges: DrawnEdge[]): void {
    for (const view of live) if (view === this || !view.canvas.isConnected) view.stop();
    this.nodes = nodes;
    this.edges = edges;
    this.byWeight = [...nodes].sort((node, other) => Number(other.centre) - Number(node.centre) || other.size - node.size);
    this.selected = null;
    this.graph = new Graph<NodeAttributes, EdgeAttributes>({ multi: true });
    const places = this.readPlaces();
    for (const node of nodes) {
      const [x, y] = places?.[node.id] ?? node.at;
      this.graph.addNode(node.id, { x, y, size: node.size, color: node.color });
    }
    for (const edge of edges) {
      if (!this.graph.hasNode(edge.source) || !this.graph.hasNode(edge.target)) continue;
      this.graph.addEdge(edge.source, edge.target, { size: nodes.length > MANY ? 0.5 : 1, color: this.style("--line"), quiet: edge.hidden });
    }
    this.fillList();
    if (this.draw()) this.settle(places !== null);
  }

  /** Colours the nodes anew, by id. */
  colour(colours: Map<string, string>): void {
    for (const [id, color] of colours) if (this.graph.hasNode(id)) this.graph.setNodeAttribute(id, "color", color);
  }

  /** Shows some nodes as they are and all others dimmed; null: all as they are. */
  mark(ids: Set<string> | null): void {
    this.marked = ids;
    this.renderer?.refresh({ skipIndexation: true });
    this.fillList();
  }

  /** Brings some nodes close, or all with null. */
  zoomTo(ids: Iterable<string> | null): void {
    const camera = this.renderer?.getCamera();
    if (!camera) return;
    const places = [...(ids ?? [])].map((id) => this.renderer?.getNodeDisplayData(id)).filter((place) => place !== undefined);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const state = { x: 0.5, y: 0.5, ratio: 1 };
    if (places.length) {
      const [xs, ys] = [places.map(({ x }) => x).sort(ascending), places.map(({ y }) => y).sort(ascending)];
      const within = (values: number[]): [number, number] => [values[Math.floor(values.length * 0.05)] ?? 0, values[Math.ceil(values.length * 0.95) - 1] ?? 0];
      const [[left, right], [bottom, top]] = [within(xs), within(ys)];
      Object.assign(state, { x: (left + right) / 2, y: (top + bottom) / 2, ratio: Math.max(0.12, Math.min(1, 1.4 * Math.max(right - left, top - bottom))) });
    }
    if (still) camera.setState(state);
    else void camera.animate(state, { duration: ZOOM_MS });
  }

  zoom(nearer: boolean): void {
    const camera = this.renderer?.getCamera();
    void (nearer ? camera?.animatedZoom({ duration: ZOOM_MS }) : camera?.animatedUnzoom({ duration: ZOOM_MS }));
  }

  select(id: string | null): void {
    this.selected = id;
    this.renderer?.refresh({ skipIndexation: true });
    const node = id === null ? undefined : this.nodes.find((other) => other.id === id);
    if (node) this.status.textContent = `${node.label}: ${count(this.graph.degree(node.id), "link")}`;
    else this.countNodes();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.renderer?.kill();
    this.renderer = null;
    live.delete(this);
  }

  private style(name: string): string {
    return getComputedStyle(this.canvas).getPropertyValue(name).trim();
  }

  private draw(): boolean {
    if (!hasWebGL()) {
      this.canvas.hidden = true;
      this.status.textContent = "This browser has no WebGL, so the graph is shown as a list.";
      this.list.parentElement?.setAttribute("open", "");
      return false;
    }
    const dimmed = this.style("--dimmed");
    const dim = <T extends { color: string }>(data: T, bright: boolean): T => (bright ? { ...data, zIndex: 1 } : { ...data, color: dimmed, zIndex: 0 });
    this.renderer = new Sigma<NodeAttributes, EdgeAttributes>(this.graph, this.canvas, {
      allowInvalidContainer: true,
      renderLabels: false,
      zIndex: true,
      stagePadding: 48,
      enableCameraZooming: !this.options.still,
      enableCameraPanning: !this.options.still,
      defaultDrawNodeHover: () => undefined, // the name of the selected node is among the labels
      nodeReducer: (id, data) => dim(data, this.isBright(id)),
      edgeReducer: (edge, data) => {
        const [source, target] = this.graph.extremities(edge);
        const touched = this.selected === source || this.selected === target;
        if ((data.quiet && !touched) || (this.selected !== null && !touched)) return { ...data, hidden: true };
        if (touched) return { ...data, color: this.style("--accent"), size: 1.2, zIndex: 1 };
        return this.isBright(source) && this.isBright(target) ? data : { ...data, hidden: true };
      },
    });
    live.add(this);
    this.canvas.append(this.labels);
    this.renderer.on("clickNode", ({ node }) => this.options.open(node));
    this.renderer.on("enterNode", ({ node }) => {
      this.canvas.style.cursor = "pointer";
      this.select(node);
    });
    this.renderer.on("leaveNode", () => {
      this.canvas.style.cursor = "";
      this.select(null);
    });
    this.renderer.on("afterRender", () => this.writeLabels());
    this.renderer.scheduleRender();
    return true;
  }

  /** Writes as many names as have room: of the selected node and its neighbours first, then of centres and large nodes. */
  private writeLabels(): void {
    const [renderer, pen] = [this.renderer, this.labels.getContext("2d")];
    if (!renderer || !pen) return;
    const { width, height } = renderer.getDimensions();
    const scale = devicePixelRatio || 1;
    if (this.labels.width !== Math.round(width * scale) || this.labels.height !== Math.round(height * scale)) {
      [this.labels.width, this.labels.height] = [Math.round(width * scale), Math.round(height * scale)];
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const chosen = this.selected;
    const near = chosen === null ? null : new Set([chosen, ...this.graph.neighbors(chosen)]);
    const first = near ? this.byWeight.filter((node) => near.has(node.id)).sort((node, other) => Number(other.id === chosen) - Number(node.id === chosen)) : [];
    const few = this.options.still && this.nodes.length > FEW;
    const rest = near ? [] : this.byWeight.filter((node) => (!few || node.centre) && (!this.marked || this.marked.has(node.id)));
    const sans = this.style("--sans");
    const fonts = { bold: `600 13px ${sans}`, plain: `400 12px ${sans}` };
    const wanted = (function* (nodes: DrawnNode[], graph: Graph<NodeAttributes, EdgeAttributes>): Generator<Label> {
      for (const node of nodes) {
        const { x, y } = renderer.graphToViewport(graph.getNodeAttributes(node.id));
        if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
        const bold = node.centre || node.id === chosen;
        const text = shorten(node.label);
        pen.font = bold ? fonts.bold : fonts.plain;
        yield { text, bold, x, y, radius: renderer.scaleSize(node.size), width: pen.measureText(text).width };
      }
    })([...first, ...rest], this.graph);
    pen.lineJoin = "round";
    pen.lineWidth = 4;
    pen.strokeStyle = this.style("--paper");
    pen.fillStyle = this.style("--ink");
    for (const { label, left, baseline } of placeLabels(wanted, width, height)) {
      pen.font = label.bold ? fonts.bold : fonts.plain;
      pen.strokeText(label.text, left, baseline);
      pen.fillText(label.text, left, baseline);
    }
  }

  private isBright(id: string): boolean {
    if (this.marked && !this.marked.has(id)) return false;
    const centre = this.selected;
    return centre === null || id === centre || this.graph.areNeighbors(id, centre);
  }

  /** Lays the graph out, some steps a frame, and stops. Without motion, all steps come before the first frame. */
  private settle(settled: boolean): void {
    if (settled || this.graph.order < 2) return;
    const many = this.graph.order > MANY;
    const settings = {
      ...forceAtlas2.inferSettings(this.graph),
      adjustSizes: false,
      barnesHutOptimize: many,
      linLogMode: many, // sets communities apart (A. Noack, Journal of Graph Algorithms and Applications 11, 2007)
      outboundAttractionDistribution: many, // pages that link to all others do not pull them together
      gravity: 1,
    };
    const rounds = many ? ROUNDS_OF_MANY : 300;
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
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.options.keep) ?? "null") as Record<string, [number, number]> | null;
      return kept && this.nodes.every((node) => node.id in kept) ? kept : null;
    } catch {
      return null;
    }
  }

  private keepPlaces(): void {
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
      this.select(this.selected === null ? (this.byWeight[0]?.id ?? null) : this.nextTo(this.selected, direction));
    } else if (event.key === "Enter" && this.selected) {
      this.options.open(this.selected);
    } else if (event.key === "Escape") {
      this.select(null);
    } else if (event.key === "+" || event.key === "-") {
      this.zoom(event.key === "+");
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
      const own = leaving.get(edge.source);
      if (own) own.push(edge);
      else leaving.set(edge.source, [edge]);
    }
    const labels = new Map(this.nodes.map((node) => [node.id, node.label]));
    const wanted = this.byWeight.filter((node) => !this.marked || this.marked.has(node.id));
    const shown = [...wanted].sort((node, other) => other.size - node.size).slice(0, MOST_LISTED);
    const rows = shown.map((node) =>
      h("li", {},
        h("button", { type: "button", class: "plain", onclick: () => this.options.open(node.id) }, node.label),
        ` ${node.detail}`,
        h("ul", {}, ...(leaving.get(node.id) ?? []).slice(0, 20).map((edge) =>
          h("li", {}, `${edge.label} \u2192 ${labels.get(edge.target) ?? edge.target}`))),
      ));
    const left = wanted.length - shown.length;
    replace(this.list, h("ul", { class: "nodes" }, ...rows), left > 0 && h("p", {}, `and ${left.toLocaleString("en")} more`));
    this.countNodes();
  }

  private countNodes(): void {
    this.status.textContent = this.marked
      ? `${this.marked.size.toLocaleString("en")} of ${count(this.nodes.length, "page")}`
      : count(this.nodes.length, "page");
  }
}

const LABEL_LETTERS = 36;

function shorten(label: string): string {
  return label.length <= LABEL_LETTERS ? label : `${label.slice(0, LABEL_LETTERS - 1).trimEnd()}\u2026`;
}

function ascending(value: number, other: number): number {
  return value - other;
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

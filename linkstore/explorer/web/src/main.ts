/** The start: finds the data of the page, and shows the view that its address names. */

import { showAnswer } from "./answer";
import { AskView, showStart } from "./ask";
import { CorpusView } from "./corpus";
import { type Source, Unauthorized, keepToken, server, takeToken } from "./data";
import { DocumentView } from "./document";
import { addressOf, count, h, message, replace, svg } from "./dom";
import { AskForm, DEFAULTS, readAsked } from "./form";
import { MemoryView } from "./memory";
import type { PageData, StoreData } from "./types";

const VIEWS: [string, string][] = [["ask", "Ask"], ["corpus", "Map"], ["memory", "Memory"]];

function openDocument(id: string, question = ""): void {
  location.hash = addressOf(id, question);
}

function makeBrand(name: string, href: string | null): HTMLElement {
  const glyph = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { class: "line", d: "M6 17 12 6l7 9" }), svg("circle", { class: "dot", cx: 6, cy: 17, r: 3.5 }),
    svg("circle", { class: "dot", cx: 12, cy: 6, r: 3.5 }), svg("circle", { class: "dot by", cx: 19, cy: 15, r: 3.5 }));
  glyph.querySelector("path")?.setAttribute("fill", "none");
  return href ? h("a", { class: "brand", href }, glyph, h("span", {}, name)) : h("span", { class: "brand" }, glyph, h("span", {}, name));
}

class App {
  private readonly main = h("main", { id: "view", tabindex: -1 });
  private readonly tabs = h("nav", { "aria-label": "Views" });
  private readonly slot = h("div", { class: "slot" });
  private readonly brand: HTMLElement;
  private readonly form: AskForm;
  private readonly ask: AskView;
  private readonly documents: DocumentView;
  private readonly corpus: CorpusView;
  private readonly memory: MemoryView;

  constructor(host: HTMLElement, private readonly source: Source, private readonly store: StoreData) {
    this.form = new AskForm(store, () => void this.ask.search());
    this.ask = new AskView(source, openDocument);
    this.documents = new DocumentView(source, openDocument, store.write);
    this.corpus = new CorpusView(source, openDocument, store.write);
    this.memory = new MemoryView(source, (path) => {
      location.hash = `#/memory?${new URLSearchParams({ session: path }).toString()}`;
    });
    this.brand = makeBrand(store.name, "#/ask");
    replace(host, h("header", { class: "bar" }, this.brand, this.slot, this.tabs), this.main);
    addEventListener("hashchange", () => this.route());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.route());
    this.showSize(store.documents, store.pages);
    this.route();
  }

  private route(): void {
    const [path = "", text = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const query = new URLSearchParams(text);
    const shown = VIEWS.filter(([name]) => name !== "memory" || this.store.memory);
    replace(this.tabs, ...shown.map(([name, label]) =>
      h("a", { href: `#/${name}`, "aria-current": name === (path || "ask") ? "page" : null }, label)));
    // An element for each: what a view that was left still waits for comes into none that is shown.
    const host = h("div");
    replace(this.main, host);
    scrollTo(0, 0);
    const asked = readAsked(query);
    this.form.fill(path === "corpus" || path === "memory" ? { question: "", settings: [DEFAULTS] } : asked);
    const starts = !asked.question && !["document", "corpus", "memory"].includes(path);
    if (!starts) replace(this.slot, this.form.element);
    if (path === "document") void this.documents.show(host, query.get("id") ?? "", asked.question);
    else if (path === "corpus") void this.corpus.show(host);
    else if (path === "memory" && this.store.memory) void this.memory.show(host, query.get("session") ?? "");
    else if (starts) void showStart(host, this.source, this.store, this.form, openDocument);
    else void this.ask.show(host, asked);
    this.source.store().then(({ documents, pages }) => this.showSize(documents, pages), () => undefined); // the view says why
  }

  private showSize(documents: number, pages: number): void {
    this.brand.title = count(documents, "document") + (pages ? `, ${count(pages, "page")}` : "");
  }
}

async function start(host: HTMLElement): Promise<void> {
  takeToken();
  try {
    new App(host, server, await server.store());
  } catch (error) {
    if (!(error instanceof Unauthorized)) return replace(host, h("main", { class: "page-body" }, message((error as Error).message, "error")));
    const token = h("input", { type: "password", "aria-label": "Token", required: true });
    const form = h("form", { class: "row" }, token, h("button", { type: "submit" }, "Open"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      keepToken(token.value.trim());
      void start(host);
    });
    replace(host, h("main", { class: "page-body" }, message("Open the address that `linkstore serve` printed, or enter its token:"), form));
  }
}

/** Shows the data of a page in an element. */
function mount(host: HTMLElement, data: PageData): void {
  host.classList.add("linkstore");
  if (data.mode === "server") return void start(host);
  const main = h("main");
  if (data.mode === "answer") {
    const title = data.answer.question || "Hits";
    replace(host, h("header", { class: "bar" }, makeBrand(title, null)), main);
    replace(main, h("div", { class: "page-body" }, h("h1", { class: "hush" }, title), showAnswer(data.answer, null)));
  } else {
    const status = h("p", { role: "status", class: "hush" });
    replace(host, h("header", { class: "bar" }, makeBrand(document.title || "linkstore", null)), main, status);
    void new CorpusView(null, (id) => (status.textContent = id), false).show(main, data.corpus);
  }
}

const given = document.getElementById("linkstore-data");
const place = document.getElementById("linkstore");
if (given && place) mount(place, JSON.parse(given.textContent ?? "{}") as PageData);

/** The widget of a notebook: see https://anywidget.dev. */
export default {
  render({ model, el }: { model: { get(name: string): unknown }; el: HTMLElement }): void {
    mount(el, model.get("data") as PageData);
  },
};

/** The start: finds the data of the page, and shows the view that its address names. */

import { AskView, readAsked, showAnswer } from "./ask";
import { CorpusView } from "./corpus";
import { type Source, Unauthorized, keepToken, server, takeToken } from "./data";
import { DocumentView } from "./document";
import { count, h, message, replace } from "./dom";
import { MemoryView } from "./memory";
import type { PageData, StoreData } from "./types";

const VIEWS: [string, string][] = [["ask", "Ask"], ["corpus", "Corpus"], ["memory", "Memory"]];

function openDocument(id: string, hops = 1): void {
  location.hash = `#/document?${new URLSearchParams({ id, hops: String(hops) }).toString()}`;
}

class App {
  private readonly main = h("main", { id: "view", tabindex: -1 });
  private readonly size = h("p", { class: "muted" });
  private readonly tabs = h("nav", { "aria-label": "Views" });
  private readonly ask: AskView;
  private readonly documents: DocumentView;
  private readonly corpus: CorpusView;
  private readonly memory: MemoryView;

  constructor(host: HTMLElement, private readonly source: Source, private readonly store: StoreData) {
    this.ask = new AskView(source, store, openDocument);
    this.documents = new DocumentView(source, openDocument, store.write);
    this.corpus = new CorpusView(source, openDocument, store.write);
    this.memory = new MemoryView(source, (path) => {
      location.hash = `#/memory?${new URLSearchParams({ session: path }).toString()}`;
    });
    replace(host,
      h("header", {}, h("h1", {}, store.name), this.size, this.tabs),
      this.main,
      h("datalist", { id: "kinds" }, ...Object.keys(store.links).map((kind) => h("option", { value: kind }))));
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
    if (path === "document") void this.documents.show(host, query.get("id") ?? "", Number(query.get("hops") ?? 1));
    else if (path === "corpus") void this.corpus.show(host);
    else if (path === "memory" && this.store.memory) void this.memory.show(host, query.get("session") ?? "");
    else void this.ask.show(host, readAsked(query));
    this.source.store().then(({ documents, pages }) => this.showSize(documents, pages), () => undefined); // the view says why
  }

  private showSize(documents: number, pages: number): void {
    this.size.textContent = count(documents, "document") + (pages ? `, ${count(pages, "page")}` : "");
  }
}

async function start(host: HTMLElement): Promise<void> {
  takeToken();
  try {
    new App(host, server, await server.store());
  } catch (error) {
    if (!(error instanceof Unauthorized)) return replace(host, message((error as Error).message, "error"));
    const token = h("input", { type: "password", "aria-label": "Token", required: true });
    const form = h("form", { class: "row" }, token, h("button", { type: "submit" }, "Open"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      keepToken(token.value.trim());
      void start(host);
    });
    replace(host, message("Open the address that `linkstore serve` printed, or enter its token:"), form);
  }
}

/** Shows the data of a page in an element. */
function mount(host: HTMLElement, data: PageData): void {
  host.classList.add("linkstore");
  const note = h("p", { role: "status", class: "muted" });
  const tell = (id: string): void => {
    note.textContent = id;
    host.querySelector(`[data-id="${CSS.escape(id)}"]`)?.scrollIntoView({ block: "nearest" });
  };
  if (data.mode === "server") void start(host);
  else if (data.mode === "answer") {
    replace(host, h("header", {}, h("h1", {}, data.answer.question || "Hits")), h("main", {}, showAnswer(data.answer, tell)), note);
  } else {
    const main = h("main");
    replace(host, h("header", {}, h("h1", {}, document.title || "linkstore")), main, note);
    void new CorpusView(null, tell, false).show(main, data.corpus);
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

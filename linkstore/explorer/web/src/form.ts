/** The field for questions, with the settings of a search behind one button. */

import { h, replace, svg } from "./dom";
import type { Settings, StoreData } from "./types";

export interface Asked {
  question: string;
  settings: Settings[];
}

export const DEFAULTS: Settings = { strategy: "pagerank", k: 10, depth: null, kinds: null, filter: null };

/** Reads the question and the settings of a permalink. */
export function readAsked(query: URLSearchParams): Asked {
  const settings = query.getAll("s").slice(0, 2).map((text) => {
    try {
      return { ...DEFAULTS, ...(JSON.parse(text) as Partial<Settings>) };
    } catch {
      return DEFAULTS;
    }
  });
  return { question: query.get("q") ?? "", settings: settings.length ? settings : [DEFAULTS] };
}

export function writeAsked({ question, settings }: Asked): string {
  const query = new URLSearchParams({ q: question });
  const changes = settings.map((chosen) => Object.entries(chosen).filter(([name, value]) => value !== DEFAULTS[name as keyof Settings]));
  if (changes.length > 1 || changes[0]?.length) for (const changed of changes) query.append("s", JSON.stringify(Object.fromEntries(changed)));
  return `#/ask?${query.toString()}`;
}

export class AskForm {
  readonly element: HTMLFormElement;
  private readonly question: HTMLInputElement;
  private readonly toggle: HTMLButtonElement;
  private readonly options = h("div", { class: "options", id: "options", hidden: true });
  private readonly fault = h("p", { class: "error", role: "alert", hidden: true });
  private asked: Asked = { question: "", settings: [DEFAULTS] };

  /** Makes the field; `again` is called for a question that is asked a second time. */
  constructor(private readonly store: StoreData, private readonly again: () => void) {
    this.question = h("input", { name: "q", type: "search", placeholder: `Ask ${store.name}`, "aria-label": "Question", required: true, autocomplete: "off" });
    this.toggle = h("button", { type: "button", "aria-expanded": "false", "aria-controls": "options", onclick: () => this.show(this.options.hidden) },
      svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: "M1 4h8M13 4h2M1 12h2M7 12h8" }), svg("circle", { cx: 11, cy: 4, r: 2 }), svg("circle", { cx: 5, cy: 12, r: 2 })),
      h("span", {}, "Options"));
    this.element = h("form", {
      class: "ask", role: "search",
      onsubmit: ((event: Event) => {
        event.preventDefault();
        this.submit();
      }) as EventListener,
      onkeydown: ((event: KeyboardEvent) => {
        if (event.key !== "Escape" || this.options.hidden) return;
        this.show(false);
        this.toggle.focus();
      }) as EventListener,
    },
      h("div", { class: "field" }, this.question, this.toggle, h("button", { type: "submit" }, "Ask")),
      this.options,
      h("datalist", { id: "kinds" }, ...Object.keys(store.links).map((kind) => h("option", { value: kind }))));
    addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target as Node)) this.show(false);
    });
  }

  /** Shows a question with its settings. */
  fill(asked: Asked): void {
    this.asked = asked;
    this.question.value = asked.question;
    this.toggle.classList.toggle("changed", writeAsked({ ...asked, question: "" }).includes("s="));
    this.show(false);
    this.drawOptions();
  }

  focus(): void {
    this.question.focus({ preventScroll: true });
  }

  private show(open: boolean): void {
    this.options.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
  }

  private submit(): void {
    this.fault.hidden = true;
    try {
      const next = writeAsked({ question: this.question.value, settings: this.read() });
      this.show(false);
      if (location.hash === next) this.again();
      else location.hash = next;
    } catch (error) {
      this.show(true);
      replace(this.fault, (error as Error).message);
      this.fault.hidden = false;
    }
  }

  private drawOptions(): void {
    const compare = h("input", { type: "checkbox", name: "compare", checked: this.asked.settings.length > 1 });
    compare.addEventListener("change", () => {
      const settings = this.read();
      const second: Settings = { ...(settings[0] ?? DEFAULTS), depth: 0 };
      if (!this.listDepths(second.strategy).includes(0)) Object.assign(second, { strategy: "similarity", depth: null, kinds: null });
      this.asked = { question: this.question.value, settings: compare.checked ? [settings[0] ?? DEFAULTS, second] : settings.slice(0, 1) };
      this.drawOptions();
      this.options.querySelector<HTMLInputElement>("input[name=compare]")?.focus();
    });
    replace(this.options, ...this.asked.settings.map((settings, at) => this.makeSettings(settings, at)),
      h("label", { class: "compare" }, compare, "Compare two settings side by side"), this.fault);
  }

  private makeSettings(settings: Settings, at: number): HTMLElement {
    const strategy = h("select", { name: `strategy${at}` },
      ...this.store.strategies.map(({ name }) => h("option", { value: name, selected: name === settings.strategy }, name)));
    const depth = h("select", { name: `depth${at}` });
    const kinds = h("input", { name: `kinds${at}`, value: (settings.kinds ?? []).join(", "), placeholder: "all", list: "kinds" });
    const adapt = (): void => {
      const chosen = depth.value || String(settings.depth ?? "");
      const depths = this.listDepths(strategy.value);
      replace(depth, ...["", ...depths.map(String)].map((value) => h("option", { value, selected: value === chosen }, value || "default")));
      depth.disabled = !depths.length;
      kinds.disabled = !this.store.strategies.find(({ name }) => name === strategy.value)?.kinds;
    };
    strategy.addEventListener("change", adapt);
    adapt();
    return h("fieldset", { class: "settings" },
      h("legend", { class: "label" }, this.asked.settings.length > 1 ? `Settings ${at + 1}` : "Settings of the search"),
      h("label", {}, "Strategy", strategy),
      h("label", {}, "Links to follow in a row", depth),
      h("label", {}, "Results", h("input", { name: `k${at}`, type: "number", min: 1, max: 100, value: settings.k })),
      h("label", {}, "Kinds of links", kinds),
      h("label", {}, "Filter", h("input", {
        name: `filter${at}`, value: settings.filter ? JSON.stringify(settings.filter) : "", placeholder: '{"lang": "en"}', spellcheck: "false",
      })));
  }

  private listDepths(strategy: string): number[] {
    return this.store.strategies.find(({ name }) => name === strategy)?.depths ?? [];
  }

  private read(): Settings[] {
    const data = new FormData(this.element);
    return this.asked.settings.map((_, at) => {
      const text = (name: string): string => String(data.get(`${name}${at}`) ?? "").trim();
      const kinds = text("kinds").split(",").map((kind) => kind.trim()).filter(Boolean);
      let filter: Settings["filter"] = null;
      if (text("filter")) {
        try {
          filter = JSON.parse(text("filter")) as Record<string, unknown>;
        } catch {
          throw new Error(`the filter is not JSON such as {"lang": "en"}: ${text("filter")}`);
        }
      }
      return {
        strategy: text("strategy"), k: Number(text("k")) || DEFAULTS.k,
        depth: text("depth") === "" ? null : Number(text("depth")), kinds: kinds.length ? kinds : null, filter,
      };
    });
  }
}

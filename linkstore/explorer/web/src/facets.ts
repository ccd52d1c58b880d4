/** Menus that narrow an answer by metadata: each makes a condition of the filter of a search. */

import type { Source } from "./data";
import { h, replace } from "./dom";
import { DEFAULTS, writeAsked } from "./form";
import type { Facets, Settings } from "./types";

type Filter = Record<string, unknown>;

/** The menu that was used last: an answer draws the menus anew, and who used one by keyboard goes on there. */
let used = "";

/** Draws the menus of an answer, once the values are counted; of a field with a condition, as if it had none. */
export async function drawFacets(host: HTMLElement, source: Source, question: string, settings: Settings): Promise<void> {
  const filter = settings.filter ?? {};
  const named = Object.keys(filter).filter((name) => !name.startsWith("$"));
  const count = (left: string | null): Promise<Facets> => source.facets(question, { ...settings, filter: without(filter, left) });
  const [all, ...others] = await Promise.all([null, ...named].map(count)).catch(() => []); // the answer says what is wrong
  if (!all) return;
  const menus = new Map([...named.map((name, at): [string, Facets[string]] => [name, others[at]?.[name] ?? []]), ...Object.entries(all).filter(([name]) => !(name in filter))]);
  replace(host, ...[...menus].map(([name, values]) => makeMenu(name, values, question, settings)));
  host.querySelector<HTMLElement>(`[name="${CSS.escape(used)}"]`)?.focus({ preventScroll: true });
  used = "";
}

function makeMenu(name: string, values: Facets[string], question: string, settings: Settings): HTMLElement {
  const filter = settings.filter ?? {};
  const label = name === "page" ? "folder" : name;
  const chosen = name in filter ? JSON.stringify(filter[name]) : "";
  const options = new Map(values.map((value) => [JSON.stringify(value.condition), `${value.label} (${value.pages.toLocaleString("en")})`]));
  if (chosen && !options.has(chosen)) options.set(chosen, typeof filter[name] === "object" ? chosen : String(filter[name]));
  const menu = h("select", { name, "aria-label": label, class: chosen ? "chosen" : null, title: "Counted over the 100 best passages" },
    h("option", { value: "" }, `${label}: any`),
    ...[...options].map(([value, text]) => h("option", { value, selected: value === chosen }, value === chosen ? `${label}: ${text}` : text)));
  menu.addEventListener("change", () => {
    const next = { ...without(filter, name), ...(menu.value ? { [name]: JSON.parse(menu.value) as unknown } : {}) };
    used = name;
    location.hash = writeAsked({ question, settings: [{ ...settings, filter: Object.keys(next).length ? next : DEFAULTS.filter }] });
  });
  return menu;
}

function without(filter: Filter, left: string | null): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([name]) => name !== left));
}

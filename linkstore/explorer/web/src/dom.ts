/** Elements, made without any HTML: texts of a store are texts, whatever they contain. */

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | EventListener>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
}

/** Makes an element; `on…` attributes are listeners, and `true` is an attribute without a value. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Makes an element of a picture. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

export function replace(host: Element, ...children: Child[]): void {
  host.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
}

/** Returns an address that a browser may open, with a fragment that leads to a passage; else null. */
export function webAddress(url: string | null, passage = ""): string | null {
  if (!url || !/^https?:\/\//i.test(url)) return null;
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return null;
  }
  if (!passage) return parsed.href;
  const words = encodeURIComponent(passage).replaceAll("-", "%2D");
  const fragment = parsed.hash ? parsed.hash.slice(1) : "";
  parsed.hash = "";
  return `${parsed.href}#${fragment}:~:text=${words}`;
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Makes a link out of the page, or null where the address is none of the web. */
export function outLink(text: string, url: string | null, passage = ""): HTMLElement | null {
  const address = webAddress(url, passage);
  return address ? h("a", { class: "out", href: address, target: "_blank", rel: "noopener noreferrer" }, text) : null;
}

export function message(text: string, kind: "status" | "error" = "status"): HTMLElement {
  return h("p", { class: kind, role: kind === "error" ? "alert" : "status" }, text);
}

/** Returns the address of a document within this page. */
export function addressOf(id: string, question = ""): string {
  return `#/document?${new URLSearchParams(question ? { id, q: question } : { id }).toString()}`;
}

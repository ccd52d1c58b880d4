/** What a link leads to, in a card beside it, while the pointer or the focus is on it. */

import { h } from "./dom";

export interface Preview {
  title: string;
  text: string;
}

const DELAY_MS = 150;
let card: HTMLElement | null = null;
let timer = 0;

export function hidePreview(): void {
  clearTimeout(timer);
  card?.remove();
  card = null;
}

/** Shows a card beside an element while somebody points at it or has come to it by keyboard. */
export function addPreview<T extends HTMLElement | SVGElement>(element: T, make: () => Preview | null): T {
  const show = (): void => {
    hidePreview();
    const content = make();
    const host = element.closest(".linkstore");
    if (!content || !host) return;
    card = h("div", { class: "preview", role: "tooltip" }, h("b", { dir: "auto" }, content.title), h("span", { dir: "auto" }, content.text));
    host.append(card);
    const [box, own] = [element.getBoundingClientRect(), card.getBoundingClientRect()];
    const below = box.bottom + 8 + own.height <= innerHeight || box.top < own.height + 8;
    card.style.left = `${Math.max(16, Math.min(box.left, innerWidth - own.width - 16))}px`;
    card.style.top = `${below ? box.bottom + 8 : box.top - own.height - 8}px`;
  };
  element.addEventListener("pointerenter", ((event: PointerEvent) => {
    if (event.pointerType === "touch") return;
    clearTimeout(timer);
    timer = window.setTimeout(show, DELAY_MS);
  }) as EventListener);
  element.addEventListener("focus", () => {
    if (element.matches(":focus-visible")) show();
  });
  for (const end of ["pointerleave", "blur", "click"]) element.addEventListener(end, hidePreview);
  return element;
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape") hidePreview();
});
addEventListener("hashchange", hidePreview);
addEventListener("scroll", hidePreview, { passive: true });

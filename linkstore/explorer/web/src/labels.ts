/** Where the names of a map's nodes are written, so that none covers another. */

import { overlap } from "./layout";

export interface Label {
  text: string;
  bold: boolean;
  /** The place and the radius of its node, in pixels. */
  x: number;
  y: number;
  radius: number;
  width: number;
}

export interface Written {
  label: Label;
  left: number;
  baseline: number;
}

const HEIGHT = 16;
const GAP = 4;
/** One label for so many square pixels, at most. */
const ROOM = 22_000;
const MOST_TRIED = 600;

/** Places labels beside, below or above their nodes, the first ones first; what has no room is left out. */
export function placeLabels(labels: Iterable<Label>, width: number, height: number): Written[] {
  const taken: { left: number; right: number; top: number; bottom: number }[] = [];
  const written: Written[] = [];
  const most = Math.max(8, (width * height) / ROOM);
  let tried = 0;
  for (const label of labels) {
    if (written.length >= most || (tried += 1) > MOST_TRIED) break;
    const away = label.radius + GAP;
    const spots: [number, number][] = [
      [label.x + away, label.y], [label.x - away - label.width, label.y],
      [label.x - label.width / 2, label.y + away + HEIGHT / 2], [label.x - label.width / 2, label.y - away - HEIGHT / 2],
    ];
    for (const [left, middle] of spots) {
      const own = { left: left - GAP, right: left + label.width + GAP, top: middle - HEIGHT / 2 - 1, bottom: middle + HEIGHT / 2 + 1 };
      if (own.left < 0 || own.right > width || own.top < 0 || own.bottom > height || taken.some((other) => overlap(own, other))) continue;
      taken.push(own, { left: label.x - label.radius, right: label.x + label.radius, top: label.y - label.radius, bottom: label.y + label.radius });
      written.push({ label, left, baseline: middle + 4.5 });
      break;
    }
  }
  return written;
}

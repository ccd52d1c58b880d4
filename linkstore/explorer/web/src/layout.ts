/** Places few nodes with their labels in a box, so that no label covers another or a node. */

export interface Box {
  id: string;
  radius: number;
  /** The size of the label, which is below or above the node. */
  width: number;
  height: number;
  /** Labels of heavier nodes come first where there is no room for all. */
  weight: number;
  /** Nodes of a greater depth are drawn further to the right; without any, they lie anywhere. */
  depth: number;
}

export interface Place {
  x: number;
  y: number;
  /** Whether there is no room for the label. */
  bare: boolean;
  /** Whether the label is above the node: fewer lines cross it there. */
  above?: boolean;
}

interface Rectangle {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const GAP = 6;
const LABEL_GAP = 4;
const MARGIN = 12;
const ROUNDS = 300;
const SEPARATIONS = 120;
/** The share of the picture that labels may cover. */
const LABELLED = 0.5;

export function overlap(one: Rectangle, other: Rectangle): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

export function bound(box: Box, place: Place): Rectangle {
  const half = place.bare ? box.radius : Math.max(box.radius, box.width / 2);
  const label = place.bare ? 0 : LABEL_GAP + box.height;
  return {
    left: place.x - half - GAP / 2,
    right: place.x + half + GAP / 2,
    top: place.y - box.radius - (place.above ? label : 0) - GAP / 2,
    bottom: place.y + box.radius + (place.above ? 0 : label) + GAP / 2,
  };
}

/** Returns a place for each box; the same boxes always have the same ones. */
export function layOut(boxes: Box[], edges: [string, string][], width: number, height: number): Map<string, Place> {
  const places = boxes.map((_, at): Place => {
    const [far, angle] = [Math.sqrt((at + 0.5) / boxes.length), at * 2.399963];
    return { x: width * (0.5 + 0.4 * far * Math.cos(angle)), y: height * (0.5 + 0.4 * far * Math.sin(angle)), bare: false };
  });
  chooseLabels(boxes, places, width * height * LABELLED);
  pull(boxes, places, edges, width, height);
  fit(boxes, places, width, height);
  while (!separate(boxes, places, width, height) && dropLabel(boxes, places));
  turnLabels(boxes, places, edges, height);
  return new Map(boxes.map((box, at) => [box.id, places[at] as Place]));
}

function byWeight(boxes: Box[]): number[] {
  return boxes.map((_, at) => at).sort((one, other) => (boxes[other]?.weight ?? 0) - (boxes[one]?.weight ?? 0));
}

function chooseLabels(boxes: Box[], places: Place[], room: number): void {
  let used = 0;
  for (const at of byWeight(boxes)) {
    const [box, place] = [boxes[at] as Box, places[at] as Place];
    used += (box.width + GAP) * (box.height + 2 * box.radius + LABEL_GAP + GAP);
    place.bare = used > room;
  }
}

/** Moves nodes apart and linked ones together (T. Fruchterman and E. Reingold, Software 21, 1991). */
function pull(boxes: Box[], places: Place[], edges: [string, string][], width: number, height: number): void {
  const at = new Map(boxes.map((box, place) => [box.id, place]));
  const pairs = edges.map(([source, target]) => [at.get(source) ?? -1, at.get(target) ?? -1] as const).filter(([one, other]) => one >= 0 && other >= 0 && one !== other);
  const ideal = 0.75 * Math.sqrt((width * height) / Math.max(boxes.length, 1));
  const deepest = Math.max(...boxes.map(({ depth }) => depth), 0);
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = (0.12 * Math.min(width, height) * (ROUNDS - round)) / ROUNDS;
    const moves = places.map(() => ({ x: 0, y: 0 }));
    places.forEach((place, one) => {
      for (let other = 0; other < one; other += 1) {
        const [dx, dy] = [place.x - (places[other] as Place).x || 0.1, place.y - (places[other] as Place).y || 0.1];
        const force = (ideal * ideal) / (dx * dx + dy * dy);
        push(moves, one, other, dx * force, dy * force);
      }
    });
    for (const [one, other] of pairs) {
      const [dx, dy] = [(places[one] as Place).x - (places[other] as Place).x, (places[one] as Place).y - (places[other] as Place).y];
      const force = Math.hypot(dx, dy) / ideal;
      push(moves, one, other, -dx * force, -dy * force);
    }
    places.forEach((place, one) => {
      const move = moves[one] as { x: number; y: number };
      const column = deepest ? width * (0.22 + (0.56 * (boxes[one] as Box).depth) / deepest) : width / 2;
      move.x += (column - place.x) * (deepest ? 0.9 : 0.1);
      move.y += (height / 2 - place.y) * 0.3;
      const length = Math.hypot(move.x, move.y) || 1;
      place.x += (move.x / length) * Math.min(length, heat);
      place.y += (move.y / length) * Math.min(length, heat);
    });
  }
}

function push(moves: { x: number; y: number }[], one: number, other: number, x: number, y: number): void {
  const [first, second] = [moves[one] as { x: number; y: number }, moves[other] as { x: number; y: number }];
  first.x += x;
  first.y += y;
  second.x -= x;
  second.y -= y;
}

/** Stretches the places over the whole picture, partly by rank, so that a node far away does not press all others together. */
function fit(boxes: Box[], places: Place[], width: number, height: number): void {
  const stretch = (axis: "x" | "y", from: number, to: number, evenness: number): void => {
    const values = places.map((place) => place[axis]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const order = places.map((_, at) => at).sort((one, other) => (values[one] ?? 0) - (values[other] ?? 0));
    order.forEach((at, rank) => {
      const place = places[at] as Place;
      const [exact, even] = [(place[axis] - least) / (most - least || 1), (rank + 0.5) / places.length];
      place[axis] = from + (most - least < 1 ? 0.5 : (1 - evenness) * exact + evenness * even) * (to - from);
    });
  };
  const flows = boxes.some(({ depth }) => depth > 0);
  stretch("x", 3 * MARGIN, width - 3 * MARGIN, flows ? 0.15 : 0.4);
  stretch("y", MARGIN + 16, height - MARGIN - 44, 0.6);
}

/** Pushes boxes that overlap apart, along the shorter way, and keeps all in the picture; says whether none overlaps. */
function separate(boxes: Box[], places: Place[], width: number, height: number): boolean {
  for (let round = 0; round < SEPARATIONS; round += 1) {
    let moved = false;
    for (let one = 0; one < boxes.length; one += 1) {
      for (let other = 0; other < one; other += 1) {
        const [place, against] = [places[one] as Place, places[other] as Place];
        const [own, its] = [bound(boxes[one] as Box, place), bound(boxes[other] as Box, against)];
        const [x, y] = [Math.min(own.right, its.right) - Math.max(own.left, its.left), Math.min(own.bottom, its.bottom) - Math.max(own.top, its.top)];
        if (x <= 0 || y <= 0) continue;
        moved = true;
        if (x < y) {
          const way = (place.x < against.x ? -1 : 1) * (x / 2 + 0.5);
          [place.x, against.x] = [place.x + way, against.x - way];
        } else {
          const way = (own.top + own.bottom < its.top + its.bottom ? -1 : 1) * (y / 2 + 0.5);
          [place.y, against.y] = [place.y + way, against.y - way];
        }
      }
    }
    places.forEach((place, at) => {
      const edge = bound(boxes[at] as Box, place);
      place.x += Math.max(0, MARGIN / 2 - edge.left) - Math.max(0, edge.right - (width - MARGIN / 2));
      place.y += Math.max(0, MARGIN / 2 - edge.top) - Math.max(0, edge.bottom - (height - MARGIN / 2));
    });
    if (!moved) return true;
  }
  return false;
}

/** Leaves out the lightest label that overlaps something; says whether there was one. */
function dropLabel(boxes: Box[], places: Place[]): boolean {
  const bounds = boxes.map((box, at) => bound(box, places[at] as Place));
  const overlapping = byWeight(boxes).filter((at) =>
    !(places[at] as Place).bare && bounds.some((other, place) => place !== at && overlap(bounds[at] as Rectangle, other)));
  const place = places[overlapping.at(-1) ?? -1];
  if (place) place.bare = true;
  return place !== undefined;
}

/** Puts a label above its node where fewer lines cross it there than below, and nothing is in the way. */
function turnLabels(boxes: Box[], places: Place[], edges: [string, string][], height: number): void {
  const at = new Map(boxes.map((box, place) => [box.id, places[place] as Place]));
  const lines = edges.flatMap(([source, target]): [Place, Place][] => {
    const [from, to] = [at.get(source), at.get(target)];
    return from && to && from !== to ? [[from, to]] : [];
  });
  boxes.forEach((box, own) => {
    const place = places[own] as Place;
    if (place.bare) return;
    const turned = { ...place, above: true };
    const bounds = bound(box, turned);
    const free = bounds.top >= MARGIN / 2 && bounds.bottom <= height &&
      !boxes.some((other, its) => its !== own && overlap(bounds, bound(other, places[its] as Place)));
    const crossed = (side: 1 | -1): number => {
      const [near, far] = [place.y + side * (box.radius + LABEL_GAP), place.y + side * (box.radius + LABEL_GAP + box.height)];
      const label = { left: place.x - box.width / 2, right: place.x + box.width / 2, top: Math.min(near, far), bottom: Math.max(near, far) };
      return lines.filter(([from, to]) => crosses(from, to, label)).length;
    };
    place.above = free && crossed(-1) < crossed(1);
  });
}

/** Says whether a line goes through a rectangle: the part of it between the sides also lies between top and bottom somewhere. */
function crosses(from: Place, to: Place, box: Rectangle): boolean {
  let [start, end] = [0, 1];
  for (const [origin, way, least, most] of [[from.x, to.x - from.x, box.left, box.right], [from.y, to.y - from.y, box.top, box.bottom]] as const) {
    if (!way && (origin < least || origin > most)) return false;
    if (!way) continue;
    const [one, other] = [(least - origin) / way, (most - origin) / way];
    [start, end] = [Math.max(start, Math.min(one, other)), Math.min(end, Math.max(one, other))];
  }
  return start < end;
}

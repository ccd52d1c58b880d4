"""A static picture of a store, as SVG: its pages laid out, for where no script runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from linkstore.core.hit_graph import escape_svg, wrap_svg, write_svg_text

if TYPE_CHECKING:
    from linkstore.core.arrays import Floats

MARGIN: Final = 20
SIDE: Final = 640
DRAWN: Final = 200
"""How many pages a picture of a store shows, those with the highest rank."""
LABELLED: Final = 12
_ROUNDS: Final = 60
_PALETTE: Final = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#e17c05",
    "#5f4690",
    "#38a6a5",
)
_OTHER: Final = "#999999"


def draw_corpus(corpus: Mapping[str, Any]) -> str:
    """Return a picture of a store: its pages with the highest rank, coloured by community."""
    nodes: Sequence[Mapping[str, Any]] = corpus["nodes"]
    shown = sorted(range(len(nodes)), key=lambda at: -nodes[at]["rank"])[:DRAWN]
    place = {at: number for number, at in enumerate(shown)}
    edges = [
        (place[one], place[other]) for one, other, _ in corpus["edges"] if one in place and other in place
    ]
    points = lay_out(len(shown), edges) * (SIDE - 2 * MARGIN) + MARGIN
    parts = [
        f'<line class="line" x1="{points[one, 0]:.1f}" y1="{points[one, 1]:.1f}"'
        f' x2="{points[other, 0]:.1f}" y2="{points[other, 1]:.1f}"/>'
        for one, other in edges
    ]
    for number, at in enumerate(shown):
        node, (x, y) = nodes[at], points[number]
        colour = _PALETTE[node["community"]] if node["community"] < len(_PALETTE) else _OTHER
        radius = max(2.5, 9 * (1 - number / len(shown)))
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}">'
            f"<title>{escape_svg(node['title'])}</title></circle>"
        )
        if number < LABELLED:
            parts.append(write_svg_text(node["title"], x + radius + 3, y + 4))
    return wrap_svg(parts, SIDE, SIDE)


def lay_out(count: int, edges: Sequence[tuple[int, int]]) -> Floats:
    """Return (count, 2) places in [0, 1] by springs: T. Fruchterman and E. Reingold, 1991."""
    random = np.random.default_rng(0)
    points = random.random((count, 2))
    if count < 2:
        return points.astype(np.float32)
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    ideal = 1 / np.sqrt(count)
    for step in np.linspace(0.1, 0.005, _ROUNDS):
        apart = points[:, None] - points[None]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        moves = (apart * (ideal / distance)[..., None] ** 2).sum(axis=1)
        pulled = points[ends[:, 1]] - points[ends[:, 0]]
        pull = pulled * (np.linalg.norm(pulled, axis=1) / ideal)[:, None]
        np.add.at(moves, ends[:, 0], pull)
        np.add.at(moves, ends[:, 1], -pull)
        moves -= 0.5 * (points - points.mean(axis=0))
        length = np.maximum(np.linalg.norm(moves, axis=1), 1e-9)
        points += moves / length[:, None] * np.minimum(length, step)[:, None]
    points -= points.min(axis=0)
    scaled: Floats = (points / np.maximum(points.max(axis=0), 1e-9)).astype(np.float32)
    return scaled

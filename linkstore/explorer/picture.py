"""Static pictures of graphs, as SVG: the hits of a search in columns, and a store with its pages laid out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from linkstore.core.hit_graph import GraphNode, HitGraph

if TYPE_CHECKING:
    from linkstore.core.arrays import Floats
    from linkstore.core.hits import Hits

COLUMN: Final = 330
ROW: Final = 34
MARGIN: Final = 20
SIDE: Final = 640
DRAWN: Final = 200
"""How many pages a picture of a store shows, those with the highest rank."""
LABELLED: Final = 12
_ROUNDS: Final = 60
_LETTERS: Final = 40
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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
_ROLES: Final = {"start": "#c2410c", "hit": "#0b5fd8", "way": "#7b8794"}
_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#1f2933}.label{font-size:10px;fill:#52606d}"
    "line{stroke:#c5ced6}line.followed{stroke:#52606d;stroke-width:1.6}"
)


def draw_hits(hits: Hits) -> str:
    """Return a picture of hits: documents in columns by how many links were followed to them."""
    graph = HitGraph.of(hits.hits)
    columns: dict[int, list[GraphNode]] = {}
    for node in graph.nodes:
        columns.setdefault(node.depth, []).append(node)
    places = {
        node.id: (MARGIN + at * COLUMN, MARGIN + (row + 0.5) * ROW)
        for at, depth in enumerate(sorted(columns))
        for row, node in enumerate(columns[depth])
    }
    width = len(columns) * COLUMN + MARGIN
    height = max(map(len, columns.values()), default=0) * ROW + 2 * MARGIN
    parts = []
    for edge in graph.edges:
        (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
        followed = ' class="followed"' if edge.followed else ""
        parts.append(f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}"{followed}/>')
        if edge.followed:
            middle = (x1 + x2) / 2, (y1 + y2) / 2 - 4
            parts.append(_draw_text(edge.label or edge.kind, *middle, kind="label"))
    for node in graph.nodes:
        x, y = places[node.id]
        parts.append(f'<circle cx="{x}" cy="{y:g}" r="6" fill="{_ROLES[node.role]}"/>')
        parts.append(_draw_text(node.title, x + 10, y + 4))
    return _wrap(parts, width, height)


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
        f'<line x1="{points[one, 0]:.1f}" y1="{points[one, 1]:.1f}"'
        f' x2="{points[other, 0]:.1f}" y2="{points[other, 1]:.1f}"/>'
        for one, other in edges
    ]
    for number, at in enumerate(shown):
        node, (x, y) = nodes[at], points[number]
        colour = _PALETTE[node["community"]] if node["community"] < len(_PALETTE) else _OTHER
        radius = max(2.5, 9 * (1 - number / len(shown)))
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}">'
            f"<title>{_escape(node['title'])}</title></circle>"
        )
        if number < LABELLED:
            parts.append(_draw_text(node["title"], x + radius + 3, y + 4))
    return _wrap(parts, SIDE, SIDE)


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


def _draw_text(text: str, x: float, y: float, kind: str = "") -> str:
    short = " ".join(text.split())
    short = short if len(short) <= _LETTERS else f"{short[: _LETTERS - 1]}…"
    names = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{names}>{_escape(short)}</text>'


def _escape(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))


def _wrap(parts: Sequence[str], width: float, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" style="max-width:100%;height:auto;background:#fff"><style>{_STYLE}</style>'
        f"{''.join(parts)}</svg>"
    )

"""The page as a widget of a notebook, and a static picture where no script runs. Needs ``plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from linkstore.core.calls import run
from linkstore.core.hit_graph import escape_svg, wrap_svg, write_svg_text
from linkstore.errors import MissingExtraError
from linkstore.explorer.answers import describe_hits
from linkstore.explorer.corpus import read_corpus
from linkstore.explorer.page import read_bundle

if TYPE_CHECKING:
    from linkstore.core.arrays import Floats

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError("the explorer in a notebook", "plot") from error

if TYPE_CHECKING:
    from linkstore.core.hits import Hits
    from linkstore.store import LinkStore

WIDGET_PAGES: Final = 500
"""How many pages of a store a notebook draws at most: it saves what it shows."""


class ExplorerWidget(anywidget.AnyWidget):
    """The page in a notebook.

    Args:
        data: What it shows.
        picture: The same as an SVG.
    """

    data = traitlets.Dict().tag(sync=True)
    _esm, _css = read_bundle()

    def __init__(self, data: dict[str, Any], picture: str) -> None:
        super().__init__(data=data)
        self._picture = picture

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the picture for where no script runs."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "image/svg+xml": self._picture}, metadata


def explore_store(store: LinkStore, pages: int = WIDGET_PAGES) -> ExplorerWidget:
    """Return the graph of a store as a widget: see :meth:`linkstore.LinkStore.explore`."""
    corpus = run(read_corpus(store.backend, pages))
    return ExplorerWidget({"mode": "corpus", "corpus": corpus}, draw_corpus(corpus))


def explore_hits(hits: Hits, question: str = "") -> ExplorerWidget:
    """Return hits as a widget: see :meth:`linkstore.Hits.explore`."""
    return ExplorerWidget({"mode": "answer", "answer": describe_hits(hits, question)}, hits.graph().to_svg())


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

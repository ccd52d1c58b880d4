"""The graph of a search's result: its documents, the links that led to them, and the links among them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape as escape_html
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, Literal
from xml.sax.saxutils import escape, quoteattr

from linkstore.core.display import get_url
from linkstore.core.links import get_links
from linkstore.core.text import TRAIL

if TYPE_CHECKING:
    from linkstore.core.hits import Hit

Role = Literal["start", "hit", "way"]
"""A document that the search started from, one that was found by links, or one that is only on the way."""
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MERMAID_TITLE: Final = 60
"""How many characters of a title a node of a diagram shows."""
_BOX_WIDTH: Final = 216
_BOX_HEIGHT: Final = 28
_GAP: Final = 170
"""Between two columns of boxes."""
_ROW: Final = 42
_MARGIN: Final = 40
_PICTURE_TITLE: Final = 32
_PICTURE_LABEL: Final = 24
_ORDERING_ROUNDS: Final = 4
"""How many times the columns of a picture are ordered by what their nodes are linked with."""
_BEGINNING: Final = 48
"""How many characters of a text name a document without a title."""
_COLOURS: Final[dict[Role, str]] = {"start": "#c2410c", "hit": "#0b5fd8", "way": "#7b8794"}
_SVG_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#1f2933;paint-order:stroke;stroke:#fff;stroke-width:3px;"
    "stroke-linejoin:round}.label{font-size:10.5px;fill:#52606d;text-anchor:middle}"
    ".line{fill:none;stroke:#c5ced6}.followed{stroke:#52606d;stroke-width:1.6;marker-end:url(#linkstore-end)}"
)
_ARROW: Final = (
    '<marker id="linkstore-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8"'
    ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A document of a result.

    Args:
        id: Its id.
        title: Its title with its innermost heading, else how its text begins, else its id.
        url: Its URL; None without one.
        role: Why it is there.
        depth: Number of links followed to it.
        score: Its score; None if it is only on the way.
    """

    id: str
    title: str
    url: str | None
    role: Role
    depth: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A link between two documents of a result.

    Args:
        source: Id of the document that it leads from, or was followed from.
        target: Id of the other document.
        kind: Kind of the link.
        label: Its label, such as the anchor text; None without one.
        followed: Whether it is on a path or chain to a hit; else the documents only have the link.
    """

    source: str
    target: str
    kind: str
    label: str | None
    followed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HitGraph:
    """The documents of a result, best first, then those on the way; and the links between them.

    Args:
        nodes: Each document once.
        edges: Followed links first. Of several other links between two documents, one is kept.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> HitGraph:
        """Make the graph of hits."""
        nodes = {hit.document.id or "": _make_node(hit) for hit in hits}
        followed: dict[tuple[str, str, str], GraphEdge] = {}
        for hit in hits:
            for source, target, kind, label in _list_followed(hit):
                edge = GraphEdge(source=source, target=target, kind=kind, label=label, followed=True)
                followed.setdefault((source, target, kind), edge)
                for depth, id in enumerate((source, target)):
                    if id not in nodes:
                        nodes[id] = GraphNode(id=id, title=id, url=None, role="way", depth=depth, score=None)
        joined = {frozenset((source, target)) for source, target, _ in followed}
        others = [edge for edge in _list_others(hits) if frozenset((edge.source, edge.target)) not in joined]
        return cls(nodes=tuple(nodes.values()), edges=(*followed.values(), *others))

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain JSON."""
        return {"nodes": list(map(asdict, self.nodes)), "edges": list(map(asdict, self.edges))}

    def to_svg(self) -> str:
        """Return the graph as a picture with a column of boxes for each depth, which loads nothing."""
        places = self._place()
        columns = len({x for x, _ in places.values()})
        width = 2 * _MARGIN + columns * (_BOX_WIDTH + _GAP) - (_GAP if columns else 0)
        height = 2 * _MARGIN + max((y + _BOX_HEIGHT for _, y in places.values()), default=0)
        lines: list[str] = []
        labels: list[str] = []
        for edge in sorted(self.edges, key=lambda edge: edge.followed):
            (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
            x1, x2 = (x1 + _BOX_WIDTH, x2) if x1 < x2 else (x1, x2 + _BOX_WIDTH) if x1 > x2 else (x1, x2)
            y1, y2 = y1 + _BOX_HEIGHT / 2, y2 + _BOX_HEIGHT / 2
            middle = (x1 + x2) / 2 if x1 != x2 else x1 - _GAP / 4  # beside the column, between two of one
            way = f"M{x1:g},{y1:g} C{middle:g},{y1:g} {middle:g},{y2:g} {x2:g},{y2:g}"
            name = escape_svg(" ".join(filter(None, (edge.kind, edge.label))))
            kind = "line followed" if edge.followed else "line"
            lines.append(f'<path class="{kind}" d="{way}"><title>{name}</title></path>')
            if edge.followed and edge.label:
                shown = write_svg_text(edge.label, middle, (y1 + y2) / 2 - 4, _PICTURE_LABEL)
                labels.append(shown.replace("<text", '<text class="label"', 1))
        for node in self.nodes:
            x, y = places[node.id]
            score = "" if node.score is None else f" {node.score:.3f}"
            lines.append(
                f'<rect x="{x:g}" y="{y:g}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" fill="#ffffff"'
                f' stroke="{_COLOURS[node.role]}"><title>{escape_svg(node.title)}{score}</title></rect>'
            )
            lines.append(write_svg_text(node.title, x + 9, y + 18, _PICTURE_TITLE))
        return wrap_svg([*lines, *labels], width, height)

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks show."""
        return self.to_svg()

    def _place(self) -> dict[str, tuple[float, float]]:
        """Place nodes in columns by depth, each column in the order of what its nodes are linked with."""
        depths = sorted({node.depth for node in self.nodes})
        columns = [[node.id for node in self.nodes if node.depth == depth] for depth in depths]
        linked: dict[str, list[str]] = defaultdict(list)
        for edge in self.edges:
            linked[edge.source].append(edge.target)
            linked[edge.target].append(edge.source)
        tallest = max(map(len, columns), default=0)
        row: dict[str, float] = {}

        def count_rows(column: list[str]) -> None:
            row.update((id, (tallest - len(column)) / 2 + at) for at, id in enumerate(column))

        for column in columns:
            count_rows(column)
        for _ in range(_ORDERING_ROUNDS):
            for column in columns:
                wanted = {id: fmean(row[other] for other in linked[id] or [id]) for id in column}
                column.sort(key=wanted.__getitem__)
                count_rows(column)
        return {
            id: (_MARGIN + at * (_BOX_WIDTH + _GAP), _MARGIN + row[id] * _ROW)
            for at, column in enumerate(columns)
            for id in column
        }

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html)."""
        number = {node.id: at for at, node in enumerate(self.nodes)}
        lines = ["flowchart LR"]
        for node in self.nodes:
            score = "" if node.score is None else f"<br/>{node.score:.3f}"
            shape = ('(["', '"])') if node.role == "start" else ('["', '"]')
            lines.append(f"  n{number[node.id]}{shape[0]}{_quote_mermaid(node.title)}{score}{shape[1]}")
        for edge in self.edges:
            arrow = "-->" if edge.followed else "-.->"
            label = _quote_mermaid(edge.label or edge.kind)
            lines.append(f'  n{number[edge.source]} {arrow}|"{label}"| n{number[edge.target]}')
        return "\n".join(lines) + "\n"

    def to_graphml(self) -> str:
        """Return the graph as GraphML (http://graphml.graphdrawing.org), which Gephi and yEd read."""
        keys = {"title": "string", "url": "string", "role": "string", "depth": "int", "score": "double"}
        links = {"kind": "string", "label": "string", "followed": "boolean"}
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            *(
                f'<key id="{name}" for="{owner}" attr.name="{name}" attr.type="{form}"/>'
                for owner, names in (("node", keys), ("edge", links))
                for name, form in names.items()
            ),
            '<graph edgedefault="directed">',
        ]
        lines += [f"<node id={_quote_xml(node.id)}>{_format_data(node, keys)}</node>" for node in self.nodes]
        lines += [
            f"<edge source={_quote_xml(edge.source)} target={_quote_xml(edge.target)}>"
            f"{_format_data(edge, links)}</edge>"
            for edge in self.edges
        ]
        return "\n".join([*lines, "</graph>", "</graphml>"]) + "\n"


def _make_node(hit: Hit) -> GraphNode:
    document = hit.document
    return GraphNode(
        id=document.id or "",
        title=name_document(document.metadata, document.page_content) or document.id or "",
        url=get_url(document),
        role="hit" if hit.depth else "start",
        depth=hit.depth,
        score=hit.score,
    )


def name_document(metadata: Mapping[str, Any], text: str) -> str:
    """Return the title of a document with its innermost heading, else how its text begins, if it does."""
    title, headings = metadata.get("title"), metadata.get("headings")
    heading = str(headings[-1]) if isinstance(headings, list) and headings else None
    names = [str(name) for name in (title, heading) if name]
    begin = " ".join(text[: 4 * _BEGINNING].split())
    short = begin if len(begin) <= _BEGINNING else f"{begin[: _BEGINNING - 1].rstrip()}…"
    return TRAIL.join(dict.fromkeys(names)) or short


def _list_followed(hit: Hit) -> Iterator[tuple[str, str, str, str | None]]:
    for chain in hit.chains:
        for triple in chain:
            yield triple.subject, triple.object, triple.kind, triple.label
    steps = () if hit.chains else hit.path.steps
    for before, after in pairwise(steps):
        yield before.id, after.id, after.kind or "", after.label


def _list_others(hits: Iterable[Hit]) -> Iterator[GraphEdge]:
    """Yield the links among documents, the first of those between two documents in one direction."""
    arriving: dict[tuple[str, str], list[str]] = defaultdict(list)
    leaving: list[tuple[str, str, str, str | None]] = []
    for hit in hits:
        for link in get_links(hit.document):
            if link.leads_in:
                arriving[link.kind, link.tag].append(hit.document.id or "")
            if link.leads_out:
                leaving.append((hit.document.id or "", link.kind, link.tag, link.label))
    seen: set[tuple[str, str]] = set()
    for source, kind, tag, label in leaving:
        for target in arriving[kind, tag]:
            if target != source and (source, target) not in seen:
                seen.add((source, target))
                yield GraphEdge(source=source, target=target, kind=kind, label=label, followed=False)


def wrap_svg(parts: Iterable[str], width: float, height: float) -> str:
    """Return a picture of these parts on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" style="max-width:100%;height:auto" role="img">'
        f"<style>{_SVG_STYLE}</style><defs>{_ARROW}</defs>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def write_svg_text(text: str, x: float, y: float, letters: int = _PICTURE_TITLE) -> str:
    """Return an element with a text, shortened to so many letters."""
    short = " ".join(text.split())
    short = short if len(short) <= letters else f"{short[: letters - 1].rstrip()}…"
    return f'<text x="{x:g}" y="{y:g}">{escape_svg(short)}</text>'


def escape_svg(text: str) -> str:
    """Escape a text for a picture; what XML cannot hold is replaced."""
    return escape_html(_NOT_XML.sub(_REPLACEMENT, text))


def _quote_mermaid(text: str) -> str:
    """Write every character that Mermaid or HTML could read as more than itself as an entity of Mermaid."""
    short = " ".join(text.split())
    short = short if len(short) <= _MERMAID_TITLE else f"{short[: _MERMAID_TITLE - 1]}…"
    return "".join(sign if sign.isalnum() or sign in " .,-…" else f"#{ord(sign)};" for sign in short)


def _format_data(value: GraphNode | GraphEdge, names: Iterable[str]) -> str:
    parts = []
    for name in names:
        given = getattr(value, name)
        if given is not None:
            text = str(given).lower() if isinstance(given, bool) else str(given)
            parts.append(f'<data key="{name}">{escape(_NOT_XML.sub(_REPLACEMENT, text))}</data>')
    return "".join(parts)


def _quote_xml(text: str) -> str:
    return quoteattr(_NOT_XML.sub(_REPLACEMENT, text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})

"""The graph of a search's result: its documents, the links that led to them, and the links among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from linkstore.core.display import get_url
from linkstore.core.links import get_links
from linkstore.core.text import TRAIL

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.hits import Hit

Role = Literal["start", "hit", "way"]
"""A document that the search started from, one that was found by links, or one that is only on the way."""
_MERMAID_TITLE: Final = 60
"""How many characters of a title a node of a diagram shows."""
_BEGINNING: Final = 48
"""How many characters of a text name a document without a title."""


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
        others = [
            edge
            for edge in list_links_among([hit.document for hit in hits])
            if frozenset((edge.source, edge.target)) not in joined
        ]
        return cls(nodes=tuple(nodes.values()), edges=(*followed.values(), *others))

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain JSON."""
        return {"nodes": list(map(asdict, self.nodes)), "edges": list(map(asdict, self.edges))}

    def _repr_markdown_(self) -> str:
        """Return the flowchart that JupyterLab and GitHub draw."""
        return f"```mermaid\n{self.to_mermaid()}```"

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


def list_links_among(documents: Iterable[Document]) -> Iterator[GraphEdge]:
    """Yield the links among documents, the first of those between two documents in one direction."""
    arriving: dict[tuple[str, str], list[str]] = defaultdict(list)
    leaving: list[tuple[str, str, str, str | None]] = []
    for document in documents:
        for link in get_links(document):
            if link.leads_in:
                arriving[link.kind, link.tag].append(document.id or "")
            if link.leads_out:
                leaving.append((document.id or "", link.kind, link.tag, link.label))
    seen: set[tuple[str, str]] = set()
    for source, kind, tag, label in leaving:
        for target in arriving[kind, tag]:
            if target != source and (source, target) not in seen:
                seen.add((source, target))
                yield GraphEdge(source=source, target=target, kind=kind, label=label, followed=False)


def _quote_mermaid(text: str) -> str:
    """Write every character that Mermaid or HTML could read as more than itself as an entity of Mermaid."""
    short = " ".join(text.split())
    short = short if len(short) <= _MERMAID_TITLE else f"{short[: _MERMAID_TITLE - 1]}…"
    return "".join(sign if sign.isalnum() or sign in " .,-…" else f"#{ord(sign)};" for sign in short)

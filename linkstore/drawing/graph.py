"""Selects the hits to draw, arranges them in columns, and collects the links between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Final

from linkstore.arguments import path_of, require
from linkstore.drawing.svg import Box, Line, picture
from linkstore.errors import LinkStoreError
from linkstore.hits import Hit, Hits, Path
from linkstore.links import get_links

ROUNDS: Final = 4
"""How many times columns are ordered by the places that their links lead to."""
_SEARCHED: Final = ""
"""The id of the question's box; no document has it."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture, which notebooks show as it is.

    Args:
        svg: A whole SVG document; it loads nothing from elsewhere.
    """

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | FilePath) -> None:
        """Write the SVG to a file."""
        path_of("path", path).write_text(self.svg, encoding="utf-8")


def draw(hits: Hits, question: str = "", *, to: str | None = None, most: int = 12) -> Drawing:
    """Draw hits and the links between them.

    Documents stand in columns by how many links were followed to them, each with title, heading and score.
    The path to one hit is marked, with the labels of its links; other links among the documents are thin.

    Args:
        hits: The result of a search.
        question: If given, it is shown where the search starts.
        to: Id of the hit whose path is marked; None: the best hit that was found by a link, else the best.
        most: How many hits are drawn, best first, besides those on the path.

    Returns:
        The picture; ``_repr_svg_`` shows it in a notebook, ``save`` writes it.

    Raises:
        LinkStoreError: If there is no hit to draw, or ``to`` is not one of them.
    """
    require(Hits, "the Hits of a search", hits=hits)
    aim = _aim(hits, to)
    shown = _shown(hits, aim, most)
    marked = _pairs(aim.path)
    lines = _lines(shown, marked)
    columns = _columns(shown, lines)
    if question:
        columns = [[_SEARCHED], *columns]
        starts = (hit.document.id for hit in shown if hit.depth == 0)
        lines += [Line(start=_SEARCHED, end=id or "", marked=id == aim.path[0].id) for id in starts]
    on_path = {step.id for step in aim.path}
    boxes = {hit.document.id or "": _box(hit, hit.document.id in on_path) for hit in shown}
    if question:
        boxes[_SEARCHED] = Box(title=question, kind="question")
    return Drawing(picture(columns, boxes, lines))


def _aim(hits: Sequence[Hit], to: str | None) -> Hit:
    """Return the hit whose path is marked."""
    if not hits:
        raise LinkStoreError("there is no hit to draw")
    if to is None:
        return next((hit for hit in hits if hit.depth), hits[0])
    found = next((hit for hit in hits if hit.document.id == to), None)
    if found is None:
        raise LinkStoreError(f"there is no hit {to!r} among these; draw one of hits[…].document.id")
    return found


def _shown(hits: Sequence[Hit], aim: Hit, most: int) -> list[Hit]:
    """Return the best hits, the aim, and the hits on the paths to all of these, in order of rank."""
    wanted = {step.id for hit in (*hits[:most], aim) for step in hit.path}
    return [hit for hit in hits if hit.document.id in wanted]


def _pairs(path: Path) -> dict[tuple[str, str], str]:
    """Return the links of a path: from which document to which, with the label."""
    ends = zip(path.steps, path.steps[1:], strict=False)
    return {(before.id, after.id): after.label or after.kind or "" for before, after in ends}


def _lines(shown: Sequence[Hit], marked: dict[tuple[str, str], str]) -> list[Line]:
    """Return lines for the links among documents, one for each linked pair, with the marked lines last."""
    arriving: dict[tuple[str, str], list[str]] = defaultdict(list)
    for hit in shown:
        for link in get_links(hit.document):
            if link.leads_in:
                arriving[link.kind, link.tag].append(hit.document.id or "")
    kinds: dict[tuple[str, str], str] = {}
    for hit in shown:
        own = hit.document.id or ""
        for link in get_links(hit.document):
            for other in arriving[link.kind, link.tag] if link.leads_out else ():
                if other != own:
                    kinds.setdefault((own, other), link.kind)
    thin = [
        Line(start=start, end=end, kind=kind)
        for (start, end), kind in kinds.items()
        if (start, end) not in marked
    ]
    thick = [Line(start=start, end=end, label=label, marked=True) for (start, end), label in marked.items()]
    return thin + thick


def _columns(shown: Sequence[Hit], lines: Iterable[Line]) -> list[list[str]]:
    """Return ids by depth, each column ordered by the mean place of the documents linked with each."""
    depths = sorted({hit.depth for hit in shown})
    columns = [[hit.document.id or "" for hit in shown if hit.depth == depth] for depth in depths]
    linked: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        linked[line.start].add(line.end)
        linked[line.end].add(line.start)
    for _ in range(ROUNDS):
        for column in columns:
            place = {id: at - len(one) / 2 for one in columns for at, id in enumerate(one)}
            column.sort(key=lambda id: (_mean([place[other] for other in linked[id]]), place[id]))
    return columns


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _box(hit: Hit, on_path: bool) -> Box:
    metadata = hit.document.metadata
    id = hit.document.id or ""
    title = str(metadata.get("title") or id)
    headings = metadata.get("headings")
    below = str(headings[-1]) if isinstance(headings, list) and headings else ""
    return Box(
        title=title,
        below=below if below and below != title else (id if id != title else hit.document.page_content),
        score=hit.score,
        kind="path" if on_path else "hit",
    )

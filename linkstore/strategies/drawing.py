"""Draws the result of a search: documents in columns by depth, their links, and one highlighted path."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path as FilePath
from typing import Final

from linkstore.core.arguments import as_path, require
from linkstore.core.hits import Hit, Hits, Path
from linkstore.core.links import get_links
from linkstore.errors import LinkStoreError

BOX_WIDTH: Final = 216
BOX_HEIGHT: Final = 46
COLUMN_GAP: Final = 150
"""The distance between columns."""
ROW_GAP: Final = 16
"""The distance between the boxes of a column."""
MARGIN: Final = 20
TITLE_LETTERS: Final = 22
"""The number of letters of a title that fit beside the score."""
BELOW_LETTERS: Final = 31
"""The number of letters that fit into the second line."""
QUESTION_LETTERS: Final = 31
"""The number of letters of a question that fit into one of its three lines."""
LABEL_LETTERS: Final = 20
"""The number of letters of a label that fit into one of its two lines."""
LEADING: Final = 14
"""Distance between lines."""
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE: Final = """
.linkstore-drawing text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933 }
.linkstore-drawing .below, .linkstore-drawing .score { font-size: 11px; fill: #616e7c }
.linkstore-drawing .title { font-weight: 600 }
.linkstore-drawing .box { fill: #f5f7fa; stroke: #cbd2d9; stroke-width: 1.2 }
.linkstore-drawing .box.path { fill: #e6f0ff; stroke: #0b5fd8; stroke-width: 2.2 }
.linkstore-drawing .box.question { fill: #1f2933; stroke: none }
.linkstore-drawing .asked { font-size: 11.5px; fill: #ffffff; font-style: italic }
.linkstore-drawing .line { fill: none; stroke: #9aa5b1; stroke-width: 1.1; opacity: .75 }
.linkstore-drawing .line.asks { stroke-dasharray: 2 4; stroke-linecap: round }
.linkstore-drawing .line.marked { stroke: #0b5fd8; stroke-width: 2.8; opacity: 1 }
.linkstore-drawing .label { font-size: 11.5px; fill: #0b4bab; font-weight: 600; paint-order: stroke;
  stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; text-anchor: middle }
"""
_HEADS: Final = "".join(
    f'<marker id="linkstore-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}"'
    f' markerHeight="{size}" markerUnits="userSpaceOnUse" orient="auto">'
    f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
    for name, size, colour in (("thin", 7, "#9aa5b1"), ("thick", 11, "#0b5fd8"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A document, or the question.

    Args:
        title: The first line, or the question.
        below: The second line.
        score: Shown at the right; None for none.
        kind: ``"hit"``, ``"path"`` or ``"question"``.
    """

    title: str
    below: str = ""
    score: float | None = None
    kind: str = "hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A link.

    Args:
        start: The box it leaves.
        end: The box it arrives at.
        kind: The kind of the link; empty if the question leads to the box.
        label: The text beside the line.
        marked: Whether it belongs to the path.
    """

    start: str
    end: str
    kind: str = ""
    label: str = ""
    marked: bool = False


_Point = tuple[float, float]


def draw_picture(columns: Sequence[Sequence[str]], boxes: Mapping[str, Box], lines: Sequence[Line]) -> str:
    """Draw an SVG document with columns of boxes from left to right, each column centred."""
    tallest = max(map(len, columns))
    height = tallest * (BOX_HEIGHT + ROW_GAP) - ROW_GAP + 2 * MARGIN
    last = set(columns[-1])
    beside = COLUMN_GAP / 2 if any({line.start, line.end} <= last for line in lines) else 0
    width = len(columns) * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP + 2 * MARGIN + beside
    places = {
        id: (
            MARGIN + at * (BOX_WIDTH + COLUMN_GAP),
            height / 2 + (row - len(column) / 2) * (BOX_HEIGHT + ROW_GAP) + ROW_GAP / 2,
        )
        for at, column in enumerate(columns)
        for row, id in enumerate(column)
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="linkstore-drawing" viewBox="0 0 {width:g} {height}"'
        f' width="{width:g}" height="{height}" style="max-width: 100%; height: auto" role="img">',
        f"<style>{_STYLE}</style><defs>{_HEADS}</defs>",
        f'<rect width="{width:g}" height="{height}" rx="10" fill="#ffffff"/>',
        *(_draw_line(line, places[line.start], places[line.end]) for line in lines),
        *(text for id, box in boxes.items() for text in _draw_box(box, places[id])),
        *(
            text
            for line in lines
            if line.label
            for text in _draw_label(line, places[line.start], places[line.end])
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def _draw_line(line: Line, start: _Point, end: _Point) -> str:
    kind = "marked" if line.marked else "" if line.kind else "asks"
    head = "thick" if line.marked else "thin"
    return (
        f'<path class="line {kind}" d="{_draw_curve(start, end)}" marker-end="url(#linkstore-{head})">'
        f"<title>{_escape_text(line.kind or line.label)}</title></path>"
    )


def _draw_curve(start: _Point, end: _Point) -> str:
    """Draw a curve from one box to the facing side of another, or around the right of both in one column."""
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + BOX_HEIGHT / 2, y2 + BOX_HEIGHT / 2
    if x1 == x2:
        side, out = x1 + BOX_WIDTH, min(20 + abs(y2 - y1) / 5, COLUMN_GAP / 2)
        return f"M{side},{y1 + 4:g} C{side + out:g},{y1 + 4:g} {side + out:g},{y2 - 4:g} {side},{y2 - 4:g}"
    if x1 < x2:
        x1 += BOX_WIDTH
    else:
        x2, y1, y2 = x2 + BOX_WIDTH, y1 + 8, y2 + 8
    bend = (x2 - x1) * 0.45
    return f"M{x1},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2},{y2:g}"


def _draw_label(line: Line, start: _Point, end: _Point) -> Iterator[str]:
    x = (start[0] + end[0] + BOX_WIDTH) / 2
    if start[0] == end[0]:
        x = start[0] + BOX_WIDTH + COLUMN_GAP / 2
    texts = _wrap_text(line.label, LABEL_LETTERS, 2)
    y = (start[1] + end[1] + BOX_HEIGHT) / 2 - 8 - LEADING * (len(texts) - 1)
    for row, text in enumerate(texts):
        yield f'<text class="label" x="{x:g}" y="{y + row * LEADING:g}">{_escape_text(text)}</text>'


def _draw_box(box: Box, place: _Point) -> Iterator[str]:
    x, y = place
    yield f"<g><title>{_escape_text(box.title)}{_escape_text(': ' + box.below if box.below else '')}</title>"
    yield f'<rect class="box {box.kind}" x="{x}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8"/>'
    if box.kind == "question":
        lines = _wrap_text(box.title, QUESTION_LETTERS, 3)
        top = y + BOX_HEIGHT / 2 + 4 - LEADING * (len(lines) - 1) / 2
        for row, text in enumerate(lines):
            yield f'<text class="asked" x="{x + 12}" y="{top + LEADING * row:g}">{_escape_text(text)}</text>'
    else:
        title = _escape_text(_shorten_text(box.title, TITLE_LETTERS))
        yield f'<text class="title" x="{x + 12}" y="{y + 19:g}">{title}</text>'
        below = _escape_text(_shorten_text(box.below, BELOW_LETTERS))
        yield f'<text class="below" x="{x + 12}" y="{y + 36:g}">{below}</text>'
    if box.score is not None:
        at = f'x="{x + BOX_WIDTH - 10}" y="{y + 19:g}"'
        yield f'<text class="score" text-anchor="end" {at}>{box.score:.2f}</text>'
    yield "</g>"


def _wrap_text(text: str, letters: int, most: int) -> list[str]:
    """Break text between words into at most ``most`` lines, and shorten the last line if need be."""
    words, lines = text.split(), list[str]()
    while words and len(lines) < most - 1:
        line = words.pop(0)
        while words and len(f"{line} {words[0]}") <= letters:
            line = f"{line} {words.pop(0)}"
        lines.append(_shorten_text(line, letters))
    return [*lines, _shorten_text(" ".join(words), letters)] if words else lines


def _shorten_text(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _escape_text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\ufffd", text))


ORDERING_ROUNDS: Final = 4
"""How many times columns are ordered by the places that their links lead to."""
_QUESTION_ID: Final = ""
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
        as_path("path", path).write_text(self.svg, encoding="utf-8")


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
    aim = _choose_marked(hits, to)
    shown = _choose_shown(hits, aim, most)
    marked = _pair_steps(aim.path)
    lines = _make_lines(shown, marked)
    columns = _arrange_columns(shown, lines)
    if question:
        columns = [[_QUESTION_ID], *columns]
        starts = (hit.document.id for hit in shown if hit.depth == 0)
        lines += [Line(start=_QUESTION_ID, end=id or "", marked=id == aim.path[0].id) for id in starts]
    on_path = {step.id for step in aim.path}
    boxes = {hit.document.id or "": _make_box(hit, hit.document.id in on_path) for hit in shown}
    if question:
        boxes[_QUESTION_ID] = Box(title=question, kind="question")
    return Drawing(draw_picture(columns, boxes, lines))


def _choose_marked(hits: Sequence[Hit], to: str | None) -> Hit:
    """Return the hit whose path is marked."""
    if not hits:
        raise LinkStoreError("there is no hit to draw")
    if to is None:
        return next((hit for hit in hits if hit.depth), hits[0])
    found = next((hit for hit in hits if hit.document.id == to), None)
    if found is None:
        raise LinkStoreError(f"there is no hit {to!r} among these; draw one of hits[…].document.id")
    return found


def _choose_shown(hits: Sequence[Hit], aim: Hit, most: int) -> list[Hit]:
    """Return the best hits, the aim, and the hits on the paths to all of these, in order of rank."""
    wanted = {step.id for hit in (*hits[:most], aim) for step in hit.path}
    return [hit for hit in hits if hit.document.id in wanted]


def _pair_steps(path: Path) -> dict[tuple[str, str], str]:
    """Return the links of a path: from which document to which, with the label."""
    ends = zip(path.steps, path.steps[1:], strict=False)
    return {(before.id, after.id): after.label or after.kind or "" for before, after in ends}


def _make_lines(shown: Sequence[Hit], marked: dict[tuple[str, str], str]) -> list[Line]:
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


def _arrange_columns(shown: Sequence[Hit], lines: Iterable[Line]) -> list[list[str]]:
    """Return ids by depth, each column ordered by the mean place of the documents linked with each."""
    depths = sorted({hit.depth for hit in shown})
    columns = [[hit.document.id or "" for hit in shown if hit.depth == depth] for depth in depths]
    linked: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        linked[line.start].add(line.end)
        linked[line.end].add(line.start)
    for _ in range(ORDERING_ROUNDS):
        for column in columns:
            place = {id: at - len(one) / 2 for one in columns for at, id in enumerate(one)}
            column.sort(key=lambda id: (_average([place[other] for other in linked[id]]), place[id]))
    return columns


def _average(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _make_box(hit: Hit, on_path: bool) -> Box:
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

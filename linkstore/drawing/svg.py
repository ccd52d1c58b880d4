"""Draws boxes in columns and curves between them, as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 216
HEIGHT: Final = 46
ACROSS: Final = 150
"""The distance between columns."""
DOWN: Final = 16
"""The distance between the boxes of a column."""
MARGIN: Final = 20
TITLE: Final = 22
"""The number of letters of a title that fit beside the score."""
BELOW: Final = 31
"""The number of letters that fit into the second line."""
QUESTION: Final = 31
"""The number of letters of a question that fit into one of its three lines."""
LABEL: Final = 20
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


_Place = tuple[float, float]


def picture(columns: Sequence[Sequence[str]], boxes: Mapping[str, Box], lines: Sequence[Line]) -> str:
    """Draw an SVG document with columns of boxes from left to right, each column centred."""
    tallest = max(map(len, columns))
    height = tallest * (HEIGHT + DOWN) - DOWN + 2 * MARGIN
    last = set(columns[-1])
    beside = ACROSS / 2 if any({line.start, line.end} <= last for line in lines) else 0
    width = len(columns) * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN + beside
    places = {
        id: (
            MARGIN + at * (WIDTH + ACROSS),
            height / 2 + (row - len(column) / 2) * (HEIGHT + DOWN) + DOWN / 2,
        )
        for at, column in enumerate(columns)
        for row, id in enumerate(column)
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="linkstore-drawing" viewBox="0 0 {width:g} {height}"'
        f' width="{width:g}" height="{height}" style="max-width: 100%; height: auto" role="img">',
        f"<style>{_STYLE}</style><defs>{_HEADS}</defs>",
        f'<rect width="{width:g}" height="{height}" rx="10" fill="#ffffff"/>',
        *(_line(line, places[line.start], places[line.end]) for line in lines),
        *(text for id, box in boxes.items() for text in _box(box, places[id])),
        *(
            text
            for line in lines
            if line.label
            for text in _label(line, places[line.start], places[line.end])
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def _line(line: Line, start: _Place, end: _Place) -> str:
    kind = "marked" if line.marked else "" if line.kind else "asks"
    head = "thick" if line.marked else "thin"
    return (
        f'<path class="line {kind}" d="{_curve(start, end)}" marker-end="url(#linkstore-{head})">'
        f"<title>{_text(line.kind or line.label)}</title></path>"
    )


def _curve(start: _Place, end: _Place) -> str:
    """Draw a curve from one box to the facing side of another, or around the right of both in one column."""
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + HEIGHT / 2, y2 + HEIGHT / 2
    if x1 == x2:
        side, out = x1 + WIDTH, min(20 + abs(y2 - y1) / 5, ACROSS / 2)
        return f"M{side},{y1 + 4:g} C{side + out:g},{y1 + 4:g} {side + out:g},{y2 - 4:g} {side},{y2 - 4:g}"
    if x1 < x2:
        x1 += WIDTH
    else:
        x2, y1, y2 = x2 + WIDTH, y1 + 8, y2 + 8
    bend = (x2 - x1) * 0.45
    return f"M{x1},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2},{y2:g}"


def _label(line: Line, start: _Place, end: _Place) -> Iterator[str]:
    x = (start[0] + end[0] + WIDTH) / 2
    if start[0] == end[0]:
        x = start[0] + WIDTH + ACROSS / 2
    texts = _wrapped(line.label, LABEL, 2)
    y = (start[1] + end[1] + HEIGHT) / 2 - 8 - LEADING * (len(texts) - 1)
    for row, text in enumerate(texts):
        yield f'<text class="label" x="{x:g}" y="{y + row * LEADING:g}">{_text(text)}</text>'


def _box(box: Box, place: _Place) -> Iterator[str]:
    x, y = place
    yield f"<g><title>{_text(box.title)}{_text(': ' + box.below if box.below else '')}</title>"
    yield f'<rect class="box {box.kind}" x="{x}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    if box.kind == "question":
        lines = _wrapped(box.title, QUESTION, 3)
        top = y + HEIGHT / 2 + 4 - LEADING * (len(lines) - 1) / 2
        for row, text in enumerate(lines):
            yield f'<text class="asked" x="{x + 12}" y="{top + LEADING * row:g}">{_text(text)}</text>'
    else:
        yield f'<text class="title" x="{x + 12}" y="{y + 19:g}">{_text(_short(box.title, TITLE))}</text>'
        yield f'<text class="below" x="{x + 12}" y="{y + 36:g}">{_text(_short(box.below, BELOW))}</text>'
    if box.score is not None:
        at = f'x="{x + WIDTH - 10}" y="{y + 19:g}"'
        yield f'<text class="score" text-anchor="end" {at}>{box.score:.2f}</text>'
    yield "</g>"


def _wrapped(text: str, letters: int, most: int) -> list[str]:
    """Break text between words into at most ``most`` lines, and shorten the last line if need be."""
    words, lines = text.split(), list[str]()
    while words and len(lines) < most - 1:
        line = words.pop(0)
        while words and len(f"{line} {words[0]}") <= letters:
            line = f"{line} {words.pop(0)}"
        lines.append(_short(line, letters))
    return [*lines, _short(" ".join(words), letters)] if words else lines


def _short(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\ufffd", text))

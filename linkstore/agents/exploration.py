"""The picture of a reading: key elements and chunks in the order they led to each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from linkstore.agents.answer import Answer
from linkstore.drawing import Drawing
from linkstore.drawing.svg import Box, Line, picture

_QUESTION: Final = ""


def draw_reading(answer: Answer) -> Drawing:
    """Draw a reading: the question, the key elements explored and the chunks read, and what led to what.

    What the answer cites, and the ways to it, are marked.

    Args:
        answer: What the reader answered.

    Returns:
        The picture; ``_repr_svg_`` shows it in a notebook, ``save`` writes it.
    """
    visited = {*(f"element:{name}" for name in answer.explored), *(f"chunk:{id}" for id in answer.read)}
    came = _came_from(answer, visited)
    marked = _ways(came, (f"chunk:{one.id}" for one in answer.citations))
    depth = {_QUESTION: 0}
    for one, before in came.items():
        depth[one] = depth.get(before, 0) + 1
    columns = [
        [one for one, at in depth.items() if at == column] for column in range(max(depth.values()) + 1)
    ]
    titles = {f"chunk:{one.id}": one.title for one in answer.citations}
    boxes = {one: _box(one, titles.get(one, ""), one in marked) for one in depth}
    boxes[_QUESTION] = Box(title=answer.question, kind="question")
    lines = [
        Line(start=before, end=one, kind="led to", marked=one in marked, label="")
        for one, before in came.items()
    ]
    return Drawing(picture(columns, boxes, lines))


def _came_from(answer: Answer, visited: set[str]) -> dict[str, str]:
    """Return what led to each explored element and each chunk read, in order."""
    came: dict[str, str] = {}
    for done in answer.actions:
        for one in done["to"] if done["step"] != "answer" else ():
            if one in visited:
                before = done["of"]
                came.setdefault(one, before if before in came else _QUESTION)
    return came


def _ways(came: dict[str, str], cited: Iterable[str]) -> set[str]:
    """Return the cited chunks that were read, and everything on the ways to them."""
    marked: set[str] = set()
    for one in cited:
        at = one
        while at in came and at not in marked:
            marked.add(at)
            at = came[at]
    return marked


def _box(one: str, title: str, marked: bool) -> Box:
    sort, _, name = one.partition(":")
    kind = "path" if marked else "hit"
    if sort == "element":
        return Box(title=name, below="key element", kind=kind)
    return Box(title=title or name, below=name if title else "passage", kind=kind)

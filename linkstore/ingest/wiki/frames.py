"""The open constructs during a scan of wikitext: links, templates and tags that may still be closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from linkstore.ingest.wiki.tags import FRAMES

MOST_OPEN: Final = 100
"""More open links, templates and tags than this are read as text."""

OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL = "[[", "{{", "["


@dataclass(slots=True)
class Frame:
    """A construct of wikitext that is open.

    Args:
        kind: OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL or the name of a tag.
        start: Where it begins in the output, itself included.
        bars: Where its ``|`` stand in the output.
        braces: How many braces it has.
        inside: Where its content begins in the text.
        name: Its own name: of a reference; the URL of an external link.
    """

    kind: str
    start: int
    bars: list[int] = field(default_factory=list)
    braces: int = 0
    inside: int = 0
    name: str = ""


_WEAKER: Final[dict[str, frozenset[str]]] = {
    OPEN_EXTERNAL: frozenset(),
    OPEN_LINK: frozenset({OPEN_EXTERNAL}),
    OPEN_TEMPLATE: frozenset({OPEN_EXTERNAL, OPEN_LINK}),
    **dict.fromkeys(FRAMES, frozenset({OPEN_EXTERNAL, OPEN_LINK, OPEN_TEMPLATE})),
}
"""Constructs that are not markup if they are still open when another one closes."""


class Output:
    """The pieces of the text so far, and what is open in it.

    What opens stays in the text as it is written; only when it closes, what it shows takes its place. So
    what never closes is text without anybody going back to it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.open: list[Frame] = []

    def push(self, frame: Frame, written: str) -> None:
        """Open a frame. With too many open, all of them become text."""
        if len(self.open) >= MOST_OPEN:
            self.open.clear()
        self.open.append(frame)
        self.pieces.append(written)

    def can_close(self, kind: str) -> bool:
        """Say whether an element of this kind can close here, and turn open markup within it into text."""
        weaker, depth = _WEAKER[kind], len(self.open)
        while depth and self.open[depth - 1].kind in weaker:
            depth -= 1
        if not depth or self.open[depth - 1].kind != kind:
            return False
        del self.open[depth:]
        return True

    def is_within(self, kind: str) -> bool:
        """Say whether a frame of this kind is open."""
        return any(frame.kind == kind for frame in self.open)

    def parts(self, frame: Frame) -> list[str]:
        """Return the content of an open link or template, divided at each ``|``."""
        bounds = [frame.start, *frame.bars, len(self.pieces)]
        return ["".join(self.pieces[begin + 1 : end]) for begin, end in pairwise(bounds)]

    def content(self, frame: Frame) -> str:
        """Return the content of an open frame."""
        return "".join(self.pieces[frame.start + 1 :])

    def replace(self, frame: Frame, *pieces: str) -> None:
        """Replace a frame by what it shows."""
        self.pieces[frame.start :] = pieces

"""Anchors and links that wait until the block they belong to is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from linkstore.extraction import Hyperlink

AT_START: Final = -1
"""Stands for the start of the block."""


class Waiting:
    """Anchors and links of the next block, each with the number of its mark in the text, or AT_START.

    Each is looked at a bounded number of times, however many blocks without text come before the next one.

    Attributes:
        starts: Whether one of the anchors stands at the start of the block.
    """

    def __init__(self) -> None:
        self.anchors: list[tuple[str, int]] = []
        self.links: list[tuple[Hyperlink, int]] = []
        self.starts = False
        self._settled = [0, 0]

    def settle(self) -> None:
        """Move everything that waits to the start, as the block it was in has no text."""
        for at in range(self._settled[0], len(self.anchors)):
            self.anchors[at] = (self.anchors[at][0], AT_START)
        for at in range(self._settled[1], len(self.links)):
            self.links[at] = (self.links[at][0], AT_START)
        self._settled = [len(self.anchors), len(self.links)]

    def drop_links(self) -> None:
        """Forget the links."""
        self.links = []
        self._settled[1] = 0

    def drop_links_to_own_page(self, start: int) -> None:
        """Forget the links from a position on that lead to a place on their own page."""
        self.links[start:] = [link for link in self.links[start:] if not link[0].href.startswith("#")]

    def given_away(
        self, counts: Sequence[int]
    ) -> tuple[tuple[str, ...], tuple[Hyperlink, ...], tuple[int, ...]]:
        """Return the anchors, the links and the places of a block, and let none wait any more.

        Args:
            counts: How many letters of its text stand before each mark, empty if that is not known.
        """
        if not self.anchors and not self.links:
            return (), (), ()
        anchors: dict[str, int] = {}
        for anchor, number in self.anchors:
            anchors.setdefault(anchor, number)
        links = tuple([link for link, _ in self.links])
        numbers = (*anchors.values(), *[number for _, number in self.links]) if counts else ()
        places = tuple([0 if number < 0 else counts[number] for number in numbers])
        self.anchors, self.links, self.starts = [], [], False
        self._settled = [0, 0]
        return tuple(anchors), links, places

    def is_contents(self, text: str) -> bool:
        """Say whether a line is only links, several of them, and all to places on its own page."""
        links = [link for link, _ in self.links]
        return (
            len(links) > 1
            and all(link.href.startswith("#") for link in links)
            and _signs(text) == sum(_signs(link.label) for link in links)
        )


def _signs(text: str) -> int:
    """Count the letters and digits of a text."""
    return sum(map(str.isalnum, text))

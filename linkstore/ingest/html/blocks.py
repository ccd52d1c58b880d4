"""A piece of a page: a heading, a paragraph, a list item, a table row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from linkstore.extraction import Hyperlink
from linkstore.extraction.texts import letters


class Block(NamedTuple):
    """A piece of a page that is not divided unless it is too long.

    Attributes:
        text: Its text; only that of ``<pre>`` keeps its white space.
        level: 1 to 6 for a heading, 0 for everything else.
        anchors: The fragments (``id``, ``name``) that lead to it or to what is in it.
        links: The hyperlinks in it, in order.
        starts: Whether an anchor stands at its start.
        fragment: Of a heading, the fragment that leads to it, if any.
        tight: Whether it follows what is before without a blank line.
        places: Where the anchors and then the links stand: after how many characters of the text that are
            not white space. Empty where that is not known, or where all stand at the start.
        ahead: Whether it stands before the heading of the section it belongs to.
        suspect: The number of the element it is in that is noise if it repeats from page to page; else 0.
    """

    text: str
    level: int = 0
    anchors: tuple[str, ...] = ()
    links: tuple[Hyperlink, ...] = ()
    starts: bool = False
    fragment: str | None = None
    tight: bool = False
    places: tuple[int, ...] = ()
    ahead: bool = False
    suspect: int = 0

    def placed(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places of its anchors and links, the start of the block if they are not known."""
        places = self.places or (0,) * (len(self.anchors) + len(self.links))
        return places[: len(self.anchors)], places[len(self.anchors) :]

    def with_at_end(self, anchors: Sequence[str], links: Sequence[Hyperlink] = ()) -> Block:
        """Return the block with further anchors and links, which stand behind its text."""
        end = letters(self.text)
        of_anchors, of_links = self.placed()
        return self._replace(
            anchors=(*self.anchors, *anchors),
            links=(*self.links, *links),
            places=(*of_anchors, *(end for _ in anchors), *of_links, *(end for _ in links)),
        )


def joined(cells: Sequence[Block]) -> Block:
    """Join the cells of a table row into one line."""
    text = " | ".join([cell.text for cell in cells])
    starts = cells[0].starts
    if not any(cell.anchors or cell.links for cell in cells):
        return Block(text, starts=starts, tight=True, suspect=cells[0].suspect)
    anchors: list[int] = []
    links: list[int] = []
    before = 0
    for cell in cells:
        of_anchors, of_links = cell.placed()
        anchors.extend(before + place for place in of_anchors)
        links.extend(before + place for place in of_links)
        before += letters(cell.text) + 1
    return Block(
        text=text,
        anchors=tuple(anchor for cell in cells for anchor in cell.anchors),
        links=tuple(link for cell in cells for link in cell.links),
        starts=starts,
        tight=True,
        places=(*anchors, *links),
        suspect=cells[0].suspect,
    )

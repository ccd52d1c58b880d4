"""Blocks of a page: headings, paragraphs, list items, table rows, each with what lies in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from linkstore.extract.protocol import Hyperlink

BREAK: Final = "\v"
"""``<br>``, and where a block begins or ends: the only vertical tab that does not come from the source."""
BAR: Final = "bar"
"""Stands for the element of a block that only leads to the pages before, after and above."""
TITLE: Final = "title"
"""Stands for the element of the block that a page itself calls its title."""
_MOST_PASSED_ON: Final = 16
"""Anchors in blocks left out that lead to the next one; a menu may have thousands."""


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
        suspect: The number of the box it is in that is noise if it repeats from page to page; else 0.
        tag: The element it is in, ``"th"`` of a row that heads others, or :data:`BAR`.
        term: The term that it defines, as ``<dt>`` says it, or the row that heads it; may be empty.
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
    tag: str = ""
    term: str = ""

    def place(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the places of its anchors and links, the start of the block if they are not known."""
        places = self.places or (0,) * (len(self.anchors) + len(self.links))
        return places[: len(self.anchors)], places[len(self.anchors) :]

    def split_anchors(self, names: Collection[str]) -> tuple[Block, list[str]]:
        """Return the block without some of its anchors, and these."""
        of_anchors, of_links = self.place()
        kept = [pair for pair in zip(self.anchors, of_anchors, strict=True) if pair[0] not in names]
        block = self._replace(
            anchors=tuple([anchor for anchor, _ in kept]), places=(*[at for _, at in kept], *of_links)
        )
        return block, [anchor for anchor in self.anchors if anchor in names]

    def with_at_end(self, anchors: Sequence[str], links: Sequence[Hyperlink] = ()) -> Block:
        """Return the block with further anchors and links, which stand behind its text."""
        further = Block("", anchors=tuple(anchors), links=tuple(links))
        return self.with_those_of([(0, self), (count_letters(self.text), further)])

    def with_those_of(self, blocks: Iterable[tuple[int, Block]]) -> Block:
        """Return the block with the anchors and links of others, each that many letters behind its start."""
        anchors: list[tuple[str, int]] = []
        links: list[tuple[Hyperlink, int]] = []
        for start, block in blocks:
            of_anchors, of_links = block.place()
            anchors += ((anchor, start + at) for anchor, at in zip(block.anchors, of_anchors, strict=True))
            links += ((link, start + at) for link, at in zip(block.links, of_links, strict=True))
        return self._replace(
            anchors=tuple([anchor for anchor, _ in anchors]),
            links=tuple([hyperlink for hyperlink, _ in links]),
            places=tuple([at for _, at in (*anchors, *links)]),
        )


class Box(NamedTuple):
    """An element that is looked out for, and the blocks in it."""

    node: int
    """Its identity (``mem_id``)."""
    start: int
    end: int


def fold_whitespace(text: str) -> str:
    """Fold the white space of a text to single spaces, as HTML shows it."""
    return " ".join(text.split())


def count_letters(text: str) -> int:
    """Count the characters of a text that are not white space."""
    return len("".join(text.split()))


def fold_lines(text: str) -> str:
    """Return a text as HTML shows it: white space folded, a new line at each break."""
    if BREAK not in text:
        return fold_whitespace(text)
    return "\n".join(filter(None, map(fold_whitespace, text.split(BREAK))))


def keep_blocks(blocks: Sequence[Block], kept: Sequence[int]) -> list[Block]:
    """Return the blocks at some positions. Anchors of the others go to the next one, or to the last's end."""
    kept_blocks: list[Block] = []
    at = 0
    for number in kept:
        before = tuple([anchor for block in blocks[at:number] for anchor in block.anchors])[:_MOST_PASSED_ON]
        block, at = blocks[number], number + 1
        kept_blocks.append(
            block.with_those_of([(0, Block("", anchors=before)), (0, block)]) if before else block
        )
    after = [anchor for block in blocks[at:] for anchor in block.anchors][:_MOST_PASSED_ON]
    if after and kept_blocks:
        kept_blocks[-1] = kept_blocks[-1].with_at_end(after)
    return kept_blocks


def join_cells(cells: Sequence[Block]) -> Block:
    """Join the cells of a table row into one line."""
    text = " | ".join([cell.text for cell in cells])
    row = Block(text, starts=cells[0].starts, tight=True, tag="tr")
    if not any(cell.anchors or cell.links for cell in cells):
        return row
    starts = accumulate((count_letters(cell.text) + 1 for cell in cells[:-1]), initial=0)
    return row.with_those_of(zip(starts, cells, strict=True))

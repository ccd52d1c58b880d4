"""Surveys a sample of the pages of a folder: text that most of them share, and how links name pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from linkstore.extraction.texts import letters
from linkstore.ingest.html.blocks import Block
from linkstore.ingest.html.pages import PageContent
from linkstore.urls import Site, split_tag

SAMPLE: Final = 16
"""Number of pages in the sample."""
LARGEST: Final = 2**17
"""Maximum size in bytes of a page in the sample."""

REPEATED: Final = "text of most pages"

_FEWEST: Final = 8
_FEWEST_ALIKE: Final = 3
"""Pages that say the same in an element that is named like noise."""
_SHARE: Final = 0.6
_HEAD: Final = 200
_TAIL: Final = 60
_LONGEST: Final = 2000
_PLAIN: Final = 4
"""Blocks that are not mostly links; more than a few are a text."""


@dataclass(frozen=True, slots=True)
class Chrome:
    """The common beginnings and ends of most pages of a site: menus, banners, notices.

    Args:
        heads: Blocks at the beginning, each as its level and text.
        tails: Blocks at the end.
        boxes: Blocks anywhere, in elements that are named like noise but have content.
    """

    heads: frozenset[tuple[int, str]] = frozenset()
    tails: frozenset[tuple[int, str]] = frozenset()
    boxes: frozenset[tuple[int, str]] = frozenset()

    @property
    def said(self) -> str:
        """A text that is the same for the same blocks, in every process."""
        found = (sorted(self.heads), sorted(self.tails), sorted(self.boxes))
        return repr(found) if any(found) else ""

    @classmethod
    def find(cls, pages: Sequence[PageContent]) -> Chrome:
        """Find what most pages share, which is nothing if there are too few pages to tell."""
        boxes = _shared([[block for block in page.blocks if block.suspect] for page in pages], _FEWEST_ALIKE)
        if len(pages) < _FEWEST:
            return cls(boxes=boxes)
        heads = _shared([page.blocks[:_HEAD] for page in pages])
        tails = _shared([page.blocks[-_TAIL:] for page in pages])
        return cls(heads=heads, tails=tails, boxes=boxes)

    def without(self, page: PageContent) -> PageContent:
        """Return a page without its chrome, whose anchors go to what remains. If nothing would, it stays."""
        blocks = page.blocks
        start, end = self._begin(blocks), self._end(blocks)
        own = {block.suspect for block in blocks if _key(block) not in self.boxes}
        left = {at for at, block in enumerate(blocks) if block.suspect and block.suspect not in own}
        left.update(range(start), range(end, len(blocks)))
        kept = [at for at in range(len(blocks)) if at not in left]
        if not left or all(blocks[at].level for at in kept):
            return page
        letters_left = sum(letters(blocks[at].text) for at in left)
        left_out = Counter(page.left_out) + Counter({REPEATED: letters_left})
        return replace(page, blocks=_with_anchors(blocks, kept), left_out=left_out)

    def _begin(self, blocks: Sequence[Block]) -> int:
        """Return the position where the page itself begins. A heading counts as chrome only before chrome."""
        start = plain = 0
        for number, block in enumerate(blocks):
            plain += not block.level and not _is_menu(block)
            if _key(block) not in self.heads or plain > _PLAIN:
                break
            if not block.level:
                start = number + 1
        return start

    def _end(self, blocks: Sequence[Block]) -> int:
        """Return the end of the page itself: before menus, or before a few blocks below one heading."""
        end, plain, headed = len(blocks), 0, False
        for number in range(len(blocks) - 1, -1, -1):
            block = blocks[number]
            plain += not block.level and not _is_menu(block)
            if _key(block) not in self.tails or plain > _PLAIN or (plain and headed):
                break
            headed = headed or bool(block.level and plain)
            end = number
        return end


def _is_menu(block: Block) -> bool:
    """Say whether a block is mostly links."""
    return 2 * sum(len(link.label) for link in block.links) >= len(block.text)


def _key(block: Block) -> tuple[int, str]:
    return (block.level, block.text)


def _shared(runs: Iterable[Sequence[Block]], least: int = 1) -> frozenset[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    pages = 0
    for run in runs:
        pages += 1
        counts.update({_key(block) for block in run if len(block.text) <= _LONGEST})
    return frozenset(key for key, count in counts.items() if count >= max(least, _SHARE * pages))


def _with_anchors(blocks: Sequence[Block], kept: Sequence[int]) -> tuple[Block, ...]:
    """Return the kept blocks. Anchors of the others go to the next one, or to the end of the last."""
    found: list[Block] = []
    at = 0
    for number in kept:
        before = tuple(anchor for block in blocks[at:number] for anchor in block.anchors)
        block, at = blocks[number], number + 1
        if before:
            places = (0,) * len(before) + block.places if block.places else ()
            block = block._replace(anchors=(*before, *block.anchors), places=places)
        found.append(block)
    after = tuple(anchor for block in blocks[at:] for anchor in block.anchors)
    if after:
        found[-1] = found[-1].with_at_end(after)
    return tuple(found)


def names_without_suffix(
    pages: Iterable[tuple[str, PageContent]], site: Site, own: frozenset[str], suffixes: Iterable[str]
) -> bool:
    """Say whether links leave out the suffix of files, as in ``/guide/setup`` for ``/guide/setup.html``.

    Args:
        pages: Some pages by URL.
        site: How pages are named.
        own: The tags of all pages.
        suffixes: Of files that are pages.
    """
    for url, page in pages:
        for link in (link for block in page.blocks for link in block.links):
            tag = site.tag(link.href, page=url, base=page.base)
            name = "" if tag is None else split_tag(tag)[0]
            if name not in own and any(f"{name}{suffix}" in own for suffix in suffixes):
                return True
    return False

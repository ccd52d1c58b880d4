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

_FEWEST: Final = 8
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
    """

    heads: frozenset[tuple[int, str]] = frozenset()
    tails: frozenset[tuple[int, str]] = frozenset()

    @property
    def said(self) -> str:
        """The same for the same blocks, in every process."""
        return repr((sorted(self.heads), sorted(self.tails))) if self.heads or self.tails else ""

    @classmethod
    def find(cls, pages: Sequence[PageContent]) -> Chrome:
        """The common beginnings and ends of pages; nothing if there are too few pages to tell."""
        if len(pages) < _FEWEST:
            return cls()
        heads = _shared([page.blocks[:_HEAD] for page in pages])
        tails = _shared([page.blocks[-_TAIL:] for page in pages])
        return cls(heads=heads, tails=tails)

    def without(self, page: PageContent) -> PageContent:
        """A page without it; its anchors go to what remains. The page itself, if nothing would remain."""
        start, end = self._begin(page.blocks), self._end(page.blocks)
        if start >= end:
            return page
        kept = page.blocks[start:end]
        if len(kept) == len(page.blocks) or all(block.level for block in kept):
            return page
        before = tuple(anchor for block in page.blocks[:start] for anchor in block.anchors)
        after = tuple(anchor for block in page.blocks[end:] for anchor in block.anchors)
        left_out = sum(letters(block.text) for block in (*page.blocks[:start], *page.blocks[end:]))
        blocks = _with_anchors(kept, before, after)
        return replace(page, blocks=blocks, left_out=page.left_out + left_out)

    def _begin(self, blocks: Sequence[Block]) -> int:
        """The position where the page itself begins; a heading counts as chrome only if chrome follows it."""
        start = plain = 0
        for number, block in enumerate(blocks):
            plain += not block.level and not _is_menu(block)
            if _key(block) not in self.heads or plain > _PLAIN:
                break
            if not block.level:
                start = number + 1
        return start

    def _end(self, blocks: Sequence[Block]) -> int:
        """The end of the page itself: before menus, or before a few blocks below one heading."""
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
    """Whether a block is mostly links."""
    return 2 * sum(len(link.label) for link in block.links) >= len(block.text)


def _key(block: Block) -> tuple[int, str]:
    return (block.level, block.text)


def _shared(runs: Iterable[Sequence[Block]]) -> frozenset[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    pages = 0
    for run in runs:
        pages += 1
        counts.update({_key(block) for block in run if len(block.text) <= _LONGEST})
    return frozenset(key for key, count in counts.items() if count >= _SHARE * pages)


def _with_anchors(
    blocks: tuple[Block, ...], before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[Block, ...]:
    first = blocks[0]
    if before:
        places = (0,) * len(before) + first.places if first.places else ()
        first = first._replace(anchors=(*before, *first.anchors), places=places)
    blocks = (first, *blocks[1:])
    last = blocks[-1].with_at_end(after) if after else blocks[-1]
    return (*blocks[:-1], last)


def names_without_suffix(
    pages: Iterable[tuple[str, PageContent]], site: Site, own: frozenset[str], suffixes: Iterable[str]
) -> bool:
    """Whether links leave out the suffix of files, as in ``/guide/setup`` for ``/guide/setup.html``.

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

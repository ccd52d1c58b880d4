"""What a few pages of a folder tell of all of them: text that most share, and how links name pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from linkstore.extraction.texts import letters
from linkstore.ingest.html.blocks import Block
from linkstore.ingest.html.pages import PageContent
from linkstore.urls import Site, split_tag

SAMPLE: Final = 16
"""How many pages are looked at."""
LARGEST: Final = 2**17
"""Larger pages, in bytes, are not looked at."""

_FEWEST: Final = 8
_SHARE: Final = 0.6
_HEAD: Final = 200
_TAIL: Final = 60
_LONGEST: Final = 2000


@dataclass(frozen=True, slots=True)
class Chrome:
    """What most pages of a site begin and end with: menus, banners, notices.

    Args:
        heads: Blocks at the beginning, each as its level and text.
        tails: Blocks at the end.
    """

    heads: frozenset[tuple[int, str]] = frozenset()
    tails: frozenset[tuple[int, str]] = frozenset()

    @classmethod
    def find(cls, pages: Sequence[PageContent]) -> Chrome:
        """What most of some pages begin and end with; nothing if they are too few to tell."""
        if len(pages) < _FEWEST:
            return cls()
        heads = _shared([page.blocks[:_HEAD] for page in pages])
        tails = _shared([page.blocks[-_TAIL:] for page in pages])
        return cls(heads=heads, tails=tails)

    def without(self, page: PageContent) -> PageContent:
        """A page without it; its anchors go to what remains. The page itself, if nothing would remain."""
        start, end = self._begin(page.blocks), len(page.blocks)
        while end > start and _key(page.blocks[end - 1]) in self.tails:
            end -= 1
        kept = page.blocks[start:end]
        if len(kept) == len(page.blocks) or all(block.level for block in kept):
            return page
        before = tuple(anchor for block in page.blocks[:start] for anchor in block.anchors)
        after = tuple(anchor for block in page.blocks[end:] for anchor in block.anchors)
        left_out = sum(letters(block.text) for block in (*page.blocks[:start], *page.blocks[end:]))
        blocks = _with_anchors(kept, before, after)
        return replace(page, blocks=blocks, left_out=page.left_out + left_out)

    def _begin(self, blocks: Sequence[Block]) -> int:
        """Where the page itself begins; a heading counts as chrome only if chrome follows it."""
        start = 0
        for number, block in enumerate(blocks):
            if _key(block) not in self.heads:
                break
            if not block.level:
                start = number + 1
        return start


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
        first = replace(first, anchors=(*before, *first.anchors), places=places)
    blocks = (first, *blocks[1:])
    last = blocks[-1]
    if after:
        places = last.places or (0,) * (len(last.anchors) + len(last.links))
        own = len(last.anchors)
        ends = (letters(last.text),) * len(after)
        last = replace(last, anchors=(*last.anchors, *after), places=(*places[:own], *ends, *places[own:]))
    return (*blocks[:-1], last)


def clean_endings(
    links: Iterable[tuple[str, str, str | None]], site: Site, pages: frozenset[str], suffixes: Iterable[str]
) -> frozenset[str]:
    """How links name pages that are files with a suffix: by nothing in its place, or by a slash.

    Args:
        links: Of each, the href, the URL of its page, and what ``<base href>`` says there.
        site: How pages are named.
        pages: Their tags.
        suffixes: Of files that are pages.

    Returns:
        A subset of ``{"", "/"}``; empty if links name files as they are.
    """
    return frozenset(
        "/" if tag.endswith("/") else ""
        for tag in _unknown(links, site, pages)
        if any(f"{tag.rstrip('/')}{suffix}" in pages for suffix in suffixes)
    )


def _unknown(
    links: Iterable[tuple[str, str, str | None]], site: Site, pages: frozenset[str]
) -> Iterator[str]:
    for href, page, base in links:
        tag = site.tag(href, page=page, base=base)
        found = None if tag is None else split_tag(tag)[0]
        if found is not None and found not in pages and found.startswith("/") and found != "/":
            yield found

"""What most pages of a site share, and how its links name its pages: told by a sample of them.

Sphinx's ``objects.inv`` tells the names that a site documents, and where: in version 2, after four lines of
text, a zlib stream has a line ``name domain:role priority uri title`` for each object, where ``$`` at the end
of the uri stands for the name.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import xxhash

from linkstore.core.urls import Site, normalize_fragment, split_tag
from linkstore.extract.blocks import Block, count_letters, keep_blocks
from linkstore.ingest.html.pages import PageContent
from linkstore.ingest.source import UnreadablePageError

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
INVENTORY_NAME: Final = "objects.inv"
SYMBOL: Final = "symbol"
"""Kind of the incoming links of what documents a name: ``os.path.join`` leads to where it is described."""
_HEADER: Final = b"# Sphinx inventory version 2"
_LINE: Final = re.compile(r"(?P<name>.+?)\s+(?P<domain>[^\s:]+):(?P<role>\S+)\s+-?\d+\s+(?P<uri>\S*)\s+.*")
_OTHER_DOMAINS: Final = frozenset({"std", "rst"})
"""Labels, documents, glossary terms: texts do not use the names that the source gives them."""
LARGEST_INVENTORY: Final = 64 * 2**20
"""Bytes of an inventory, packed and unpacked."""
_LONGEST_LINE: Final = 4096


@dataclass(frozen=True)
class Chrome:
    """The common beginnings and ends of most pages of a site: menus, banners, notices.

    Args:
        heads: Blocks at the beginning, each as its level and text.
        tails: Blocks at the end.
        boxes: Blocks anywhere, in elements that are named like noise, but have content on a page, or are all
            that it has.
        banners: Whether headings at the beginning count, such as the name of the site. That of a part of a
            site says where a page belongs.
    """

    heads: frozenset[tuple[int, str]] = frozenset()
    tails: frozenset[tuple[int, str]] = frozenset()
    boxes: frozenset[tuple[int, str]] = frozenset()
    banners: bool = True

    @cached_property
    def digest(self) -> str:
        """A text that is the same for the same blocks, in every process."""
        groups = [sorted(blocks) for blocks in (self.heads, self.tails, self.boxes)]
        text = repr(groups) if any(groups) else ""
        return xxhash.xxh3_64_hexdigest(text.encode(errors="replace"))

    @classmethod
    def find(cls, pages: Sequence[PageContent], *, banners: bool = True) -> Chrome:
        """Find the chrome that most pages share, if there are enough pages to tell."""
        suspects = [{_make_key(block) for block in page.blocks if block.suspect} for page in pages]
        boxes = _find_shared(map(frozenset.union, [page.frame for page in pages], suspects), _FEWEST_ALIKE)
        if len(pages) < _FEWEST:
            return cls(boxes=boxes)
        heads = _find_shared([map(_make_key, page.blocks[:_HEAD]) for page in pages])
        tails = _find_shared([map(_make_key, page.blocks[-_TAIL:]) for page in pages])
        return cls(heads=heads, tails=tails, boxes=boxes, banners=banners)

    def without(self, page: PageContent) -> PageContent:
        """Return a page without its chrome, or unchanged if nothing would remain.

        The anchors of the chrome go to what remains.
        """
        blocks = page.blocks
        own = {block.suspect for block in blocks if block.suspect and _make_key(block) not in self.boxes}
        boxed = {at for at, block in enumerate(blocks) if block.suspect and block.suspect not in own}
        left = boxed.union(self._find_head(page), self._find_tail(blocks))
        if all(block.level or at in left for at, block in enumerate(blocks)):
            left = boxed  # what most pages say is all that it says
        kept = [at for at in range(len(blocks)) if at not in left]
        if not left or not kept:
            return page
        letters_left = sum(count_letters(blocks[at].text) for at in left)
        left_out = Counter(page.left_out) + Counter({REPEATED: letters_left})
        return replace(page, blocks=tuple(keep_blocks(blocks, kept)), left_out=left_out)

    def _find_head(self, page: PageContent) -> Iterator[int]:
        """Yield the blocks before the page itself. Its own title may stand before, and among, a menu.

        A heading counts as chrome only before chrome.
        """
        waiting: list[int] = []
        plain = titles = 0
        for at, block in enumerate(page.blocks):
            is_shared = _make_key(block) in self.heads
            plain += not block.level and not _is_menu(block)
            if not is_shared and block.level:
                if self.banners and all(page.blocks[number].text != page.title for number in waiting):
                    yield from waiting  # a banner
                waiting = []
                titles += 1
                if titles > 1 or block.text not in {page.title, page.named}:
                    return
            elif not is_shared or plain > _PLAIN:
                return
            elif block.level:
                waiting.append(at)
            else:
                yield from (*waiting, at)
                waiting = []

    def _find_tail(self, blocks: Sequence[Block]) -> Iterator[int]:
        """Yield the blocks after the page itself: menus, or a few blocks below one heading."""
        plain, headed = 0, False
        for at in range(len(blocks) - 1, -1, -1):
            block = blocks[at]
            plain += not block.level and not _is_menu(block)
            if _make_key(block) not in self.tails or plain > _PLAIN or (plain and headed):
                return
            headed = headed or bool(block.level and plain)
            yield at


def _is_menu(block: Block) -> bool:
    """Say whether a block is mostly links."""
    return 2 * sum(len(link.label) for link in block.links) >= len(block.text)


def _make_key(block: Block) -> tuple[int, str]:
    return (block.level, block.text)


def _find_shared(runs: Iterable[Iterable[tuple[int, str]]], least: int = 1) -> frozenset[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    pages = 0
    for run in runs:
        pages += 1
        counts.update({(level, text) for level, text in run if len(text) <= _LONGEST})
    return frozenset(key for key, count in counts.items() if count >= max(least, _SHARE * pages))


def has_suffixless_links(
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


def read_inventory(content: bytes) -> Mapping[str, Mapping[str, list[str]]]:
    """Read the names of programming languages that a site documents.

    Args:
        content: The file.

    Returns:
        URL path of a page → fragment → the names of the objects described there.

    Raises:
        UnreadablePageError: If it is not an inventory, or unpacks to more than 64 MiB.
    """
    *header, body = content.split(b"\n", 4) if content.count(b"\n", 0, 4096) >= 4 else (content, b"")
    if header[0].rstrip() != _HEADER:
        raise UnreadablePageError("it is not a Sphinx inventory of version 2")
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(body, LARGEST_INVENTORY)
    except zlib.error as error:
        raise UnreadablePageError(f"it cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise UnreadablePageError(f"it unpacks to more than {LARGEST_INVENTORY:,} bytes")
    names: dict[str, dict[str, list[str]]] = {}
    for line in unpacked.decode(errors="replace").splitlines():
        match = _LINE.fullmatch(line.rstrip()) if len(line) <= _LONGEST_LINE else None
        if match is None or match["domain"] in _OTHER_DOMAINS:
            continue
        name, uri = match["name"], match["uri"]
        page, _, fragment = (f"{uri[:-1]}{name}" if uri.endswith("$") else uri).partition("#")
        if fragment:
            names.setdefault(page, {}).setdefault(normalize_fragment(fragment), []).append(name)
    return names

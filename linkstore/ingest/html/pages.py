"""Reads a page's title, URLs and blocks from a file of HTML.

A sample of a folder's pages tells what text most of them share, and how links name pages. Sphinx's
``objects.inv`` tells the names that a site documents, and where: in version 2, after four lines of text, a
zlib stream has a line ``name domain:role priority uri title`` for each object, where ``$`` at the end of
the uri stands for the name.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from linkstore.core.urls import Site, normalize_fragment, split_tag
from linkstore.errors import LinkStoreError
from linkstore.extract.html import (
    DecodedText,
    Node,
    Tree,
    decode_html,
    find_base_href,
    find_canonical_href,
    find_head_title,
    parse_html,
)
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.extract.noise import count_letters, find_noise, is_prose
from linkstore.ingest.html.reading import Block, read_blocks
from linkstore.ingest.html.shown import apply_visibility

_MAIN: Final = "main, [role=main], article, .body, .document"
"""Elements in which site builders put the main content."""
_SURE: Final = 0.5
_PROBABLE: Final = 0.75
"""How much of the page's text that is not in links it must hold: names are used for other things too."""
OUTSIDE: Final = "text outside the main content"
HIDDEN: Final = "hidden text"
_WIDE: Final = ("utf-16", "utf-32")
_SNIFFED_BYTES: Final = 8192
_NO_TEXT: Final = bytes({*range(32), 127} - {9, 10, 12, 13, 27})
"""What text has no use for; ISO-2022 uses Escape (MIME Sniffing Standard, section 3)."""
_MOST_NO_TEXT: Final = 0.01
"""A stray NUL, which browsers pass over, does not make a page binary; more do."""
_TAGS: Final = re.compile(r"<[^<>]*+>|\s++")
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
SAMPLE: Final = 16
"""Number of pages in the sample."""
LARGEST_SAMPLED: Final = 2**17
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


class UnreadablePageError(ValueError):
    """A page cannot be read; the message says why, for the report on skipped pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """The content of a page.

    Args:
        title: Its main heading, else its ``<title>``; may be empty.
        blocks: Its main content; at least one block.
        base: What ``<base href>`` says, if anything.
        canonical: What ``<link rel=canonical>`` says, if anything.
        left_out: How many letters of the page are in no block, by what they are taken for: "navigation",
            "sidebars", "text outside the main content".
        plain: How many characters of its source are plain text in it, for there was too much markup.
        replaced: How many characters stand for bytes that are not in its encoding, as U+FFFD.
        guessed: Whether it declares no encoding, and was read as windows-1252.
    """

    title: str
    blocks: tuple[Block, ...]
    base: str | None = None
    canonical: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    plain: int = 0
    replaced: int = 0
    guessed: bool = False


def read_html_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page.

    Args:
        content: The file.
        encoding: Whatever the page declares. None (default) believes what it declares.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    found = decode_page(content, encoding)
    page = read_page_content(parse_page(found.text))
    return replace(page, replaced=found.replaced, guessed=found.guessed)


def parse_page(text: str) -> Tree:
    """Parse the text of a page.

    Raises:
        UnreadablePageError: If it would take far more time or memory to parse than its length says.
    """
    try:
        return parse_html(text)
    except UnboundedPageError as error:
        raise UnreadablePageError(str(error)) from error


def read_page_content(tree: Tree, *, title: str = "", bare: bool = False) -> PageContent:
    """Return the content of a parsed page.

    Args:
        tree: The page, changed while it is read.
        title: If not empty, the page's title, whatever its headings say.
        bare: Whether a heading alone is a page.

    Raises:
        UnreadablePageError: If there is no text.
    """
    if tree.body is None:
        raise UnreadablePageError("it has no body")
    hidden = apply_visibility(tree)
    blocks, left_out = _read_main_content(tree, tree.body)
    if not blocks or (len(blocks) == 1 and blocks[0].level and not bare):
        raise UnreadablePageError("it has no text")
    return PageContent(
        title=title or _choose_title(tree, blocks),
        blocks=tuple(blocks),
        base=find_base_href(tree),
        canonical=find_canonical_href(tree),
        left_out={**left_out, **({HIDDEN: hidden} if hidden else {})},
    )


def decode_page(content: bytes, encoding: str | None = None, *, declared: str | None = None) -> DecodedText:
    """Return a page's text: see :func:`~linkstore.extract.html.decode_html`.

    Args:
        content: The page.
        encoding: Whatever it declares, if not None.
        declared: The ``Content-Type`` that its server gives it, if any.

    Raises:
        UnreadablePageError: If the page is empty or binary, or if most of it is not in its encoding.
    """
    if not content.strip():
        raise UnreadablePageError("it is empty")
    found = decode_html(content, declared=declared, encoding=encoding)
    start = content[:_SNIFFED_BYTES]
    kept = len(start.translate(None, _NO_TEXT))
    if len(start) - kept > len(start) * _MOST_NO_TEXT and not found.encoding.startswith(_WIDE):
        raise UnreadablePageError("it is binary, or UTF-16 without a byte-order mark (encoding)")
    if found.replaced and 2 * found.replaced > len(_TAGS.sub("", found.text)):
        raise UnreadablePageError(
            f"bad encoding: most of it is not {found.encoding}; declare its encoding with <meta charset>, or"
            " use --encoding (Python: encoding=…)"
        )
    return found._replace(text=found.text.replace("\0", ""))


def _read_main_content(tree: Tree, body: Node) -> tuple[list[Block], Mapping[str, int]]:
    """Return the blocks of the content, and how many letters are left out, by what they are taken for."""
    main = _find_main(tree)
    noise = find_noise(tree)
    watched = frozenset(main) | noise.titles
    reading = read_blocks(tree, body, noise, watched)
    if noise.kinds and _is_bare(reading.blocks):  # for example, a page that is only a table of contents
        reading = read_blocks(tree, body, noise.without_contents(), watched)
    if noise.kinds and _is_bare(reading.blocks):
        reading = read_blocks(tree, body, find_noise(tree, certain=True), watched)
    weights = [
        max(0, len(block.text.removeprefix("- ")) - sum([len(link.label) for link in block.links]))
        for block in reading.blocks
    ]
    for name, share in main.items():
        start, end = reading.ranges.get(name, (0, 0))
        if start < end and sum(weights[start:end]) >= share * sum(weights):
            titled = {at for one in noise.titles for at in range(*reading.ranges.get(one, (0, 0)))}
            kept = titled.union(range(start, end))
            if share == _PROBABLE:
                kept |= _find_paragraphs(reading.blocks, kept)
            for at, block in enumerate(reading.blocks):
                if at not in kept:
                    reading.left_out[reading.suspects.get(block.suspect, OUTSIDE)] += count_letters(
                        block.text
                    )
            return [block for at, block in enumerate(reading.blocks) if at in kept], +reading.left_out
    return reading.blocks, +reading.left_out


def _find_paragraphs(blocks: list[Block], inside: set[int]) -> set[int]:
    """Find where the paragraphs outside of the main content stand, with their headings.

    An element is called an article or a body for other reasons too, so that what stands beside it may belong
    to it.
    """
    found: set[int] = set()
    for at, block in enumerate(blocks):
        if at in inside or block.level:
            continue
        linked = sum(count_letters(link.label) for link in block.links)
        code = "\n" in block.text and not block.tight and not linked
        if code or (linked * 2 < count_letters(block.text) and is_prose(block.text, linked)):
            found.add(at)
            if at and blocks[at - 1].level:
                found.add(at - 1)
    return found - inside


def _is_bare(blocks: list[Block]) -> bool:
    """Say whether there is nothing but headings, and blocks that may be the frame of the page."""
    return all(block.level or block.suspect for block in blocks)


def _find_main(tree: Tree) -> dict[int, float]:
    """Return the elements that may be the main content, the most certain first, with their minimum share."""
    found: dict[str, list[Node]] = {"main": [], "role": [], "article": [], "body": [], "document": []}
    for node in tree.css(_MAIN):
        attributes = node.attributes
        classes = (attributes.get("class") or "").split()
        kinds = (node.tag, "role" if attributes.get("role") == "main" else "", *classes)
        for kind in found.keys() & set(kinds):
            found[kind].append(node)
    return {
        nodes[0].mem_id: _SURE if kind in {"main", "role"} else _PROBABLE
        for kind, nodes in found.items()
        if len(nodes) == 1
    }


def _choose_title(tree: Tree, blocks: list[Block]) -> str:
    """Return the main heading, of several the one that <title> begins with, never that of a banner."""
    named = find_head_title(tree)
    tops = [block for block in blocks if block.level == 1]
    begun = (block.text for block in tops if named.startswith(block.text))
    sure = (block.text for block in tops if not block.suspect)
    return (
        next(begun, "")
        or next(sure, "")
        or named
        or next((block.text for block in blocks if block.level), "")
    )


class InventoryError(LinkStoreError, ValueError):
    """A file is not an inventory, or of an unknown version."""


def read_inventory(content: bytes) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Read the names of programming languages that a site documents.

    Args:
        content: The file.

    Returns:
        URL path of a page → fragment and name of each object described there.

    Raises:
        InventoryError: If it is not an inventory, or unpacks to more than 64 MiB.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _unpack_inventory(content).decode(errors="replace").splitlines():
        for page, fragment, name in _parse_object(line):
            found.setdefault(page, []).append((fragment, name))
    return {page: tuple(dict.fromkeys(names)) for page, names in found.items()}


def _unpack_inventory(content: bytes) -> bytes:
    *header, body = content.split(b"\n", 4) if content.count(b"\n", 0, 4096) >= 4 else (content, b"")
    if header[0].rstrip() != _HEADER:
        raise InventoryError("it is not a Sphinx inventory of version 2")
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(body, LARGEST_INVENTORY)
    except zlib.error as error:
        raise InventoryError(f"it cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise InventoryError(f"it unpacks to more than {LARGEST_INVENTORY:,} bytes")
    return unpacked


def _parse_object(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield page, fragment and name of an object, if the line has one."""
    found = _LINE.fullmatch(line.rstrip()) if len(line) <= _LONGEST_LINE else None
    if found is None or found["domain"] in _OTHER_DOMAINS:
        return
    name, uri = found["name"], found["uri"]
    page, _, fragment = (f"{uri[:-1]}{name}" if uri.endswith("$") else uri).partition("#")
    if fragment:
        yield page, normalize_fragment(fragment), name


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
        boxes = _find_shared(
            [[block for block in page.blocks if block.suspect] for page in pages], _FEWEST_ALIKE
        )
        if len(pages) < _FEWEST:
            return cls(boxes=boxes)
        heads = _find_shared([page.blocks[:_HEAD] for page in pages])
        tails = _find_shared([page.blocks[-_TAIL:] for page in pages])
        return cls(heads=heads, tails=tails, boxes=boxes)

    def without(self, page: PageContent) -> PageContent:
        """Return a page without its chrome, whose anchors go to what remains. If nothing would, it stays."""
        blocks = page.blocks
        start, end = self._begin(blocks), self._end(blocks)
        own = {block.suspect for block in blocks if _make_block_key(block) not in self.boxes}
        left = {at for at, block in enumerate(blocks) if block.suspect and block.suspect not in own}
        left.update(range(start), range(end, len(blocks)))
        kept = [at for at in range(len(blocks)) if at not in left]
        if not left or all(blocks[at].level for at in kept):
            return page
        letters_left = sum(count_letters(blocks[at].text) for at in left)
        left_out = Counter(page.left_out) + Counter({REPEATED: letters_left})
        return replace(page, blocks=_keep_blocks(blocks, kept), left_out=left_out)

    def _begin(self, blocks: Sequence[Block]) -> int:
        """Return the position where the page itself begins. A heading counts as chrome only before chrome."""
        start = plain = 0
        for number, block in enumerate(blocks):
            plain += not block.level and not _is_menu(block)
            if _make_block_key(block) not in self.heads or plain > _PLAIN:
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
            if _make_block_key(block) not in self.tails or plain > _PLAIN or (plain and headed):
                break
            headed = headed or bool(block.level and plain)
            end = number
        return end


def _is_menu(block: Block) -> bool:
    """Say whether a block is mostly links."""
    return 2 * sum(len(link.label) for link in block.links) >= len(block.text)


def _make_block_key(block: Block) -> tuple[int, str]:
    return (block.level, block.text)


def _find_shared(runs: Iterable[Sequence[Block]], least: int = 1) -> frozenset[tuple[int, str]]:
    counts: Counter[tuple[int, str]] = Counter()
    pages = 0
    for run in runs:
        pages += 1
        counts.update({_make_block_key(block) for block in run if len(block.text) <= _LONGEST})
    return frozenset(key for key, count in counts.items() if count >= max(least, _SHARE * pages))


def _keep_blocks(blocks: Sequence[Block], kept: Sequence[int]) -> tuple[Block, ...]:
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

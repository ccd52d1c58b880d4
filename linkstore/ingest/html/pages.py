"""Reads a page's title, URLs and blocks from a file of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from linkstore.extraction.bounds import UnboundedPageError
from linkstore.extraction.decoding import Decoded, decode_html
from linkstore.extraction.markup import (
    Node,
    Tree,
    base_href,
    canonical_href,
    head_title,
    parse_html,
)
from linkstore.extraction.noise import find_noise, is_prose
from linkstore.extraction.texts import letters
from linkstore.ingest.html.blocks import Block
from linkstore.ingest.html.reading import read_blocks
from linkstore.ingest.html.shown import show

_MAIN: Final = "main, [role=main], article, .body, .document"
"""Elements in which site builders put the main content."""
_SURE: Final = 0.5
_PROBABLE: Final = 0.75
"""How much of the page's text that is not in links it must hold: names are used for other things too."""
OUTSIDE: Final = "text outside the main content"
HIDDEN: Final = "hidden text"
_WIDE: Final = ("utf-16", "utf-32")
_LOOKED_AT: Final = 8192
_NO_TEXT: Final = bytes({*range(32), 127} - {9, 10, 12, 13, 27})
"""What text has no use for; ISO-2022 uses Escape (MIME Sniffing Standard, section 3)."""
_MOST_NO_TEXT: Final = 0.01
"""A stray NUL, which browsers pass over, does not make a page binary; more do."""
_TAGS: Final = re.compile(r"<[^<>]*+>|\s++")


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
    found = decoded(content, encoding)
    page = page_content(parsed(found.text))
    return replace(page, replaced=found.replaced, guessed=found.guessed)


def parsed(text: str) -> Tree:
    """Parse the text of a page.

    Raises:
        UnreadablePageError: If it would take far more time or memory to parse than its length says.
    """
    try:
        return parse_html(text)
    except UnboundedPageError as error:
        raise UnreadablePageError(str(error)) from error


def page_content(tree: Tree, *, title: str = "", bare: bool = False) -> PageContent:
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
    hidden = show(tree)
    blocks, left_out = _content(tree, tree.body)
    if not blocks or (len(blocks) == 1 and blocks[0].level and not bare):
        raise UnreadablePageError("it has no text")
    return PageContent(
        title=title or _title(tree, blocks),
        blocks=tuple(blocks),
        base=base_href(tree),
        canonical=canonical_href(tree),
        left_out={**left_out, **({HIDDEN: hidden} if hidden else {})},
    )


def decoded(content: bytes, encoding: str | None = None, *, declared: str | None = None) -> Decoded:
    """Return a page's text: see :func:`~linkstore.extraction.decoding.decode_html`.

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
    start = content[:_LOOKED_AT]
    kept = len(start.translate(None, _NO_TEXT))
    if len(start) - kept > len(start) * _MOST_NO_TEXT and not found.encoding.startswith(_WIDE):
        raise UnreadablePageError("it is binary, or UTF-16 without a byte-order mark (encoding)")
    if found.replaced and 2 * found.replaced > len(_TAGS.sub("", found.text)):
        raise UnreadablePageError(
            f"bad encoding: most of it is not {found.encoding}; declare its encoding with <meta charset>, or"
            " use --encoding (Python: encoding=…)"
        )
    return found._replace(text=found.text.replace("\0", ""))


def _content(tree: Tree, body: Node) -> tuple[list[Block], Mapping[str, int]]:
    """Return the blocks of the content, and how many letters are left out, by what they are taken for."""
    main = _main(tree)
    noise = find_noise(tree)
    watched = frozenset(main) | noise.titles
    reading = read_blocks(tree, body, noise, watched)
    if noise.kinds and _is_bare(reading.blocks):  # for example, a page that is only a table of contents
        reading = read_blocks(tree, body, noise.without_contents(), watched)
    if noise.kinds and _is_bare(reading.blocks):
        reading = read_blocks(tree, body, find_noise(tree, certain=True), watched)
    weights = [_weight(block) for block in reading.blocks]
    for name, share in main.items():
        start, end = reading.ranges.get(name, (0, 0))
        if start < end and sum(weights[start:end]) >= share * sum(weights):
            titled = {at for one in noise.titles for at in range(*reading.ranges.get(one, (0, 0)))}
            kept = titled.union(range(start, end))
            if share == _PROBABLE:
                kept |= _paragraphs(reading.blocks, kept)
            for at, block in enumerate(reading.blocks):
                if at not in kept:
                    reading.left_out[reading.suspects.get(block.suspect, OUTSIDE)] += letters(block.text)
            return [block for at, block in enumerate(reading.blocks) if at in kept], +reading.left_out
    return reading.blocks, +reading.left_out


def _paragraphs(blocks: list[Block], inside: set[int]) -> set[int]:
    """Find where the paragraphs outside of the main content stand, with their headings.

    An element is called an article or a body for other reasons too, so that what stands beside it may belong
    to it.
    """
    found: set[int] = set()
    for at, block in enumerate(blocks):
        if at in inside or block.level:
            continue
        linked = sum(letters(link.label) for link in block.links)
        code = "\n" in block.text and not block.tight and not linked
        if code or (linked * 2 < letters(block.text) and is_prose(block.text, linked)):
            found.add(at)
            if at and blocks[at - 1].level:
                found.add(at - 1)
    return found - inside


def _is_bare(blocks: list[Block]) -> bool:
    """Say whether there is nothing but headings, and blocks that may be the frame of the page."""
    return all(block.level or block.suspect for block in blocks)


def _main(tree: Tree) -> dict[int, float]:
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


def _weight(block: Block) -> int:
    """Return how long the text of a block is, links left out."""
    length = len(block.text.removeprefix("- "))
    return max(0, length - sum([len(link.label) for link in block.links])) if block.links else length


def _title(tree: Tree, blocks: list[Block]) -> str:
    """Return the main heading, of several the one that <title> begins with, never that of a banner."""
    named = head_title(tree)
    tops = [block for block in blocks if block.level == 1]
    begun = (block.text for block in tops if named.startswith(block.text))
    sure = (block.text for block in tops if not block.suspect)
    return (
        next(begun, "")
        or next(sure, "")
        or named
        or next((block.text for block in blocks if block.level), "")
    )

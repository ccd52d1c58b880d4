"""From a file of HTML to a page's title, URLs and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linkstore.extraction.markup import (
    Node,
    Tree,
    base_href,
    canonical_href,
    decode_html,
    head_title,
    parse_html,
)
from linkstore.ingest.html.blocks import Block, read_blocks
from linkstore.ingest.html.nesting import nests_deeper

_MAIN: Final = ("main", "[role=main]", "article", ".document .body", ".body", ".document")
"""Where site builders put the main content, the surest first."""
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT: Final = 8192
DEEPEST: Final = 5000
"""How deep the elements of a page in a folder may lie."""


class UnreadablePageError(ValueError):
    """A page cannot be read; the message says why, for the report on skipped pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """What a page says.

    Args:
        title: Its main heading, else its ``<title>``; may be empty.
        blocks: Its main content; at least one block.
        base: What ``<base href>`` says, if anything.
        canonical: What ``<link rel=canonical>`` says, if anything.
    """

    title: str
    blocks: tuple[Block, ...]
    base: str | None = None
    canonical: str | None = None


def read_html_page(content: bytes, *, encoding: str = "utf-8") -> PageContent:
    """Read a page.

    Args:
        content: The file.
        encoding: Of pages without byte-order mark and ``<meta charset>``.

    Raises:
        UnreadablePageError: If the page is binary, not in its encoding, or without text.
    """
    text = decoded(content, encoding)
    check_depth(text)
    return page_content(parse_html(text))


def check_depth(text: str, deepest: int = DEEPEST) -> None:
    """Refuse a page whose elements lie deeper than any author nests them; browsers stop at 512.

    Raises:
        UnreadablePageError: If they lie more than ``deepest`` deep: parsing takes time by the depth of each.
    """
    if nests_deeper(text, deepest):
        raise UnreadablePageError(f"its elements lie more than {deepest:,} deep")


def page_content(tree: Tree, *, title: str = "") -> PageContent:
    """What a parsed page says.

    Args:
        tree: The page; changed while it is read.
        title: If not empty, the page's title, whatever its headings say.

    Raises:
        UnreadablePageError: If there is no text.
    """
    if tree.body is None:
        raise UnreadablePageError("it has no body")
    blocks = _main_blocks(tree, tree.body)
    if not any(not block.level for block in blocks) and len(blocks) < 2:
        raise UnreadablePageError("it has no text")
    return PageContent(
        title=title or _title(tree, blocks),
        blocks=tuple(blocks),
        base=base_href(tree),
        canonical=canonical_href(tree),
    )


def decoded(content: bytes, encoding: str) -> str:
    """A page's text.

    Raises:
        UnreadablePageError: If the page is empty, binary or not in its encoding.
    """
    if not content.strip():
        raise UnreadablePageError("it is empty")
    if b"\0" in content[:_LOOKED_AT] and not content.startswith(_MARKS):
        raise UnreadablePageError("it is binary")
    try:
        return decode_html(content, fallback=encoding)
    except (UnicodeError, LookupError) as error:
        raise UnreadablePageError(
            f"bad encoding: {error}; declare the right one with <meta charset>, or pass encoding="
        ) from error


def _main_blocks(tree: Tree, body: Node) -> list[Block]:
    for selector in _MAIN:
        found = tree.css(selector)
        if len(found) == 1:
            blocks = read_blocks(tree, found[0])
            if blocks:
                return blocks
    return read_blocks(tree, body)


def _title(tree: Tree, blocks: list[Block]) -> str:
    """The main heading: of several, the one that the page's <title> begins with."""
    named = head_title(tree)
    tops = [block.text for block in blocks if block.level == 1]
    if tops:
        return next((top for top in tops if named.startswith(top)), tops[0])
    return named or next((block.text for block in blocks if block.level), "")

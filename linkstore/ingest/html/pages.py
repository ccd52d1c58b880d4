"""Reads a page's title, URLs and blocks from a file of HTML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from linkstore.extract.block_reader import read_blocks
from linkstore.extract.blocks import TITLE, Block, Box, count_letters, keep_blocks
from linkstore.extract.elements import Tree
from linkstore.extract.html import (
    DecodedText,
    UnboundedPageError,
    decode_html,
    find_base_href,
    find_canonical_href,
    find_head_title,
    parse_html,
)
from linkstore.extract.noise import (
    CONTENTS,
    Noise,
    count_linked,
    count_own_letters,
    find_noise,
    find_suspects,
    find_unseen,
    is_prose,
)
from linkstore.extract.visibility import apply_visibility
from linkstore.ingest.source import EmptyPageError, UnreadablePageError

_SURE: Final = 0.5
_PROBABLE: Final = 0.75
_REFRESH: Final = re.compile(rb"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_REFRESH_WITHIN: Final = 4096
_TARGET: Final = re.compile(
    r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?([\"']?)(.*)\2\s*", re.IGNORECASE | re.DOTALL
)
_NOT_FOR_ALL: Final = "script, style, noscript, template"
"""Elements that are not text, or are only for browsers without scripts."""
_MOST_TEXT: Final = 400
_SOON: Final = 10
"""Seconds; a page that stays longer is one to be read, such as a picture of a slide show."""
_MAIN: Final = {
    "main": _SURE,
    "[role=main]": _SURE,
    "article": _PROBABLE,
    ".body": _PROBABLE,
    ".document": _PROBABLE,
}
"""Elements in which site builders put the main content, and how much of the page's text that is not in links
they must hold: names are used for other things too."""
OUTSIDE: Final = "text outside the main content"
HIDDEN: Final = "hidden text"
_WIDE: Final = ("utf-16", "utf-32")
_SNIFFED_BYTES: Final = 8192
_NO_TEXT: Final = bytes({*range(32), 127} - {9, 10, 12, 13, 27})
"""What text has no use for; ISO-2022 uses Escape (MIME Sniffing Standard, section 3)."""
_MOST_NO_TEXT: Final = 0.01
"""A stray NUL, which browsers pass over, does not make a page binary; more do."""
_TAGS: Final = re.compile(r"<[^<>]*+>|\s++")
_AFTER_TITLE: Final = re.compile(r"[^\w+#]|\Z")
"""Stands behind a heading that ``<title>`` begins with: a heading "C" does not begin "C++ Annotations"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """The content of a page.

    Args:
        title: Its main heading of the first level, else its ``<title>``; may be empty.
        blocks: Its main content; at least one block.
        named: What it says in ``<title>``; may be empty.
        base: What ``<base href>`` says, if anything.
        canonical: What ``<link rel=canonical>`` says, if anything.
        left_out: How many letters of the page are in no block, by what they are taken for: "navigation",
            "sidebars", "text outside the main content".
        frame: The level and text of each block that is left out of it.
        replaced: How many characters stand for bytes that are not in its encoding, as U+FFFD.
        guessed: Whether it declares no encoding, and was read as windows-1252.
        metadata: The values of its front matter, as plain JSON.
        problem: Which part of it could not be read and why, as ``"front matter: …"``; None if all could.
    """

    title: str
    blocks: tuple[Block, ...]
    named: str = ""
    base: str | None = None
    canonical: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    frame: frozenset[tuple[int, str]] = frozenset()
    replaced: int = 0
    guessed: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None


def read_html_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page.

    Args:
        content: The file.
        encoding: Whatever the page declares. None (default) believes what it declares.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    text = decode_page(content, encoding)
    page = read_page_content(parse_page(text.text))
    return replace(page, replaced=text.replaced, guessed=text.guessed)


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
        title: What its author calls it beside its text, if anything: its title, unless it begins with the
            only heading of the first level.
        bare: Whether a heading alone is a page.

    Raises:
        UnreadablePageError: If there is no text.
    """
    if tree.body is None:
        raise EmptyPageError("it has no body")
    named = find_head_title(tree)
    hidden = apply_visibility(tree)
    blocks, left_out, frame = _read_main_content(tree, named)
    if not blocks or (len(blocks) == 1 and blocks[0].level and not bare):
        raise EmptyPageError("it has no text")
    return PageContent(
        title=_choose_title(named, blocks, title),
        blocks=tuple(blocks),
        named=named,
        base=find_base_href(tree),
        canonical=find_canonical_href(tree),
        left_out={**left_out, **({HIDDEN: hidden} if hidden else {})},
        frame=frame,
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
        raise EmptyPageError("it is empty")
    text = decode_html(content, declared=declared, encoding=encoding)
    start = content[:_SNIFFED_BYTES]
    kept = len(start.translate(None, _NO_TEXT))
    if len(start) - kept > len(start) * _MOST_NO_TEXT and not text.encoding.startswith(_WIDE):
        raise UnreadablePageError("it is binary, or UTF-16 without a byte-order mark (encoding)")
    if text.replaced and 2 * text.replaced > len(_TAGS.sub("", text.text)):
        raise UnreadablePageError(
            f"bad encoding: most of it is not {text.encoding}; declare its encoding with <meta charset>, or"
            " use --encoding (Python: encoding=…)"
        )
    return text._replace(text=text.text.replace("\0", ""))


def find_refresh_target(content: bytes) -> str | None:
    """Return the target of a page that only redirects.

    Args:
        content: HTML.

    Returns:
        The URL as written, None if the page stays, only reloads, sends on only browsers without scripts, or
        has more text or stays longer than a notice.
    """
    if not _REFRESH.search(content[:_REFRESH_WITHIN]):
        return None
    try:
        tree = parse_html(content)
    except UnboundedPageError:
        return None  # it is read again, and then reported
    for unseen in tree.css(_NOT_FOR_ALL):
        unseen.decompose()
    node = tree.css_first("meta[http-equiv=refresh i][content]")
    match = _TARGET.fullmatch(node.attributes.get("content") or "") if node else None
    text = 0 if tree.body is None else len(tree.body.text(strip=True))
    is_notice = match and (text == 0 or (text <= _MOST_TEXT and int(match[1] or 0) <= _SOON))
    return match[3].strip() or None if match and is_notice else None


def _read_main_content(
    tree: Tree, named: str
) -> tuple[list[Block], Mapping[str, int], frozenset[tuple[int, str]]]:
    """Return the content, how many letters are left out, by what they are taken for, and their blocks."""
    suspects, main = find_suspects(tree), _find_main(tree)
    blocks, boxes = read_blocks(tree, frozenset({*suspects, *main}), find_unseen(tree))
    noise = find_noise(blocks, boxes, suspects, named)
    if noise.left_out and _is_bare(blocks, noise):  # for example, a page that is only contents
        noise = replace(noise, left_out={at: kind for at, kind in noise.left_out.items() if kind != CONTENTS})
    if noise.left_out and _is_bare(blocks, noise):
        noise = find_noise(blocks, boxes, suspects, named, certain=True)
    left_out = {**noise.left_out, **_find_outside(blocks, boxes, main, noise)}
    counts: Counter[str] = Counter()
    for at, kind in left_out.items():
        counts[kind] += count_own_letters(blocks[at])
    for at, (number, _) in noise.suspects.items():
        blocks[at] = blocks[at]._replace(suspect=number)
    kept = [at for at in range(len(blocks)) if at not in left_out]
    frame = frozenset((blocks[at].level, blocks[at].text) for at in left_out)
    return keep_blocks(blocks, kept), +counts, frame


def _find_outside(
    blocks: Sequence[Block], boxes: Sequence[Box], main: Mapping[int, float], noise: Noise
) -> dict[int, str]:
    """Find the blocks outside of the main content, and what they are called; none if it is not sure."""
    if not main:
        return {}
    weights = [
        0 if at in noise.left_out else max(0, count_own_letters(block) - count_linked(block))
        for at, block in enumerate(blocks)
    ]
    ranges = {box.node: range(box.start, box.end) for box in boxes}
    for node, share in main.items():
        inside = ranges.get(node, range(0))
        if not inside or sum(weights[inside.start : inside.stop]) < share * sum(weights):
            continue
        kept = noise.titled.union(inside)
        if share == _PROBABLE:
            kept |= _find_paragraphs(blocks, kept)
        outside = (at for at in range(len(blocks)) if at not in kept and at not in noise.left_out)
        return {at: noise.suspects.get(at, (0, OUTSIDE))[1] for at in outside}
    return {}


def _find_paragraphs(blocks: Sequence[Block], inside: frozenset[int]) -> frozenset[int]:
    """Find where the paragraphs outside of the main content stand, with their headings.

    An element is called an article or a body for other reasons too, so that what stands beside it may belong
    to it.
    """
    prose: set[int] = set()
    for at, block in enumerate(blocks):
        if at in inside or block.level:
            continue
        linked = count_linked(block)
        code = "\n" in block.text and not block.tight and not linked
        if code or is_prose(block.text, count_letters(block.text) - linked, linked):
            prose.add(at)
            if at and blocks[at - 1].level:
                prose.add(at - 1)
    return frozenset(prose - inside)


def _is_bare(blocks: Sequence[Block], noise: Noise) -> bool:
    """Say whether there is nothing but headings, and blocks that may be the frame of the page."""
    return all(block.level or at in noise.suspects or at in noise.left_out for at, block in enumerate(blocks))


def _find_main(tree: Tree) -> dict[int, float]:
    """Return the elements that may be the main content, the most certain first, with their minimum share."""
    candidates = {node.mem_id: node for node in tree.css(", ".join(_MAIN)) if node.tag != "body"}
    named = (
        ([id for id, node in candidates.items() if node.css_matches(selector)], share)
        for selector, share in _MAIN.items()
    )
    return {nodes[0]: share for nodes, share in named if len(nodes) == 1}


def _choose_title(named: str, blocks: Sequence[Block], given: str) -> str:
    """Return the main heading, of several the one that <title> begins with, empty if nothing names the page.

    What a page itself calls its title is it, whatever <title> says.
    The main heading is one of the first level with no other heading before it, and neither that of a banner
    nor, as a whole, a link. Without one, the title is what the page says in ``<title>``. Without that too, a
    heading of the first level that stands behind a text, and is one of several, heads a section. Where the
    page has a title in front matter, it does so if it stands behind a text, or is one of several.
    """
    headings = [block for block in blocks if block.level]
    tops = [block.text for block in headings if block.level == 1]
    title = next((block.text for block in headings if block.tag == TITLE), "")
    first = [
        block.text
        for block in headings[:1]
        if block.level == 1
        and not block.suspect
        and all(link.label != block.text for link in block.links)
        and (named or sum((len(tops) == 1, block is blocks[0])) > bool(given))
    ]
    begun = (text for text in tops if named.startswith(text) and _AFTER_TITLE.match(named, len(text)))
    return title or next(begun, "") or next(iter(first), "") or given or named

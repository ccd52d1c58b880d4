"""The text of an element, with marks for what begins in it."""

from __future__ import annotations

from collections.abc import Container
from itertools import accumulate
from typing import Final

from selectolax.lexbor import LexborNode

MARK: Final = "\ufdd1"
"""Stands where an anchor or a link begins; a noncharacter, which no text is meant to have."""
BREAK: Final = "\v"
"""``<br>``, and where a block begins or ends: the only vertical tab that does not come from the source."""

_SILENT_NAMES: Final = (
    "script style template noscript svg math head title button select textarea input iframe object video"
    " audio canvas img map frameset -comment"
)
SILENT: Final = frozenset(_SILENT_NAMES.split())
_BLOCK_NAMES: Final = (
    "address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search section summary"
    " table tbody td tfoot th thead tr ul"
)
BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
"""Elements that are shown on lines of their own, or in cells."""
_APART: Final = BLOCKS | {"br"}


def squeezed(text: str) -> str:
    """Fold the white space of a text to single spaces, as HTML shows it."""
    return " ".join(text.split())


def letters(text: str) -> int:
    """Count the characters of a text that are not white space."""
    return len("".join(text.split()))


def lines(text: str) -> str:
    """Return a text as HTML shows it: white space folded, a new line at each break."""
    if BREAK not in text:
        return squeezed(text)
    return "\n".join(filter(None, map(squeezed, text.split(BREAK))))


def unmarked(text: str, marks: int) -> tuple[str, tuple[int, ...]]:
    """Return a text without its marks, and how many letters stand before each of them.

    Args:
        text: A text with marks.
        marks: How many there must be. If there are others, nothing is said of their places.
    """
    if MARK not in text:
        return text, ()
    pieces = text.split(MARK)
    counts = tuple(accumulate(map(letters, pieces[:-1])))
    return "".join(pieces), counts if len(counts) == marks else ()


def inner_text(
    node: LexborNode, wanted: Container[int] = frozenset(), silent: frozenset[str] = SILENT
) -> tuple[str, dict[int, int]]:
    """Return the text in an element, with a break at each end of a block in it.

    Args:
        node: The element.
        wanted: Identities of elements to mark.
        silent: Names of elements to leave out.

    Returns:
        The text, and the number of each mark by the identity of its element.
    """
    parts: list[str] = []
    numbers: dict[int, int] = {}
    inner = [node.iter(include_text=True)]
    ends = [""]
    while inner:
        child = next(inner[-1], None)
        if child is None:
            inner.pop()
            parts.append(ends.pop())
            continue
        tag = child.tag or ""
        if tag == "-text":
            parts.append(child.text_content or "")
        elif tag == "br":
            parts.append(BREAK)
        elif tag not in silent:
            end = BREAK if tag in BLOCKS else ""
            if end and parts and not parts[-1].endswith((BREAK, "\n")):
                parts.append(BREAK)
            if child.mem_id in wanted:
                numbers[child.mem_id] = len(numbers)
                parts.append(MARK)
            inner.append(child.iter(include_text=True))
            ends.append(end)
    return "".join(parts), numbers


def link_label(node: LexborNode) -> str:
    """Return the label of a link, white space folded: its text, else its ``title``. It may be empty."""
    only = node.first_child
    simple = only is None or only.next is None or not any(child.tag in _APART for child in node.iter())
    text = node.text() if simple else inner_text(node)[0]
    return squeezed(text) or squeezed(node.attributes.get("title") or "")

"""Escapes text for display: an indexed page must not control the terminal or forge a line of output."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

SHOWN_DATA: Final = 120
"""How many characters of the data of a link are shown."""
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, among them line ends and escape sequences
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\u2028\u2029\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"  # line ends, annotations, invisible tags
    "\ud800-\udfff]"  # halves of characters, which no encoding has
)
_NAMED: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    """Return a text on one line, with characters that change how it is shown, such as line ends, escaped."""
    return _UNSAFE.sub(_escaped, text)


def amount(count: int, noun: str) -> str:
    """Format a number of things that can be counted, as in "1 page" and "1,234 pages"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_percent(share: float, places: int = 1) -> str:
    """Format a share, as in "12.5 %"."""
    return f"{100 * share:.{places}f} %"


def as_html(text: str) -> str:
    """Escape a text for HTML, between tags or in quotes."""
    return html.escape(printable(text))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _NAMED:
        return _NAMED[found[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def data_text(data: Mapping[str, Any]) -> str:
    """Format the data of a link for a person as JSON, of which only the beginning is shown if it is long."""
    text = orjson.dumps(data).decode()
    return text if len(text) <= SHOWN_DATA else f"{text[:SHOWN_DATA]}…"

"""Characters in scanned text that mark the places of links, templates and tags.

XML cannot contain these characters, so no page of a dump does. Links and anchors are kept in lists, in the
order of their marks; so text may be dropped during a scan, but marks may not.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

LINK: Final = "\x01"
"""Here stands a link, or a reference to a work."""
ANCHOR: Final = "\x02"
"""Here stands an anchor."""
SHIELD: Final = "\x03"
"""Nothing; keeps what follows from standing at the start of a line. The marks below stand behind one."""
PIPE: Final = "\x04"
"""A ``|`` that divides nothing."""
QUOTE: Final = "\x05"
"""A ``'`` that makes nothing bold."""
BREAK: Final = "\x06"
"""A line break within a block."""
SPACE: Final = "\x07"
"""A space that is kept."""
AMPERSAND: Final = "\x08"
"""A ``&`` that begins no entity."""

GONE: Final = "\x0e"
"""Here stood a template that shows nothing."""

ALL: Final = LINK + ANCHOR + SHIELD + PIPE + QUOTE + BREAK + SPACE + AMPERSAND + GONE

_WORDS: Final = str.maketrans({"\n": " ", "|": PIPE, "'": QUOTE})
_LINES: Final = str.maketrans({"\n": BREAK, "|": PIPE, "'": QUOTE, " ": SPACE, "\t": SPACE * 4})
_CODE: Final = _LINES | {ord("&"): AMPERSAND}
_SHOWN: Final = (
    *((mark, "") for mark in (SHIELD, GONE, LINK, ANCHOR)),
    *((PIPE, "|"), (QUOTE, "'"), (SPACE, " "), (AMPERSAND, "&")),
)
_SEPARATORS: Final = "\x0b\x0c\x1c\x1d\x1e\x1f"  # white space to Python, and no part of XML either
_LEFT_OUT: Final = str.maketrans(dict.fromkeys(ALL + _SEPARATORS))
_NEITHER: Final = re.compile(f"[^{LINK}{ANCHOR}]+")
# White space is tried from its beginning only, and never given back.
_NO_WORDS: Final = re.compile(
    r"(?:(?<!\s)\s++)?\(\s*+(?:[,;:]\s*+)*+\)|(?<=\()\s*+(?:[,;:]\s*+)++|(?<!\s)\s++(?=[,.)](?:\s|$))"
)
_SHORT: Final = 100


def cleared(text: str) -> str:
    """Remove characters that are marks from a text."""
    return text.translate(_LEFT_OUT) if any(mark in text for mark in ALL + _SEPARATORS) else text


def literal(text: str, *, lines: bool = False, code: bool = False) -> str:
    """Return text in which nothing is markup. Its lines are kept, or its entities too, if so asked."""
    return SHIELD + text.translate(_CODE if code else _LINES if lines else _WORDS)


def marks_in(text: str) -> str:
    """Return the marks of links and anchors of a text that is dropped."""
    return _NEITHER.sub("", text) if LINK in text or ANCHOR in text else ""


def shown(text: str) -> str:
    """Return text as people read it, links and anchors gone. Only :data:`BREAK` ends a line."""
    quotes, entities = "''" in text, "&" in text
    if not quotes and not entities and len(text) < _SHORT and text.isprintable() and "  " not in text:
        return text.strip(" ")
    if quotes:
        text = text.replace("'''", "").replace("''", "")
    if entities:
        text = unescape(text)
    if BREAK in text:
        text = "\n".join(line for part in text.split(BREAK) if (line := " ".join(part.split())))
    elif text.isascii() and "  " not in text and "\n" not in text and "\t" not in text:
        text = text.strip(" ")
    else:
        text = " ".join(text.split())
    if SHIELD in text or LINK in text or ANCHOR in text or GONE in text:
        for mark, character in _SHOWN:
            text = text.replace(mark, character)
    return text


def tidy(text: str) -> str:
    """Remove the brackets and spaces that dropped templates leave in marked text."""
    return _NO_WORDS.sub("", text.replace(GONE, "")) if GONE in text else text

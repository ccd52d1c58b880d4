"""What a scan of wikitext marks, finds and keeps open.

Characters in scanned text that mark the places of links, templates and tags.

XML cannot contain these characters, so no page of a dump does. Links and anchors are kept in lists, in the
order of their marks; so text may be dropped during a scan, but marks may not.

The findings of a scan of wikitext.

HTML and extension tags of wikitext, grouped by how they are treated.

The open constructs during a scan of wikitext: links, templates and tags that may still be closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from itertools import pairwise
from typing import Final

from linkstore.extract.protocol import Hyperlink

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

ALL_MARKS: Final = LINK + ANCHOR + SHIELD + PIPE + QUOTE + BREAK + SPACE + AMPERSAND + GONE

_WORDS: Final = str.maketrans({"\n": " ", "|": PIPE, "'": QUOTE})
_LINES: Final = str.maketrans({"\n": BREAK, "|": PIPE, "'": QUOTE, " ": SPACE, "\t": SPACE * 4})
_CODE: Final = _LINES | {ord("&"): AMPERSAND}
_SHOWN: Final = (
    *((mark, "") for mark in (SHIELD, GONE, LINK, ANCHOR)),
    *((PIPE, "|"), (QUOTE, "'"), (SPACE, " "), (AMPERSAND, "&")),
)
_SEPARATORS: Final = "\x0b\x0c\x1c\x1d\x1e\x1f"  # white space to Python, and no part of XML either
_LEFT_OUT: Final = str.maketrans(dict.fromkeys(ALL_MARKS + _SEPARATORS))
_NEITHER: Final = re.compile(f"[^{LINK}{ANCHOR}]+")
# White space is tried from its beginning only, and never given back.
_NO_WORDS: Final = re.compile(
    r"(?:(?<!\s)\s++)?\(\s*+(?:[,;:]\s*+)*+\)|(?<=\()\s*+(?:[,;:]\s*+)++|(?<!\s)\s++(?=[,.)](?:\s|$))"
)
_SHORT: Final = 100


def strip_marks(text: str) -> str:
    """Remove characters that are marks from a text."""
    return text.translate(_LEFT_OUT) if any(mark in text for mark in ALL_MARKS + _SEPARATORS) else text


def shield_text(text: str, *, lines: bool = False, code: bool = False) -> str:
    """Return text in which nothing is markup. Its lines are kept, or its entities too, if so asked."""
    return SHIELD + text.translate(_CODE if code else _LINES if lines else _WORDS)


def extract_marks(text: str) -> str:
    """Return the marks of links and anchors of a text that is dropped."""
    return _NEITHER.sub("", text) if LINK in text or ANCHOR in text else ""


def render_text(text: str) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationMark(Hyperlink):
    """A stand-in among the hyperlinks of a block, where the block refers to a work.

    Args:
        key: Names the reference on its page.
    """

    href: str = ""
    key: str


@dataclass(slots=True)
class ScannedPage:
    """The content of a page's wikitext.

    Args:
        text: The text, with marks.
        links: What stands at the marks of links, in order.
        anchors: What stands at the marks of anchors, in order.
        categories: The categories it is in.
        references: The wikitext of its references, by key.
    """

    text: str = ""
    links: list[Hyperlink] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    categories: dict[str, None] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)


def make_hyperlink(href: str, label: str) -> Hyperlink:
    """Make a hyperlink six times as fast as the frozen dataclass itself does: articles are full of them."""
    made = _new(Hyperlink)
    _set_href(made, href)
    _set_label(made, label)
    return made


def make_citation_mark(key: str) -> CitationMark:
    """Make a place that refers to a work, as fast as :func:`make_hyperlink`."""
    made = _new(CitationMark)
    _set_href(made, "")
    _set_label(made, "")
    _set_key(made, key)
    return made


_new = object.__new__
_set_href, _set_label, _set_key = (
    getattr(owner, name).__set__
    for owner, name in ((CitationMark, "href"), (CitationMark, "label"), (CitationMark, "key"))
)


LITERAL: Final = frozenset({"nowiki", "math", "chem", "ce"})
"""Tags whose content is text without markup."""

CODE: Final = frozenset({"pre", "syntaxhighlight", "source"})
"""Likewise, line by line."""

_SILENT_NAMES: Final = """
    timeline score graph mapframe maplink templatedata hiero inputbox categorytree includeonly ask
    templatestyles dynamicpagelist
"""
SILENT: Final = frozenset(_SILENT_NAMES.split())
"""Tags whose content is not for readers."""

RAW: Final = LITERAL | CODE | SILENT
"""Tags whose content is not wikitext."""

FRAMES: Final = frozenset({"ref", "references", "gallery", "imagemap", "poem"})
"""Tags whose content is wikitext with rules of its own."""

HEADINGS: Final = {f"h{level}": "=" * level for level in range(1, 7)}

_INLINE_NAMES: Final = """
    b i u s em strong small big sub sup span font tt code kbd var samp cite q abbr dfn del ins strike bdi
    bdo ruby rb rt rp mark time data wbr noinclude onlyinclude section translate languages tvar nobr
"""
_BLOCK_NAMES: Final = "p div blockquote center table ul ol dl hr aside"

SHOWN: Final = {
    "br": BREAK,
    "li": "\n* ",
    **dict.fromkeys(_INLINE_NAMES.split(), ""),
    **dict.fromkeys(_BLOCK_NAMES.split(), "\n\n"),
    **dict.fromkeys(("tr", "caption", "dd", "dt"), "\n"),
    **dict.fromkeys(("td", "th"), " "),
}
"""The text that replaces other tags; any other name is not a tag."""

_ID: Final = re.compile(r"\bid\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)
_NAME: Final = re.compile(r"\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)


def find_element_id(attributes: str) -> str:
    """Return the ``id`` among attributes, empty without one."""
    return _get_value(_ID.search(attributes)) if "id" in attributes else ""


def find_reference_name(attributes: str) -> str:
    """Return the ``name`` among the attributes of ``<ref>``, empty without one."""
    return _get_value(_NAME.search(attributes)) if "name" in attributes else ""


@cache
def compile_end_tag(name: str) -> re.Pattern[str]:
    """Compile a pattern that finds the end tag of an element."""
    return re.compile(rf"</{name}\s*>", re.IGNORECASE)


def _get_value(found: re.Match[str] | None) -> str:
    return (found[1] or found[2] or found[3] or "").strip() if found else ""


MOST_OPEN: Final = 100
"""More open links, templates and tags than this are read as text."""

OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL = "[[", "{{", "["


@dataclass(slots=True)
class Frame:
    """A construct of wikitext that is open.

    Args:
        kind: OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL or the name of a tag.
        start: Where it begins in the output, itself included.
        bars: Where its ``|`` stand in the output.
        braces: How many braces it has.
        inside: Where its content begins in the text.
        name: Its own name: of a reference; the URL of an external link.
    """

    kind: str
    start: int
    bars: list[int] = field(default_factory=list)
    braces: int = 0
    inside: int = 0
    name: str = ""


_WEAKER: Final[dict[str, frozenset[str]]] = {
    OPEN_EXTERNAL: frozenset(),
    OPEN_LINK: frozenset({OPEN_EXTERNAL}),
    OPEN_TEMPLATE: frozenset({OPEN_EXTERNAL, OPEN_LINK}),
    **dict.fromkeys(FRAMES, frozenset({OPEN_EXTERNAL, OPEN_LINK, OPEN_TEMPLATE})),
}
"""Constructs that are not markup if they are still open when another one closes."""


class ScanOutput:
    """The pieces of the text so far, and what is open in it.

    What opens stays in the text as it is written; only when it closes, what it shows takes its place. So
    what never closes is text without anybody going back to it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.open: list[Frame] = []

    def push(self, frame: Frame, written: str) -> None:
        """Open a frame. With too many open, all of them become text."""
        if len(self.open) >= MOST_OPEN:
            self.open.clear()
        self.open.append(frame)
        self.pieces.append(written)

    def can_close(self, kind: str) -> bool:
        """Say whether an element of this kind can close here, and turn open markup within it into text."""
        weaker, depth = _WEAKER[kind], len(self.open)
        while depth and self.open[depth - 1].kind in weaker:
            depth -= 1
        if not depth or self.open[depth - 1].kind != kind:
            return False
        del self.open[depth:]
        return True

    def is_within(self, kind: str) -> bool:
        """Say whether a frame of this kind is open."""
        return any(frame.kind == kind for frame in self.open)

    def parts(self, frame: Frame) -> list[str]:
        """Return the content of an open link or template, divided at each ``|``."""
        bounds = [frame.start, *frame.bars, len(self.pieces)]
        return ["".join(self.pieces[begin + 1 : end]) for begin, end in pairwise(bounds)]

    def content(self, frame: Frame) -> str:
        """Return the content of an open frame."""
        return "".join(self.pieces[frame.start + 1 :])

    def replace(self, frame: Frame, *pieces: str) -> None:
        """Replace a frame by what it shows."""
        self.pieces[frame.start :] = pieces

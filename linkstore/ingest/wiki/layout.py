"""Marked text, as a scan of wikitext leaves it, and the blocks that it makes, line by line.

Marks are characters at the places of links, templates and tags. XML cannot contain them, so no page of a
dump does. Links and anchors are kept in lists, in the order of their marks; so text may be dropped during a
scan, but marks may not.

A heading has two anchors: the one of ``$wgFragmentMode`` "html5", where white space becomes ``_`` and nothing
else changes, and the older one, where all but letters, digits and ``_-.:`` is percent-encoded with a dot for
the percent sign (``Sanitizer::escapeIdInternal`` in MediaWiki). Links may use either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from itertools import islice
from typing import Final
from urllib.parse import quote

from linkstore.extract.blocks import Block
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.wiki.titles import NAMES, make_anchor

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

_BESIDE: Final = frozenset(NAMES["pictures"]["beside"].split())
"""Options by which a file stands beside the text, in MediaWiki's commoner languages."""
_OPTIONS: Final = _BESIDE | frozenset(NAMES["pictures"]["others"].split())
_LONGEST_OPTION: Final = 24
_SETTING: Final = re.compile(
    r"\s*(?:[^\W\d]+\s*=.*|[\d.]*\s*x?\s*[\d.]*\s*px\s*|upright\s+[\d.]+\s*)", re.DOTALL
)
_ID: Final = re.compile(r"\bid\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[\w.:-]*", re.ASCII)
_SPECIAL: Final = frozenset("=*#:;{|! -\t")
_SWITCH: Final = re.compile(r"__[A-Z]{3,30}__")
_BULLETS: Final = "*#:; \t"


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


REFERENCE: Final = "x-linkstore-reference:"
"""Stands before the key of a reference in the ``href`` of what stands where a block refers to it."""


@dataclass(slots=True)
class Article:
    """The content of a page's wikitext.

    Args:
        text: The text, with marks.
        links: What stands at the marks of links, in order; for a reference, :data:`REFERENCE` and its key.
        anchors: What stands at the marks of anchors, in order.
        categories: The categories it is in.
        references: The wikitext of its references, by key.
        blocks: Its text without marks, once it is laid out, each block with its links.
    """

    text: str = ""
    links: list[Hyperlink] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    categories: dict[str, None] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def find_element_id(attributes: str) -> str:
    """Return the ``id`` among attributes, empty without one."""
    return get_attribute(_ID.search(attributes)) if "id" in attributes else ""


def get_attribute(found: re.Match[str] | None) -> str:
    """Return the value of an attribute that was found, however it is quoted."""
    return (found[1] or found[2] or found[3] or "").strip() if found else ""


def find_caption(parts: list[str]) -> str:
    """Return the caption that readers see, empty if there is none.

    Args:
        parts: What stands in the brackets behind the file's name, divided at each ``|``.
    """
    text, beside = "", False
    for part in reversed(parts):
        part = part.strip()
        word = part.lower() if len(part) < _LONGEST_OPTION else ""
        if word in _BESIDE or word.startswith("thumb"):
            beside = True
        elif part and not text and word not in _OPTIONS and not _is_setting(part):
            text = part
    return text if beside else ""


def find_gallery_captions(text: str) -> list[str]:
    """Return the captions in a gallery, which has a file on each line, with or without one."""
    captions = []
    for line in text.split("\n"):
        _, _, rest = line.partition("|")
        parts = [part for part in rest.split("|") if not _SETTING.fullmatch(part)]
        captions.append(parts[-1].strip() if parts else "")
    return [caption for caption in captions if caption]


def _is_setting(part: str) -> bool:
    return ("=" in part[:_LONGEST_OPTION] or part.endswith("px")) and bool(_SETTING.fullmatch(part))


def make_old_anchor(new: str) -> str:
    """Return the older encoding of an anchor, which is the same if it has plain letters only."""
    if _PLAIN.fullmatch(new):
        return new
    return quote(new, safe=":", errors="replace").replace("~", "%7E").replace("%", ".")


class Anchors:
    """Gives the headings of a page their anchors; a repeated one is numbered."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def of_heading(self, text: str) -> tuple[str, ...]:
        """Return the anchors of the next heading, the one in use first."""
        base = make_anchor(text)
        if not base:
            return ()
        name, folded = base, base.casefold()
        if folded in self._taken:
            count = self._counts.get(folded, 1)
            while name.casefold() in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._counts[folded] = count
        self._taken.add(name.casefold())
        old = make_old_anchor(name)
        return (name,) if old == name else (name, old)


def lay_out(article: Article) -> list[Block]:
    """Make the blocks of a scanned page, in order, each with its links and anchors."""
    text = article.text
    return _Layout(article).read(_SWITCH.sub("", text) if "__" in text else text)


class _Layout:
    def __init__(self, article: Article) -> None:
        self._links = iter(article.links)
        self._own_anchors = iter(article.anchors)
        self._headings = Anchors()
        self._blocks: list[Block] = []
        self._lines: list[str] = []
        self._cells: list[list[str]] = []
        self._tables = 0
        self._waiting_links: list[Hyperlink] = []
        self._waiting_anchors: list[str] = []
        self._starts = False

    def read(self, text: str) -> list[Block]:
        lines = self._lines
        for line in text.split("\n"):
            if not line:
                self._end_paragraph()
            elif line[0] in _SPECIAL or self._tables:
                self._special(line)
            else:
                lines.append(line)
        self._end_row()
        self._end_paragraph()
        return self._finish()

    def _special(self, line: str) -> None:
        first = line[0]
        if first == "=" and (stripped := line.rstrip())[-1] == "=" and len(stripped) > 2:
            self._add_heading(stripped)
        elif self._tables or line.startswith(("{|", ":{|", "::{|")):
            self._in_table(line)
        elif first in "*#:;":
            self._item(line)
        elif line.startswith("----"):
            self._end_paragraph()
            self._lines.append(line.lstrip("-"))
        elif line.startswith("|}"):
            self._end_paragraph()
            self._lines.append(extract_marks(line))
        elif line.isspace():
            self._end_paragraph()
        else:
            self._lines.append(BREAK + line if first in " \t" else line)

    def _add_heading(self, line: str) -> None:
        self._end_row()
        self._end_paragraph()
        self._tables = 0
        level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")), 6)
        if level * 2 >= len(line):
            level = max(1, (len(line) - 1) // 2)
        self._emit(line[level:-level], level=level)

    def _item(self, line: str) -> None:
        self._end_paragraph()
        text = line.lstrip(_BULLETS)
        bullets = line[: len(line) - len(text)].rstrip()
        if text.startswith("{|"):
            self._in_table(text)
        else:
            self._emit(text, lead="- " if bullets and bullets[-1] in "*#" else "", tight=True)

    # Tables

    def _in_table(self, line: str) -> None:
        line = line.lstrip(": \t") if line[0] in ": \t" else line
        sign = line[:2]
        if sign == "{|":
            self._end_row()
            self._end_paragraph()
            self._tables += 1
            self._start_row(line)
        elif sign == "|}":
            self._end_row()
            self._tables -= 1
            self._continue(extract_marks(line) if self._tables else line[2:])
        elif sign == "|-":
            self._end_row()
            self._start_row(line)
        elif sign == "|+":
            self._end_row()
            self._cells.append([_strip_attributes(line[2:])])
            self._end_row()
        elif sign[:1] in {"|", "!"}:
            self._row(line)
        else:
            self._continue(line)

    def _start_row(self, line: str) -> None:
        """Start a row or table. Its attributes show nothing, but may have an id."""
        if element := find_element_id(line):
            self._waiting_anchors.append(element.replace(" ", "_"))
        self._continue(extract_marks(line))

    def _row(self, line: str) -> None:
        text = line[1:].replace("!!", "||") if line[0] == "!" else line[1:]
        self._cells += ([_strip_attributes(cell)] for cell in text.split("||"))

    def _continue(self, line: str) -> None:
        """Continue the cell before or, outside of tables, a paragraph."""
        if not line:
            return
        if not self._tables:
            self._lines.append(line)
        elif self._cells:
            self._cells[-1].append(line.lstrip(_BULLETS))
        else:
            self._cells.append([line])

    def _end_row(self) -> None:
        if self._cells:
            cells, self._cells = self._cells, []
            words: list[str] = []
            wordless: list[str] = []
            for cell in map(" ".join, cells):
                (words if render_text(cell) else wordless).append(cell)
            text = " | ".join(words).replace(BREAK, " ")
            self._emit(extract_marks("".join(wordless)) + text, tight=True)

    # Blocks

    def _end_paragraph(self) -> None:
        if self._lines:
            text = " ".join(self._lines)
            self._lines.clear()
            self._emit(text)

    def _emit(self, marked: str, *, level: int = 0, lead: str = "", tight: bool = False) -> None:
        """Add a block. Links and anchors of one without words go to the next."""
        text = self._without_marks(marked)
        text = render_text(tidy(text))
        if not text.replace("|", " ").strip():
            return
        links, anchors = tuple(self._waiting_links), tuple(self._waiting_anchors)
        self._waiting_links.clear()
        self._waiting_anchors.clear()
        fragment = None
        if level:
            own = self._headings.of_heading(text)
            anchors, fragment = (*own, *anchors), next(iter(own), None)
        self._blocks.append(
            Block(lead + text, level, anchors, links, bool(anchors) and self._starts, fragment, tight)
        )
        self._starts = False

    def _without_marks(self, text: str) -> str:
        if LINK in text:
            self._waiting_links += islice(self._links, text.count(LINK))
            text = text.replace(LINK, "")
        if ANCHOR in text:
            self._starts = self._starts or text.lstrip().startswith(ANCHOR)
            self._waiting_anchors += islice(self._own_anchors, text.count(ANCHOR))
            text = text.replace(ANCHOR, "")
        elif self._waiting_anchors:
            self._starts = True
        return text

    def _finish(self) -> list[Block]:
        """Return all blocks. Links and anchors that still wait belong to the last one."""
        if self._blocks and (self._waiting_links or self._waiting_anchors):
            last = self._blocks[-1]  # whose links have no places, so that they are looked for by their labels
            self._blocks[-1] = last._replace(
                anchors=(*last.anchors, *self._waiting_anchors), links=(*last.links, *self._waiting_links)
            )
        return self._blocks


def _strip_attributes(cell: str) -> str:
    """Return a table cell without its attributes."""
    attributes, bar, content = cell.partition("|")
    return extract_marks(attributes) + content.strip() if bar else cell.strip()

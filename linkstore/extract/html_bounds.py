"""Refuses pages of HTML that would take far more time or memory to parse than their length says.

A parser takes time by the depth of the elements, opens formatting elements again in each paragraph that
follows (``<p><b id=1><b id=2>…<p>x<p>x…``), and compares each attribute of an element with the others. So a
page of a few kilobytes can take gigabytes, or minutes. One pass over the tags counts these. What it
does not see ends with the time that a page may take: see :mod:`linkstore.ingest.workers`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from linkstore.errors import ExtractionError

DEEPEST_ELEMENT: Final = 512
"""Maximum depth of elements; browsers move deeper ones out to this depth."""
MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element, and of all formatting elements that are open."""
MOST_OPTIONS: Final = 5000
"""Maximum number of options of one ``<select>``: a parser compares each with those before it."""
_REOPENED: Final = (10**5, 0.25)
"""How many formatting elements a parser may open again on a page, and what each character adds to that."""
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are opened again."""
_CLOSED: Final = frozenset(
    b"area base basefont bgsound br col embed frame head hr image img input keygen link meta param "
    b"source track wbr html body h1 h2 h3 h4 h5 h6 p tr td th caption tbody thead tfoot colgroup "
    b"option".split()
)
"""Elements that hold none, or that end by themselves: between two in each other there is always another."""
_ITEMS: Final = frozenset({b"li", b"dd", b"dt"})
_RUBY: Final = frozenset({b"rb", b"rt", b"rp"})
_FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_TIDY: Final = (
    "span|a|code|em|strong|b|i|tt|li|p|td|th|dt|dd|div|pre|h[1-6]|tr|tbody|thead|table|ul|ol|dl|section"
    "|sup|sub"
)
"""Elements that most pages close where they end. They then change nothing for what follows."""
_TIDY_LEVELS: Final = 3
"""How deep they may lie in each other to be passed over in one step."""


def _match_tidy_element() -> str:
    """Return the pattern of an element that is closed where it ends, as are all in it."""
    attributes = r"""(?=[\s/>])(?:[^<>"']{0,99}+(?:"[^"<>]{0,300}+"|'[^'<>]{0,300}+')?+){0,9}+>"""
    pattern = ""
    for level in range(_TIDY_LEVELS):
        # Groups in possessive repetitions are wrong in some versions of Python, so this one is greedy.
        inner = f"(?:{pattern}[^<]*+)*" if pattern else ""
        pattern = rf"<(?P<tidy{level}>{_TIDY}){attributes}[^<]*+{inner}</(?P=tidy{level})>"
    return pattern


_MARKUP: Final = re.compile(
    (
        rf"(?P<tidy>(?:{_match_tidy_element()}[^<]*+)+)"
        r"|<(?:!--(?s:.*?)(?:-->|\Z)"
        r"|(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes)\b[^>]*+>(?s:.*?)(?:</(?P=raw)|\Z)"
        r"|(?P<end>/?)(?P<name>[a-z][^\s/>]*+)"
        r"(?P<attributes>(?:\"[^\"]*+\"|'[^']*+'|[^>\"']|[\"'])*+)(?:>|\Z))"
    ).encode()
)
"""A run of tidy elements; a comment; an element that holds text only; a tag, with its attributes. In lower
case, and bytes, which takes half the time."""
_REOPENING: Final = re.compile(rb"</?(?!(?:span|a|code|em|strong|b|i|tt)[\s/>])[a-z]")
"""A tag in tidy elements at which a parser may open formatting elements again."""
_ATTRIBUTE: Final = re.compile(rb"[^\s\"'>/=]+(?=[\s>/=]|\Z)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


def estimate_depth(page: bytes) -> int:
    """Estimate the greatest depth of the elements of a page, but for those ending by themselves.

    Args:
        page: HTML, in UTF-8.

    Raises:
        UnboundedPageError: If its elements lie too deep, have too many attributes, or are opened again too
            often by tags that are not closed.
    """
    formatting, depth, options = _OpenFormatting(page), _OpenElements(), 0
    for match in _MARKUP.finditer(page.lower()):
        tidy, end, name, attributes = match.group("tidy", "end", "name", "attributes")
        if name is None:
            if tidy and formatting.weight:
                formatting.reopen(len(_REOPENING.findall(tidy)))
            continue
        if len(attributes) > MOST_ATTRIBUTES and (count := _count_attributes(attributes)) > MOST_ATTRIBUTES:
            raise UnboundedPageError(
                f"an element has {count:,} attributes; up to {MOST_ATTRIBUTES:,} are read"
            )
        if name in {b"select", b"option"}:
            options = options + (not end) if name == b"option" and depth.is_in(b"select") else 0
            if options > MOST_OPTIONS:
                raise UnboundedPageError(f"a <select> has more than {MOST_OPTIONS:,} options")
        if name in _FORMATTING and not (
            name == b"a" and depth.is_in(b"svg")
        ):  # there it is one of many shapes
            start, stop = match.span("attributes")
            formatting.read(name, page[start:stop], end=bool(end))
        else:
            if formatting.weight:
                formatting.reopen(1)
            if name not in _CLOSED:
                depth.read(name, attributes, end=bool(end))
    return depth.deepest


class _OpenFormatting:
    """Formatting elements that are opened again in each element, until they are closed."""

    def __init__(self, page: bytes) -> None:
        self._most = _REOPENED[0] + len(page) * _REOPENED[1]
        self._reopened = 0
        self._alike: Counter[tuple[bytes, bytes]] = Counter()
        self._open: dict[bytes, list[bytes]] = {name: [] for name in _FORMATTING}
        self.weight = 0
        """How many attributes they have, and one more for each."""

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        if end and self._open[name]:
            attributes = self._open[name].pop()
            self._alike[name, attributes] -= 1
            self.weight -= 1 + _count_attributes(attributes)
        elif not end and self._alike[name, attributes] < _ALIKE:
            self._open[name].append(attributes)
            self._alike[name, attributes] += 1
            self.weight += 1 + _count_attributes(attributes)
            if self.weight > MOST_ATTRIBUTES:
                raise UnboundedPageError(
                    f"formatting elements that are not closed have {self.weight:,} attributes; up to"
                    f" {MOST_ATTRIBUTES:,} are read"
                )

    def reopen(self, times: int) -> None:
        """Count that they are opened again."""
        self._reopened += self.weight * times
        if self._reopened > self._most:
            raise UnboundedPageError(
                "formatting elements that are not closed would be opened again: a parser would take"
                f" {self._reopened:,} steps, more than {int(self._most):,}"
            )


class _OpenElements:
    """Elements that have started more often than they have ended."""

    def __init__(self) -> None:
        self._open: Counter[bytes] = Counter()
        self._depth = 0
        self._item = 0
        self.deepest = 0

    def is_in(self, name: bytes) -> bool:
        """Say whether an element of this name is open."""
        return self._open[name] > 0

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        counts = self._open
        if name in _RUBY and counts[b"ruby"]:
            return
        if name in _ITEMS:  # <li> ends no <dd>, nor the other way round
            self._depth += not end and self._item not in {0, name[0]}
            self._item = 0 if end else name[0]
        elif end:
            self._depth -= counts[name] > 0
            counts[name] -= counts[name] > 0
            self._item = 0
        elif not (attributes.endswith(b"/") and (counts[b"svg"] or counts[b"math"])):
            counts[name] += 1
            self._depth += 1
            self._item = 0
        if self._depth > self.deepest:
            self.deepest = self._depth
            if self.deepest > DEEPEST_ELEMENT:
                raise UnboundedPageError(f"its elements lie more than {DEEPEST_ELEMENT} deep")


def _count_attributes(attributes: bytes) -> int:
    return len({attribute.partition(b"=")[0].lower() for attribute in _ATTRIBUTE.findall(attributes)})

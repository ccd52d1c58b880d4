"""Refuses pages of HTML that would take far more time or memory to parse than their length says.

A parser takes time by the depth of the elements, opens formatting elements again in each paragraph that
follows (``<p><b id=1><b id=2>…<p>x<p>x…``), and compares each attribute of an element with the others. So a
page of a few kilobytes can take gigabytes, or minutes. One pass over the tags counts them, how deep they lie,
and which formatting elements are not closed. What it does not see ends with the time that a page may take:
see :mod:`linkstore.ingest.workers`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import lru_cache
from typing import Final

from linkstore.errors import ExtractionError

DEEPEST_ELEMENT: Final = 512
"""Maximum depth of elements; browsers move deeper ones out to this depth."""
MOST_TAGS: Final = 2**20
"""Maximum number of tags: a manual of 20 megabytes on one page has half of them."""
MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element."""
MOST_OPTIONS: Final = 5000
"""Maximum number of options of one ``<select>``: a parser compares each with those before it."""
MOST_REOPENED: Final = 3 * 10**5
"""Maximum number of formatting elements that are opened again, with their attributes."""
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are opened again (HTML Living Standard, 13.2.4.3)."""
_CLOSED: Final = frozenset(
    b"area base basefont bgsound br col embed frame head hr image img input keygen link meta param "
    b"source track wbr html body h1 h2 h3 h4 h5 h6 p tr td th caption tbody thead tfoot colgroup "
    b"option".split()
)
"""Elements that hold none, or that end by themselves: between two in each other there is always another."""
_RUBY: Final = frozenset({b"rb", b"rt", b"rp"})
_ITEMS: Final = frozenset({b"li", b"dd", b"dt"})
_FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_MARKUP: Final = re.compile(
    rb"<(?:!--(?s:.*?)(?:-->|\Z)"
    rb"|(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes)\b[^>]*+>(?s:.*?)(?:</(?P=raw)|\Z)"
    rb"|(?P<end>/?)(?P<name>[a-z][^\s/>]*+)"
    rb"(?P<attributes>(?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+)(?:>|\Z))"
)
"""A comment; an element that holds text only; a tag, with its attributes. In lower case, and bytes, which
takes half the time."""
_ATTRIBUTE: Final = re.compile(rb"[^\s\"'>/=]+(?=[\s>/=]|\Z)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


def estimate_depth(page: bytes) -> int:
    """Estimate the greatest depth of the elements of a page, but for those ending by themselves.

    Args:
        page: HTML, in UTF-8.

    Raises:
        UnboundedPageError: If it has too many tags, or its elements lie too deep, have too many attributes,
            or are opened again too often by tags that are not closed.
    """
    elements, formatting, options = _OpenElements(), _OpenFormatting(), 0
    tags = reopened = 0
    for match in _MARKUP.finditer(page.lower()):
        end, name, attributes = match.group("end", "name", "attributes")
        if name is None:
            continue
        tags += 1
        if len(attributes) > MOST_ATTRIBUTES:
            _check("attributes of an element", _count_attributes(attributes), MOST_ATTRIBUTES)
        if name in _FORMATTING and not (name == b"a" and elements.opened[b"svg"]):  # one of many shapes there
            formatting.read(name, attributes, end=bool(end))
            continue
        reopened += formatting.weight
        if name == b"option" and elements.opened[b"select"]:
            options += not end
        elif name == b"select":
            options = 0
        elements.read(name, attributes, end=bool(end))
        if options > MOST_OPTIONS:
            _check("options of a <select>", options, MOST_OPTIONS)
    _check("tags", tags, MOST_TAGS)
    _check("formatting elements opened again, with their attributes", reopened, MOST_REOPENED)
    return elements.deepest


class _OpenFormatting:
    """Formatting elements that a parser opens again, until they are closed."""

    def __init__(self) -> None:
        self._open: defaultdict[bytes, list[bytes]] = defaultdict(list)
        self.weight = 0
        """How many attributes they have, and one more for each."""

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        same = self._open[name]
        if end and same:
            self.weight -= 1 + _count_attributes(same.pop())
        elif not end and same.count(attributes) < _ALIKE:
            same.append(attributes)
            self.weight += 1 + _count_attributes(attributes)
            _check("attributes of formatting elements not closed", self.weight, MOST_ATTRIBUTES)


class _OpenElements:
    """Elements that have started more often than they have ended."""

    def __init__(self) -> None:
        self.opened: Counter[bytes] = Counter()
        self._depth = 0
        self._item = 0
        self.deepest = 0

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        opened = self.opened
        if name in _CLOSED or (name in _RUBY and opened[b"ruby"]):
            return
        if name in _ITEMS:  # <li> ends no <dd>, nor the other way round
            self._depth += not end and self._item not in {0, name[0]}
            self._item = 0 if end else name[0]
        elif end:
            self._depth -= opened[name] > 0
            opened[name] -= opened[name] > 0
            self._item = 0
        elif not (attributes.endswith(b"/") and (opened[b"svg"] or opened[b"math"])):
            opened[name] += 1
            self._depth += 1
            self._item = 0
        if self._depth > self.deepest:
            self.deepest = self._depth
            _check("elements deep in each other", self.deepest, DEEPEST_ELEMENT)


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise UnboundedPageError(f"it has too many {what}: more than {most:,} are not read")


@lru_cache  # an element that is closed has the attributes that it was opened with
def _count_attributes(attributes: bytes) -> int:
    return len({attribute.partition(b"=")[0] for attribute in _ATTRIBUTE.findall(attributes)})

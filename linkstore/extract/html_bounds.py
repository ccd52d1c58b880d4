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
from linkstore.extract.blocks import split_names

DEEPEST_ELEMENT: Final = 512
"""Maximum depth of elements; browsers move deeper ones out to this depth."""
MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element, and of all formatting elements that are open."""
_REOPENED: Final = (10**5, 0.25)
"""How many formatting elements a parser may open again on a page, and what each character adds to that."""
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are opened again."""
_MARKUP: Final = re.compile(
    r"<(?:(span|a|code|em|strong|b|i|tt)\b[^<>\"]{0,99}+(?:\"[^\"<>]{0,300}+\"[^<>\"]{0,99}+){0,9}+>[^<]*+</\1>"
    r"|!--(?s:.*?)(?:-->|\Z)"
    r"|(script|style|textarea|title|xmp|iframe|noembed|noframes)\b[^>]*+>(?s:.*?)(?:</\2|\Z)"
    r"|(?P<end>/?)(?P<name>[a-z][^\s/>]*+)"
    r"(?P<attributes>(?:\"[^\"]*+\"|'[^']*+'|[^>\"']|[\"'])*+)(?:>|\Z))",
    re.IGNORECASE,
)
"""An element with text alone, which is closed where it is opened; a comment; an element that holds text only;
a tag, with its attributes."""
_ATTRIBUTE: Final = re.compile(r"[^\s\"'>/=]+(?=[\s>/=]|\Z)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


_CLOSED: Final = split_names(
    "area base basefont bgsound br col embed frame head hr image img input keygen link meta param "
    "source track wbr html body h1 h2 h3 h4 h5 h6 p tr td th caption tbody thead tfoot colgroup "
    "option"
)
"""Elements that hold none, or that end by themselves: between two in each other there is always another."""
_ITEMS: Final = frozenset({"li", "dd", "dt"})
_RUBY: Final = frozenset({"rb", "rt", "rp"})
_FORMATTING: Final = split_names("a b big code em font i nobr s small strike strong tt u")


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


def estimate_depth(page: str) -> int:
    """Return how deep the elements of a page may lie, but for those that end by themselves.

    Args:
        page: HTML.

    Raises:
        UnboundedPageError: If its elements lie too deep, have too many attributes, or are opened again too
            often by tags that are not closed.
    """
    formatting, depth = _OpenFormatting(page), _OpenElements()
    for found in _MARKUP.finditer(page):
        end, name, attributes = found.group("end", "name", "attributes")
        name = (name or "").lower()
        if attributes and len(attributes) > MOST_ATTRIBUTES:
            _check_attributes(name, attributes)
        if not name:
            continue
        if name in _FORMATTING:
            formatting.read(name, attributes, end=bool(end))
        else:
            if formatting.weight:
                formatting.reopen()
            if name not in _CLOSED:
                depth.read(name, attributes, end=bool(end))
    return depth.deepest


class _OpenFormatting:
    """Formatting elements that are opened again in each element, until they are closed."""

    def __init__(self, page: str) -> None:
        self._most = _REOPENED[0] + len(page) * _REOPENED[1]
        self._reopened = 0
        self._alike: Counter[tuple[str, str]] = Counter()
        self._open: dict[str, list[str]] = {name: [] for name in _FORMATTING}
        self.weight = 0
        """How many attributes they have, and one more for each."""

    def read(self, name: str, attributes: str, *, end: bool) -> None:
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

    def reopen(self) -> None:
        """Count that they are opened again."""
        self._reopened += self.weight
        if self._reopened > self._most:
            raise UnboundedPageError(
                "formatting elements that are not closed would be opened again: a parser would take"
                f" {self._reopened:,} steps, more than {int(self._most):,}"
            )


class _OpenElements:
    """Elements that have started more often than they have ended."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._depth = 0
        self._item = ""
        self.deepest = 0

    def read(self, name: str, attributes: str, *, end: bool) -> None:
        """Read the tag of one."""
        counts = self._open
        if name in _RUBY and counts["ruby"]:
            return
        if name in _ITEMS:  # <li> ends no <dd>, nor the other way round
            self._depth += not end and self._item not in {"", name[0]}
            self._item = "" if end else name[0]
        elif end:
            self._depth -= counts[name] > 0
            counts[name] -= counts[name] > 0
            self._item = ""
        elif not (attributes.endswith("/") and (counts["svg"] or counts["math"])):
            counts[name] += 1
            self._depth += 1
            self._item = ""
        if self._depth > self.deepest:
            self.deepest = self._depth
            if self.deepest > DEEPEST_ELEMENT:
                raise UnboundedPageError(f"its elements lie more than {DEEPEST_ELEMENT} deep")


def _count_attributes(attributes: str) -> int:
    return len({one.partition("=")[0].lower() for one in _ATTRIBUTE.findall(attributes)}) if attributes else 0


def _check_attributes(name: str, attributes: str) -> None:
    count = _count_attributes(attributes)
    if count > MOST_ATTRIBUTES:
        raise UnboundedPageError(
            f"a <{name[:40]}> has {count:,} attributes; up to {MOST_ATTRIBUTES:,} are read"
        )

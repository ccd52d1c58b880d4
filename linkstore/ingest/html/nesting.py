"""How deep the elements of a page lie, by its text: before it is parsed, for that takes longer the deeper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TAG: Final = re.compile(r"<(?:(!--)|(/?)([a-z][a-z0-9-]*))")
_RAW: Final = frozenset({"script", "style", "textarea", "title", "xmp", "noframes", "iframe"})
"""What stands in these is text, whatever it looks like (HTML Living Standard, section 13.1.2)."""
_NEVER_DEEP: Final = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    }
    | {"p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"}
    | {"html", "head", "body", "a", "nobr", "button"}
)
"""Void elements, and those that end where the next one of their kind begins: their end tags are left out."""
_FOREIGN: Final = frozenset({"svg", "math"})
_BREAKS_OUT: Final = frozenset(
    {"b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "font"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr"}
    | {"ol", "p", "pre", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "table", "tt", "u"}
    | {"ul", "var"}
)
"""What ends an <svg> or <math>, within which ``<path/>`` has no content (section 13.2.6.5)."""


def nests_deeper(text: str, limit: int) -> bool:
    """Whether elements of a page lie deeper than so many others; in time linear in the text.

    Elements that cannot lie directly within their own kind are not counted: they are no deeper than those
    around them.

    Args:
        text: HTML.
        limit: A depth.
    """
    if text.count("<") <= limit:
        return False
    depth = 0
    for step in _steps(text.lower()):
        depth = max(0, depth + step)
        if depth > limit:
            return True
    return False


def _steps(text: str) -> Iterator[int]:
    """1 for each element that begins, -1 for each that ends."""
    foreign, found = False, _TAG.search(text)
    while found is not None:
        comment, closing, name = found.groups()
        end = found.end()
        if comment or (name in _RAW and not closing):
            end = text.find("-->" if comment else f"</{name}", end)
            if end < 0:
                return
        else:
            if name in _FOREIGN or name in _BREAKS_OUT:
                foreign = name in _FOREIGN and not closing
            empty = foreign and not closing and text[text.find(">", end) - 1] == "/"
            if not empty and name not in _NEVER_DEEP:
                yield -1 if closing else 1
        found = _TAG.search(text, end)

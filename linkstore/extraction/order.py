"""Checks at little cost whether the tags of a page are properly nested.

Those of most pages are: each end tag closes the element opened last, or one whose last child needs no end
tag, such as a list item. A parser never reopens or moves elements of such a page. So the depth and size of
its tree follow from the tags, and the slower :mod:`linkstore.extraction.nesting` is not needed.

The rules are stricter than those of tree construction (HTML Living Standard, section 13.2.6). Pages with
constructions that a parser treats specially, and that are not listed here, are left to that module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SPACE: Final = r"\t\n\f\r "
_VALUE: Final = rf"""(?:"[^"]*+"|'[^']*+'|[^{_SPACE}"'<>=`]++)"""
_ATTRIBUTE: Final = rf"""[{_SPACE}]++[^{_SPACE}"'<>/=]++(?:={_VALUE})?+"""
_ATTRIBUTES: Final = rf"(?:{_ATTRIBUTE}){{0,64}}+[{_SPACE}]*+"
_RAW: Final = "|".join(
    rf"{name}{_ATTRIBUTES}(?<!/)>[^<]*+(?:<(?!/?{name})[^<]*+)*+</{name}[{_SPACE}]*+>"
    for name in ("script", "style", "title", "textarea", "iframe")
)
"""Elements that hold text only, with the text."""
_SPANS: Final = f"(?:<span{_ATTRIBUTES}>[^<]*+</span>[^<]*+)*+"
_LEAVES: Final = "|".join(
    f"{name}{_ATTRIBUTES}>[^<]*+{spans}</{name}>"
    for name, spans in (("span", ""), ("code", _SPANS), ("b", ""), ("em", ""), ("strong", ""))
)
"""Elements that change nothing around them, if they hold no other, or only such."""
_SHAPES: Final = "circle ellipse g line path polygon polyline rect use"
_SHAPE: Final = rf"/?+(?:{_SHAPES.replace(' ', '|')}){_ATTRIBUTES}/?+|title>[^<]*+</title"
_CLOSED_SHAPE: Final = "|".join(
    ("title>[^<]*+</title>", *(rf"{name}{_ATTRIBUTES}(?:/>|>[^<]*+</{name}>)" for name in _SHAPES.split()))
)
_CLOSED_DRAWING: Final = rf"svg{_ATTRIBUTES}(?<!/)>(?:[^<]*+<(?:{_CLOSED_SHAPE})){{0,64}}+[^<]*+</svg>"
_SYMBOLS: Final = (
    rf"(?:[^<]*+<symbol{_ATTRIBUTES}(?<!/)>"
    rf"(?:[^<]*+<(?:{_CLOSED_SHAPE}|{_CLOSED_DRAWING})){{0,64}}+[^<]*+</symbol>){{0,64}}+"
)
"""Drawings to be used elsewhere, as themes have them at the start of each page. No end tag in one closes what
is around it."""
_TOKEN: Final = re.compile(
    rf"<(?:(?=[bceist])(?:{_LEAVES}|{_RAW}"
    rf"|svg{_ATTRIBUTES}(?<!/)>(?:(?:[^<]*+<(?:{_SHAPE})>){{0,64}}+|{_SYMBOLS})[^<]*+</svg>"
    rf"|select{_ATTRIBUTES}(?<!/)>(?:[^<]*+</?option{_ATTRIBUTES}>){{0,64}}+[^<]*+</select>)"
    rf"|(/?+[a-z][a-z0-9:_-]*+)(?:>|{_ATTRIBUTES}/?+>)"
    r"|!--(?:-?>|(?s:.*?)--!?>)"
    r"|[!?](?!\[|--)[^>]*+>"
    r"|[a-z/!?](?s:.*))",
    re.IGNORECASE | re.ASCII,
)
"""Text, a small drawing or a list to choose from, as a whole; a comment; a declaration; a tag, whose name is
the group. Any other tag matches together with the rest of the page."""
_END: Final = "End-Of-Page"

_MOST_OPTIONS: Final = 500
_DEEPEST: Final = 96
_MOST_FORMATTING: Final = 8


def _starts(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _ends(names: str) -> frozenset[str]:
    return frozenset(f"/{name}" for name in names.split())


_ALONE: Final = "area base br embed img input link meta param source track wbr"
_IGNORED_ENDS: Final = _ends(f"{_ALONE} col hr html head body")
_OPENS_NOTHING: Final = _starts(f"{_ALONE} html head body")
_ONCE: Final = ("html", "body")
"""Attributes of further ones are added to those of the first."""
_FORMATTING: Final = _starts("a b big code em font i nobr s small strike strong tt u")
_FORMATTING_ENDS: Final = _ends("a b big code em font i nobr s small strike strong tt u")
_PLAIN: Final = _FORMATTING | _starts(
    "abbr acronym bdi bdo cite data del dfn ins kbd label mark q samp span sub sup time var"
)
_BLOCKS: Final = (
    "address article aside blockquote center dd details dir div dl dt fieldset figcaption figure footer form"
    " header hgroup li main menu nav ol pre section summary ul"
)
_HEADINGS: Final = "h1 h2 h3 h4 h5 h6"
_CLOSE_P: Final = _starts(f"{_BLOCKS} {_HEADINGS} p hr")
_NEVER_IN_P: Final = _starts("table dialog search")
"""Parsers differ in whether these close a paragraph."""
_NEVER_IN_THEMSELVES: Final = _starts("a nobr form button noscript")
_HEADING_ENDS: Final = _ends(_HEADINGS)
_HEADING_STARTS: Final = _starts(_HEADINGS)
_RUBY: Final = _starts("rb rt rtc rp")
_TABLE: Final = _ends("table tbody thead tfoot tr colgroup")
"""Directly in these stand only parts of the table."""
_PART_NAMES: Final = "caption colgroup tbody td tfoot th thead tr"
_PARTS: Final = _starts(f"{_PART_NAMES} col")
_GROUPS: Final = _ends("tbody thead tfoot")
_CELLS: Final = _ends("td th")
_LEFT_OUT: Final = _ends("p li dd dt")
"""End tags that blocks do without."""
_LEFT_OUT_IN_TABLES: Final = _LEFT_OUT | _CELLS | _GROUPS | _ends("tr colgroup")
_ENDS_BEFORE: Final = {
    "caption": frozenset[str](),
    "col": frozenset[str](),
    "colgroup": _ends("colgroup"),
    **dict.fromkeys(("tbody", "thead", "tfoot"), _LEFT_OUT_IN_TABLES),
    "tr": _LEFT_OUT | _CELLS | _ends("tr colgroup"),
    **dict.fromkeys(("td", "th"), _LEFT_OUT | _CELLS | _ends("colgroup")),
}
"""Elements that end where a part of a table begins."""
_BLOCK_ENDS: Final = _ends(f"{_BLOCKS} table {_PART_NAMES}")
_TABLE_ENDS: Final = _ends(f"table {_PART_NAMES}")
_ITEM_ENDS: Final = {"li": _ends("li"), "dd": _ends("dd dt"), "dt": _ends("dd dt")}
_DIRECTLY_IN: Final = {
    "/table": _starts("thead tbody tfoot"),
    "/tr": _starts("td th"),
    **dict.fromkeys(("/thead", "/tbody", "/tfoot"), _starts("tr")),
    **dict.fromkeys(("/ul", "/ol"), _starts("li")),
}
"""What may start wherever these were opened last, and ends nothing: most of the tags of tables and lists."""
_LISTS: Final = _ends("ul ol menu dir dl td th")
"""An item in these ends none around them."""
_CLOSER_LOOK: Final = _starts(
    "applet basefont bgsound command frame frameset iframe image isindex keygen listing marquee math menuitem"
    " noembed noframes optgroup option plaintext script select selectedcontent style svg template textarea"
    f" symbol title xmp {_SHAPES}"
)
"""Their content is read in other ways, or changes how that of others is."""


def in_order(page: str) -> bool:
    """Say whether the tags of a page nest as written, so that parsing it costs what its length says.

    Args:
        page: HTML.

    Returns:
        False also where only a closer look can tell.
    """
    if page.count("<option") > _MOST_OPTIONS or _END in page:
        return False
    names = list(filter(None, _TOKEN.findall(f"{page}<{_END}>")))
    if not names or names.pop() != _END:
        return False
    tags = " ".join(names).lower().split()
    return all(tags.count(name) <= 1 for name in _ONCE) and _nested(tags)


def _nested(tags: Iterable[str]) -> bool:
    """Say whether each tag stands where a parser opens or closes just that element."""
    opened = [""]
    formatting = 0
    for tag in tags:
        if tag == opened[-1]:
            opened.pop()
            formatting -= tag in _FORMATTING_ENDS
            continue
        if tag[0] == "/":
            if not _ended(opened, tag):
                return False
            continue
        if tag in _OPENS_NOTHING:
            continue
        if tag in _FORMATTING:
            formatting += 1
            if formatting > _MOST_FORMATTING:
                return False
        if not _may_start(opened, tag) or len(opened) > _DEEPEST:
            return False
        if tag not in {"hr", "col"}:
            opened.append(f"/{tag}")
    return True


def _may_start(opened: list[str], tag: str) -> bool:
    """Say whether an element may start here, and close the elements that it ends."""
    if tag in _DIRECTLY_IN.get(opened[-1], ()):
        return True
    if tag in _PARTS:
        return _part_may_start(opened, tag)
    if opened[-1] in _TABLE or (tag in _NEVER_IN_THEMSELVES and f"/{tag}" in opened):
        return False
    if tag in _PLAIN:
        return True
    if tag in _CLOSE_P:
        return _block_may_start(opened, tag)
    if tag in _NEVER_IN_P:
        return "/p" not in opened
    return tag not in _CLOSER_LOOK and (tag not in _RUBY or opened[-1] == "/ruby")


def _block_may_start(opened: list[str], tag: str) -> bool:
    if opened[-1] == "/p":
        opened.pop()
    if "/p" in opened:
        return False
    if tag in _ITEM_ENDS:
        ends = _ITEM_ENDS[tag]
        if opened[-1] in ends:
            opened.pop()
        return _is_first(opened, ends)
    return tag not in _HEADING_STARTS or opened[-1] not in _HEADING_ENDS


def _is_first(opened: list[str], ends: frozenset[str]) -> bool:
    """Say whether no item is open that the next one would end."""
    for name in reversed(opened):
        if name in _LISTS:
            return True
        if name in ends:
            return False
    return True


def _part_may_start(opened: list[str], tag: str) -> bool:
    """Say whether a part of a table may start here, and open the parts around it that need no tag."""
    while opened[-1] in _ENDS_BEFORE[tag]:
        opened.pop()
    around = opened[-1]
    if tag in {"tr", "td", "th"}:
        if around == "/table":
            opened.append("/tbody")
        if tag == "tr":
            return around == "/table" or around in _GROUPS
        if around == "/table" or around in _GROUPS:
            opened.append("/tr")
        return around == "/tr" or around == "/table" or around in _GROUPS
    return around == "/table" or (tag == "col" and around == "/colgroup")


def _ended(opened: list[str], tag: str) -> bool:
    """Say whether an end tag closes an element around the last one, and close those that need no end tag."""
    if tag in _IGNORED_ENDS:
        return True
    if tag == "/p":
        return tag not in opened  # </p> without <p> makes an empty paragraph
    if tag not in _BLOCK_ENDS:
        return False
    may_end = _LEFT_OUT_IN_TABLES if tag in _TABLE_ENDS else _LEFT_OUT
    while opened[-1] != tag:
        if opened[-1] not in may_end:
            return False
        opened.pop()
    opened.pop()
    return True

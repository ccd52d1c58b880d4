"""Finds the tags of an HTML page, and checks at little cost whether they are properly nested.

Checks at little cost whether the tags of a page are properly nested.

Those of most pages are: each end tag closes the element opened last, or one whose last child needs no end
tag, such as a list item. A parser never reopens or moves elements of such a page. So the depth and size of
its tree follow from the tags, and the slower :mod:`linkstore.extract.html_depth` is not needed.

The rules are stricter than those of tree construction (HTML Living Standard, section 13.2.6). Pages with
constructions that a parser treats specially, and that are not listed here, are left to that module.

Finds the tags of an HTML page as a parser does (HTML Living Standard, section 13.2.5).

Text in comments, quoted attributes, ``<script>`` and similar elements is never a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from typing import Final, NamedTuple

_SPACE: Final = r"\t\n\f\r "
_CLOSED_VALUE: Final = rf"""(?:"[^"]*+"|'[^']*+'|[^{_SPACE}"'<>=`]++)"""
_ATTRIBUTE: Final = rf"""[{_SPACE}]++[^{_SPACE}"'<>/=]++(?:={_CLOSED_VALUE})?+"""
_CLOSED_ATTRIBUTES: Final = rf"(?:{_ATTRIBUTE}){{0,64}}+[{_SPACE}]*+"
_RAW: Final = "|".join(
    rf"{name}{_CLOSED_ATTRIBUTES}(?<!/)>[^<]*+(?:<(?!/?{name})[^<]*+)*+</{name}[{_SPACE}]*+>"
    for name in ("script", "style", "title", "textarea", "iframe")
)
"""Elements that hold text only, with the text."""
_SPANS: Final = f"(?:<span{_CLOSED_ATTRIBUTES}>[^<]*+</span>[^<]*+)*+"
_LEAVES: Final = "|".join(
    f"{name}{_CLOSED_ATTRIBUTES}>[^<]*+{spans}</{name}>"
    for name, spans in (("span", ""), ("code", _SPANS), ("b", ""), ("em", ""), ("strong", ""))
)
"""Elements that change nothing around them, if they hold no other, or only such."""
_SHAPES: Final = "circle ellipse g line path polygon polyline rect use"
_SHAPE: Final = rf"/?+(?:{_SHAPES.replace(' ', '|')}){_CLOSED_ATTRIBUTES}/?+|title>[^<]*+</title"
_CLOSED_SHAPE: Final = "|".join(
    (
        "title>[^<]*+</title>",
        *(rf"{name}{_CLOSED_ATTRIBUTES}(?:/>|>[^<]*+</{name}>)" for name in _SHAPES.split()),
    )
)
_CLOSED_DRAWING: Final = rf"svg{_CLOSED_ATTRIBUTES}(?<!/)>(?:[^<]*+<(?:{_CLOSED_SHAPE})){{0,64}}+[^<]*+</svg>"
_SYMBOLS: Final = (
    rf"(?:[^<]*+<symbol{_CLOSED_ATTRIBUTES}(?<!/)>"
    rf"(?:[^<]*+<(?:{_CLOSED_SHAPE}|{_CLOSED_DRAWING})){{0,64}}+[^<]*+</symbol>){{0,64}}+"
)
"""Drawings to be used elsewhere, as themes have them at the start of each page. No end tag in one closes what
is around it."""
_TOKEN: Final = re.compile(
    rf"<(?:(?=[bceist])(?:{_LEAVES}|{_RAW}"
    rf"|svg{_CLOSED_ATTRIBUTES}(?<!/)>(?:(?:[^<]*+<(?:{_SHAPE})>){{0,64}}+|{_SYMBOLS})[^<]*+</svg>"
    rf"|select{_CLOSED_ATTRIBUTES}(?<!/)>(?:[^<]*+</?option{_CLOSED_ATTRIBUTES}>){{0,64}}+[^<]*+</select>)"
    rf"|(/?+[a-z][a-z0-9:_-]*+)(?:>|{_CLOSED_ATTRIBUTES}/?+>)"
    r"|!--(?:-?>|(?s:.*?)--!?>)"
    r"|[!?](?!\[|--)[^>]*+>"
    r"|[a-z/!?](?s:.*))",
    re.IGNORECASE | re.ASCII,
)
"""Text, a small drawing or a list to choose from, as a whole; a comment; a declaration; a tag, whose name is
the group. Any other tag matches together with the rest of the page."""
_END_OF_PAGE: Final = "End-Of-Page"

_MOST_OPTIONS: Final = 500
_DEEPEST: Final = 96
_MOST_FORMATTING: Final = 8


def _parse_starts(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _parse_ends(names: str) -> frozenset[str]:
    return frozenset(f"/{name}" for name in names.split())


_ALONE: Final = "area base br embed img input link meta param source track wbr"
_IGNORED_ENDS: Final = _parse_ends(f"{_ALONE} col hr html head body")
_OPENS_NOTHING: Final = _parse_starts(f"{_ALONE} html head body")
_ONCE: Final = ("html", "body")
"""Attributes of further ones are added to those of the first."""
_FORMATTING: Final = _parse_starts("a b big code em font i nobr s small strike strong tt u")
_FORMATTING_ENDS: Final = _parse_ends("a b big code em font i nobr s small strike strong tt u")
_PLAIN: Final = _FORMATTING | _parse_starts(
    "abbr acronym bdi bdo cite data del dfn ins kbd label mark q samp span sub sup time var"
)
_BLOCKS: Final = (
    "address article aside blockquote center dd details dir div dl dt fieldset figcaption figure footer form"
    " header hgroup li main menu nav ol pre section summary ul"
)
_HEADINGS: Final = "h1 h2 h3 h4 h5 h6"
_CLOSE_P: Final = _parse_starts(f"{_BLOCKS} {_HEADINGS} p hr")
_NEVER_IN_P: Final = _parse_starts("table dialog search")
"""Parsers differ in whether these close a paragraph."""
_NEVER_IN_THEMSELVES: Final = _parse_starts("a nobr form button noscript")
_HEADING_ENDS: Final = _parse_ends(_HEADINGS)
_HEADING_STARTS: Final = _parse_starts(_HEADINGS)
_RUBY: Final = _parse_starts("rb rt rtc rp")
_TABLE: Final = _parse_ends("table tbody thead tfoot tr colgroup")
"""Directly in these stand only parts of the table."""
_PART_NAMES: Final = "caption colgroup tbody td tfoot th thead tr"
_PARTS: Final = _parse_starts(f"{_PART_NAMES} col")
_GROUPS: Final = _parse_ends("tbody thead tfoot")
_CELLS: Final = _parse_ends("td th")
_LEFT_OUT: Final = _parse_ends("p li dd dt")
"""End tags that blocks do without."""
_LEFT_OUT_IN_TABLES: Final = _LEFT_OUT | _CELLS | _GROUPS | _parse_ends("tr colgroup")
_ENDS_BEFORE: Final = {
    "caption": frozenset[str](),
    "col": frozenset[str](),
    "colgroup": _parse_ends("colgroup"),
    **dict.fromkeys(("tbody", "thead", "tfoot"), _LEFT_OUT_IN_TABLES),
    "tr": _LEFT_OUT | _CELLS | _parse_ends("tr colgroup"),
    **dict.fromkeys(("td", "th"), _LEFT_OUT | _CELLS | _parse_ends("colgroup")),
}
"""Elements that end where a part of a table begins."""
_BLOCK_ENDS: Final = _parse_ends(f"{_BLOCKS} table {_PART_NAMES}")
_TABLE_ENDS: Final = _parse_ends(f"table {_PART_NAMES}")
_ITEM_ENDS: Final = {"li": _parse_ends("li"), "dd": _parse_ends("dd dt"), "dt": _parse_ends("dd dt")}
_DIRECTLY_IN: Final = {
    "/table": _parse_starts("thead tbody tfoot"),
    "/tr": _parse_starts("td th"),
    **dict.fromkeys(("/thead", "/tbody", "/tfoot"), _parse_starts("tr")),
    **dict.fromkeys(("/ul", "/ol"), _parse_starts("li")),
}
"""What may start wherever these were opened last, and ends nothing: most of the tags of tables and lists."""
_LISTS: Final = _parse_ends("ul ol menu dir dl td th")
"""An item in these ends none around them."""
_CLOSER_LOOK: Final = _parse_starts(
    "applet basefont bgsound command frame frameset iframe image isindex keygen listing marquee math menuitem"
    " noembed noframes optgroup option plaintext script select selectedcontent style svg template textarea"
    f" symbol title xmp {_SHAPES}"
)
"""Their content is read in other ways, or changes how that of others is."""


def is_well_nested(page: str) -> bool:
    """Say whether the tags of a page nest as written, so that parsing it costs what its length says.

    Args:
        page: HTML.

    Returns:
        False also where only a closer look can tell.
    """
    if page.count("<option") > _MOST_OPTIONS or _END_OF_PAGE in page:
        return False
    names = list(filter(None, _TOKEN.findall(f"{page}<{_END_OF_PAGE}>")))
    if not names or names.pop() != _END_OF_PAGE:
        return False
    tags = " ".join(names).lower().split()
    return all(tags.count(name) <= 1 for name in _ONCE) and _is_nested(tags)


def _is_nested(tags: Iterable[str]) -> bool:
    """Say whether each tag stands where a parser opens or closes just that element."""
    opened = [""]
    formatting = 0
    for tag in tags:
        if tag == opened[-1]:
            opened.pop()
            formatting -= tag in _FORMATTING_ENDS
            continue
        if tag[0] == "/":
            if not _try_end(opened, tag):
                return False
            continue
        if tag in _OPENS_NOTHING:
            continue
        if tag in _FORMATTING:
            formatting += 1
            if formatting > _MOST_FORMATTING:
                return False
        if not _try_start(opened, tag) or len(opened) > _DEEPEST:
            return False
        if tag not in {"hr", "col"}:
            opened.append(f"/{tag}")
    return True


def _try_start(opened: list[str], tag: str) -> bool:
    """Say whether an element may start here, and close the elements that it ends."""
    if tag in _DIRECTLY_IN.get(opened[-1], ()):
        return True
    if tag in _PARTS:
        return _try_start_part(opened, tag)
    if opened[-1] in _TABLE or (tag in _NEVER_IN_THEMSELVES and f"/{tag}" in opened):
        return False
    if tag in _PLAIN:
        return True
    if tag in _CLOSE_P:
        return _try_start_block(opened, tag)
    if tag in _NEVER_IN_P:
        return "/p" not in opened
    return tag not in _CLOSER_LOOK and (tag not in _RUBY or opened[-1] == "/ruby")


def _try_start_block(opened: list[str], tag: str) -> bool:
    if opened[-1] == "/p":
        opened.pop()
    if "/p" in opened:
        return False
    if tag in _ITEM_ENDS:
        ends = _ITEM_ENDS[tag]
        if opened[-1] in ends:
            opened.pop()
        return _is_first_item(opened, ends)
    return tag not in _HEADING_STARTS or opened[-1] not in _HEADING_ENDS


def _is_first_item(opened: list[str], ends: frozenset[str]) -> bool:
    """Say whether no item is open that the next one would end."""
    for name in reversed(opened):
        if name in _LISTS:
            return True
        if name in ends:
            return False
    return True


def _try_start_part(opened: list[str], tag: str) -> bool:
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


def _try_end(opened: list[str], tag: str) -> bool:
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


_VALUE: Final = rf"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>"'][^{_SPACE}>]*+)?+"""
_NAME: Final = rf"[^{_SPACE}/>][^{_SPACE}/>=]*+"
_EQUALS: Final = rf"(?:[{_SPACE}]*+=[{_SPACE}]*+{_VALUE})?+"
_MARKUP: Final = re.compile(
    rf"<(?:(/?)([a-zA-Z][^{_SPACE}/>]*+)((?:[{_SPACE}/]++|{_NAME}{_EQUALS})*+)>?+"
    r"|!--(?:-?>|(?s:.*?)(?:--!?>|\Z))"
    r"|(!\[CDATA\[)"
    r"|[!?/][^>]*+>?)"
)
"""A tag; a comment; the start of a CDATA section; a declaration or another bogus comment."""
_ATTRIBUTES: Final = re.compile(rf"({_NAME}){_EQUALS}")
_IN_SCRIPT: Final = re.compile(rf"<!--|-->|<(/?)script(?=[{_SPACE}/>])", re.IGNORECASE)
_UNSEEN: Final = frozenset({"script", "style", "iframe", "noembed", "noframes"})
_ESCAPABLE: Final = frozenset({"title", "textarea"})
_AS_IT_IS: Final = frozenset({"xmp", "plaintext"})
_XHTML: Final = re.compile(r"\s*(?:<\?xml\b|<!doctype[^>]*\bxhtml\b)", re.IGNORECASE)


class Tag(NamedTuple):
    """A tag, and where it stands in the page."""

    name: str
    """In lower case."""
    closing: bool
    """Whether it is an end tag."""
    attributes: str
    """As they are written."""
    start: int
    end: int
    text: bool
    """Whether there is text between it and the tag before."""


def find_attribute_names(attributes: str) -> list[str]:
    """Return the names of the attributes that :class:`Tag` holds, in lower case, with repeated ones."""
    return [found[1].lower() for found in _ATTRIBUTES.finditer(attributes)]


class TagRewriter:
    """Reads the tags of a page, and writes it anew so that a parser reads the same, whatever its state.

    The content of ``<script>`` and other elements that nobody is shown is left out, and what looks like tags
    in other elements that hold text only is escaped. Where a page is XHTML, or one of these has no end tag,
    a slash closes it: ``<title/>`` does not hold the rest of the page.

    Args:
        page: HTML.
    """

    def __init__(self, page: str) -> None:
        self._page = page
        self._pieces: list[str] = []
        self._kept = 0
        self._is_xhtml = _XHTML.match(page) is not None
        self._never_closed: set[str] = set()
        self.in_foreign = False
        """Whether the next tag lies in SVG or MathML, where CDATA sections are text."""

    def __iter__(self) -> Iterator[Tag]:
        page, at = self._page, 0
        while found := _MARKUP.search(page, at):
            start, end = found.span()
            name = found[2]
            if name is not None:
                tag = Tag(name.lower(), bool(found[1]), found[3], start, end, start > at)
                foreign = self.in_foreign  # there, a <style/> or <title> is an element like others
                if tag.name in _AS_IT_IS and not tag.closing and not foreign:
                    end = self._preformatted(tag)
                yield tag
                if (tag.name in _UNSEEN or tag.name in _ESCAPABLE) and not foreign:
                    end = self._after_text(tag)
            elif found[4] is not None:
                end = self._after_section(start, end)
            at = end

    def leave_out(self, tag: Tag) -> None:
        """Leave a tag out of what is written."""
        self._replace(tag.start, tag.end, "")

    def written(self) -> str:
        """Return the page as a parser may read it, once all its tags were read."""
        return "".join((*self._pieces, self._page[self._kept :])) if self._pieces else self._page

    def _replace(self, start: int, end: int, text: str) -> None:
        self._pieces += (self._page[self._kept : start], text)
        self._kept = end

    def _after_text(self, tag: Tag) -> int:
        """Return the position behind the content of an element that holds text only."""
        if tag.closing:
            return tag.end
        closes_itself = tag.attributes.endswith("/")
        end = None if closes_itself and self._is_xhtml else self._end_of(tag)
        if closes_itself and end is None:
            self._replace(tag.end, tag.end, f"</{tag.name}>")
            return tag.end
        end = len(self._page) if end is None else end
        content = self._page[tag.end : end]
        if "<" in content:
            self._replace(tag.end, end, content.replace("<", "&lt;") if tag.name in _ESCAPABLE else "")
        return end

    def _end_of(self, tag: Tag) -> int | None:
        """Return where the content of an element that holds text only ends, None if it is never closed."""
        if tag.name in self._never_closed:
            return None
        if tag.name == "script":
            end = self._script_end(tag.end)
        else:
            found = _compile_end_tag(tag.name).search(self._page, tag.end)
            end = found.start() if found else None
        if end is None:
            self._never_closed.add(tag.name)
        return end

    def _script_end(self, at: int) -> int | None:
        """Return where a script ends, None if it never does.

        Within ``<!--`` and ``-->`` a script may hold another one, with its end tag.
        """
        escaped = nested = False
        while found := _IN_SCRIPT.search(self._page, at):
            at = found.end()
            if found[1] is None:
                escaped, nested = found[0] == "<!--", False
                at -= 2 if escaped else 0
            elif not found[1]:
                nested = escaped
            elif not nested:
                return found.start()
            else:
                nested = False
        return None

    def _preformatted(self, tag: Tag) -> int:
        """Write an element whose content is text to its end as one that holds the same, escaped."""
        found = _compile_end_tag(tag.name).search(self._page, tag.end) if tag.name == "xmp" else None
        end = found.start() if found else len(self._page)
        self._replace(tag.start, end, f"<pre>{escape(self._page[tag.end : end])}</pre>")
        return end

    def _after_section(self, start: int, inside: int) -> int:
        """Return the position after a CDATA section: text in SVG and MathML, a comment elsewhere."""
        closing = "]]>" if self.in_foreign else ">"
        end = self._page.find(closing, inside)
        content = self._page[inside : end if end >= 0 else len(self._page)]
        end = end + len(closing) if end >= 0 else len(self._page)
        self._replace(start, end, escape(content) if self.in_foreign else "")
        return end


@cache
def _compile_end_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE)

"""Refuses pages of HTML that would take far more time or memory to parse than their length says.

A parser takes time by the depth of the elements, opens formatting elements again in each paragraph that
follows (``<p><b id=1><b id=2>…<p>x<p>x…``), moves elements that are closed out of order, and compares each
attribute of an element with the others. So a page of a few kilobytes can take gigabytes, or minutes.

One pass over the tags estimates that. It counts too much rather than too little: an element counts as open
until an end tag follows that can only be its own. Paragraphs, items and cells are not counted, as they end by
themselves: between two that lie in each other there is always another element.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple

from linkstore.errors import ExtractionError

MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element, and of all formatting elements that are open."""
MOST_OPTIONS: Final = 1000
"""Maximum number of options in the lists of a page. Parsers take the square of their number of steps, so the
tags of more are left out; what is in such lists is not the page's text."""
_STEPS: Final = (10**9, 100)
_MOVED: Final = (10**7, 40)
_REOPENED: Final = (10**5, 0.25)
"""What a parser may do on a page, and what each character adds to that: steps are the depth at each
character, moved are the characters between the tags of a formatting element."""

_SPACE: Final = r"\t\n\f\r "
_VALUE: Final = rf"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>"'][^{_SPACE}>]*+)?+"""
_NAME: Final = rf"[^{_SPACE}/>][^{_SPACE}/>=]*+"
_EQUALS: Final = rf"(?:[{_SPACE}]*+=[{_SPACE}]*+{_VALUE})?+"
_LEAVES: Final = "|".join(
    rf"{name}(?:[{_SPACE}]++{_NAME}{_EQUALS}){{0,64}}+[{_SPACE}]*+>[^<]*+</{name}>"
    for name in ("span", "a", "code", "em", "strong", "b", "i", "tt")
)
_MARKUP: Final = re.compile(
    rf"<(?:(?=[abceist])(?:{_LEAVES})"
    rf"|(/?[a-zA-Z][^{_SPACE}/>]*+)(?:>|((?:[{_SPACE}/]++|{_NAME}{_EQUALS})*+)>?+)"
    r"|!--(?:-?>|(?s:.*?)(?:--!?>|\Z))"
    r"|(!\[CDATA\[)"
    r"|[!?/][^>]*+>?)"
)
"""A small element with text alone; a tag, with its attributes; a comment; the start of a CDATA section; a
declaration or a bogus comment."""
_ATTRIBUTE: Final = re.compile(rf"({_NAME}){_EQUALS}")
_OPTION: Final = re.compile(rf"<(/?)option(?=[{_SPACE}/>])", re.IGNORECASE)
_XHTML: Final = re.compile(r"\s*(?:<\?xml\b|<!doctype[^>]*\bxhtml\b)", re.IGNORECASE)
_IN_SCRIPT: Final = re.compile(rf"<!---?>|<!--|-->|<(/?)script(?=[{_SPACE}/>])", re.IGNORECASE)


def _split(names: str) -> frozenset[str]:
    return frozenset(names.split())


_UNSEEN: Final = _split("script style iframe noembed noframes")
_PREFORMATTED: Final = _split("xmp plaintext")
_HOLD_TEXT: Final = _UNSEEN | _PREFORMATTED | _split("title textarea")
_END_TAGS: Final = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])" if name != "plaintext" else r"(?!)", re.IGNORECASE)
    for name in _HOLD_TEXT
}
_ROOTS: Final = _split("html body")
_VOID: Final = _split(
    "area base basefont bgsound br col embed frame head hr image img input keygen link meta param source"
    " track wbr"
)
_ITEMS: Final = _split("li dd dt")
_BLOCKS: Final = _split(
    "address applet article aside blockquote button center details dialog dir div dl fieldset figcaption"
    " figure footer form h1 h2 h3 h4 h5 h6 header hgroup listing main marquee menu nav object ol pre search"
    " section select summary table template ul"
)
"""Elements whose end tags close whatever is open in them; those of others stop at a paragraph or an item."""
_CELLS: Final = _split("td th caption")
_END_THEMSELVES: Final = _CELLS | _split("p li dd dt tr tbody thead tfoot colgroup")
_FORMATTING: Final = _split("a b big code em font i nobr s small strike strong tt u")
_NOT_COUNTED: Final = _VOID | _ROOTS | _END_THEMSELVES | _HOLD_TEXT | _FORMATTING
_OF_NO_EFFECT: Final = (
    frozenset(f"{slash}{name}" for name in _VOID | _END_THEMSELVES for slash in ("", "/")) - _ITEMS
)
"""Tags that change nothing in blocks where no formatting element and no drawing is open."""
_ONE_AT_A_TIME: Final = _split("a nobr")
_BREAKS_OUT: Final = _split(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing"
    " menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
"""Elements of HTML that end SVG and MathML around them, where all others may lie in each other."""
_SCOPES: Final = _split(
    "applet marquee object template table select svg math foreignobject desc mi mo mn ms mtext annotation-xml"
)
"""In these, no end tag closes formatting elements around them."""
_ENDS_DRAWING: Final = _BREAKS_OUT | _split(
    "font foreignobject desc frameset mi mo mn ms mtext annotation-xml"
)
"""Elements that are HTML, or hold it, in SVG and MathML too; and one after which a page may have neither."""
_DRAWINGS: Final = _split("svg math")
_CHECKED_EVERY: Final = 1000
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are opened again."""


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


class BoundedPage(NamedTuple):
    """A page that takes time and memory in proportion to its length."""

    text: str
    """The page, in which elements that hold text only hold no tags."""
    depth: int
    """How deep its elements may lie, but for those that are not counted."""


def bound_page(page: str) -> BoundedPage:
    """Check that a page takes time and memory in proportion to its length.

    What looks like tags in elements that hold text only is escaped, or left out where nobody is shown the
    text, so that a parser reads the same tags whatever its state. Where a page is XHTML, or one of these has
    no end tag, a slash closes it: ``<title/>`` does not hold the rest of the page.

    Args:
        page: HTML.

    Raises:
        UnboundedPageError: If its elements lie too deep, have too many attributes, or are opened or moved too
            often by tags that are not closed in order.
    """
    if _OPTION.findall(page).count("") > MOST_OPTIONS:
        page = _OPTION.sub(r"<\1wbr", page)
    at, length = 0, len(page)
    opened, rewriter = _OpenElements(length), _Rewriter(page)
    while at < length:
        for found in _MARKUP.finditer(page, at):
            name, attributes, section = found.groups("")
            name = name.lower()
            if name in _OF_NO_EFFECT and opened.is_plain and len(attributes) <= MOST_ATTRIBUTES:
                continue
            start, end = found.span()
            if section:
                at = rewriter.rewrite_section(start, end, drawn=opened.in_drawing)
                break
            if name[:1] == "/":
                opened.end(name[1:], end)
            elif name:
                opened.start(name, attributes, end)
                if name in _HOLD_TEXT:
                    at = rewriter.rewrite_text(name, found, drawn=opened.in_drawing)
                    break
            elif page[start + 1] in "bceist":
                opened.in_drawing = opened.is_foreign = False
        else:
            break
    opened.check(length)
    return BoundedPage(rewriter.written(), opened.deepest)


class _FormattingElement(NamedTuple):
    """A formatting element that is opened again until it is closed."""

    name: str
    attributes: str
    weight: int
    """The number of its attributes, and one for itself."""
    depth: int
    """How many elements are open around it."""
    at: int
    """Where its tag ends."""


@dataclass(slots=True)
class _OpenElement:
    """An element that is open, the first of which is the page."""

    name: str
    item: str = ""
    """The first letter of the item that was opened last in it."""
    is_block: bool = True
    """Whether its end tag surely closes it."""


class _OpenElements:
    """Estimates what is open at a place of a page, and what a parser has done up to there."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._stack = [_OpenElement("")]
        self._formatting: list[_FormattingElement] = []
        self._counts: Counter[str | tuple[str, str]] = Counter()
        """How many formatting elements have a name, and how many the same attributes too."""
        self._scopes = [0]
        """How many formatting elements were opened before each scope, the first of which is the page."""
        self._floors = [0]
        """The same, or how many before its last cell: none of those is closed by an end tag now."""
        self._roots: set[str] = set()
        self._leaked = 0
        """How many elements that are not counted otherwise may never have been closed."""
        self._weight = self._drawings = self._steps = self._at = self._reopened = self._moved = 0
        self.deepest = 0
        self.in_drawing = self.is_foreign = False
        """Whether the innermost element likely, and surely, is of SVG or MathML."""
        self.is_plain = True
        """Whether no formatting element and no drawing is open, and the innermost element is a block."""

    def start(self, name: str, attributes: str, at: int) -> None:
        """Open an element by its start tag, which ends at a place."""
        if len(attributes) > MOST_ATTRIBUTES or name in _ROOTS:
            self._check_attributes(name, attributes)
        closed = attributes.endswith("/")
        if name in _ENDS_DRAWING:
            self.in_drawing = self.is_foreign = False
        if name in _FORMATTING:
            self._start_formatting(name, attributes, at)
        else:
            self._reopened += self._weight
            if name in _END_THEMSELVES:
                self._start_part(name, at)
        if name in _NOT_COUNTED and (closed or not self._drawings or name in _BREAKS_OUT):
            return
        if closed and self.is_foreign:
            return
        if name in _DRAWINGS:
            self._drawings += 1
            self.in_drawing = self.is_foreign = not closed
        self._count(at)
        self._stack.append(_OpenElement(name))
        if len(self._stack) % _CHECKED_EVERY == 0:
            self.check(at)
        if name in _SCOPES:
            self._scopes.append(len(self._formatting))
            self._floors.append(len(self._formatting))
        self._settle()

    def end(self, name: str, at: int) -> None:
        """Close the element opened last by its end tag. Any other end tag may be ignored."""
        if name in _FORMATTING:
            self._end_formatting(name, at)
        else:
            self._reopened += self._weight
        last = self._stack[-1]
        matches = last.name == name and (last.is_block or name in _BLOCKS)
        self.in_drawing = self.in_drawing and name not in _DRAWINGS
        self.is_foreign = self.in_drawing and self.is_foreign and matches
        if matches:
            self._count(at)
            self._stack.pop()
            if name in _SCOPES:
                self._scopes.pop()
                self._floors.pop()
            self._drawings -= name in _DRAWINGS
            self._settle()

    def check(self, at: int) -> None:
        """Check what a parser has done up to a place.

        Raises:
            UnboundedPageError: If that is too much.
        """
        self._count(at)
        for problem, count, (most, each) in (
            ("its elements lie too deep", self._steps, _STEPS),
            ("elements are closed out of order", self._moved, _MOVED),
            ("formatting elements that are not closed would be opened again", self._reopened, _REOPENED),
        ):
            if count > most + self._length * each:
                limit = int(most + self._length * each)
                raise UnboundedPageError(
                    f"{problem}: a parser would take {count:,} steps, more than {limit:,}"
                )

    def _count(self, at: int) -> None:
        depth = len(self._stack) + len(self._formatting) + self._leaked
        if depth > self.deepest:
            self.deepest = depth
        self._steps += depth * (at - self._at)
        self._at = at

    def _leak(self, at: int) -> None:
        self.check(at)
        self._leaked += 1

    def _settle(self) -> None:
        self.is_plain = not self._drawings and not self._weight and self._stack[-1].name in _BLOCKS

    def _start_part(self, name: str, at: int) -> None:
        """Start a paragraph, an item or a part of a table."""
        last = self._stack[-1]
        last.is_block = False
        if name in _ITEMS:  # <li> ends no <dd>, nor the other way round
            if last.item and last.item != name[0]:
                self._leak(at)
            last.item = name[0]
        elif name in _CELLS:
            self._floors[-1] = len(self._formatting)

    def _check_attributes(self, name: str, attributes: str) -> None:
        names = {one.lower() for one in _ATTRIBUTE.findall(attributes)}
        if name in _ROOTS:  # a parser gives the first those of all
            self._roots |= names
            names = self._roots
        if len(names) > MOST_ATTRIBUTES:
            raise UnboundedPageError(
                f"a <{name[:40]}> has {len(names):,} attributes; up to {MOST_ATTRIBUTES:,} are read"
            )

    def _start_formatting(self, name: str, attributes: str, at: int) -> None:
        if name in _ONE_AT_A_TIME:
            self._end_formatting(name, at)
            key: str | tuple[str, str] = name
            first, most = 0, 2 * len(self._scopes)
        else:
            key = (name, attributes)
            first, most = self._scopes[-1], _ALIKE
        if self._counts[key] >= most:
            near = enumerate(self._formatting[first:], first)
            alike = [n for n, one in near if key in {one.name, (one.name, one.attributes)}]
            if len(alike) >= most:
                self._forget(alike[0])
                self._leak(at)
        weight = 1 + (len(set(_ATTRIBUTE.findall(attributes))) if attributes else 0)
        self._formatting.append(_FormattingElement(name, attributes, weight, len(self._stack), at))
        self._counts[name] += 1
        self._counts[name, attributes] += 1
        self._weight += weight
        self._settle()
        if self._weight > MOST_ATTRIBUTES:
            raise UnboundedPageError(
                f"formatting elements that are not closed have {self._weight:,} attributes;"
                f" up to {MOST_ATTRIBUTES:,} are read"
            )

    def _end_formatting(self, name: str, at: int) -> None:
        """Close a formatting element, unless so many others are open in it that a parser gives up."""
        if not self._counts[name]:
            return
        for number in range(len(self._formatting) - 1, self._floors[-1] - 1, -1):
            entry = self._formatting[number]
            if entry.name == name:
                self._moved += at - entry.at
                if self._moved > _MOVED[0]:
                    self.check(at)
                if len(self._stack) <= entry.depth + 1:
                    self._forget(number)
                return

    def _forget(self, number: int) -> None:
        entry = self._formatting.pop(number)
        self._counts[entry.name] -= 1
        self._counts[entry.name, entry.attributes] -= 1
        self._weight -= entry.weight
        self._settle()
        if number < self._floors[-1]:
            self._floors = [floor - (floor > number) for floor in self._floors]
            self._scopes = [floor - (floor > number) for floor in self._scopes]


class _Rewriter:
    """Writes a page anew so that elements that hold text only hold no tags, in whatever state a parser is."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._pieces: list[str] = []
        self._kept = 0
        self._is_xhtml = _XHTML.match(page) is not None
        self._never_closed: set[str] = set()

    def _replace(self, start: int, end: int, text: str) -> None:
        self._pieces += (self._page[self._kept : start], text)
        self._kept = end

    def written(self) -> str:
        """Return the page as a parser may read it."""
        return "".join((*self._pieces, self._page[self._kept :])) if self._pieces else self._page

    def rewrite_section(self, start: int, inside: int, *, drawn: bool) -> int:
        """Rewrite a CDATA section, text in drawings and a comment elsewhere, and return where it ends."""
        closing = "]]>" if drawn else ">"
        end = self._page.find(closing, inside)
        end = len(self._page) if end < 0 else end
        self._replace(start, end + len(closing), escape(self._page[inside:end]) if drawn else "")
        return self._kept

    def rewrite_text(self, name: str, tag: re.Match[str], *, drawn: bool) -> int:
        """Rewrite an element that holds text only, and return where its end tag begins, or its content."""
        page, at = self._page, tag.end()
        closes_itself = (tag[2] or "").endswith("/")
        if drawn:  # there, a <style/> or <title> is an element like others
            if not _END_TAGS[name].match(page, max(at, page.find("<", at))):
                self._replace(at, at, f"</{name}>")
            return at
        found = None
        if name not in self._never_closed and not (closes_itself and self._is_xhtml):
            found = _find_script_end(page, at) if name == "script" else _END_TAGS[name].search(page, at)
            if found is None:
                self._never_closed.add(name)
        if found is None and closes_itself:
            self._replace(at, at, f"</{name}>")
            return at
        end = found.start() if found else len(page)
        content = page[at:end]
        if name in _PREFORMATTED:
            self._replace(tag.start(), end, f"<pre>{escape(content)}</pre>")
        elif "<" in content:
            self._replace(at, end, "" if name in _UNSEEN else content.replace("<", "&lt;"))
        return end


def _find_script_end(page: str, at: int) -> re.Match[str] | None:
    """Find the end tag of a script. Within ``<!--`` and ``-->`` it may hold another one, with its end tag."""
    escaped = nested = False
    for found in _IN_SCRIPT.finditer(page, at):
        if found[1] is None:
            escaped, nested = found[0] == "<!--", False
        elif not found[1]:
            nested = escaped
        elif not nested:
            return found
        else:
            nested = False
    return None

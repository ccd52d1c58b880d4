"""Finds the tags of an HTML page as a parser does (HTML Living Standard, section 13.2.5).

Text in comments, quoted attributes, ``<script>`` and similar elements is never a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Final, NamedTuple

_SPACE: Final = r"\t\n\f\r "
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


def attribute_names(attributes: str) -> list[str]:
    """Return the names of the attributes that :class:`Tag` holds, in lower case, with repeated ones."""
    return [found[1].lower() for found in _ATTRIBUTES.finditer(attributes)]


class Tags:
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
            found = _end_tag(tag.name).search(self._page, tag.end)
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
        found = _end_tag(tag.name).search(self._page, tag.end) if tag.name == "xmp" else None
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
def _end_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE)

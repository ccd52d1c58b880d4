"""A page read by html5lib (the WHATWG's algorithm) and by lxml, to judge by them what linkstore read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import html5lib
import lxml.html

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
UNSEEN = {"script", "style", "template", "title", "noscript", "svg", "math", "button", "select", "textarea"}
UNSEEN |= {"nav", "footer", "object"}
UNSEEN_MARKS = {"toc", "footer", "navheader", "navfooter", "navigation", "sphinxsidebar", "related"}
"""Classes and ids of tables of contents, bars and footers, which are no main content."""
LEAVES = (*sorted(HEADINGS), "p", "li", "dt", "dd", "td", "th", "pre")
LINES = {*LEAVES, "tr", "div", "section", "article", "table", "ul", "ol", "dl", "blockquote", "br", "hr"}
SECTIONS = {"section", "article"}
LONGEST = 40
"""Letters of a line that are looked for."""


@dataclass
class PageText:
    """The words of a page in order, and where in them its anchors stand, by html5lib.

    Args:
        text: Letters and digits alone, in lower case, of all but tables of contents, bars and footers.
        anchors: Where in the text each ``id`` or ``name`` stands; the first of each.
        headings: Begin and end of each heading in the text.
        lines: Where lines begin.
        sections: Where sections with a heading begin; what precedes the heading in one belongs to it.
    """

    text: str = ""
    anchors: dict[str, int] = field(default_factory=dict)
    headings: list[tuple[int, int]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    sections: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> PageText:
        tree = html5lib.parse(decoded(path.read_bytes()), treebuilder="etree", namespaceHTMLElements=False)
        walk = _Walk()
        walk.visit(tree, seen=True)
        return cls("".join(walk.parts), walk.anchors, walk.headings, walk.lines, walk.sections)

    def after(self, anchor: str) -> list[str]:
        """What an anchor leads to: the heading it stands on, if it does, and the line there.

        A heading that another one follows, or a section with a heading, leads to itself alone.
        """
        at = self.anchors[anchor]
        heading = next((span for span in self.headings if span[0] <= at < span[1]), None)
        if heading is not None:
            at = heading[1]
        following = bisect_right(self.lines, at)
        end = self.lines[following] if following < len(self.lines) else len(self.text)
        found = [self.text[heading[0] : heading[1]]] if heading is not None else []
        if found and (at in self.sections or any(begin == at for begin, _ in self.headings)):
            return found
        return [part for part in (*found, self.text[at : min(end, at + LONGEST)]) if part]


def letters(text: str) -> str:
    """A text as :class:`PageText` keeps it."""
    return "".join(filter(str.isalnum, text)).lower()


def paragraphs(path: Path) -> Iterator[str]:
    """The letters of each paragraph, item, cell and heading of a page that is not navigation, by lxml."""
    root = lxml.html.document_fromstring(decoded(path.read_bytes()).encode(), parser=_parser())
    for node in root.iter(*LEAVES):
        if node.find(".//p") is None and not any(True for _ in node.iterdescendants(*LEAVES, "div", "table")):
            if any(link.get("rel") or link.get("accesskey") for link in node.iter("a")):
                continue  # a bar that leads to the pages before and after
            around = [node, *node.iterancestors()]
            if not any(
                _hides(str(one.tag), dict(one.attrib)) or one.tag in {"aside", "header"} for one in around
            ):
                found = letters("".join(_texts(node)))
                if found:
                    yield found


def links(path: Path) -> Iterator[tuple[str, str | None]]:
    """The ``href`` of each link of a page, with that of its ``<base>``, by lxml."""
    root = lxml.html.document_fromstring(decoded(path.read_bytes()).encode(), parser=_parser())
    base = next((node.get("href") for node in root.iter("base") if node.get("href")), None)
    for node in root.iter("a"):
        href = node.get("href")
        if href:
            yield href, base


def decoded(content: bytes) -> str:
    declared = re.search(rb"charset=[\"']?([\w-]+)", content[:2048])
    for encoding in ("utf-8", declared[1].decode() if declared else "latin-1"):
        try:
            return content.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return content.decode("latin-1")


class _Walk:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.anchors: dict[str, int] = {}
        self.headings: list[tuple[int, int]] = []
        self.lines: list[int] = []
        self.sections: set[int] = set()
        self._at = 0

    def visit(self, node: Any, *, seen: bool, listing: bool = False) -> None:
        if not isinstance(node.tag, str):
            return
        attributes = dict(node.attrib)
        for name, value in attributes.items():
            if value and (name == "id" or (name == "name" and node.tag == "a")):
                self.anchors.setdefault(value, self._at)
        begin, shown = self._at, seen and not _hides(node.tag, attributes)
        self._line(node.tag)
        listing = listing or node.tag == "pre"
        if shown:
            self._text(node.text, listing=listing)
        for child in node:
            self.visit(child, seen=shown, listing=listing)
            if shown:
                self._text(child.tail, listing=listing)
        self._line(node.tag)
        if node.tag in HEADINGS and self._at > begin:
            self.headings.append((begin, self._at))
        if node.tag in SECTIONS and self.headings and self.headings[-1][0] >= begin:
            self.sections.add(begin)

    def _line(self, tag: str) -> None:
        if tag in LINES and (not self.lines or self.lines[-1] != self._at):
            self.lines.append(self._at)

    def _text(self, text: str | None, *, listing: bool) -> None:
        for number, line in enumerate((text or "").split("\n") if listing else [text or ""]):
            if number:
                self._line("br")
            found = letters(line)
            self.parts.append(found)
            self._at += len(found)


def _hides(tag: str, attributes: dict[str, str]) -> bool:
    marks = f"{attributes.get('class', '')} {attributes.get('id', '')}".split()
    return tag in UNSEEN or bool(UNSEEN_MARKS.intersection(marks))


def _texts(node: Any) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        if isinstance(child.tag, str) and child.tag not in UNSEEN:
            yield from _texts(child)
        yield child.tail or ""


def _parser() -> Any:
    return lxml.html.HTMLParser(encoding="utf-8", huge_tree=True)

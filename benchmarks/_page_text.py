"""A page read by Python's own HTML parser, to judge by it what linkstore read with another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
UNSEEN = {"script", "style", "template", "title", "nav", "footer"}
UNSEEN_MARKS = {"toc", "footer"}
"""Classes and ids of tables of contents and footers, which are no main content."""
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class PageText:
    """The words of a page in order, and where in them its anchors stand.

    Args:
        text: Letters and digits alone, in lower case, of all but tables of contents and footers.
        anchors: Where in the text each ``id`` or ``name`` stands; the first of each.
        headings: Begin and end of each heading in the text.
    """

    text: str = ""
    anchors: dict[str, int] = field(default_factory=dict)
    headings: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> PageText:
        parser = _Parser()
        parser.feed(_decoded(path.read_bytes()))
        parser.close()
        return cls("".join(parser.parts), parser.anchors, parser.headings)

    def after(self, anchor: str, length: int) -> tuple[str, str]:
        """What follows an anchor: the heading it stands on, if it does, and the text below."""
        at = self.anchors[anchor]
        begin, end = next((span for span in self.headings if span[0] <= at < span[1]), (at, at))
        return self.text[begin:end], self.text[end : end + length]


def letters(text: str) -> str:
    """A text as :class:`PageText` keeps it."""
    return "".join(filter(str.isalnum, text)).lower()


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.anchors: dict[str, int] = {}
        self.headings: list[tuple[int, int]] = []
        self._at = 0
        self._unseen: list[str] = []
        self._heading: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HEADINGS:
            self._heading = self._at
        if self._hides(tag, attrs):
            self._unseen.append(tag)
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.setdefault(value, self._at)

    def _hides(self, tag: str, attrs: list[tuple[str, str | None]]) -> bool:
        """Whether what is inside is no main content; within such an element, all of the same name count."""
        marks = {word for name, value in attrs if name in {"class", "id"} for word in (value or "").split()}
        return tag not in VOID and (
            tag in UNSEEN or bool(marks & UNSEEN_MARKS) or (bool(self._unseen) and tag == self._unseen[-1])
        )

    def handle_endtag(self, tag: str) -> None:
        if tag in HEADINGS and self._heading is not None:
            self.headings.append((self._heading, self._at))
            self._heading = None
        if self._unseen and tag == self._unseen[-1]:
            self._unseen.pop()

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            found = letters(data)
            self.parts.append(found)
            self._at += len(found)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")

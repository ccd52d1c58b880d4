"""Makes the titles of pages of a source distinct.

A title says too little if several pages of the source have it, as Doxygen calls each list of members
"Member List", or if it is only a number or a word such as "Index" or "Section 4.19". Such a page is called
by its title and its own name: that of its file or, if that is an index or says no more than the title, of
its folder, as in ``Member List (classDecoder-members)``. Where the names are the same too, as in two
versions of one manual, the title stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from typing import Final
from urllib.parse import unquote, urlsplit

from linkstore.extraction.texts import squeezed
from linkstore.ingest.html.pages import PageContent

HEAD: Final = 16 * 2**10
"""Bytes of a page in which its title is looked for, before it is read."""

_HTML_TITLE: Final = re.compile(r"<(title|h1)\b[^>]*+>(.{0,500}?)</\1", re.IGNORECASE | re.DOTALL)
_MARKDOWN_TITLE: Final = re.compile(r"^(?:title:|#(?!#))[ \t]*+(\S[^\n]{0,500})$", re.MULTILINE)
_TAGS: Final = re.compile(r"<[^<>]*+>")
_AROUND: Final = " \t\"'#¶§\U0001f517"
_SECTION: Final = "section|chapter|part|appendix|page|figure|table|unit|lesson|volume|book"
_BARE: Final = re.compile(
    rf"(?:(?:{_SECTION})\s+)?(?:\d+(?:[.-]\d+)*|[a-z](?:[.-]\d+)*)\.?|(?:{_SECTION})\s+[ivxlcdm]+\.?"
    r"|index|(?:table of )?contents|home(?: page)?|main page|readme|untitled(?: document)?|overview"
    r"|introduction",
    re.IGNORECASE,
)
_INDEX: Final = frozenset({"index", "readme", "default", "home"})


class Titles:
    """The titles of the pages of a source, as far as they are known before the pages are read.

    Args:
        heads: The URL of each page with the titles that :func:`titles_in` finds in it.
    """

    def __init__(self, heads: Iterable[tuple[str, frozenset[str]]] = ()) -> None:
        pages: Counter[str] = Counter()
        names: Counter[tuple[str, str]] = Counter()
        for url, titles in heads:
            name = page_name(url)
            pages.update(titles)
            names.update((title, name) for title in titles)
        self._shared = frozenset(title for title, count in pages.items() if count > 1)
        self._ambiguous = frozenset(pair for pair, count in names.items() if count > 1)

    def shared(self, titles: Iterable[str]) -> bool:
        """Say whether one of these is the title of several pages."""
        return not self._shared.isdisjoint(titles)

    def telling(self, title: str, url: str) -> str:
        """Return a page's title, with its name if the title says too little.

        Args:
            title: As it is written, not empty.
            url: Where the page lies, from the root of the source, or an absolute URL.
        """
        if title not in self._shared and not _BARE.fullmatch(title):
            return title
        name = page_name(url, title)
        return title if not name or (title, page_name(url)) in self._ambiguous else f"{title} ({name})"

    def told_apart(self, page: PageContent, url: str) -> PageContent:
        """Return a page with a title that tells it apart, also as its main heading."""
        title = self.telling(page.title, url) if page.title else ""
        if title == page.title:
            return page
        own = next((block for block in page.blocks if block.level and block.text == page.title), None)
        blocks = tuple(block._replace(text=title) if block is own else block for block in page.blocks)
        return replace(page, title=title, blocks=blocks)


def page_name(url: str, title: str = "") -> str:
    """Return the name of a page in its URL: its file without suffix, or its folder, empty if neither helps.

    Args:
        url: Its path or absolute URL.
        title: What the name should say more than.
    """
    path = unquote(urlsplit(url).path)
    parts = [part for part in path.split("/") if part]
    if parts and not path.endswith("/") and "." in parts[-1].lstrip("."):
        parts[-1] = parts[-1].rpartition(".")[0]
    names = (part for part in reversed(parts[-2:]) if part.casefold() not in {*_INDEX, title.casefold()})
    name = next(names, "")
    return name if name.isprintable() else ""


def titles_in(head: str, *, markdown: bool = False) -> frozenset[str]:
    """Return the possible titles of a page, from the beginning of its source.

    Args:
        head: HTML or Markdown.
        markdown: Which of them.
    """
    if markdown:
        found = _MARKDOWN_TITLE.search(head)
        written = [found[1]] if found else []
    else:
        written = [unescape(_TAGS.sub("", one[2])) for one in _HTML_TITLE.finditer(head)]
    return frozenset(filter(None, (squeezed(one).strip(_AROUND) for one in written)))

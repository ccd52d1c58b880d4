"""Chooses the titles of pages by what the other pages of their source are called.

A title says too little if several pages of the source have it, as Doxygen calls each list of members
"Member List", or if it is only a number or a word such as "Index" or "Section 4.19". Such a page is called
by its title and its own name: that of its file or, if that is an index or says no more than the title, of
its folder, as in ``Member List (classDecoder-members)``. Where pages of one title share names too, as in two
versions of one manual, it is the nearest name that they do not share: ``Tutorial (3.13)``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from html import unescape
from itertools import accumulate, chain
from typing import Final
from urllib.parse import unquote, urlsplit

from linkstore.core.text import STOP_WORDS, tokenize
from linkstore.extract.blocks import fold_whitespace
from linkstore.ingest.html.pages import PageContent
from linkstore.ingest.notes.frontmatter import find_front_title, split_front_matter
from linkstore.ingest.notes.markdown import find_title

TITLE_BYTES: Final = 16 * 2**10
"""Bytes of a page in which its title is looked for, before it is read."""
_HTML_TITLE: Final = re.compile(
    r"<(?:(title|h1)\b[^>]*+>(.{0,500}?)</\1|div class=\"title\">(.{0,500}?)</?div)",
    re.IGNORECASE | re.DOTALL,
)
_TAGS: Final = re.compile(r"<[^<>]*+>")
_AROUND: Final = " \t\"'#¶§\U0001f517"
_SECTION: Final = "section|chapter|part|appendix|page|figure|table|unit|lesson|volume|book"
_BARE: Final = re.compile(
    rf"(?:(?:{_SECTION})\s+)?(?:\d+(?:[.-]\d+)*|[a-z](?:[.-]\d+)*)\.?|(?:{_SECTION})\s+[ivxlcdm]+\.?"
    r"|index|(?:table of )?contents|home(?: page)?|main page|readme|untitled(?: document)?|overview"
    r"|introduction",
    re.IGNORECASE,
)
_SITE: Final = re.compile(r"(\s+[|\u2013\u2014-]\s+|:\s+|\s+(?=\([^()]*\)\Z))")
"""Stands between the name of a site and that of a page."""
_FIRST: Final = 3
"""Blocks of a page among which its first heading is that of the page."""
_FEW_PAGES: Final = 3
"""What no more pages say may not be the name of their site."""
_MOST_PARTS: Final = 1024
"""Parts of titles that are kept of a folder."""
_INDEX: Final = frozenset({"index", "readme", "default", "home"})


class SiteNames:
    """The names of a site and of its parts: what most pages of a folder say beside their own titles.

    A folder is known by a bounded number of parts of titles, of which those that one page alone has are
    forgotten first.
    """

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, int]] = {}
        """Folder → how many of its pages have a part of a title, in lower case; empty: how many there are."""

    def learn(self, url: str, titles: Iterable[str]) -> None:
        """Count the titles of one more page."""
        parts = {"", *(part for title in titles for part in _SITE.split(title.casefold())[::2])}
        for folder in _list_folders(url.rpartition("/")[0]):
            count = self._parts.setdefault(folder, {})
            for part in parts:
                count[part] = count.get(part, 0) + 1
            if len(count) > _MOST_PARTS:
                self._parts[folder] = {part: pages for part, pages in count.items() if pages > 1}

    def has(self, part: str, url: str) -> bool:
        """Say whether a part of the title of a page names a folder that it lies in."""
        part = part.casefold()
        counts = map(self._parts.get, _list_folders(url.rpartition("/")[0]))
        return bool(part) and any(
            count.get(part, 0) > max(_FEW_PAGES, count.get("", 0) / 2)
            for count in counts
            if count is not None
        )

    def remove(self, title: str, url: str) -> str:
        """Return a title without such names at its beginning and end, if that leaves a title."""
        parts = _SITE.split(title)
        if len(parts) == 1:
            return title
        while len(parts) > 1 and self.has(parts[-1], url):
            del parts[-2:]
        while len(parts) > 1 and self.has(parts[0], url):
            del parts[:2]
        left = "".join(parts)
        return title if self.has(left, url) else left

    def choose(self, page: PageContent, url: str) -> PageContent:
        """Return a page without such names in its title.

        If its heading is one of them, it is that of a banner, and what it says in ``<title>`` is its title.
        """
        named = self.remove(page.named, url)
        title = page.title
        if title == page.named or (named and self.has(title, url) and not self.has(named, url)):
            title = named
        return page if title == page.title else replace(page, title=title)


class PageTitles:
    """The titles of the pages of a source, as far as they are known before the pages are read.

    Args:
        heads: The URL of each page with the titles that :func:`find_titles` finds in it.
    """

    def __init__(self, heads: Iterable[tuple[str, frozenset[str]]] = ()) -> None:
        written = dict(heads)
        self._names_of_site = names = SiteNames()
        for url, titles in written.items():
            names.learn(url, titles)
        self._titles = {
            url: titles | {names.remove(title, url) for title in titles} or {get_page_name(url)}
            for url, titles in written.items()
        }
        count = Counter(chain.from_iterable(self._titles.values()))
        self._shared = frozenset(title for title, pages in count.items() if pages > 1)
        self._names = Counter(
            (title, name)
            for url, titles in self._titles.items()
            for title in titles & self._shared
            for name in set(_list_names(url, title))
        )
        """How many pages of a title have a name in their path."""

    def describe(self, url: str) -> str:
        """Return what of this the title of a page depends on, as a text for its digest."""
        titles = sorted(self._titles.get(url, ()))
        descriptions = [(title in self._shared, self.make_descriptive(title, url)) for title in titles]
        chosen = len(titles) > 1 and len(self._titles) > 1
        return f"{chosen}{descriptions}"

    def choose(self, page: PageContent, url: str) -> PageContent:
        """Return a page with its own title: its main heading, or its ``<title>``.

        ``<title>`` wins if it is this page's alone, and the heading is not, or has mostly other words. A
        title such as "Manual: Section 4.2" says nothing of a page whose first heading does. The names of the
        site and of its parts are left out.
        """
        named = self._names_of_site.remove(page.named, url)
        title = named if page.title == page.named else page.title
        if named and len(self._titles) > 1 and (named not in self._shared or title in self._shared):
            if title == named:
                first = next((block.text for block in page.blocks[:_FIRST] if block.level), "")
                title = first if first and _BARE.fullmatch(_SITE.split(named)[-1]) else title
            elif not _BARE.fullmatch(named):
                agree = _agree(title, named) and (title not in self._shared or named in self._shared)
                title = title if agree else named
        return page if title == page.title else replace(page, title=title)

    def make_descriptive(self, title: str, url: str) -> str:
        """Return a page's title, with its name if the title says too little.

        Args:
            title: As it is written, not empty.
            url: Where the page lies, from the root of the source, or an absolute URL.
        """
        if title in self._shared:
            names = _list_names(url, title)
            name = next((name for name in names if self._names[title, name] == 1), "/".join(reversed(names)))
        else:
            name = get_page_name(url, title) if _BARE.fullmatch(title) else ""
        return f"{title} ({name})" if name else title

    def disambiguate(self, page: PageContent, url: str) -> PageContent:
        """Return a page with a title that tells it apart, also as its main heading.

        A page without a title has the name of its file.
        """
        title = self.make_descriptive(page.title or get_page_name(url) or url, url)
        if title == page.title:
            return page
        own = next((block for block in page.blocks if block.level and block.text == page.title), None)
        blocks = tuple(block._replace(text=title) if block is own else block for block in page.blocks)
        return replace(page, title=title, blocks=blocks)


def _agree(title: str, named: str) -> bool:
    """Say whether two titles have more than half of the words of the shorter one in common."""
    words, others = ({word for word in tokenize(text) if word not in STOP_WORDS} for text in (title, named))
    return 2 * len(words & others) > min(len(words), len(others))


def get_page_name(url: str, title: str = "") -> str:
    """Return the name of a page in its URL: its file without suffix, or its folder, empty if neither helps.

    Args:
        url: Its path or absolute URL.
        title: What the name should say more than.
    """
    return next(iter(_list_names(url, title, 2)), "")


def _list_names(url: str, title: str, most: int | None = None) -> list[str]:
    """List the parts of a page's path that name it, file first, without its title and index names."""
    path = unquote(urlsplit(url).path).removesuffix(".gz")
    parts = [part for part in path.split("/") if part]
    if parts and not path.endswith("/") and "." in parts[-1].lstrip("."):
        parts[-1] = parts[-1].rpartition(".")[0]
    unsaying = {*_INDEX, title.casefold()}
    return [part for part in parts[::-1][:most] if part.casefold() not in unsaying and part.isprintable()]


@lru_cache
def _list_folders(own: str) -> list[str]:
    """Return the folders above a folder and itself, from the root, which is empty.

    The last comes again as ``folder/*``, which stands for the pages beside further folders.
    """
    folders = list(accumulate(own.split("/") if own else (), "{}/{}".format, initial=""))
    return [*folders, f"{folders[-1]}/*"]


def find_titles(head: str, *, markdown: bool = False) -> frozenset[str]:
    """Return the possible titles of a page, from the beginning of its source.

    Args:
        head: HTML or Markdown.
        markdown: Which of them.
    """
    if markdown:
        front, body = split_front_matter(head)
        written = [find_title(body, find_front_title(front))]
    else:
        written = [
            unescape(_TAGS.sub("", match[2] or match[3] or "")) for match in _HTML_TITLE.finditer(head)
        ]
    return frozenset(filter(None, (fold_whitespace(text).strip(_AROUND) for text in written)))

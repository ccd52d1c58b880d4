"""MediaWiki's rules for titles: the page that ``[[…]]`` names.

They follow ``MediaWikiTitleCodec`` and https://www.mediawiki.org/wiki/Help:Links: entities and
percent-encoding are decoded, underscores are spaces, the first letter is a capital where the namespace
says so, prefixes name namespaces or other wikis, and a leading colon makes a plain link of a category,
file or language link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from html import unescape
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from linkstore.ingest.wiki.anchors import anchor
from linkstore.ingest.wiki.interwiki import PLACE, InterwikiMap
from linkstore.ingest.wiki.siteinfo import CATEGORY, FILE, MAIN, MEDIA, SPECIAL, Namespace, SiteInfo
from linkstore.letters import readable_url
from linkstore.urls import quote_fragment, with_fragment

_CACHED: Final = 65_536
_LONGEST: Final = 255
_SAFE: Final = "/:!$&'()*+,;=@~"
_UNSEEN: Final = re.compile("[\u200e\u200f\u202a-\u202e]")
_ADDRESS: Final = re.compile(r"(?:https?:|ftp:)?//", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
# Forbidden characters; relative paths; ~~~, a signature; what still looks like an entity.
_NO_TITLE: Final = re.compile(
    r"[\x00-\x1f<>\[\]{|}\x7f\ufffd]|^\.{1,2}(?:/|$)|/\.{1,2}(?:/|$)|~~~|&(?:[A-Za-z]\w*|#\d+|#x[\da-f]+);"
)
_SUBPAGES: Final = frozenset({1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 15})
"""Namespaces with subpages by default, in which ``[[/Sub]]`` is one of the page's own."""


class Role(Enum):
    """The relation of a link to its page."""

    LINK = auto()
    CATEGORY = auto()
    FILE = auto()
    LANGUAGE = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class Target:
    """The target that a link names.

    Args:
        role: What the link is to its page: to follow, a category the page is in, a file shown here, the
            same article in another language, or nothing that is a page.
        href: The address, as in the wiki's HTML; empty for what is not a link.
        title: The title without namespace; for a category, its name.
    """

    role: Role
    href: str = ""
    title: str = ""


class Titles:
    """Names the pages of a wiki.

    Args:
        site: What the dump says of the wiki.
        interwiki: Further interwiki prefixes.
        base: The URL that titles are put behind, where it is not the one that the dump implies.
    """

    def __init__(self, site: SiteInfo, interwiki: Mapping[str, str], base: str | None) -> None:
        self._given = (site, interwiki, base)
        self._namespaces = site.named_namespaces()
        self._prefixes = site.prefixes()
        self._interwiki = InterwikiMap(site, interwiki)
        self._root = urlsplit(base).path if base else "/"
        self.resolve: Callable[[str], Target | None] = lru_cache(_CACHED)(self._resolve)
        """The page that the target of a link (before ``|``) names; None if it cannot name one."""

    def __reduce__(self) -> tuple[type[Titles], tuple[Any, ...]]:
        """Return the state for pickling, without caches, as it goes to the processes that read pages."""
        return type(self), self._given

    def path(self, title: str) -> str:
        """Return the URL path of a page from the wiki's root, in its own letters.

        The path has no colon, so that it has no scheme.
        """
        return readable_url(_quoted(title).replace(":", "%3A"))

    def at(self, page: str, namespace: int) -> Callable[[str], Target | None]:
        """Return a resolver of targets on a page. With subpages, ``[[/Sub]]`` names one of its own."""
        if namespace not in _SUBPAGES:
            return self.resolve

        def resolve(written: str) -> Target | None:
            if written.startswith("../"):
                return self.resolve(_above(page, written))
            return self.resolve(f":{page}/{written.strip('/ ')}" if written.startswith("/") else written)

        return resolve

    def _resolve(self, written: str) -> Target | None:
        text, _, section = _decoded(written).partition("#")
        title, fragment = _spaced(text), quote_fragment(anchor(section))
        if _ADDRESS.match(title):
            return None
        plain = title.startswith(":")
        if plain:
            title = title[1:].lstrip()
        if not title:
            return Target(Role.LINK, f"#{fragment}") if fragment and not plain else None
        return self._named(title, fragment, plain=plain)

    def _named(self, title: str, fragment: str, *, plain: bool) -> Target | None:
        prefix, colon, rest = title.partition(":")
        folded, rest = prefix.rstrip().casefold(), rest.lstrip()
        if colon and folded in self._prefixes:
            return self._page(self._prefixes[folded], rest, fragment, plain=plain)
        if colon and self._interwiki.is_own(folded):
            return self._named(rest, fragment, plain=True) if rest else None
        elsewhere = self._interwiki.get(folded) if colon else None
        if elsewhere is None:
            return self._page(MAIN, title, fragment, plain=plain)
        if elsewhere.is_language and not plain:
            return Target(Role.LANGUAGE)
        url = elsewhere.url.replace(PLACE, _quoted(rest))
        return Target(Role.LINK, with_fragment(url, fragment), rest)

    def _page(self, number: int, name: str, fragment: str, *, plain: bool) -> Target | None:
        if not name or _NO_TITLE.search(name) or len(name.encode()) > _LONGEST:
            return None
        namespace = self._namespaces.get(number) or Namespace(number=number, name=str(number))
        if namespace.first_letter:
            name = _capitalised(name)
        if number == SPECIAL:
            return Target(Role.NONE, title=name)
        if number == CATEGORY and not plain:
            return Target(Role.CATEGORY, title=name)
        if number in {FILE, MEDIA}:
            namespace = self._namespaces[FILE]
        full = f"{namespace.name}:{name}" if namespace.name else name
        role = Role.FILE if number == FILE and not plain else Role.LINK
        return Target(role, with_fragment(f"{self._root}{_quoted(full)}", fragment), name)


def _above(page: str, written: str) -> str:
    """Resolve ``../`` at the start of a link on a subpage, once for each page above the subpage."""
    while written.startswith("../") and "/" in page:
        page, written = page.rpartition("/")[0], written[3:]
    return f":{page}/{written.strip('/ ')}".rstrip("/")


def _decoded(written: str) -> str:
    if "&" in written:
        written = unescape(written)
    if "%" in written and _ESCAPED.search(written):
        written = unquote(written)
    return written if written.isascii() else normalize("NFC", _UNSEEN.sub("", written))


def _spaced(text: str) -> str:
    return " ".join(text.replace("_", " ").split())


def _capitalised(name: str) -> str:
    """Capitalise the first letter of a name. One whose capital is two letters, such as ß, stays."""
    first = name[0].upper()
    return first + name[1:] if len(first) == 1 else name


def _quoted(title: str) -> str:
    return quote(title.replace(" ", "_"), safe=_SAFE)

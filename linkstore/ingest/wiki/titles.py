"""MediaWiki's rules for titles, and prefixes of other wikis.

Dumps do not contain a wiki's interwiki table. This module knows the prefixes of Wikimedia's projects
(https://meta.wikimedia.org/wiki/Interwiki_map); settings add those of other wikis.

Titles follow ``MediaWikiTitleCodec`` and https://www.mediawiki.org/wiki/Help:Links: entities and
percent-encoding are decoded, underscores are spaces, the first letter is a capital where the namespace
says so, prefixes name namespaces or other wikis, and a leading colon makes a plain link of a category,
file or language link.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from linkstore.core.display import make_readable
from linkstore.core.urls import add_fragment, quote_fragment

MAIN: Final = 0
SPECIAL: Final = -1
MEDIA: Final = -2
FILE: Final = 6
CATEGORY: Final = 14

NAMES: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("mediawiki.toml").read_text("utf-8"))
"""What MediaWiki and Wikimedia's wikis call things."""
_ALIASES: Final[dict[str, dict[str, int]]] = NAMES["namespaces"]["aliases"]
_CANONICAL: Final = {number: name for name, number in NAMES["namespaces"].items() if name != "aliases"}
"""Names that every wiki understands, whatever its language."""
_EVERYWHERE: Final = {"image": FILE, "image talk": 7}
_WIKIPEDIA: Final = {"wp": 4, "wt": 5}
WIKIMEDIA: Final = frozenset(NAMES["interwiki"]["domains"].split())
"""Second-level domains of the Wikimedia wikis."""
PLACE: Final = "$1"
"""Stands in an interwiki URL for the title."""
_PROJECTS: Final[dict[str, list[str]]] = NAMES["interwiki"]["projects"]
"""Projects with a wiki for each language."""
_PLAIN: Final = 3
"""Shorter prefixes than this are known on Wikimedia's own wikis only."""
_FIXED: Final[dict[str, list[str]]] = NAMES["interwiki"]["fixed"]
_LANGUAGES: Final = frozenset(NAMES["interwiki"]["languages"].split())
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace of a wiki.

    Args:
        number: Its number; 0 is that of articles.
        name: Its local name; empty for articles.
        first_letter: Whether a title's first letter is a capital whatever its author writes.
    """

    number: int
    name: str
    first_letter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """The information about the wiki in a dump.

    Args:
        name: The wiki's name.
        database: Its short name, such as ``"enwiki"``.
        base: The URL of its main page.
        language: Its language code.
        first_letter: As for namespaces, for those that the dump does not list.
        namespaces: By number.
    """

    name: str = ""
    database: str = ""
    base: str = ""
    language: str = ""
    first_letter: bool = True
    namespaces: Mapping[int, Namespace] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The wiki's host name, empty if the dump does not say."""
        return self.base.partition("://")[2].partition("/")[0].lower()

    @property
    def is_wikimedia(self) -> bool:
        """Whether the wiki is one of Wikimedia's, with their interwiki prefixes."""
        return bool(WIKIMEDIA & set(self.host.split(".")[-2:-1]))

    @property
    def folder(self) -> str | None:
        """The URL that a page's title is put behind, None if the dump names no main page."""
        address, query, _ = self.base.partition("?")
        if "://" not in address:
            return None
        if query:  # index.php?title=Main_Page, which index.php/Main_Page is another address of
            return f"{address.rstrip('/')}/"
        return f"{address.rpartition('/')[0]}/" if self.host != address.partition("://")[2] else f"{address}/"

    def list_namespaces(self) -> dict[int, Namespace]:
        """Return all namespaces by number: those of the dump, and the usual ones of every wiki."""
        usual = {
            number: Namespace(number=number, name=name, first_letter=self.first_letter)
            for number, name in {MAIN: "", **_CANONICAL}.items()
        }
        return {**usual, **self.namespaces}

    def prefixes(self) -> dict[str, int]:
        """Return the numbers of namespaces by all names that links may use, folded."""
        numbers = {name.casefold(): number for number, name in _CANONICAL.items()} | _EVERYWHERE
        numbers |= _ALIASES.get(self.language.partition("-")[0], {})
        if ".wikipedia." in f".{self.host}":
            numbers |= _WIKIPEDIA
        return numbers | {
            namespace.name.casefold(): namespace.number
            for namespace in self.namespaces.values()
            if namespace.name
        }


class LinkRole(Enum):
    """The relation of a link to its page."""

    LINK = auto()
    CATEGORY = auto()
    FILE = auto()
    LANGUAGE = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """The target that a link names.

    Args:
        role: What the link is to its page: to follow, a category the page is in, a file shown here, the
            same article in another language, or nothing that is a page.
        href: The address, as in the wiki's HTML; empty for what is not a link.
        title: The title without namespace; for a category, its name.
    """

    role: LinkRole
    href: str = ""
    title: str = ""


class TitleResolver:
    """Names the pages of a wiki.

    Args:
        site: What the dump says of the wiki.
        interwiki: Further interwiki prefixes.
        base: The URL that titles are put behind, where it is not the one that the dump implies.
    """

    def __init__(self, site: SiteInfo, interwiki: Mapping[str, str], base: str | None) -> None:
        self._given = (site, interwiki, base)
        self._namespaces = site.list_namespaces()
        self._prefixes = site.prefixes()
        parts = site.host.split(".")
        project = parts[-2] if site.is_wikimedia and parts[-2] in _PROJECTS else ""
        language = site.language.partition("-")[0]
        own = parts[0] if project and parts[0] in _LANGUAGES else language
        self._own = own if project else None
        """The prefix that names the wiki itself."""
        addresses = _list_wikimedia(own or "en", all_prefixes=site.is_wikimedia)
        addresses |= {prefix.casefold(): url for prefix, url in interwiki.items()}
        self._languages = _LANGUAGES - addresses.keys() if project else frozenset()
        """Prefixes of links that, without a leading colon, name the same article in another language."""
        self._interwiki = addresses | {
            prefix: f"https://{prefix}.{project}.org/wiki/{PLACE}" for prefix in self._languages
        }
        self._root = urlsplit(base).path if base else "/"
        self.resolve: Callable[[str], LinkTarget | None] = lru_cache(_CACHED)(self._resolve)
        """The page that the target of a link (before ``|``) names; None if it cannot name one."""

    def __reduce__(self) -> tuple[type[TitleResolver], tuple[Any, ...]]:
        """Return the state for pickling, without caches, as it goes to the processes that read pages."""
        return type(self), self._given

    def path(self, title: str) -> str:
        """Return the URL path of a page from the wiki's root, in its own letters.

        The path has no colon, so that it has no scheme.
        """
        return make_readable(_quote_title(title).replace(":", "%3A"))

    def at(self, page: str, namespace: int) -> Callable[[str], LinkTarget | None]:
        """Return a resolver of targets on a page. With subpages, ``[[/Sub]]`` names one of its own."""
        if namespace not in _SUBPAGES:
            return self.resolve

        def resolve(written: str) -> LinkTarget | None:
            if written.startswith("../"):
                return self.resolve(_resolve_above(page, written))
            return self.resolve(f":{page}/{written.strip('/ ')}" if written.startswith("/") else written)

        return resolve

    def _resolve(self, written: str) -> LinkTarget | None:
        text, _, section = _decode_title(written).partition("#")
        title, fragment = _fold_spaces(text), quote_fragment(make_anchor(section))
        if _ADDRESS.match(title):
            return None
        plain = title.startswith(":")
        if plain:
            title = title[1:].lstrip()
        if not title:
            return LinkTarget(LinkRole.LINK, f"#{fragment}") if fragment and not plain else None
        return self._resolve_name(title, fragment, plain=plain)

    def _resolve_name(self, title: str, fragment: str, *, plain: bool) -> LinkTarget | None:
        prefix, colon, rest = title.partition(":")
        folded, rest = prefix.rstrip().casefold(), rest.lstrip()
        if colon and folded in self._prefixes:
            return self._page(self._prefixes[folded], rest, fragment, plain=plain)
        if colon and folded == self._own:
            return self._resolve_name(rest, fragment, plain=True) if rest else None
        if not colon or folded not in self._interwiki:
            return self._page(MAIN, title, fragment, plain=plain)
        if folded in self._languages and not plain:
            return LinkTarget(LinkRole.LANGUAGE)
        url = self._interwiki[folded].replace(PLACE, _quote_title(rest))
        return LinkTarget(LinkRole.LINK, add_fragment(url, fragment), rest)

    def _page(self, number: int, name: str, fragment: str, *, plain: bool) -> LinkTarget | None:
        if not name or _NO_TITLE.search(name) or len(name.encode()) > _LONGEST:
            return None
        namespace = self._namespaces.get(number) or Namespace(number=number, name=str(number))
        if namespace.first_letter:
            name = _capitalise(name)
        if number == SPECIAL:
            return LinkTarget(LinkRole.NONE, title=name)
        if number == CATEGORY and not plain:
            return LinkTarget(LinkRole.CATEGORY, title=name)
        if number in {FILE, MEDIA}:
            namespace = self._namespaces[FILE]
        full = f"{namespace.name}:{name}" if namespace.name else name
        role = LinkRole.FILE if number == FILE and not plain else LinkRole.LINK
        return LinkTarget(role, add_fragment(f"{self._root}{_quote_title(full)}", fragment), name)


def _list_wikimedia(language: str, *, all_prefixes: bool) -> dict[str, str]:
    """Return the addresses of Wikimedia's wikis by prefix, also by short ones on its own wikis."""
    addresses = {prefix: url for url, prefixes in _FIXED.items() for prefix in prefixes}
    for project, prefixes in _PROJECTS.items():
        addresses |= dict.fromkeys(prefixes, f"https://{language}.{project}.org/wiki/{PLACE}")
    return {prefix: url for prefix, url in addresses.items() if all_prefixes or len(prefix) >= _PLAIN}


def _resolve_above(page: str, written: str) -> str:
    """Resolve ``../`` at the start of a link on a subpage, once for each page above the subpage."""
    while written.startswith("../") and "/" in page:
        page, written = page.rpartition("/")[0], written[3:]
    return f":{page}/{written.strip('/ ')}".rstrip("/")


def _decode_title(written: str) -> str:
    if "&" in written:
        written = unescape(written)
    if "%" in written and _ESCAPED.search(written):
        written = unquote(written)
    return written if written.isascii() else normalize("NFC", _UNSEEN.sub("", written))


def _fold_spaces(text: str) -> str:
    return " ".join(text.replace("_", " ").split())


def _capitalise(name: str) -> str:
    """Capitalise the first letter of a name. One whose capital is two letters, such as ß, stays."""
    first = name[0].upper()
    return first + name[1:] if len(first) == 1 else name


def _quote_title(title: str) -> str:
    return quote(title.replace(" ", "_"), safe=_SAFE)


def split_names(names: str) -> list[str]:
    """Return the names in a list of words, in which ``_`` stands for a space."""
    return [name.replace("_", " ") for name in names.split()]


def make_anchor(text: str) -> str:
    """Return the anchor of a heading with this text."""
    return "_".join(text.replace("_", " ").split())

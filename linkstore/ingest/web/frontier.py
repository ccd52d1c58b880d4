"""The URLs of a site still to be requested, and the scope of a crawl.

What one run records about a page for the next one is the page's outline in the store.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
import xxhash

from linkstore.core.urls import Site, drop_tracking, is_internal_tag, split_tag
from linkstore.ingest.html.pages import PageContent
from linkstore.ingest.settings import hash_values
from linkstore.ingest.source import Partition
from linkstore.ingest.web.targets import WebSettings

_LISTS: Final = ("moved", "aliases", "titles", "children")
_LONGEST_VALUE: Final = 1024
_LONGEST_TITLE: Final = 256
_MOST_CHILDREN: Final = 10_000

MOST_NAMES: Final = 64
"""Further URLs of one page that become its links; a site can make up any number of them."""
_FILES: Final = re.compile(
    r"\.(?:7z|apk|avi|avif|bmp|bz2|deb|dmg|docx?|eot|epub|exe|flac|gif|gz|ico|iso|jar|jpe?g|m4[av]|mkv|mov"
    r"|mp[34]|mpe?g|msi|od[pst]|og[gv]|otf|pdf|pkg|png|pptx?|rar|rpm|svg|tar|tgz|tiff?|ttf|wasm|wav|web[mp]|whl"
    r"|wm[av]|woff2?|xlsx?|xz|zip|zst)",
    re.IGNORECASE,
)
"""Suffixes of files that are certainly not pages; the media type tells the others."""
_NO_PAGES_IN: Final = frozenset({"_static", "_sources", "_images", "_downloads"})
_NO_PAGES_AT_ROOT: Final = re.compile(r"/(?:search|genindex(?:-[^/]*)?)(?:\.html?)?")
"""Sphinx's search form and its index of everything, which are left out of folders too."""
_CACHED: Final = 65_536
_KEPT_IN_PATTERNS: Final = "%/:=&?~+!$,;'@()*[]"
_MOST: Final = 500_000
_LONGEST_URL: Final = 2048
"""Characters of a URL, as in sitemaps; together with their number, what a hostile site can make us hold."""
_SPELLINGS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """The record of a stored page.

    Args:
        how: Hash of the settings by which it was read.
        scope: Hash of the settings that decided which pages were found.
        content: Hash of what the page said, and of ``how``.
        text: Hash of its text alone, by which copies are known.
        etag: By which the server tells whether it changed; may be empty.
        modified: The same, as a date.
        depth: How many links it is from a start page.
        moved: URLs that led to it: redirects, and copies that name it as their canonical page.
        aliases: Further URLs that the page gives itself: its canonical one, where nothing else is.
        titles: What it calls itself, by which the names of branches of the site are known.
        children: URLs that were found on this page first. Each URL of a site stands in one memory, so
            that a run that was interrupted is gone on with without asking for this page again.
    """

    how: str = ""
    scope: str = ""
    content: str = ""
    text: str = ""
    etag: str = ""
    modified: str = ""
    depth: int = 0
    moved: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    children: tuple[str, ...] = ()

    @property
    def validators(self) -> dict[str, str]:
        """The headers of a request for the page only if it has changed (RFC 9110, section 13.1)."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in headers.items() if value}

    def to_text(self) -> str:
        """Return the record as the store keeps it."""
        return orjson.dumps(asdict(self)).decode()


def recall_page(outline: str) -> PageRecord | None:
    """Return the record in an outline, or None if it was not written by this version."""
    try:
        fields: Any = orjson.loads(outline)
        return PageRecord(**{**fields, **{name: tuple(fields[name]) for name in _LISTS}})
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def update_record(record: PageRecord, found: PageContent, headers: Mapping[str, str]) -> PageRecord:
    """Return a record with what an answer says, whatever it said of the page before.

    Args:
        record: How and where the page was found, and what else leads there.
        found: What it says.
        headers: Of the answer.
    """
    return replace(
        record,
        content=hash_values(record.how, record.moved, record.aliases, found),
        text=hash_page_text(found),
        etag=_get_validator(headers, "etag"),
        modified=_get_validator(headers, "last-modified"),
        titles=list_titles(found),
        children=record.children[:_MOST_CHILDREN],
    )


def list_titles(found: PageContent) -> tuple[str, ...]:
    """Return what a page calls itself, in its main heading and in ``<title>``."""
    return tuple(dict.fromkeys(title[:_LONGEST_TITLE] for title in (found.title, found.named) if title))


def hash_page_text(found: PageContent) -> str:
    """Return the hash of a page's text."""
    return xxhash.xxh3_64_hexdigest("\n".join(block.text for block in found.blocks).encode(errors="replace"))


def _get_validator(headers: Mapping[str, str], name: str) -> str:
    """Return a validator that can be sent back, empty if there is none."""
    value = headers.get(name, "")
    return value if len(value) <= _LONGEST_VALUE and value.isascii() and value.isprintable() else ""


class CrawlScope:
    """Says which URLs are crawled.

    Args:
        site: Names pages.
        roots: The folders that the site consists of, as absolute URLs.
        start: Belongs to it in any case.
        settings: Says what else belongs to it, and what does not.
        partition: Has the pages that are crawled; None: all do.
    """

    def __init__(
        self,
        site: Site,
        roots: Sequence[str],
        start: str,
        settings: WebSettings,
        partition: Partition | None = None,
    ) -> None:
        self._site = site
        self._roots = Site(bases=tuple(roots))
        self._hosts = frozenset(urlsplit(root).netloc for root in roots)
        self._start = self._name(start)
        self._found = lru_cache(_CACHED)(self._key)
        self._deny = _compile_any(settings.deny)
        self._allow = _compile_any(settings.allow) if settings.allow else None
        self._partition = partition

    def key(self, url: str) -> str | None:
        """Return the key of a page within the site: its tag without fragment, or None if it is not crawled.

        Args:
            url: As it would be asked.
        """
        key = self._found(url)
        return key if key is None or self._partition is None or self._partition.has(key) else None

    def _key(self, url: str) -> str | None:
        key = self._name(url)
        if key is None or key == self._start:
            return key
        parts = urlsplit(url)
        below = self._roots.tag(url) or ""
        if not _may_be_page(parts.path, below):
            return None
        local = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        names = (url, local) if parts.netloc in self._hosts else (url,)
        if any(self._deny.match(name) for name in (url, local)):
            return None
        if self._allow is not None:
            return key if any(self._allow.match(name) for name in names) else None
        return key if is_internal_tag(below) else None

    def _name(self, url: str) -> str | None:
        tag = self._site.page_tag(url)
        return None if tag is None else split_tag(tag)[0]


def find_site_roots(start: str, answered: str) -> tuple[str, ...]:
    """Return the folders that make up a site, by its start page.

    The folder of the start page is one of them.

    Args:
        start: The URL that was given. It counts as a folder itself if it redirects to below.
        answered: The URL that answered. It makes a folder of its own only outside the first one.
    """
    is_folder = start.endswith("/") or answered.startswith(f"{start}/")
    folder = f"{start.rstrip('/')}/" if is_folder else _get_folder(start)
    inside = is_internal_tag(Site(bases=(folder,)).tag(answered) or "")
    return (folder,) if inside else (_get_folder(answered), folder)


def _get_folder(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"


def _may_be_page(path: str, below: str) -> bool:
    if _FILES.fullmatch(PurePosixPath(path).suffix) or _NO_PAGES_AT_ROOT.fullmatch(below):
        return False
    return not _NO_PAGES_IN.intersection(path.split("/"))


def _compile_any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern that matches if any of these does, and nothing if there are none."""
    return re.compile("|".join(map(_convert_pattern, patterns)) or r"(?!)")


def _convert_pattern(pattern: str) -> str:
    body = quote(pattern.removesuffix("$"), safe=_KEPT_IN_PATTERNS)
    end = r"\Z" if pattern.endswith("$") else ""
    return ".*".join(re.escape(part) for part in body.split("*")) + end


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierEntry:
    """A URL that may lead to a page.

    Args:
        url: As it is asked.
        key: What it is known by.
        depth: How many links it is from a start page.
        via: The URL of the page it was found on; empty for a start page.
    """

    url: str
    key: str
    depth: int
    via: str = ""


class Frontier:
    """Gives each URL once: first URLs of no stored page, then URLs to be asked for changes.

    Args:
        scope: Which URLs belong to the crawl.
        known: The URL of each stored page, and what is recorded of it, by key; None: it is to be read anew.
        max_depth: How many links from a start page a URL may be.
    """

    def __init__(
        self, scope: CrawlScope, known: Mapping[str, tuple[str, PageRecord | None]], *, max_depth: int | None
    ) -> None:
        self._scope = scope
        self._max_depth = max_depth
        self._fresh: deque[FrontierEntry] = deque()
        self._recheck: deque[FrontierEntry] = deque()
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._claims: dict[str, str] = {}
        self.left_out = 0
        """URLs that found no room."""
        recorded = [(key, url, record) for key, (url, record) in known.items() if record is not None]
        for key, url, record in recorded:
            if not self._too_deep(record.depth):
                self._spellings[key] = (url,)
                self._recheck.append(FrontierEntry(url=url, key=key, depth=record.depth))
        for page, url, record in recorded:
            for child in record.children:
                if (child_key := self.add(child, depth=record.depth + 1, via=url)) is not None:
                    self._claims.setdefault(child_key, page)
            for redirect in record.moved:
                self.add(redirect, depth=record.depth)
        for key, (url, unrecorded) in known.items():
            if unrecorded is None:  # it is asked last, unless a link leads there first
                self._recheck.append(FrontierEntry(url=url, key=key, depth=max_depth or 0))

    def __contains__(self, key: str) -> bool:
        return key in self._spellings

    def list_waiting(self) -> Iterator[FrontierEntry]:
        """Yield the URLs that were not taken."""
        yield from self._fresh
        yield from self._recheck

    def add(self, url: str, *, depth: int = 0, via: str = "") -> str | None:
        """Add a URL, if it belongs to the crawl, and return its key if it does."""
        url = drop_tracking(url)
        key = self._scope.key(url)
        if key is None or self._too_deep(depth):
            return None
        written = self._spellings.get(key)
        if written is None:
            if len(self._spellings) >= _MOST or len(url) > _LONGEST_URL:
                self.left_out += 1
                return None
            self._spellings[key] = (url,)
            self._fresh.append(FrontierEntry(url=url, key=key, depth=depth, via=via))
        elif url not in written and len(written) < _SPELLINGS and len(url) <= _LONGEST_URL:
            self._spellings[key] = (*written, url)
        return key

    def take(self, room: int) -> FrontierEntry | None:
        """Return the next URL, or None if there is none, or no room for more pages.

        Args:
            room: How many pages may still be indexed. Those that are stored come first in that, though
                they are asked last.
        """
        if self._fresh and len(self._recheck) < room:
            return self._fresh.popleft()
        if self._recheck and room > 0:
            return self._recheck.popleft()
        return None

    def other_spelling(self, candidate: FrontierEntry) -> FrontierEntry | None:
        """Return the same page by the next URL that was seen for it, such as ``/a/`` for ``/a``."""
        written = self._spellings.get(candidate.key, ())
        after = written[written.index(candidate.url) + 1 :] if candidate.url in written else ()
        return replace(candidate, url=after[0]) if after else None

    def claim(self, page: str, urls: Iterable[str]) -> tuple[str, ...]:
        """Return the URLs found on a page that no other page has claimed.

        Args:
            page: The key of the page.
            urls: As they are asked.
        """
        mine: dict[str, str] = {}
        for key in filter(None, map(self._scope.key, urls)):
            if key in self._spellings and self._claims.setdefault(key, page) == page:
                mine[key] = self._spellings[key][0]
        return tuple(mine.values())

    def _too_deep(self, depth: int) -> bool:
        return self._max_depth is not None and depth > self._max_depth

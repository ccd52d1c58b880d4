"""A MediaWiki XML dump as a source of pages.

The dump is read twice: once for its redirects, which go into a temporary table on disk, and once for its
pages. So whatever the size of the wiki, the source needs the memory of one page and some caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import xxhash

from linkstore.arguments import given, path_of, require
from linkstore.extraction import LinkExtractor
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
from linkstore.ingest.sink import PageStore
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.summary import Progress, Summary
from linkstore.ingest.wiki.dump import DumpCutShortError, DumpPage, read_pages, read_siteinfo
from linkstore.ingest.wiki.reading import ArticleReader
from linkstore.ingest.wiki.redirects import Alias, Redirects, target_of
from linkstore.ingest.wiki.references import EXTRACTOR
from linkstore.ingest.wiki.siteinfo import MAIN
from linkstore.ingest.wiki.titles import Titles
from linkstore.urls import DEFAULT_POLICY, Site, UrlPolicy

READER_VERSION: Final = 2
"""Raised whenever the same wikitext would be read otherwise, so that all pages are read again."""

_MARKUP: Final = "wikitext"


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiSettings:
    """How a dump is read; a change makes the next run read all pages again.

    Args:
        namespaces: Numbers of the namespaces whose pages are indexed; default articles only.
        base: The URL that titles are put behind; None (default) tells it from the dump.
        interwiki: Addresses by interwiki prefix, with ``$1`` for the title, such as ``{"docs":
            "https://docs.org/$1"}``; those of Wikimedia's projects are known.
        policy: For URLs that leave the wiki.
        limits: How long chunks are.
        longest: A page with more characters is skipped; default 4 Mi, twice what MediaWiki allows.
    """

    namespaces: tuple[int, ...] = (MAIN,)
    base: str | None = None
    interwiki: Mapping[str, str] = field(default_factory=dict)
    policy: UrlPolicy = DEFAULT_POLICY
    limits: ChunkLimits = DEFAULT_LIMITS
    longest: int = 4 * 2**20


class WikiSource:
    """The articles of a dump, in its order.

    Args:
        path: The dump, ``.xml`` or ``.xml.bz2``.
        settings: How it is read.
        prefix: Path below which the wiki is stored, next to other sources, such as ``"en"``.
        cite: Whether to link to the works that references cite.

    Raises:
        SourceNotFoundError: If there is no such dump.
        LinkError: If the base is not an absolute URL, or the prefix is not a path.
        ExtractionError: If works are to be cited and no extractor of citations is installed.
    """

    def __init__(
        self,
        path: str | Path,
        settings: WikiSettings | None = None,
        *,
        prefix: str = "",
        cite: bool = True,
    ) -> None:
        self._path = path_of("path", path)
        require(WikiSettings, "a WikiSettings", **given(settings=settings))
        self._settings = settings = settings or WikiSettings()
        info = read_siteinfo(self._path)
        base = settings.base or info.folder
        self._site = Site(bases=(base,) if base else (), policy=settings.policy, prefix=prefix)
        self._titles = Titles(info, settings.interwiki, base)
        self._reader = ArticleReader(self._site, self._titles, settings.limits, cite=cite)
        kept = (READER_VERSION, settings.limits, sorted(settings.interwiki.items()), cite)
        self._salt = xxhash.xxh3_128(repr((kept, info)).encode(errors="replace")).hexdigest()
        self._count = 0
        self._redirects: Redirects | None = None

    @property
    def name(self) -> str:
        """The dump's absolute path."""
        return self._path.resolve().as_posix()

    @property
    def site(self) -> Site:
        """The wiki as a site, whose base is the URL before its titles."""
        return self._site

    def __len__(self) -> int:
        """Return the number of pages, which takes the first reading of the dump."""
        self._surveyed()
        return self._count

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages in the order of the dump. Wikitext is parsed only when a page is read."""
        redirects = self._surveyed()
        try:
            for page in read_pages(self._path, limit=self._settings.longest):
                if self._is_offered(page):
                    yield self._offered(page, redirects.aliases(page.title))
        except DumpCutShortError as error:
            yield BadInput(name=self._path.name, reason=str(error), hides="")
        finally:
            redirects.close()
            self._redirects = None

    def _surveyed(self) -> Redirects:
        """Return the redirects, read at most once for each run."""
        if self._redirects is None:
            self._count = 0
            self._redirects = Redirects(self._found_redirects())
        return self._redirects

    def _found_redirects(self) -> Iterator[tuple[str, str, str]]:
        # If the dump ends early, the second reading finds it too, and reports it.
        with suppress(DumpCutShortError):
            for page in read_pages(self._path, limit=self._settings.longest, only_redirects=True):
                if page.redirect is None:
                    self._count += self._is_offered(page)
                elif page.namespace in self._settings.namespaces:
                    target, section = target_of(page.text)
                    yield page.title, page.redirect or target, section

    def _is_offered(self, page: DumpPage) -> bool:
        return page.redirect is None and bool(page.title) and page.namespace in self._settings.namespaces

    def _offered(self, page: DumpPage, aliases: tuple[Alias, ...]) -> SourcePage | BadInput:
        url = self._titles.path(page.title)
        if page.model != _MARKUP:
            return BadInput(name=url, reason=f"it is {page.model}, not {_MARKUP}")
        if page.oversized:
            longest = self._settings.longest
            return BadInput(name=url, reason=f"it has more than the {longest:,} characters allowed")
        digest = xxhash.xxh3_128(f"{self._salt}{page.title}\0{aliases}\0{page.text}".encode(errors="replace"))
        read = partial(self._reader.chunks, url, page, aliases)
        return SourcePage(url=url, digest=digest.hexdigest(), read=read)


def index_wiki(
    store: PageStore,
    path: str | Path,
    *,
    source: str | None = None,
    prefix: str = "",
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    settings: WikiSettings | None = None,
    namespaces: Sequence[int] | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    prune: bool = False,
    jobs: int | None = None,
) -> Summary:
    """Index the pages of a MediaWiki XML dump: see :func:`~linkstore.ingest.index_source`.

    Links are of kind ``hyperlink``, categories of kind ``category``. Redirects are further incoming links
    of their page, and ``metadata["aliases"]`` names them.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        path: The dump, ``.xml`` or ``.xml.bz2``.
        source: Names the wiki within the store, default the dump's absolute path. Give the same name to
            the next dump of the wiki, and only what changed is indexed.
        prefix: Path below which the wiki is stored, next to other sources, such as ``"en"``.
        links: Names of link extractors, or extractors. With ``"citation"`` also footnotes are read.
        settings: How the dump is read.
        namespaces: Numbers of the namespaces to index, in place of those of the settings.
        progress: Called after each page.
        dry_run: Return what would be done, and write nothing.
        prune: Remove missing pages even if they are more than half of those stored.
        jobs: How many processes read. See :func:`~linkstore.ingest.index_source`.

    Raises:
        SourceNotFoundError: If there is no such dump.
        NothingIndexedError: If it has no articles, and none are stored.
        RemovalRefusedError: If more than half of the stored articles are gone.
        ExtractionError: If an extractor is not installed, or cannot be used here.
        LinkError: If the base is not an absolute URL, or the prefix is not a path.
    """
    chosen = settings or WikiSettings()
    if namespaces is not None:
        chosen = replace(chosen, namespaces=tuple(namespaces))
    wiki = WikiSource(path, chosen, prefix=prefix, cite=EXTRACTOR in links)
    return index_source(
        store, wiki, name=source, links=links, progress=progress, dry_run=dry_run, prune=prune, jobs=jobs
    )

"""A MediaWiki XML dump as a source of pages.

The dump is read twice: once for its redirects, which go into a temporary table on disk, and once for its
pages. So whatever the size of the wiki, the source needs the memory of one page and some caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import xxhash

from linkstore.extraction import Chunk, LinkExtractor, Page
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits, answering, make_chunks
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
from linkstore.ingest.sink import PageStore
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.summary import Progress, Summary
from linkstore.ingest.wiki.article import Article, read_article
from linkstore.ingest.wiki.dump import DumpCutShortError, DumpPage, read_pages, read_siteinfo
from linkstore.ingest.wiki.redirects import Alias, Redirects, target_of
from linkstore.ingest.wiki.references import EXTRACTOR, References
from linkstore.ingest.wiki.siteinfo import CATEGORY, MAIN
from linkstore.ingest.wiki.titles import Titles
from linkstore.links import Link
from linkstore.urls import DEFAULT_POLICY, Site, UrlPolicy, quote_fragment

READER_VERSION: Final = 2
"""Raised whenever the same wikitext would be read otherwise, so that all pages are read again."""

WITH_SECTIONS: Final = 16
"""Of so many redirects to a page, by title, ``[[Redirect#Section]]`` leads to the section too."""
NAMED: Final = 64
"""So many redirects of a page are named in the metadata of its documents."""

HYPERLINK: Final = "hyperlink"
CATEGORY_KIND: Final = "category"
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
        prefix: Where the wiki lies beside others in the store, such as ``"en"``.
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
        self._path = Path(path)
        self._settings = settings = settings or WikiSettings()
        info = read_siteinfo(self._path)
        base = settings.base or info.folder
        self._site = Site(bases=(base,) if base else (), policy=settings.policy, prefix=prefix)
        self._titles = Titles(info, settings.interwiki, base)
        self._references = References(self._titles.resolve, cite=cite)
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
        """How many pages there are; takes the first reading of the dump."""
        self._surveyed()
        return self._count

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """The pages in the order of the dump; wikitext is parsed only when a page is read."""
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
        """The redirects, read at most once for each run."""
        if self._redirects is None:
            self._count = 0
            self._redirects = Redirects(self._found_redirects())
        return self._redirects

    def _found_redirects(self) -> Iterator[tuple[str, str, str]]:
        # Where the dump ends early, it does so for the second reading too, which says so.
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
        return SourcePage(url=url, digest=digest.hexdigest(), read=partial(self._chunks, url, page, aliases))

    def _chunks(self, url: str, page: DumpPage, aliases: tuple[Alias, ...]) -> list[Chunk]:
        article = read_article(
            page.text, title=page.title, resolve=self._titles.at(page.title, page.namespace)
        )
        if not article.blocks:
            raise UnreadablePageError("it has no text")
        names = [alias.title for alias in aliases if not alias.section]
        described = Page(
            url=url,
            title=page.title,
            aliases=tuple(map(self._titles.path, names[:WITH_SECTIONS])),
            metadata={"aliases": [alias.title for alias in aliases[:NAMED]]} if aliases else {},
        )
        chunks = make_chunks(described, article.blocks, self._settings.limits)
        chunks = self._references.resolved(chunks, article)
        links = (*chunks[0].links, *self._categories(page, article), *self._incoming(names[WITH_SECTIONS:]))
        chunks[0] = replace(chunks[0], links=links)
        return answering(chunks, {HYPERLINK: self._sections(aliases)})

    def _categories(self, page: DumpPage, article: Article) -> Iterator[Link]:
        """A page is in its categories; the page of a category is in the category itself."""
        if page.namespace == CATEGORY:
            yield Link.bidir(kind=CATEGORY_KIND, tag=page.title.partition(":")[2])
        for name in article.categories:
            yield Link.bidir(kind=CATEGORY_KIND, tag=name)

    def _incoming(self, titles: Iterable[str]) -> Iterator[Link]:
        """Of redirects to the page alone."""
        for title in titles:
            for tag in self._tags(title):
                yield Link.incoming(kind=HYPERLINK, tag=tag)

    def _sections(self, aliases: Iterable[Alias]) -> dict[str, list[str]]:
        """The tags of redirects that lead to a section, by its fragment."""
        found: dict[str, list[str]] = {}
        for alias in aliases:
            if alias.section:
                found.setdefault(quote_fragment(alias.section), []).extend(self._tags(alias.title))
        return found

    def _tags(self, title: str) -> tuple[str, ...]:
        return self._site.page_tags(self._titles.path(title))


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
) -> Summary:
    """Index the pages of a MediaWiki XML dump: see :func:`~linkstore.ingest.index_source`.

    Links are of kind ``hyperlink``, categories of kind ``category``. Redirects are further incoming links
    of their page, and ``metadata["aliases"]`` names them.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        path: The dump, ``.xml`` or ``.xml.bz2``.
        source: Names the wiki within the store; default the dump's absolute path. Give the same name to
            the next dump of the wiki, and only what changed is indexed.
        prefix: Where the wiki lies beside others in the store, such as ``"en"``.
        links: Names of link extractors, or extractors; with ``"citation"`` also footnotes are read.
        settings: How the dump is read.
        namespaces: Numbers of the namespaces to index, in place of those of the settings.
        progress: Called after each page.
        dry_run: Say what would be done, and write nothing.
        prune: Remove what is gone, even if that is more than half of what is stored.

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
        store, wiki, name=source, links=links, progress=progress, dry_run=dry_run, prune=prune
    )

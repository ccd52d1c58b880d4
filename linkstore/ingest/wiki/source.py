"""A MediaWiki XML dump as a source of pages, each with its blocks, categories and references.

The dump is read twice: once for its redirects, which go into a temporary table on disk, and once for its
pages. So whatever the size of the wiki, the source needs the memory of one page and some caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Final

import xxhash
from langchain_core.documents import Document

from linkstore.core.arguments import as_path, require_list
from linkstore.core.links import Link, merge_links
from linkstore.core.urls import DEFAULT_POLICY, Site, UrlPolicy, quote_fragment
from linkstore.extract.blocks import Block
from linkstore.extract.protocol import Chunk, LinkExtractor, Page, load_extractor
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits, add_incoming_links, make_chunks
from linkstore.ingest.files import name_path
from linkstore.ingest.settings import hash_values
from linkstore.ingest.source import BadInput, EmptyPageError, Partition, SourcePage
from linkstore.ingest.wiki.dump import (
    Alias,
    DumpCutShortError,
    DumpPage,
    RedirectTable,
    Section,
    find_redirect_target,
    find_section,
    read_pages,
    read_siteinfo,
)
from linkstore.ingest.wiki.layout import BREAK, REFERENCE, Article, lay_out, render_text, tidy
from linkstore.ingest.wiki.scanner import Scanner
from linkstore.ingest.wiki.titles import CATEGORY, MAIN, LinkTarget, TitleResolver

READER_VERSION: Final = 1
"""Raised whenever the same wikitext would be read otherwise, so that all pages are read again."""
CITATION_EXTRACTOR: Final = "citation"
MOST_WITH_SECTIONS: Final = 16
"""Number of redirects to a page, by title, for which ``[[Redirect#Section]]`` leads to the section too."""
MOST_NAMED: Final = 64
"""Maximum number of redirects in the metadata of a page's documents."""

HYPERLINK: Final = "hyperlink"
CATEGORY_KIND: Final = "category"
_MARKUP: Final = "wikitext"

Resolve = Callable[[str], LinkTarget | None]


def read_article(text: str, *, title: str, resolve: Resolve) -> Article:
    """Read the wikitext of a page. Any text is valid wikitext.

    Args:
        text: The wikitext.
        title: The page's title.
        resolve: What the target of a link names.
    """
    article = Scanner(resolve, title).scan(text)
    article.blocks = lay_out(article)
    return article


def read_reference(text: str, *, title: str, resolve: Resolve) -> Block:
    """Read the wikitext of a reference: its text, and its links that leave the wiki."""
    scanned = Scanner(resolve, title).scan(text)
    return Block(
        render_text(tidy(scanned.text.replace("\n", " ").replace(BREAK, " "))),
        links=tuple(link for link in scanned.links if "//" in link.href.partition(REFERENCE)[0]),
    )


class ArticleReader:
    """Reads articles; what it needs of the dump is small, and so goes to other processes.

    Args:
        site: The wiki as a site.
        titles: What titles lead to.
        limits: How long chunks are.
        cite: Whether to link to the works that references cite.

    Raises:
        ExtractionError: If works are to be cited and no extractor of citations is installed.
    """

    def __init__(self, site: Site, titles: TitleResolver, limits: ChunkLimits, *, cite: bool) -> None:
        self._site = site
        self._titles = titles
        self._cite = cite
        self._works: LinkExtractor[Document] | None = load_extractor(CITATION_EXTRACTOR) if cite else None
        self._limits = limits

    def __reduce__(self) -> tuple[Callable[..., ArticleReader], tuple[object, ...]]:
        return partial(ArticleReader, cite=self._cite), (self._site, self._titles, self._limits)

    def chunks(self, url: str, page: DumpPage, aliases: tuple[Alias, ...]) -> list[Chunk]:
        """Make the chunks of an article.

        Args:
            url: Names it within the source.
            page: What the dump says of it.
            aliases: Redirects that lead to it.

        Raises:
            UnreadablePageError: If it has no text.
        """
        article = read_article(
            page.text, title=page.title, resolve=self._titles.at(page.title, page.namespace)
        )
        if not article.blocks:
            raise EmptyPageError("it has no text")
        names = [alias.title for alias in aliases if not alias.section]
        described = Page(
            url=url,
            title=page.title,
            aliases=tuple(map(self._titles.path, names[:MOST_WITH_SECTIONS])),
            metadata={"aliases": [alias.title for alias in aliases[:MOST_NAMED]]} if aliases else {},
        )
        chunks = make_chunks(described, article.blocks, self._limits)
        references = cache(partial(self._read_reference, article, page.title))
        chunks = [self._add_references(chunk, references) for chunk in chunks]
        links = (
            *chunks[0].links,
            *self._categories(page, article),
            *(
                Link.incoming(kind=HYPERLINK, tag=tag)
                for title in names[MOST_WITH_SECTIONS:]
                for tag in self._tags(title)
            ),
        )
        chunks[0] = replace(chunks[0], links=links)
        return add_incoming_links(chunks, {HYPERLINK: self._sections(aliases)})

    def _categories(self, page: DumpPage, article: Article) -> Iterator[Link]:
        """Yield the links of a page to its categories, and of a category's page to the category itself."""
        if page.namespace == CATEGORY:
            yield Link.bidir(kind=CATEGORY_KIND, tag=page.title.partition(":")[2])
        for name in article.categories:
            yield Link.bidir(kind=CATEGORY_KIND, tag=name)

    def _read_reference(self, article: Article, title: str, href: str) -> Block:
        text = article.references.get(href.removeprefix(REFERENCE), "")
        return read_reference(text, title=title, resolve=self._titles.resolve)

    def _add_references(self, chunk: Chunk, references: Callable[[str], Block]) -> Chunk:
        """Put links and works of references in the place of what refers to them.

        Footnotes are not part of the running text, so the extractor of citations does not see them there: it
        is given each chunk's footnotes as the reference list of a document.
        """
        cited = {href: references(href) for href, _ in chunk.hyperlinks if href.startswith(REFERENCE)}
        if not cited:
            return chunk
        texts = filter(None, (reference.text for reference in cited.values()))
        listed = "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        links: tuple[Link, ...] = ()
        if self._works is not None and listed:
            citations = self._works.extract(Document(page_content=f"References\n\n{listed}"))
            links = merge_links(link for link in citations if link.direction == "out")
        written = (cited[link.href].links if link.href in cited else (link,) for link in chunk.hyperlinks)
        return replace(chunk, hyperlinks=tuple(chain.from_iterable(written)), links=(*chunk.links, *links))

    def _sections(self, aliases: Iterable[Alias]) -> dict[str, list[str]]:
        """Return the tags of redirects that lead to a section, by its fragment."""
        tags: dict[str, list[str]] = {}
        for alias in aliases:
            if alias.section:
                tags.setdefault(quote_fragment(alias.section), []).extend(self._tags(alias.title))
        return tags

    def _tags(self, title: str) -> tuple[str, ...]:
        return self._site.page_tags(self._titles.path(title))


@dataclass(frozen=True, slots=True)
class WikiDumpSource:
    """The articles of a MediaWiki XML dump, in its order.

    Links are of kind ``hyperlink``, categories of kind ``category``. Redirects are further incoming links
    of their page, and ``metadata["aliases"]`` names them. Index the next dump of the wiki under the same
    name, and only what changed is read; a change of settings makes a run read all again.

    Args:
        path: The dump, ``.xml`` or ``.xml.bz2``.
        prefix: Path below which the wiki is stored, next to other sources, such as ``"en"``.
        namespaces: Numbers of the namespaces whose pages are indexed; default articles only.
        base: The URL that titles are put behind; None (default) tells it from the dump.
        interwiki: Addresses by interwiki prefix, with ``$1`` for the title, such as ``{"docs":
            "https://docs.org/$1"}``; those of Wikimedia's projects are known.
        policy: For URLs that leave the wiki.
        limits: How long chunks are.
        longest: A page with more characters is skipped; default 4 Mi, twice what MediaWiki allows.
        cite: Whether to link to the works that references cite, by the extractor ``citation``.
        partition: The part of the dump to index: see :meth:`divide`.

    Raises:
        LinkError: If the base is not an absolute URL, or the prefix is not a path.
    """

    path: str | Path
    _: KW_ONLY
    prefix: str = ""
    namespaces: tuple[int, ...] = (MAIN,)
    base: str | None = None
    interwiki: Mapping[str, str] = field(default_factory=dict)
    policy: UrlPolicy = DEFAULT_POLICY
    limits: ChunkLimits = DEFAULT_LIMITS
    longest: int = 4 * 2**20
    cite: bool = True
    partition: Partition | None = None

    def __post_init__(self) -> None:
        require_list("numbers", namespaces=self.namespaces)
        Site(bases=(self.base,) if self.base else (), policy=self.policy, prefix=self.prefix)

    @property
    def name(self) -> str:
        """The dump's absolute path."""
        return name_path(self.path)

    def divide(self, partition: Partition) -> WikiDumpSource:
        """Return a part of the dump.

        With the index of a multistream dump beside it, a part reads its own streams alone, once it has read
        the redirects of the whole dump.
        """
        return replace(self, partition=partition)

    def open(self) -> AbstractContextManager[DumpArticles]:
        """Read what the dump says of the wiki.

        Raises:
            SourceNotFoundError: If there is no such dump.
            ExtractionError: If works are to be cited and no extractor of citations is installed.
        """
        return closing(DumpArticles(self))


class DumpArticles:
    """The articles of a dump, in one run.

    Args:
        settings: Where it lies, and how it is read.
    """

    def __init__(self, settings: WikiDumpSource) -> None:
        self._settings = settings
        self._path = as_path("path", settings.path)
        info = read_siteinfo(self._path)
        base = settings.base or info.folder
        self.site: Final = Site(bases=(base,) if base else (), policy=settings.policy, prefix=settings.prefix)
        self.unread: Final[Mapping[str, int]] = {}
        self._titles = TitleResolver(info, settings.interwiki, base)
        self._reader = ArticleReader(self.site, self._titles, settings.limits, cite=settings.cite)
        self._salt = hash_values(READER_VERSION, settings.limits, settings.interwiki, settings.cite, info)
        self._count = 0
        self._redirects: RedirectTable | None = None
        self._partition = settings.partition
        self._section: Section | None = None
        if self._partition is not None:
            self._section = find_section(self._path, self._partition)

    def close(self) -> None:
        """Remove the table of redirects."""
        if self._redirects is not None:
            self._redirects.close()

    def __len__(self) -> int:
        """Return the number of pages, which takes the first reading of the dump."""
        self._load_redirects()
        return self._count // (self._partition.count if self._partition else 1)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages in the order of the dump. Wikitext is parsed only when a page is read."""
        redirects = self._load_redirects()
        try:
            for page in read_pages(self._path, limit=self._settings.longest, section=self._section):
                if self._is_offered(page) and self._is_own(page):
                    yield self._make_offer(page, redirects.aliases(page.title))
        except DumpCutShortError as error:
            yield BadInput(name=self._path.name, reason=str(error), hides=("",))

    def _load_redirects(self) -> RedirectTable:
        """Return the redirects, read at most once for each run."""
        if self._redirects is None:
            self._count = 0
            self._redirects = RedirectTable(self._scan_redirects())
        return self._redirects

    def _scan_redirects(self) -> Iterator[tuple[str, str, str]]:
        # If the dump ends early, the second reading finds it too, and reports it.
        with suppress(DumpCutShortError):
            for page in read_pages(self._path, limit=self._settings.longest, only_redirects=True):
                if page.redirect is None:
                    self._count += self._is_offered(page)
                elif page.namespace in self._settings.namespaces:
                    target, section = find_redirect_target(page.text)
                    yield page.title, page.redirect or target, section

    def _is_offered(self, page: DumpPage) -> bool:
        return page.redirect is None and bool(page.title) and page.namespace in self._settings.namespaces

    def _is_own(self, page: DumpPage) -> bool:
        part = self._partition if self._section is None else None
        return part is None or part.has(self._titles.path(page.title))

    def _make_offer(self, page: DumpPage, aliases: tuple[Alias, ...]) -> SourcePage | BadInput:
        url = self._titles.path(page.title)
        if page.model != _MARKUP:
            return BadInput(name=url, reason=f"it is {page.model}, not {_MARKUP}")
        if page.oversized:
            longest = self._settings.longest
            return BadInput(name=url, reason=f"it has more than the {longest:,} characters allowed")
        digest = xxhash.xxh3_128(f"{self._salt}{page.title}\0{aliases}\0{page.text}".encode(errors="replace"))
        read = partial(self._reader.chunks, url, page, aliases)
        return SourcePage(url=url, digest=digest.hexdigest(), read=read, size=len(page.text))

"""Makes chunks from the wikitext of an article."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from linkstore.extraction import Chunk, Page
from linkstore.ingest.chunks import ChunkLimits, answering, make_chunks
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.wiki.article import Article, read_article
from linkstore.ingest.wiki.dump import DumpPage
from linkstore.ingest.wiki.redirects import Alias
from linkstore.ingest.wiki.references import References
from linkstore.ingest.wiki.siteinfo import CATEGORY
from linkstore.ingest.wiki.titles import Titles
from linkstore.links import Link
from linkstore.urls import Site, quote_fragment

WITH_SECTIONS: Final = 16
"""Number of redirects to a page, by title, for which ``[[Redirect#Section]]`` leads to the section too."""
NAMED: Final = 64
"""Maximum number of redirects in the metadata of a page's documents."""

HYPERLINK: Final = "hyperlink"
CATEGORY_KIND: Final = "category"


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

    def __init__(self, site: Site, titles: Titles, limits: ChunkLimits, *, cite: bool) -> None:
        self._site = site
        self._titles = titles
        self._cite = cite
        self._references = References(titles.resolve, cite=cite)
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
            raise UnreadablePageError("it has no text")
        names = [alias.title for alias in aliases if not alias.section]
        described = Page(
            url=url,
            title=page.title,
            aliases=tuple(map(self._titles.path, names[:WITH_SECTIONS])),
            metadata={"aliases": [alias.title for alias in aliases[:NAMED]]} if aliases else {},
        )
        chunks = make_chunks(described, article.blocks, self._limits)
        chunks = self._references.resolved(chunks, article)
        links = (*chunks[0].links, *self._categories(page, article), *self._incoming(names[WITH_SECTIONS:]))
        chunks[0] = replace(chunks[0], links=links)
        return answering(chunks, {HYPERLINK: self._sections(aliases)})

    def _categories(self, page: DumpPage, article: Article) -> Iterator[Link]:
        """Yield the links of a page to its categories, and of a category's page to the category itself."""
        if page.namespace == CATEGORY:
            yield Link.bidir(kind=CATEGORY_KIND, tag=page.title.partition(":")[2])
        for name in article.categories:
            yield Link.bidir(kind=CATEGORY_KIND, tag=name)

    def _incoming(self, titles: Iterable[str]) -> Iterator[Link]:
        """Yield the incoming links of redirects to the page alone."""
        for title in titles:
            for tag in self._tags(title):
                yield Link.incoming(kind=HYPERLINK, tag=tag)

    def _sections(self, aliases: Iterable[Alias]) -> dict[str, list[str]]:
        """Return the tags of redirects that lead to a section, by its fragment."""
        found: dict[str, list[str]] = {}
        for alias in aliases:
            if alias.section:
                found.setdefault(quote_fragment(alias.section), []).extend(self._tags(alias.title))
        return found

    def _tags(self, title: str) -> tuple[str, ...]:
        return self._site.page_tags(self._titles.path(title))

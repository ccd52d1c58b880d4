"""A website as a source of pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.web.crawl import Crawl, Visitor
from linkstore.ingest.web.errors import FetchError, SiteUnavailableError
from linkstore.ingest.web.fetching import Response
from linkstore.ingest.web.memory import Memory, remembered
from linkstore.ingest.web.pages import is_html, read_web_page, unread, web_chunks
from linkstore.ingest.web.sitemaps import MAX_BYTES, is_sitemap, listed, resolved
from linkstore.ingest.web.targets import absolute_url
from linkstore.letters import readable_url
from linkstore.urls import Site


class WebSource:
    """The pages of a website, as they are found.

    Args:
        name: The URL that was given.
        site: How its pages are named.
        visitor: Asks for them.
        start: The answer for that URL: a page, or a sitemap.
    """

    def __init__(self, name: str, site: Site, visitor: Visitor, start: Response) -> None:
        self._name = name
        self._site = site
        self._visitor = visitor
        self._start = start
        self._is_sitemap = is_sitemap(start.body)
        self._late: dict[str, Memory] = {}
        self._bad: list[BadInput] = []

    @property
    def name(self) -> str:
        """The URL that was given."""
        return self._name

    @property
    def site(self) -> Site:
        """Pages below the start page's folder are named by their path from there, with the query."""
        return self._site

    def __len__(self) -> int:
        """Return 0, since nobody knows beforehand."""
        return 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page once. Stored pages are asked for only if they have changed.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        start = None if self._is_sitemap else self._start
        asked = {_asked(name): digest for name, digest in known.items()}
        crawl = Crawl(self._visitor, asked, start, self._seeds())
        for offered in map(_in_letters, crawl.run()):
            if isinstance(offered, BadInput):
                self._bad.append(offered)
            yield offered
        self._late = crawl.late()

    def late(self) -> LatePages | None:
        """Return a source that mends what the last run could not know yet, None if nothing is to mend."""
        return LatePages(self, self._visitor, self._late, self._bad) if self._late else None

    def _seeds(self) -> Iterator[str | BadInput]:
        """Yield the entries of sitemaps: the given one, else those in robots.txt, or /sitemap.xml."""
        client, robots, url = self._visitor.client, self._visitor.robots, self._start.url
        if self._is_sitemap:
            yield from listed(client, (), allowed=robots.allows, given=self._start)
            return
        named = []
        for one in resolved(robots.sitemaps(url), absolute_url("/robots.txt", url)):
            if isinstance(one, BadInput):
                yield one
            else:
                named.append(one)
        yield from listed(client, named, allowed=robots.allows)
        if not named:
            yield from self._guessed(absolute_url("/sitemap.xml", url))

    def _guessed(self, url: str) -> Iterator[str | BadInput]:
        client, robots = self._visitor.client, self._visitor.robots
        try:
            found = client.get(url, follow=robots.allows, max_bytes=MAX_BYTES) if robots.allows(url) else None
        except SiteUnavailableError:
            raise
        except FetchError as error:
            yield BadInput(name=url, reason=str(error), hides=url)
            return
        if found is not None and found.status == 200 and is_sitemap(found.body):
            yield from listed(client, (), allowed=robots.allows, given=found)


class LatePages:
    """The same website once more, for pages of which further URLs came to light after they were stored.

    A redirect may be met when the page it leads to is stored already. Such pages are read again; the
    others are offered as they are, without asking.

    Args:
        source: The website.
        visitor: Asks for the pages.
        late: What to remember of those pages, by URL; ``moved`` is what is new.
        bad: What could not be read; what is stored of it stays.
    """

    def __init__(
        self, source: WebSource, visitor: Visitor, late: Mapping[str, Memory], bad: Iterable[BadInput]
    ) -> None:
        self._source = source
        self._visitor = visitor
        self._late = late
        self._bad = bad

    @property
    def name(self) -> str:
        """The name of the website."""
        return self._source.name

    @property
    def site(self) -> Site:
        """The site of the website."""
        return self._source.site

    def __len__(self) -> int:
        """Return about how many pages are read again."""
        return len(self._late)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each stored page once.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        yield from (one for one in self._bad if one.name not in known)
        for url, digest in known.items():
            memory = self._late.get(_asked(url))
            if memory is None:
                yield SourcePage(url=url, digest=digest, read=unread)
            else:
                yield _in_letters(self._again(_asked(url), memory))

    def _again(self, url: str, memory: Memory) -> SourcePage | BadInput:
        visitor = self._visitor
        try:
            found = visitor.client.get(url, follow=lambda _: False, wanted=is_html)
        except SiteUnavailableError:
            raise
        except FetchError as error:
            return BadInput(name=url, reason=str(error))
        page = read_web_page(found, encoding=visitor.settings.encoding) if found.body else None
        if page is None or isinstance(page.content, UnreadablePageError):
            return BadInput(name=url, reason=f"it changed while the site was read: {found.status}")
        new = remembered(
            how=visitor.how,
            found=page.content,
            headers=found.headers,
            depth=memory.depth,
            moved=memory.moved,
            aliases=memory.aliases,
            children=memory.children,
        )
        moved = (*memory.moved, *memory.aliases)
        read = partial(web_chunks, url, page.content, moved, visitor.settings.limits)
        return SourcePage(url=url, digest=new.digest(), read=read)


def _asked(name: str) -> str:
    """Return the URL to ask for, percent-encoded, of a page that is named in its own letters."""
    return name if name.isascii() else absolute_url(name, "")


def _in_letters(offered: SourcePage | BadInput) -> SourcePage | BadInput:
    """Name an offered page in its own letters, like the pages of folders."""
    if isinstance(offered, SourcePage):
        return replace(offered, url=readable_url(offered.url))
    hidden = offered.hides and readable_url(offered.hides)
    return replace(offered, name=readable_url(offered.name), hides=hidden)

"""A website as a source of pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final, Unpack

from linkstore.core.arguments import omit_none, require
from linkstore.core.display import make_readable
from linkstore.core.urls import Site
from linkstore.ingest.files import SourceNotFoundError
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.pipeline import IndexOptions, index_source
from linkstore.ingest.source import BadInput, PageStore, SourcePage, Summary
from linkstore.ingest.web.client import Client, Robots
from linkstore.ingest.web.crawl import Crawl, Visitor, is_html, make_web_chunks, read_web_page, refuse_reading
from linkstore.ingest.web.fetching import Fetcher, Network, Response
from linkstore.ingest.web.frontier import PageRecord, Scope, find_site_roots, remember_page
from linkstore.ingest.web.sitemaps import MAX_BYTES, is_sitemap, list_sitemap_urls, resolve_urls
from linkstore.ingest.web.targets import (
    FetchError,
    ForbiddenUrlError,
    RobotsError,
    SiteUnavailableError,
    WebSettings,
    make_absolute_url,
    read_target,
)


class WebSource:
    """The pages of a website, as they are found.

    Args:
        name: The URL that was given.
        site: Names pages below the start page's folder by their path from there, with the query.
        visitor: Asks for them.
        start: The answer for that URL: a page, or a sitemap.
    """

    def __init__(self, name: str, site: Site, visitor: Visitor, start: Response) -> None:
        self.name: Final = name
        self.site: Final = site
        self._visitor = visitor
        self._start = start
        self._is_sitemap = is_sitemap(start.body)
        self._late: dict[str, PageRecord] = {}
        self._bad: list[BadInput] = []

    def __len__(self) -> int:
        """Return 0, since nobody knows beforehand."""
        return 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page once. Stored pages are asked for only if they have changed.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        start = None if self._is_sitemap else self._start
        asked = {_make_request_url(name): digest for name, digest in known.items()}
        crawl = Crawl(self._visitor, asked, start, self._seeds())
        for offered in map(_name_in_letters, crawl.run()):
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
            yield from list_sitemap_urls(client, (), allowed=robots.allows, given=self._start)
            return
        named = []
        for one in resolve_urls(robots.sitemaps(url), make_absolute_url("/robots.txt", url)):
            if isinstance(one, BadInput):
                yield one
            else:
                named.append(one)
        yield from list_sitemap_urls(client, named, allowed=robots.allows)
        if not named:
            yield from self._guessed(make_absolute_url("/sitemap.xml", url))

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
            yield from list_sitemap_urls(client, (), allowed=robots.allows, given=found)


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
        self, source: WebSource, visitor: Visitor, late: Mapping[str, PageRecord], bad: Iterable[BadInput]
    ) -> None:
        self.name: Final = source.name
        self.site: Final = source.site
        self._visitor = visitor
        self._late = late
        self._bad = bad

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
            memory = self._late.get(_make_request_url(url))
            if memory is None:
                yield SourcePage(url=url, digest=digest, read=refuse_reading)
            else:
                yield _name_in_letters(self._again(_make_request_url(url), memory))

    def _again(self, url: str, memory: PageRecord) -> SourcePage | BadInput:
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
        new = remember_page(
            how=visitor.how,
            found=page.content,
            headers=found.headers,
            depth=memory.depth,
            moved=memory.moved,
            aliases=memory.aliases,
            children=memory.children,
        )
        moved = (*memory.moved, *memory.aliases)
        read = partial(make_web_chunks, url, page.content, moved, visitor.settings.limits)
        return SourcePage(url=url, digest=new.digest(), read=read)


def _make_request_url(name: str) -> str:
    """Return the URL to ask for, percent-encoded, of a page that is named in its own letters."""
    return name if name.isascii() else make_absolute_url(name, "")


def _name_in_letters(offered: SourcePage | BadInput) -> SourcePage | BadInput:
    """Name an offered page in its own letters, like the pages of folders."""
    if isinstance(offered, SourcePage):
        return replace(offered, url=make_readable(offered.url))
    hidden = offered.hides and make_readable(offered.hides)
    return replace(offered, name=make_readable(offered.name), hides=hidden)


@contextmanager
def open_website(
    url: str, settings: WebSettings | None = None, *, network: Network | None = None
) -> Iterator[WebSource]:
    """Open a website as a source, as long as the context lasts. Its start page is fetched at once.

    Args:
        url: Where to start: an absolute URL of a page or of a sitemap.
        settings: How it is crawled.
        network: How to resolve names and connect, default the machine's.

    Raises:
        SourceNotFoundError: If there is no page and no sitemap, or robots.txt does not allow to ask.
        ForbiddenUrlError: If the URL must not be asked.
        FetchError: If it does not answer.
        WebSettingsError: If the settings contradict each other.
    """
    require(str, "a URL", url=url)
    require(WebSettings, "a WebSettings", **omit_none(settings=settings))
    settings = settings or WebSettings()
    start = read_target(make_absolute_url(url, ""), frozenset(range(1, 2**16))).url  # in one spelling
    ports = frozenset({_find_port(one) for one in (start, *settings.allow) if "://" in one} - {0})
    with Fetcher(settings, ports=ports, network=network) as fetcher:
        client = Client(fetcher, settings, network)
        robots = Robots(client, settings.user_agent, ports)
        found = _fetch_start(client, robots, start)
        roots = find_site_roots(start, found.url)
        bases = (*roots, *settings.bases)
        site = Site(bases=bases, policy=settings.policy, prefix=settings.prefix, query="keep")
        scope = Scope(site, roots, found.url, settings)
        visitor = Visitor(client=client, robots=robots, scope=scope, settings=settings)
        yield WebSource(start, site, visitor, found)


def index_website(
    store: PageStore,
    url: str,
    *,
    source: str | None = None,
    settings: WebSettings | None = None,
    network: Network | None = None,
    **options: Unpack[IndexOptions],
) -> Summary:
    """Index the pages of a website: see :func:`~linkstore.ingest.index_source`.

    A second run asks the server for each stored page only if it has changed, and a run that was
    interrupted goes on with what had not been stored. Stored pages are removed when the server says that they
    are gone or moved, and the crawl was not cut short.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        url: Where to start: an absolute URL of a page or of a sitemap.
        source: Names the website within the store, default the URL.
        settings: How it is crawled.
        network: How to resolve names and connect, default the machine's.
        options: See :class:`~linkstore.ingest.IndexOptions`. A dry run fetches the pages too.

    Raises:
        SourceNotFoundError: If there is no page and no sitemap, or robots.txt does not allow to ask.
        ForbiddenUrlError: If the URL must not be asked, as it leads to a private address.
        FetchError: If it does not answer.
        SiteUnavailableError: If it stops answering. What was stored stays.
        NothingIndexedError: If none of its pages can be indexed, and none are stored.
        RemovalRefusedError: If more than half of the stored pages are gone.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    with open_website(url, settings, network=network) as site:
        return index_source(store, site, name=source, **options)


def _find_port(url: str) -> int:
    """Return the port that a URL or a pattern names, 0 if none."""
    port = url.partition("://")[2].partition("/")[0].rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def _fetch_start(client: Client, robots: Robots, url: str) -> Response:
    try:
        if not robots.allows(url):
            raise SourceNotFoundError(f"{url}: robots.txt does not allow indexing it")
        found = client.get(url, follow=robots.allows)
    except ForbiddenUrlError:
        raise
    except RobotsError as error:
        raise RobotsError(f"{url} cannot be read: {error}") from error
    except FetchError as error:
        kind = SiteUnavailableError if error.again else FetchError
        raise kind(f"{url} cannot be read: {error}") from error
    if found.location is not None:
        raise SourceNotFoundError(f"{url} redirects to {found.location}, which robots.txt does not allow")
    if found.status != 200:
        raise SourceNotFoundError(f"{url} cannot be read: the server answered {found.status}")
    if not is_html(found.headers) and not is_sitemap(found.body):
        page = (
            make_absolute_url("/", url) if url.endswith(("/llms.txt", "/llms-full.txt")) else "a page of HTML"
        )
        raise SourceNotFoundError(f"{url} is {found.media_type}; give {page} or a sitemap")
    return found

"""Opens a website as a source, and indexes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from linkstore.arguments import given, require
from linkstore.extraction import LinkExtractor
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_again, index_source
from linkstore.ingest.sink import PageStore
from linkstore.ingest.sources import SourceNotFoundError
from linkstore.ingest.summary import Progress, Summary
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.crawl import Visitor
from linkstore.ingest.web.errors import FetchError, ForbiddenUrlError, RobotsError
from linkstore.ingest.web.fetching import Fetcher, FetchLimits, Response
from linkstore.ingest.web.network import Network
from linkstore.ingest.web.pages import is_html
from linkstore.ingest.web.robots import Robots
from linkstore.ingest.web.scope import Scope, site_root
from linkstore.ingest.web.settings import WebSettings
from linkstore.ingest.web.sitemaps import is_sitemap
from linkstore.ingest.web.source import WebSource
from linkstore.ingest.web.targets import absolute_url, read_target
from linkstore.urls import Site


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
    require(WebSettings, "a WebSettings", **given(settings=settings))
    settings = settings or WebSettings()
    start = _start_url(url)
    ports = frozenset({_port(one) for one in (start, *settings.allow) if "://" in one} - {0})
    with _fetcher(settings, ports, network) as fetcher:
        client = Client(
            fetcher, rate=settings.rate, retries=settings.retries, patience=settings.patience, network=network
        )
        robots = Robots(client, settings.user_agent, ports)
        found = _start(client, robots, start)
        roots = site_root(start, found.url)
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
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    settings: WebSettings | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    prune: bool = False,
    jobs: int | None = None,
    network: Network | None = None,
) -> Summary:
    """Index the pages of a website: see :func:`~linkstore.ingest.index_source`.

    A second run asks the server for each stored page only if it has changed, and a run that was
    interrupted goes on with what had not been stored. Stored pages are removed when the server says that they
    are gone or moved, and the crawl was not cut short.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        url: Where to start: an absolute URL of a page or of a sitemap.
        source: Names the website within the store, default the URL.
        links: Names of link extractors, or extractors.
        settings: How it is crawled.
        progress: Called after each page.
        dry_run: Return what would be done, and write nothing. The pages are fetched.
        prune: Remove missing pages even if they are more than half of those stored.
        jobs: How many processes read. See :func:`~linkstore.ingest.index_source`.
        network: How to resolve names and connect, default the machine's.

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
        summary = index_source(
            store, site, name=source, links=links, progress=progress, dry_run=dry_run, prune=prune, jobs=jobs
        )
        late = None if dry_run else site.late()
        mended = summary if late is None else index_again(store, late, name=source, links=links, jobs=jobs)
    skipped = {**summary.skipped, **mended.skipped}
    return replace(summary, dangling=mended.dangling, linked=mended.linked, skipped=skipped)


def _fetcher(settings: WebSettings, ports: frozenset[int], network: Network | None) -> Fetcher:
    limits = FetchLimits(
        max_bytes=settings.max_bytes, timeout=settings.timeout, max_redirects=settings.max_redirects
    )
    return Fetcher(
        user_agent=settings.user_agent,
        limits=limits,
        allow_private=settings.allow_private,
        ports=ports,
        network=network,
    )


def _start_url(url: str) -> str:
    """Return the start URL in one spelling, by which the source is named."""
    return read_target(absolute_url(url, ""), frozenset(range(1, 2**16))).url


def _port(url: str) -> int:
    """Return the port that a URL or a pattern names, 0 if none."""
    port = url.partition("://")[2].partition("/")[0].rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def _start(client: Client, robots: Robots, url: str) -> Response:
    try:
        if not robots.allows(url):
            raise SourceNotFoundError(f"{url}: robots.txt does not allow indexing it")
        found = client.get(url, follow=robots.allows)
    except ForbiddenUrlError:
        raise
    except RobotsError as error:
        raise RobotsError(f"{url} cannot be read: {error}") from error
    except FetchError as error:
        raise FetchError(f"{url} cannot be read: {error}", again=error.again) from error
    if found.location is not None:
        raise SourceNotFoundError(f"{url} redirects to {found.location}, which robots.txt does not allow")
    if found.status != 200:
        raise SourceNotFoundError(f"{url} cannot be read: the server answered {found.status}")
    if not is_html(found.headers) and not is_sitemap(found.body):
        page = absolute_url("/", url) if url.endswith(("/llms.txt", "/llms-full.txt")) else "a page of HTML"
        raise SourceNotFoundError(f"{url} is {found.media_type}; give {page} or a sitemap")
    return found

"""A website as a source of pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from linkstore.core.arguments import require
from linkstore.core.display import make_readable
from linkstore.core.urls import Site
from linkstore.extract.html import decode_html
from linkstore.ingest.files import SourceNotFoundError
from linkstore.ingest.page import find_named_pages, is_page_list
from linkstore.ingest.source import BadInput, Partition, SourcePage
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.crawl import Crawl, is_page
from linkstore.ingest.web.fetching import Fetcher, Network, Response
from linkstore.ingest.web.frontier import Scope, find_site_roots
from linkstore.ingest.web.sitemaps import MAX_BYTES, is_sitemap, list_sitemap_urls, resolve_urls
from linkstore.ingest.web.targets import (
    FetchError,
    ForbiddenUrlError,
    RobotsError,
    SiteUnavailableError,
    WebSettings,
    WebSettingsError,
    make_absolute_url,
    read_target,
)

UNWANTED: Final = "asking not to be indexed (noindex; --ignore-noindex indexes them)"
"""How a summary counts them."""


@dataclass(frozen=True, slots=True)
class WebsiteSource(WebSettings):
    """The pages of a website.

    A second run asks the server for each stored page only if it has changed, and a run that was interrupted
    goes on with what had not been stored. Stored pages are removed when the server says that they are gone or
    moved. A dry run fetches the pages too.

    Args:
        url: Where to start: an absolute URL of a page, of a sitemap, or of an ``llms.txt``; of the latter the
            pages that it names are indexed and no others.
        network: How to resolve names and connect, default the machine's.
        partition: The part of a sitemap or list to index: see :meth:`divide`.

    Its other settings are those of :class:`~linkstore.ingest.web.WebSettings`.
    """

    url: str
    network: Network | None = field(default=None, repr=False, kw_only=True)
    partition: Partition | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The URL, in one spelling.

        Raises:
            ForbiddenUrlError: If it is none that may be asked.
        """
        require(str, "a URL", url=self.url)
        return read_target(make_absolute_url(self.url, ""), frozenset(range(1, 2**16))).url

    def divide(self, partition: Partition) -> WebsiteSource:
        """Return a part of the pages that a sitemap or ``llms.txt`` lists, at a part of the rate."""
        return replace(self, partition=partition, rate=self.rate / partition.count)

    @contextmanager
    def open(self) -> Iterator[WebsitePages]:
        """Fetch the start page.

        Raises:
            SourceNotFoundError: If there is no page and no sitemap, or robots.txt does not allow to ask.
            ForbiddenUrlError: If the URL must not be asked, as it leads to a private address.
            FetchError: If it does not answer.
            SiteUnavailableError: If it, or later the site, stops answering. What was stored stays.
        """
        start = self.name
        ports = frozenset({_find_port(one) for one in (start, *self.allow) if "://" in one} - {0})
        with Fetcher(self, ports=ports, network=self.network) as fetcher:
            client = Client(fetcher, self, self.network)
            found = _fetch_start(client, start)
            roots = find_site_roots(start, found.url)
            site = Site(
                bases=(*roots, *(self.bases or ())), policy=self.policy, prefix=self.prefix, query="keep"
            )
            is_listed = is_page_list(found.url) or (is_sitemap(found.body) and self.max_depth == 0)
            if self.partition is not None and not is_listed:
                raise WebSettingsError(
                    f"{start} cannot be divided, because pages are found by following links; give its"
                    " sitemap, and max_depth=0 (--max-depth 0), so that only its pages are indexed"
                )
            yield WebsitePages(self, client, site, Scope(site, roots, found.url, self, self.partition), found)


class WebsitePages:
    """The pages of a website, in one run.

    Args:
        settings: Say how they are found and read.
        client: Asks for them.
        site: Names pages below the start page's folder by their path from there, with the query.
        scope: Says which belong to the site.
        start: The answer for the URL that was given: a page, a sitemap, or a list of pages.
    """

    def __init__(
        self, settings: WebSettings, client: Client, site: Site, scope: Scope, start: Response
    ) -> None:
        self.site: Final = site
        self._client = client
        self._scope = scope
        self._start = start
        self._crawl: Crawl | None = None
        self._is_list = is_page_list(start.url)
        is_named = self._is_list or not settings.follow_links
        self._settings = replace(settings, max_depth=0, ignore_noindex=True) if is_named else settings

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of pages that were left out because they ask for it."""
        unwanted = 0 if self._crawl is None else self._crawl.unwanted
        return {UNWANTED: unwanted} if unwanted else {}

    def __len__(self) -> int:
        """Return 0, since nobody knows beforehand."""
        return 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page. Stored pages are asked for only if they have changed.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        # Pages are named in their own letters, and asked for percent-encoded.
        asked = {
            name if name.isascii() else make_absolute_url(name, ""): digest for name, digest in known.items()
        }
        is_page = not self._is_list and not is_sitemap(self._start.body)
        self._crawl = Crawl(
            self._client, self._scope, self._settings, asked, self._start if is_page else None, self._seeds()
        )
        yield from map(_name_in_letters, self._crawl.run())

    def _seeds(self) -> Iterator[str | BadInput]:
        """Yield what the given list or sitemap names, else the sitemaps of robots.txt, or /sitemap.xml."""
        url = self._start.url
        if self._is_list:
            yield from self._named()
        elif is_sitemap(self._start.body):
            yield from list_sitemap_urls(self._client, given=self._start)
        elif self._settings.follow_links:
            named = []
            for one in resolve_urls(self._client.sitemaps(url), make_absolute_url("/robots.txt", url)):
                if isinstance(one, BadInput):
                    yield one
                else:
                    named.append(one)
            yield from list_sitemap_urls(self._client, named)
            if not named:
                yield from self._guessed(make_absolute_url("/sitemap.xml", url))

    def _named(self) -> Iterator[str | BadInput]:
        """Yield the pages that an ``llms.txt`` names, and report those outside of the crawl in one line."""
        outside = 0
        hrefs = find_named_pages(decode_html(self._start.body).text)
        for one in resolve_urls(hrefs, self._start.url):
            if isinstance(one, BadInput) or self._scope.key(one) is not None:
                yield one
            else:
                outside += 1
        if outside:
            reason = f"{outside:,} of the pages that it names do not belong to the crawl; --allow adds them"
            yield BadInput(name=self._start.url, reason=reason)

    def _guessed(self, url: str) -> Iterator[str | BadInput]:
        try:
            found = self._client.ask(url, max_bytes=MAX_BYTES)
        except FetchError as error:
            yield BadInput(name=url, reason=str(error))
            return
        if found is not None and found.status == 200 and is_sitemap(found.body):
            yield from list_sitemap_urls(self._client, given=found)


def _name_in_letters(offered: SourcePage | BadInput) -> SourcePage | BadInput:
    """Name an offered page in its own letters, like the pages of folders."""
    if isinstance(offered, SourcePage):
        return replace(offered, url=make_readable(offered.url))
    hidden = None if offered.hides is None else tuple(map(make_readable, offered.hides))
    return replace(offered, name=make_readable(offered.name), hides=hidden)


def _find_port(url: str) -> int:
    """Return the port that a URL or a pattern names, 0 if none."""
    port = url.partition("://")[2].partition("/")[0].rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def _fetch_start(client: Client, url: str) -> Response:
    try:
        found = client.ask(url)
    except ForbiddenUrlError:
        raise
    except RobotsError as error:
        raise RobotsError(f"{url} cannot be read: {error}") from error
    except FetchError as error:
        kind = SiteUnavailableError if error.again else FetchError
        raise kind(f"{url} cannot be read: {error}") from error
    if found is None:
        raise SourceNotFoundError(f"{url}: robots.txt does not allow indexing it")
    if found.location is not None:
        raise SourceNotFoundError(f"{url} redirects to {found.location}, which robots.txt does not allow")
    if found.status != 200:
        raise SourceNotFoundError(f"{url} cannot be read: the server answered {found.status}")
    if not is_page(found.url, found.headers) and not is_sitemap(found.body):
        raise SourceNotFoundError(f"{url} is {found.media_type}; give a page of HTML or a sitemap")
    return found

"""A website as a source of pages, and what it lists of them: sitemaps (sitemaps.org, protocol 0.9)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final
from urllib.parse import urlsplit
from xml.parsers import expat

from linkstore import errors
from linkstore.core.arguments import require
from linkstore.core.display import make_readable
from linkstore.core.urls import Site
from linkstore.extract.html import decode_html
from linkstore.ingest.html.folder import find_named_pages, is_page_list
from linkstore.ingest.source import BadInput, Partition, SourcePage
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.crawl import Crawl
from linkstore.ingest.web.fetching import (
    GZIP,
    PREFER_HTML,
    PREFER_MARKDOWN,
    Fetcher,
    Network,
    Response,
    get_media_type,
    read_body,
)
from linkstore.ingest.web.frontier import CrawlScope, find_site_roots
from linkstore.ingest.web.reading import is_page
from linkstore.ingest.web.targets import WebSettings, make_absolute_url, read_target
from linkstore.ingest.xml import BoundedParser, UnboundedXmlError

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

    Its other settings are those of :class:`~linkstore.ingest.WebSettings`.
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

    def open(self) -> AbstractContextManager[WebsitePages]:
        """Fetch the start page.

        Raises:
            SourceNotFoundError: If there is no page and no sitemap, or robots.txt does not allow to ask.
            ForbiddenUrlError: If the URL must not be asked, as it leads to a private address.
            FetchError: If it does not answer.
            SiteUnavailableError: If it, or later the site, stops answering. What was stored stays.
        """
        return self.resume({})

    @contextmanager
    def resume(self, outlines: Mapping[str, str]) -> Iterator[WebsitePages]:
        """Fetch the start page, of a site whose unchanged pages need not be loaded: see :meth:`open`."""
        start = self.name
        ports = frozenset({_find_port(place) for place in (start, *self.allow) if "://" in place} - {0})
        with Fetcher(self, ports=ports, network=self.network) as fetcher:
            client = Client(fetcher, self, self.network)
            # Of a start the navigation is wanted, which names further pages.
            response = _fetch_start(client, start, PREFER_HTML if self.follow_links else PREFER_MARKDOWN)
            roots = find_site_roots(start, response.url)
            site = Site(
                bases=(*roots, *(self.bases or ())), policy=self.policy, prefix=self.prefix, query="keep"
            )
            is_listed = is_page_list(response.url) or (is_sitemap(response.body) and self.max_depth == 0)
            if self.partition is not None and not is_listed:
                raise errors.StrategyError(
                    f"{start} cannot be divided, because pages are found by following links; give its"
                    " sitemap, and max_depth=0 (--max-depth 0), so that only its pages are indexed"
                )
            scope = CrawlScope(site, roots, response.url, self, self.partition)
            yield WebsitePages(self, client, site, scope, response, outlines)


class WebsitePages:
    """The pages of a website, in one run.

    Args:
        settings: Say how they are found and read.
        client: Asks for them.
        site: Names pages below the start page's folder by their path from there, with the query.
        scope: Says which belong to the site.
        start: The answer for the URL that was given: a page, a sitemap, or a list of pages.
        outlines: What the last run recorded of its pages, by their names in the store.
    """

    def __init__(
        self,
        settings: WebSettings,
        client: Client,
        site: Site,
        scope: CrawlScope,
        start: Response,
        outlines: Mapping[str, str],
    ) -> None:
        self.site: Final = site
        self._client = client
        self._scope = scope
        self._start = start
        self._outlines = outlines
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

    def leaves_out(self, url: str) -> bool:
        """Say whether a page does not belong to the crawl, such as one that ``deny`` names."""
        return self._scope.key(_ask_for(url)) is None

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield each page. Stored pages are asked for only if they have changed.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        # Pages are named in their own letters, and asked for percent-encoded.
        outlines = {name: self._outlines.get(self.site.place(name), "") for name in known}
        asked = {_ask_for(name): outlines[name] if digest else "" for name, digest in known.items()}
        is_page = not self._is_list and not is_sitemap(self._start.body)
        self._crawl = Crawl(
            self._client, self._scope, self._settings, asked, self._start if is_page else None, self._seeds()
        )
        yield from map(_name_in_letters, self._crawl.run())

    def _seeds(self) -> Iterator[str | BadInput]:
        """Yield what the given list or sitemap names, else the sitemaps of robots.txt, or /sitemap.xml."""
        url = self._start.url
        if self._is_list:
            yield from self._list_named()
        elif is_sitemap(self._start.body):
            yield from list_sitemap_urls(self._client, given=self._start)
        elif self._settings.follow_links:
            named = []
            for sitemap in resolve_urls(self._client.sitemaps(url), make_absolute_url("/robots.txt", url)):
                if isinstance(sitemap, BadInput):
                    yield sitemap
                else:
                    named.append(sitemap)
            yield from list_sitemap_urls(self._client, named)
            if not named:
                yield from self._guess_pages(make_absolute_url("/sitemap.xml", url))

    def _list_named(self) -> Iterator[str | BadInput]:
        """Yield the pages that an ``llms.txt`` names, and report pages outside of the crawl in one line."""
        outside = 0
        hrefs = find_named_pages(decode_html(self._start.body).text)
        for url in resolve_urls(hrefs, self._start.url):
            if isinstance(url, BadInput) or self._scope.key(url) is not None:
                yield url
            else:
                outside += 1
        if outside:
            reason = f"{outside:,} of the pages that it names do not belong to the crawl; --allow adds them"
            yield BadInput(name=self._start.url, reason=reason)

    def _guess_pages(self, url: str) -> Iterator[str | BadInput]:
        try:
            response = self._client.ask(url, max_bytes=MAX_BYTES)
        except errors.FetchError as error:
            yield BadInput(name=url, reason=str(error))
            return
        if response is not None and response.status == 200 and is_sitemap(response.body):
            yield from list_sitemap_urls(self._client, given=response)


def _ask_for(name: str) -> str:
    """Return the URL of a page by its name, which is the URL in its own letters."""
    return name if name.isascii() else make_absolute_url(name, "")


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


def _fetch_start(client: Client, url: str, accept: str) -> Response:
    try:
        response = client.ask(url, accept=accept)
    except errors.ForbiddenUrlError:
        raise
    except errors.RobotsError as error:
        raise errors.RobotsError(f"{url} cannot be read: {error}") from error
    except errors.FetchError as error:
        kind = errors.SiteUnavailableError if error.again else errors.FetchError
        raise kind(f"{url} cannot be read: {error}") from error
    if response is None:
        raise errors.SourceNotFoundError(f"{url}: robots.txt does not allow indexing it")
    if response.location is not None:
        raise errors.SourceNotFoundError(
            f"{url} redirects to {response.location}, which robots.txt does not allow"
        )
    if response.status != 200:
        raise errors.SourceNotFoundError(f"{url} cannot be read: the server answered {response.status}")
    if not is_page(response.url, response.headers) and not is_sitemap(response.body):
        raise errors.SourceNotFoundError(
            f"{url} is {get_media_type(response.headers)}; give a page of HTML or a sitemap"
        )
    return response


MAX_BYTES: Final = 50 * 2**20
"""The protocol's own limit for an unpacked sitemap."""

MOST_URLS: Final = 50_000
"""The protocol's own limit for the URLs of a sitemap."""
_LONGEST_URL: Final = 8192
_WORD: Final = re.compile(rb"\S+")
_MOST: Final = 1000
"""Sitemaps read in one run."""
_HELD: Final = 50_000
"""Sitemaps known of, as many as one index may list."""
_DEEPEST: Final = 3
_ROOT_WITHIN: Final = 1024


@dataclass(slots=True)
class Sitemap:
    """The entries of a sitemap.

    Args:
        pages: URLs of pages.
        sitemaps: URLs of further sitemaps.
        is_cut: Whether it lists more than the protocol allows, which are not read.
    """

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    is_cut: bool = False


def is_sitemap(body: bytes) -> bool:
    """Say whether a body is a sitemap in XML, gzipped or not, by how it begins."""
    if body.startswith(GZIP):
        try:
            body = _unpack_body(body)
        except errors.FetchError:
            return False
    head = body[:_ROOT_WITHIN].lower()
    return b"<urlset" in head or b"<sitemapindex" in head


def read_sitemap(body: bytes) -> Sitemap:
    """Read the entries of a sitemap.

    A document type, by which entities could be defined, is refused: no sitemap has one.

    Raises:
        FetchError: If it is not a sitemap, or is larger than 50 MiB when unpacked.
    """
    body = _unpack_body(body) if body.startswith(GZIP) else body
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        reader = _SitemapReader()
        try:
            reader.parser.feed(body)
            reader.parser.finish()
        except _FullError:
            reader.found.is_cut = True
        except (expat.ExpatError, UnboundedXmlError, ValueError, LookupError) as error:
            raise errors.FetchError(f"not a sitemap: {error}") from error
        return reader.found
    words = islice(_WORD.finditer(body.removeprefix(b"\xef\xbb\xbf")), MOST_URLS + 1)
    lines = [word[0].decode("utf-8", "replace") for word in words]
    if not lines or not all(line.startswith(("http://", "https://")) for line in lines):
        raise errors.FetchError("not a sitemap")
    short = [line for line in lines[:MOST_URLS] if len(line) <= _LONGEST_URL]
    return Sitemap(pages=short, is_cut=len(lines) > MOST_URLS)


def list_sitemap_urls(
    client: Client, urls: Iterable[str] = (), *, given: Response | None = None
) -> Iterator[str | BadInput]:
    """Yield the URLs of pages listed in sitemaps and in the sitemaps they refer to.

    Args:
        client: Asks for them.
        urls: Where to start. One that a sitemap names must lie on the same host as that.
        given: A sitemap that has been fetched already.
    """
    seen = set(urls if given is None else (given.url, *urls))
    waiting = deque((url, 0) for url in sorted(seen))
    while waiting:
        url, depth = waiting.popleft()
        if len(seen) - len(waiting) > _MOST:
            left = f"{len(waiting) + 1:,} are left"
            yield BadInput(name=url, reason=f"only {_MOST:,} sitemaps are read; {left}", hides=())
            return
        try:
            response = given if given is not None and url == given.url else _fetch_sitemap(client, url)
            sitemap = Sitemap() if response is None else read_sitemap(response.body)
        except errors.FetchError as error:
            yield BadInput(name=url, reason=str(error), hides=())
            continue
        yield from resolve_urls(sitemap.pages, url)
        if sitemap.is_cut:
            reason = (
                f"only the first {MOST_URLS:,} URLs of a sitemap are read, as many as the protocol allows"
            )
            yield BadInput(name=url, reason=reason, hides=())
        for entry in resolve_urls(sitemap.sitemaps, url):
            if isinstance(entry, BadInput):
                yield entry
            elif depth < _DEEPEST and len(seen) < _HELD and urlsplit(entry).netloc == urlsplit(url).netloc:
                if entry not in seen:
                    waiting.append((entry, depth + 1))
                seen.add(entry)


def resolve_urls(hrefs: Iterable[str], base: str) -> Iterator[str | BadInput]:
    """Yield the absolute URLs that a sitemap or robots.txt names.

    Args:
        hrefs: As they are written.
        base: Where they are written.
    """
    for href in hrefs:
        try:
            yield make_absolute_url(href, base)
        except errors.FetchError as error:
            yield BadInput(name=base, reason=str(error))


def _fetch_sitemap(client: Client, url: str) -> Response | None:
    """Fetch a sitemap, or return None if there is none, or it may not be asked."""
    response = client.ask(url, max_bytes=MAX_BYTES)
    if response is None or response.status in (404, 410) or response.location is not None:
        return None
    if response.status != 200:
        raise errors.FetchError(f"the server answers {response.status}")
    return response


def _unpack_body(body: bytes) -> bytes:
    return read_body([body], coding="gzip", max_bytes=MAX_BYTES)


class _FullError(Exception):
    """A sitemap has listed all that is read of it."""


class _SitemapReader:
    """Handles the events of the XML parser."""

    def __init__(self) -> None:
        self.found = Sitemap()
        self._path: list[str] = []
        self._text: list[str] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append
        self.parser = BoundedParser(parser)

    def _start(self, name: str, _: dict[str, str]) -> None:
        self.parser.enter()
        self._path.append(name.rpartition(" ")[2].lower())
        self._text.clear()

    def _end(self, _: str) -> None:
        self.parser.leave()
        within = self._path[-2:]
        self._path.pop()
        if within not in (["url", "loc"], ["sitemap", "loc"]):
            return
        urls = self.found.pages if within[0] == "url" else self.found.sitemaps
        if len(urls) >= MOST_URLS:
            raise _FullError
        if len(url := "".join(self._text).strip()) <= _LONGEST_URL:  # a longer one could not be followed
            urls.append(url)

"""Sitemaps: XML, gzipped XML, indexes of sitemaps, and plain lists (sitemaps.org, protocol 0.9)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from urllib.parse import urlsplit
from xml.parsers import expat

from linkstore.ingest.source import BadInput
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.fetching import GZIP, Response, read_body
from linkstore.ingest.web.targets import FetchError, make_absolute_url
from linkstore.ingest.xml import BoundedParser, UnboundedXmlError

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
        except FetchError:
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
            raise FetchError(f"not a sitemap: {error}") from error
        return reader.found
    found = islice(_WORD.finditer(body.removeprefix(b"\xef\xbb\xbf")), MOST_URLS + 1)
    lines = [word[0].decode("utf-8", "replace") for word in found]
    if not lines or not all(line.startswith(("http://", "https://")) for line in lines):
        raise FetchError("not a sitemap")
    short = [line for line in lines[:MOST_URLS] if len(line) <= _LONGEST_URL]
    return Sitemap(pages=short, is_cut=len(lines) > MOST_URLS)


def list_sitemap_urls(
    client: Client, urls: Iterable[str] = (), *, given: Response | None = None
) -> Iterator[str | BadInput]:
    """Yield the URLs of pages that sitemaps list, and those of the sitemaps they refer to.

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
            found = given if given is not None and url == given.url else _fetch_sitemap(client, url)
            sitemap = Sitemap() if found is None else read_sitemap(found.body)
        except FetchError as error:
            yield BadInput(name=url, reason=str(error), hides=())
            continue
        yield from resolve_urls(sitemap.pages, url)
        if sitemap.is_cut:
            reason = (
                f"only the first {MOST_URLS:,} URLs of a sitemap are read, as many as the protocol allows"
            )
            yield BadInput(name=url, reason=reason, hides=())
        for one in resolve_urls(sitemap.sitemaps, url):
            if isinstance(one, BadInput):
                yield one
            elif depth < _DEEPEST and len(seen) < _HELD and urlsplit(one).netloc == urlsplit(url).netloc:
                if one not in seen:
                    waiting.append((one, depth + 1))
                seen.add(one)


def resolve_urls(hrefs: Iterable[str], base: str) -> Iterator[str | BadInput]:
    """Yield the absolute URLs that a sitemap or robots.txt names.

    Args:
        hrefs: As they are written.
        base: Where they are written.
    """
    for href in hrefs:
        try:
            yield make_absolute_url(href, base)
        except FetchError as error:
            yield BadInput(name=base, reason=str(error))


def _fetch_sitemap(client: Client, url: str) -> Response | None:
    """Fetch a sitemap, or return None if there is none, or it may not be asked."""
    found = client.ask(url, max_bytes=MAX_BYTES)
    if found is None or found.status in (404, 410) or found.location is not None:
        return None
    if found.status != 200:
        raise FetchError(f"the server answers {found.status}")
    return found


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
        self._room = 0
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self.parser = BoundedParser(parser)

    def _start(self, name: str, _: dict[str, str]) -> None:
        self.parser.enter()
        self._path.append(name.rpartition(" ")[2].lower())
        self._text.clear()
        self._room = _LONGEST_URL

    def _characters(self, text: str) -> None:
        if self._room >= 0:
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _end(self, _: str) -> None:
        self.parser.leave()
        within = self._path[-2:]
        self._path.pop()
        if within not in (["url", "loc"], ["sitemap", "loc"]):
            return
        urls = self.found.pages if within[0] == "url" else self.found.sitemaps
        if len(urls) >= MOST_URLS:
            raise _FullError
        if self._room >= 0:  # a longer one could not be followed
            urls.append("".join(self._text).strip())

"""Sitemaps: XML, gzipped XML, indexes of sitemaps, and plain lists (sitemaps.org, protocol 0.9)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit
from xml.parsers import expat

from linkstore.ingest.source import BadInput
from linkstore.ingest.web.bodies import GZIP, read_body
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.errors import FetchError, SiteUnavailableError
from linkstore.ingest.web.fetching import Response
from linkstore.ingest.web.targets import absolute_url

MAX_BYTES: Final = 50 * 2**20
"""The protocol's own limit for an unpacked sitemap."""

_MOST: Final = 1000
"""Sitemaps read in one run."""
_HELD: Final = 50_000
"""Sitemaps known of, as many as one index may list."""
_DEEPEST: Final = 3
_LOOKED_AT: Final = 1024


@dataclass(slots=True)
class Sitemap:
    """What a sitemap lists.

    Args:
        pages: URLs of pages.
        sitemaps: URLs of further sitemaps.
    """

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def is_sitemap(body: bytes) -> bool:
    """Whether a body is a sitemap in XML, gzipped or not, by how it begins."""
    if body.startswith(GZIP):
        try:
            body = _unpacked(body)
        except FetchError:
            return False
    head = body[:_LOOKED_AT].lower()
    return b"<urlset" in head or b"<sitemapindex" in head


def read_sitemap(body: bytes) -> Sitemap:
    """What a sitemap lists.

    A document type, by which entities could be defined, is refused: no sitemap has one.

    Raises:
        FetchError: If it is no sitemap, or unpacks to more than 50 MiB.
    """
    body = _unpacked(body) if body.startswith(GZIP) else body
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _read_xml(body)
    lines = body.decode("utf-8-sig", "replace").split()
    if not lines or not all(line.startswith(("http://", "https://")) for line in lines):
        raise FetchError("it is no sitemap")
    return Sitemap(pages=lines)


def listed(
    client: Client, urls: Iterable[str], *, allowed: Callable[[str], bool], given: Response | None = None
) -> Iterator[str | BadInput]:
    """The URLs of pages that sitemaps list, and those they refer to.

    Args:
        client: Asks for them.
        urls: Where to start. One that a sitemap names must lie on the same host as that.
        allowed: Whether a URL may be asked.
        given: A sitemap that has been fetched already.
    """
    seen = set(urls if given is None else (given.url, *urls))
    waiting = deque((url, 0) for url in sorted(seen))
    while waiting:
        url, depth = waiting.popleft()
        if len(seen) - len(waiting) > _MOST:
            left = f"{len(waiting) + 1:,} are left"
            yield BadInput(name=url, reason=f"only {_MOST:,} sitemaps are read; {left}", hides=url)
            return
        try:
            found = given if given is not None and url == given.url else _fetched(client, url, allowed)
            sitemap = Sitemap() if found is None else read_sitemap(found.body)
        except SiteUnavailableError:
            raise
        except FetchError as error:
            yield BadInput(name=url, reason=str(error), hides=url)
            continue
        yield from resolved(sitemap.pages, url)
        for one in resolved(sitemap.sitemaps, url):
            if isinstance(one, BadInput):
                yield one
            elif depth < _DEEPEST and len(seen) < _HELD and urlsplit(one).netloc == urlsplit(url).netloc:
                if one not in seen:
                    waiting.append((one, depth + 1))
                seen.add(one)


def resolved(hrefs: Iterable[str], base: str) -> Iterator[str | BadInput]:
    """The absolute URLs that a sitemap or robots.txt names.

    Args:
        hrefs: As they are written.
        base: Where they are written.
    """
    for href in hrefs:
        try:
            yield absolute_url(href, base)
        except FetchError as error:
            yield BadInput(name=base, reason=str(error))


def _fetched(client: Client, url: str, allowed: Callable[[str], bool]) -> Response | None:
    """The sitemap; None if there is none, or it may not be asked."""
    if not allowed(url):
        return None
    found = client.get(url, follow=allowed, max_bytes=MAX_BYTES)
    if found.status in (404, 410) or found.location is not None:
        return None
    if found.status != 200:
        raise FetchError(f"the server answers {found.status}")
    return found


def _unpacked(body: bytes) -> bytes:
    return read_body([body], coding="gzip", max_bytes=MAX_BYTES)


def _read_xml(body: bytes) -> Sitemap:
    found = Sitemap()
    path: list[str] = []
    text: list[str] = []

    def start(name: str, _: dict[str, str]) -> None:
        path.append(name.rpartition(" ")[2].lower())
        text.clear()

    def end(_: str) -> None:
        if path[-2:] == ["url", "loc"]:
            found.pages.append("".join(text).strip())
        elif path[-2:] == ["sitemap", "loc"]:
            found.sitemaps.append("".join(text).strip())
        path.pop()

    def refuse(*_: object) -> None:
        raise FetchError("it has a document type, which a sitemap has not")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text.append
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise FetchError(f"it is no sitemap: {error}") from error
    return found

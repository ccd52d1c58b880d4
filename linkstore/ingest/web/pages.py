"""Reads the content and the links of a page from a response."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from linkstore.extraction import Chunk, Page
from linkstore.extraction.decoding import UTF_8, Decoded
from linkstore.extraction.markup import Tree, base_href, page_links
from linkstore.ingest.chunks import ChunkLimits, make_chunks
from linkstore.ingest.html.pages import PageContent, UnreadablePageError, decoded, page_content, parsed
from linkstore.ingest.html.redirects import refresh_target
from linkstore.ingest.titles import Titles
from linkstore.ingest.web.errors import FetchError
from linkstore.ingest.web.fetching import Response, media_type
from linkstore.ingest.web.targets import absolute_url
from linkstore.letters import readable_url

_TITLES: Final = Titles()
"""Pages of a website are read one after another: which of them share a title is not known."""
_HTML: Final = frozenset({"", "text/html", "application/xhtml+xml"})
_FRAMES: Final = "frame[src], iframe[src]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """The content of a response.

    Args:
        content: What it says, or why it cannot be read.
        links: Absolute URLs of what it links to, those in navigation too; each once.
        refresh: The absolute URL that it sends its reader on to, if that is all it does.
    """

    content: PageContent | UnreadablePageError
    links: tuple[str, ...] = ()
    refresh: str | None = None


def is_html(headers: Mapping[str, str]) -> bool:
    """Say whether headers declare HTML, or nothing."""
    return media_type(headers) in _HTML


def read_web_page(response: Response, *, encoding: str | None) -> WebPage:
    """Read the content of a response. Its links are read even if its text cannot be.

    Args:
        response: Holds HTML. A byte-order mark wins over the charset of its header, and that over what
            the page itself declares, as in browsers.
        encoding: Whatever a page and its server declare, if not None.
    """
    try:
        return _read(response, encoding)
    except Exception as error:  # noqa: BLE001 (a fault of a reader; one page ends no crawl)
        return WebPage(content=UnreadablePageError(f"reading it failed: {type(error).__name__}: {error}"))


def _read(response: Response, encoding: str | None) -> WebPage:
    problem: UnreadablePageError | None = None
    try:
        found = decoded(response.body, encoding, declared=response.headers.get("content-type"))
    except UnreadablePageError as error:
        found, problem = Decoded(response.body.decode(errors="replace"), UTF_8), error
    try:
        tree = parsed(found.text)
    except UnreadablePageError as error:
        return WebPage(content=error)
    base = _base(tree, response.url)
    links = tuple(dict.fromkeys(_links(tree, base)))
    refresh = _refresh(response.body, base)
    return WebPage(content=problem or _content(tree, found), links=links, refresh=refresh)


def web_chunks(url: str, found: PageContent, aliases: tuple[str, ...], limits: ChunkLimits) -> list[Chunk]:
    """Make the chunks of a page.

    Args:
        url: Its absolute URL.
        found: What it says.
        aliases: Further URLs that lead to it.
        limits: How long chunks are.
    """
    named = readable_url(url)
    found = _TITLES.told_apart(found, named)
    page = Page(
        url=named,
        title=found.title or named,
        base=found.base,
        aliases=aliases,
        left_out=found.left_out,
        replaced=found.replaced,
        guessed=found.guessed,
    )
    return make_chunks(page, found.blocks, limits)


def unread() -> list[Chunk]:
    """Stand in for reading a page that was offered as unchanged, unasked.

    Raises:
        UnreadablePageError: Always.
    """
    raise UnreadablePageError("it was not read, because nothing of it had changed")


def canonical_url(url: str, found: PageContent) -> str | None:
    """Return the absolute URL that a page names as its canonical one, if any."""
    if not found.canonical:
        return None
    try:
        return absolute_url(found.canonical, _joined(found.base, url))
    except FetchError:
        return None


def _content(tree: Tree, found: Decoded) -> PageContent | UnreadablePageError:
    try:
        return replace(page_content(tree), replaced=found.replaced, guessed=found.guessed)
    except UnreadablePageError as error:
        return error


def _base(tree: Tree, url: str) -> str:
    return _joined(base_href(tree), url)


def _joined(base: str | None, url: str) -> str:
    try:
        return absolute_url(base, url) if base else url
    except FetchError:
        return url


def _links(tree: Tree, base: str) -> Iterator[str]:
    framed = (node.attributes.get("src") or "" for node in tree.css(_FRAMES))
    for href in (*page_links(tree, noise=True), *framed):
        try:
            url = absolute_url(href, base)
        except FetchError:
            continue  # Such a link dangles, and is counted there.
        if url.startswith(("http://", "https://")):
            yield url


def _refresh(body: bytes, base: str) -> str | None:
    target = refresh_target(body)
    try:
        return absolute_url(target, base) if target else None
    except FetchError:
        return None

"""Reads a server's answer as a page: its text, its links, and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from linkstore.core.display import make_readable
from linkstore.errors import FetchError
from linkstore.extract.html import UTF_8, DecodedText, find_base_href, find_page_links, forbids_indexing
from linkstore.extract.protocol import Chunk, Page
from linkstore.ingest.chunks import ChunkLimits, make_chunks
from linkstore.ingest.html.pages import (
    PageContent,
    decode_page,
    find_refresh_target,
    parse_page,
    read_page_content,
)
from linkstore.ingest.notes.markdown import read_markdown_page
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.texts import read_text_page
from linkstore.ingest.titles import PageTitles
from linkstore.ingest.web.fetching import Response, get_media_type
from linkstore.ingest.web.targets import make_absolute_url

_TITLES: Final = PageTitles()
"""Pages of a website are read one after another: which of them share a title is not known."""
_HTML: Final = frozenset({"", "text/html", "application/xhtml+xml"})
_MARKDOWN: Final = frozenset({"text/markdown", "text/x-markdown"})
_MARKDOWN_SUFFIXES: Final = (".md", ".markdown")
_TEXT_SUFFIXES: Final = frozenset({*_MARKDOWN_SUFFIXES, ".txt"})
_FRAMES: Final = "frame[src], iframe[src]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """The content of a response.

    Args:
        content: What it says, or why it cannot be read.
        links: Absolute URLs of what it links to, those in navigation too; each once.
        refresh: The absolute URL that it sends its reader on to, if that is all it does.
        unwanted: Whether it asks not to be indexed.
    """

    content: PageContent | UnreadablePageError
    links: tuple[str, ...] = ()
    refresh: str | None = None
    unwanted: bool = False


def is_page(url: str, headers: Mapping[str, str]) -> bool:
    """Say whether headers declare HTML, or nothing, or Markdown, or plain text in a file of either."""
    kind = get_media_type(headers)
    if kind == "text/plain":
        return PurePosixPath(urlsplit(url).path).suffix.lower() in _TEXT_SUFFIXES
    return kind in _HTML or kind in _MARKDOWN


def read_web_page(response: Response, *, encoding: str | None) -> WebPage:
    """Read the content of a response. Its links are read even if its text cannot be.

    Args:
        response: Holds HTML, Markdown or text. A byte-order mark wins over the charset of its header, and
            that over what the page itself declares, as in browsers.
        encoding: Whatever a page and its server declare, if not None.
    """
    try:
        kind = get_media_type(response.headers)
        return _read_html(response, encoding) if kind in _HTML else _read_text(response, kind, encoding)
    except Exception as error:  # noqa: BLE001 (a fault of a reader; one page ends no crawl)
        return WebPage(content=UnreadablePageError(f"reading it failed: {type(error).__name__}: {error}"))


def _read_text(response: Response, kind: str, encoding: str | None) -> WebPage:
    is_text = kind == "text/plain" and not urlsplit(response.url).path.lower().endswith(_MARKDOWN_SUFFIXES)
    try:
        text = decode_page(response.body, encoding, declared=response.headers.get("content-type"))
        page = (read_text_page if is_text else read_markdown_page)(text.text.encode(), encoding=UTF_8)
    except UnreadablePageError as error:
        return WebPage(content=error)
    page = replace(page, replaced=text.replaced, guessed=text.guessed)
    hrefs = (find_url(link.href, response.url) for block in page.blocks for link in block.links)
    unwanted = forbids_indexing(None, response.headers.get("x-robots-tag", ""))
    return WebPage(content=page, links=tuple(dict.fromkeys(filter(None, hrefs))), unwanted=unwanted)


def _read_html(response: Response, encoding: str | None) -> WebPage:
    problem: UnreadablePageError | None = None
    try:
        text = decode_page(response.body, encoding, declared=response.headers.get("content-type"))
    except UnreadablePageError as error:
        text, problem = DecodedText(response.body.decode(errors="replace"), UTF_8), error
    try:
        tree = parse_page(text.text)
    except UnreadablePageError as error:
        return WebPage(content=error)
    base = find_url(find_base_href(tree) or None, response.url) or response.url
    framed = (node.attributes.get("src") or "" for node in tree.css(_FRAMES))
    found_links = (find_url(href, base) for href in (*find_page_links(tree, noise=True), *framed))
    links = (url for url in found_links if url and url.startswith(("http://", "https://")))
    unwanted = forbids_indexing(tree, response.headers.get("x-robots-tag", ""))
    content: PageContent | UnreadablePageError
    try:
        content = replace(read_page_content(tree), replaced=text.replaced, guessed=text.guessed)
    except UnreadablePageError as error:
        content = error
    return WebPage(
        content=problem or content,
        links=tuple(dict.fromkeys(links)),
        refresh=find_url(find_refresh_target(response.body) or None, base),
        unwanted=unwanted,
    )


def make_web_chunks(
    url: str, found: PageContent, aliases: tuple[str, ...], limits: ChunkLimits
) -> list[Chunk]:
    """Make the chunks of a page.

    Args:
        url: Its absolute URL.
        found: What it says.
        aliases: Further URLs that lead to it.
        limits: How long chunks are.
    """
    named = make_readable(url)
    content = _TITLES.disambiguate(found, named)
    page = Page(
        url=named,
        title=content.title,
        base=content.base,
        aliases=aliases,
        left_out=content.left_out,
        replaced=content.replaced,
        guessed=content.guessed,
        metadata=content.metadata,
        problem=content.problem,
    )
    return make_chunks(page, content.blocks, limits)


def refuse_reading() -> list[Chunk]:
    """Stand in for reading a page that was offered as unchanged, unasked.

    Raises:
        UnreadablePageError: Always.
    """
    raise UnreadablePageError("it was not read, because nothing of it had changed")


def find_canonical_url(url: str, found: PageContent) -> str | None:
    """Return the absolute URL that a page names as its canonical one, if any."""
    return find_url(found.canonical or None, find_url(found.base or None, url) or url)


def find_url(href: str | None, base: str) -> str | None:
    """Return the absolute URL of a link, None without one, or if it is no URL, and so counted as dangling."""
    try:
        return None if href is None else make_absolute_url(href, base)
    except FetchError:
        return None

"""The readers that are fuzzed; each may raise what its docstring says, and no more."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzzing import inputs
from linkstore.core.urls import Site, normalize_url
from linkstore.errors import FetchError, LinkStoreError
from linkstore.extract import Page
from linkstore.extract.blocks import Block
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.notes.frontmatter import FrontMatterError, read_front_matter, split_front_matter
from linkstore.ingest.notes.markdown import read_markdown_page
from linkstore.ingest.notes.markup import NoteIndex, find_property_links, find_targets, render_note
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.web.website import read_sitemap
from linkstore.ingest.wiki.dump import read_pages, read_siteinfo
from linkstore.ingest.wiki.source import read_article, read_reference
from linkstore.ingest.wiki.titles import SiteInfo, TitleResolver
from linkstore_extractors.citations import CitationExtractor
from linkstore_extractors.html import HtmlInput, HtmlLinkExtractor, HyperlinkExtractor


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader.

    Args:
        pieces: What its inputs are made of.
        read: Reads one; what it raises is a fault.
    """

    pieces: str
    read: Callable[[str], object]


def _html(text: str) -> None:
    with suppress(UnreadablePageError):
        _documents(read_html_page(text.encode(errors="replace")).blocks)
    with suppress(LinkStoreError):
        HtmlLinkExtractor().extract(HtmlInput(content=text, base_url="https://o.org/a/b"))


def _markdown(text: str) -> None:
    front, body = split_front_matter(text)
    with suppress(FrontMatterError):
        read_front_matter(front)
    find_targets(text)
    render_note(body, "x.mdx", NoteIndex(("N.md", "a/index.md"), {}))
    with suppress(UnreadablePageError):
        _documents(read_markdown_page(text.encode(errors="replace")).blocks)


def _front_matter(text: str) -> None:
    front, _ = split_front_matter(f"---\n{text}\n---\nbody")
    with suppress(FrontMatterError):
        said = read_front_matter(front)
        json.dumps(said.fields, allow_nan=False).encode()
        links = find_property_links(dict(said.fields), "a/b.md", NoteIndex(("N.md", "a/index.md"), {}))
        for link in links:
            Site().tag(link.href, page="a/b.md")
    with suppress(UnreadablePageError):
        read_markdown_page(f"---\n{text}\n---\nbody".encode(errors="replace"))


def _wikitext(text: str) -> None:
    resolve = _titles().at("Page", 4)
    article = read_article(text, title="Page", resolve=resolve)
    _documents(article.blocks)
    for reference in list(article.references.values())[:100]:
        read_reference(reference, title="Page", resolve=resolve)


def _sitemap(text: str) -> None:
    with suppress(FetchError):
        read_sitemap(text.encode(errors="replace"))


def _dump(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.xml")
        path.write_bytes(b"<mediawiki>" + text.encode(errors="replace"))
        with suppress(LinkStoreError):
            read_siteinfo(path)
            for _ in read_pages(path, limit=100_000):
                pass


def _url(text: str) -> None:
    site = Site(bases=("https://o.org/docs/",), prefix="3")
    for url in text.split("\n"):
        found = normalize_url(url, base="https://o.org/a/b?c")
        assert found is None or normalize_url(found) == found, f"{url!r} is {found!r} first"
        site.tag(url, page="a/b.html", base=url)


def _documents(blocks: tuple[Block, ...]) -> None:
    chunks = make_chunks(Page(url="a/b.html", title="T"), blocks)
    for chunk in chunks:
        HyperlinkExtractor().extract(chunk)
        CitationExtractor().extract(chunk.text)


@cache
def _titles() -> TitleResolver:
    return TitleResolver(SiteInfo(base="https://en.wikipedia.org/wiki/Main_Page", language="en"), {}, None)


READERS = {
    "html": Reader(inputs.HTML, _html),
    "markdown": Reader(inputs.MARKDOWN, _markdown),
    "front matter": Reader(inputs.FRONT_MATTER, _front_matter),
    "wikitext": Reader(inputs.WIKITEXT, _wikitext),
    "sitemap": Reader(inputs.XML, _sitemap),
    "dump": Reader(inputs.XML, _dump),
    "url": Reader(inputs.URL, _url),
}

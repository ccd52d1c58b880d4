"""The links in the texts of documents of any loader: HTML, Markdown, and the titles of each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

from langchain_core.documents import Document

from linkstore.core.arguments import require_list
from linkstore.core.links import LINKS_KEY, Link, copy_with_links, get_links, merge_links
from linkstore.core.urls import Site, is_short_tag, split_tag
from linkstore.errors import ExtractionError
from linkstore.extract.html import UnboundedPageError, find_head_title, find_page_links, parse_html
from linkstore.extract.protocol import CorpusExtractor, LinkExtractor, load_extractor

ChosenLinks = Literal["auto"] | Sequence[str | LinkExtractor[Any]]
"""What :meth:`LinkStore.from_documents` takes for ``links``."""
HYPERLINK: Final = "hyperlink"
"""Names the links that authors wrote into texts, in HTML or Markdown."""
AUTO_LINKS: Final = (HYPERLINK, "mention")
_ORIGINS: Final = ("source", "url", "file_path")
"""The metadata keys for the origin of a document, the most common first."""
_HTML_PAGE: Final = re.compile(r"\s*(?:<!doctype html|<html|<head|<body)\b", re.IGNORECASE)
_HTML_LINK: Final = re.compile(r"<a\s[^>]*href", re.IGNORECASE)
_MARKDOWN_LINK: Final = re.compile(r"\]\(|^ {0,3}\[[^\]\n]+\]:\s", re.MULTILINE)
_HEADING: Final = re.compile(r"\s*#\s+(.+?)\s*#*\s*$", re.MULTILINE)
_SITE: Final = Site()


def extract_links(documents: Sequence[Document], links: ChosenLinks) -> list[Document]:
    """Return copies of documents with the links that extractors find in their texts.

    Args:
        documents: In the order of their sources; the first of those of one source answers to links to it.
        links: Names of extractors that read documents, or extractors. ``"hyperlink"`` reads links in HTML and
            Markdown to the ``source``, ``url`` or ``file_path`` of others. ``"auto"`` is that and
            ``"mention"``, unless a document has links already.

    Raises:
        ExtractionError: If an extractor is not installed, or does not read documents.
    """
    if isinstance(links, str):
        if links != "auto":
            raise ExtractionError(f"links must be 'auto' or a list of extractors, not {links!r}")
        links = () if any(LINKS_KEY in document.metadata for document in documents) else AUTO_LINKS
    require_list("extractors", links=links)
    made: list[list[Link]] = [[] for _ in documents]
    titled = [_add_title(document) for document in documents]
    for link in links:
        if link == HYPERLINK:
            _extract_hyperlinks(documents, made)
            continue
        extractor = load_extractor(link) if isinstance(link, str) else link
        if not isinstance(extractor, LinkExtractor) or getattr(extractor, "source", Document) is not Document:
            raise ExtractionError(
                f"the extractor {link!r} does not read documents; use linkstore.ingest.index for pages"
            )
        if isinstance(extractor, CorpusExtractor):
            extractor.observe(titled)
        for document, document_links in zip(titled, made, strict=True):
            document_links += extractor.extract(document)
    return [
        copy_with_links(document, merge_links(document_links)) if document_links else document
        for document, document_links in zip(documents, made, strict=True)
    ]


def is_linked(documents: Sequence[Document]) -> bool:
    """Say whether a link leads from one of these documents to another."""
    links = [(link, (link.kind, link.tag)) for document in documents for link in get_links(document)]
    targets = {name for link, name in links if link.leads_in}
    return any(link.leads_out and name in targets for link, name in links)


def _extract_hyperlinks(documents: Sequence[Document], made: Sequence[list[Link]]) -> None:
    seen: set[str] = set()
    for document, links in zip(documents, made, strict=True):
        origin = _find_origin(document)
        own = _SITE.tag(origin) if origin else None
        if own is not None and own not in seen and is_short_tag(own):
            seen.add(own)
            links.append(Link.incoming(kind=HYPERLINK, tag=own))
        for href, label in _find_hrefs(document.page_content):
            tag = split_tag(_SITE.tag(href, page=origin) or "")[0]  # a document is a whole
            if tag and tag != own and is_short_tag(tag):
                links.append(Link.outgoing(kind=HYPERLINK, tag=tag, label=label or None))


def _find_origin(document: Document) -> str:
    """Return the URL of a document, of a path relative to the root, or an empty string."""
    origins = (document.metadata.get(key) for key in _ORIGINS)
    origin = next((str(origin) for origin in origins if origin), "")
    return origin if "://" in origin else quote(origin.replace("\\", "/"), safe="/:@!$&()*+,;=~")


def _find_hrefs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the targets of the links in a text, with what is written there."""
    is_page = _HTML_PAGE.match(text) is not None
    if not is_page and not _HTML_LINK.search(text):
        if not _MARKDOWN_LINK.search(text):
            return
        import pyromark

        text = pyromark.html(text)
    try:
        yield from find_page_links(parse_html(text), noise=not is_page).items()
    except UnboundedPageError:  # its links cannot be read within bounds, but its text can be stored
        return


def _add_title(document: Document) -> Document:
    """Return a document, for extractors to read, with the title in its text if its metadata have none."""
    if "title" in document.metadata:
        return document
    text = document.page_content
    if heading := _HEADING.match(text):
        title = heading[1]
    elif _HTML_PAGE.match(text):
        try:
            title = find_head_title(parse_html(text))
        except UnboundedPageError:
            return document
    else:
        return document
    return document.model_copy(update={"metadata": {**document.metadata, "title": title}})

"""A source of finished documents: those of a loader or a splitter of LangChain.

The tags of documents that are not pages of a site are made of their URL or, without one, of their id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import orjson
import xxhash
from langchain_core.documents import Document

from linkstore.core.arguments import require, require_list
from linkstore.core.display import encode_controls
from linkstore.core.links import LINKS_KEY, SECTION, Link, get_links, merge_links
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import Site, is_short_tag
from linkstore.errors import DocumentError, LinkError
from linkstore.extract.html import UTF_8
from linkstore.ingest.documents import ClaimPolicy, Claims
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.notes.frontmatter import NotPlainError, make_plain
from linkstore.ingest.source import BadInput, EmptyPageError, SourcePage, UnreadablePageError

HYPERLINK: Final = "hyperlink"
"""Kind of the links that authors wrote, whatever the syntax."""
_HTML_PAGE: Final = re.compile(r"\s*(?:<!doctype html|<html)\b", re.IGNORECASE)
_ORIGINS: Final = ("source", "url", "file_path")
"""The metadata keys for the origin of a document, the most common first."""
_START: Final = "start_index"
"""The metadata key under which LangChain's splitters say where a chunk begins."""


def make_id_tag(id: str) -> str:
    """Return the URL, relative to the root of a site, of a document without one: its id."""
    return id if "://" in id else f"./{quote(id.lstrip('/'), safe='/:@!$&()*+,;=~')}"


def make_incoming_links(url: str, site: Site) -> list[Link]:
    """Return the hyperlinks that lead to a document by its URL.

    Args:
        url: Absolute, or relative to the root of the site, may have a fragment.
        site: How documents are named.
    """
    tag = site.tag(url)
    return [Link.incoming(kind=HYPERLINK, tag=tag)] if tag is not None and is_short_tag(tag) else []


@dataclass(frozen=True, slots=True)
class DocumentsSource:
    """LangChain documents, such as ``loader.lazy_load()``; each is a page of its own.

    Documents are stored as they are, with the links they carry, and those of a text that is a whole page of
    HTML with a URL for its origin. Split them first where they are long. A document without id gets one that
    stays the same while its origin (``source`` or ``url`` of its metadata) and its text do. Of the documents
    in a row that have one URL for their origin, such as the chunks of a page, the first answers to links to
    it. Metadata becomes plain JSON.

    Documents in a row with one origin are taken for its chunks in order: each has a ``section`` link to the
    next and to the previous one, as chunks of a page have. Those with the ``start_index`` of a splitter are
    ordered by it. Where a chunk begins with the end of the one before, the data of its link says how many
    characters they share: ``{"overlap": 200}``. At most the chunks of one origin are held.

    Args:
        documents: Any iterable; read once in each run.
        name: Names the documents within the store. A later run with the same name replaces them.
        prefix: Path below which the documents are stored, next to other sources.
        claims: ``"any"`` also accepts documents with URLs of another site than that of the first document
            with a URL: see :mod:`linkstore.ingest.documents`.

    Raises:
        LinkError: If the prefix is not a path.
    """

    documents: Iterable[Document]
    name: str
    _: KW_ONLY
    prefix: str = ""
    claims: ClaimPolicy = "own"

    def __post_init__(self) -> None:
        require_list("documents", documents=self.documents)
        require(str, "a string", name=self.name)
        Claims(self.claims)
        Site(prefix=self.prefix)

    def open(self) -> AbstractContextManager[GivenDocuments]:
        """Take up the documents."""
        return nullcontext(GivenDocuments(self))


class GivenDocuments:
    """Documents, in one run."""

    def __init__(self, given: DocumentsSource) -> None:
        self._documents = given.documents
        self._policy: ClaimPolicy = given.claims
        self.site: Final = Site(prefix=given.prefix)
        self.unread: Final[Mapping[str, int]] = {}

    def __len__(self) -> int:
        """Return how many documents there are, 0 where that is not known beforehand."""
        return len(self._documents) if isinstance(self._documents, Sequence) else 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the documents in order. Those that come twice are reported."""
        claims = Claims(self._policy, None)
        waiting: _Record | None = None
        for record in self._records(claims):
            if isinstance(record, BadInput):
                yield record
                continue
            if not record.text.strip():  # reported when it is read; its neighbours follow each other
                yield record.page()
                continue
            if waiting is not None:
                _link_in_order(waiting, record)
                yield waiting.page()
            waiting = record
        if waiting is not None:
            yield waiting.page()
        yield from claims.refusals.report()

    def _records(self, claims: Claims) -> Iterator[_Record | BadInput]:
        seen: set[bytes] = set()
        before = None
        for number, document in _order_chunks(self._documents):
            origin = _find_origin(document)
            id = document.id or _make_id(document, origin)
            key = xxhash.xxh3_128_digest(id.encode(errors="replace"))
            if key in seen:
                yield BadInput(
                    name=f"document {number}", reason=f"an earlier document has the same id {id!r}"
                )
                continue
            seen.add(key)
            url = origin if origin != before and "://" in origin else ""
            before = origin
            try:
                metadata = make_plain({key: of for key, of in document.metadata.items() if key != LINKS_KEY})
                links = list(get_links(document))
            except (NotPlainError, LinkError) as error:
                yield BadInput(name=id, reason=f"document {number}: {error}")
                continue
            if url:
                links += make_incoming_links(url, self.site)
                links += _find_hyperlinks(document.page_content, url, self.site)
            accepted = [  # a hyperlink that leads in claims a URL
                link
                for link in links
                if link.kind != HYPERLINK or not link.leads_in or claims.accepts(link.tag, id)
            ]
            yield _Record(id=id, origin=origin, text=document.page_content, metadata=metadata, links=accepted)


@dataclass(slots=True, kw_only=True)
class _Record:
    """A document to be stored, to which links to its neighbours may still be added."""

    id: str
    origin: str
    text: str
    metadata: dict[str, Any]
    links: list[Link]

    def page(self) -> SourcePage:
        """Return the page that is the document."""
        metadata = {**self.metadata, LINKS_KEY: [link.to_dict() for link in merge_links(self.links)]}
        stored = Document(id=self.id, page_content=self.text, metadata=metadata)
        content = (self.text.encode(errors="replace"), orjson.dumps(metadata))
        digest = xxhash.xxh3_128_hexdigest(b"\0".join(content))
        return SourcePage(url=self.id, digest=digest, read=partial(_list_document, stored))


def _order_chunks(documents: Iterable[Document]) -> Iterator[tuple[int, Document]]:
    """Yield documents with their numbers, those of one origin by their start index.

    An index counts from the start of what was split, which may be a page of the origin: documents whose
    other metadata differ stay in the order in which they came.

    Raises:
        DocumentError: If one is not a Document.
    """
    run: list[tuple[int, Document]] = []
    for number, document in enumerate(documents, start=1):
        if not isinstance(document, Document):
            raise DocumentError(f"document {number} must be a Document, not {repr(document)[:200]}")
        start, origin = document.metadata.get(_START), _find_origin(document)
        if run and (not isinstance(start, int) or origin != _find_origin(run[0][1])):
            yield from _sort_chunks(run)
            run = []
        if isinstance(start, int) and origin:
            run.append((number, document))
        else:
            yield number, document
    yield from _sort_chunks(run)


def _sort_chunks(run: Sequence[tuple[int, Document]]) -> list[tuple[int, Document]]:
    parts: dict[str, int] = {}

    def place(one: tuple[int, Document]) -> tuple[int, int]:
        metadata = one[1].metadata
        others = repr(sorted((str(key), repr(of)) for key, of in metadata.items() if key != _START))
        return parts.setdefault(others, len(parts)), metadata[_START]

    return sorted(run, key=place)


def _find_origin(document: Document) -> str:
    origins = (document.metadata.get(key) for key in _ORIGINS)
    return next((str(origin) for origin in origins if origin), "")


def _link_in_order(first: _Record, second: _Record) -> None:
    """Link two documents that follow each other with each other, if they are chunks of one origin."""
    named = is_short_tag(first.id) and is_short_tag(second.id)
    if not named or not first.origin or first.origin != second.origin:
        return
    for record, other, label in ((first, second, "next"), (second, first, "previous")):
        if not any(link.kind == SECTION and link.label == label for link in record.links):
            record.links.append(Link.outgoing(kind=SECTION, tag=other.id, label=label))
            other.links.append(Link.incoming(kind=SECTION, tag=other.id))


def _make_id(document: Document, origin: str) -> str:
    digest = xxhash.xxh3_128_hexdigest(document.page_content.encode(errors="replace"))
    cleaned = encode_controls(replace_surrogates(origin))
    return f"{cleaned}#{digest[:16]}" if cleaned else digest


def _find_hyperlinks(text: str, url: str, site: Site) -> Iterator[Link]:
    """Yield the hyperlinks of a text that is a whole page of HTML, as a loader of raw pages leaves it."""
    if _HTML_PAGE.match(text) is None:
        return
    with suppress(UnreadablePageError):
        page = read_html_page(text.encode(errors="replace"), encoding=UTF_8)
        for hyperlink in (link for block in page.blocks for link in block.links):
            tag = site.tag(hyperlink.href, page=url, base=page.base)
            if tag is not None and is_short_tag(tag):
                yield Link.outgoing(kind=HYPERLINK, tag=tag, label=hyperlink.label or None)


def _list_document(document: Document) -> list[Document]:
    if not document.page_content.strip():
        raise EmptyPageError("it has no text")
    return [document]

"""LangChain documents as a source, such as those that a loader or a splitter gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson
import xxhash
from langchain_core.documents import Document

from linkstore.arguments import require, require_list
from linkstore.errors import DocumentError, LinkError
from linkstore.extraction import LinkExtractor
from linkstore.ingest.claims import ClaimPolicy, Claims
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.notes.plain import NotPlainError, plain
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
from linkstore.ingest.records.naming import HYPERLINK, incoming
from linkstore.ingest.sink import PageStore
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.summary import Progress, Summary
from linkstore.letters import escaped_controls
from linkstore.links import LINKS_KEY, get_links
from linkstore.text import without_surrogates
from linkstore.urls import Site

_ORIGINS: Final = ("source", "url", "file_path")
"""The metadata keys for the origin of a document, the most common first."""


class DocumentsSource:
    """LangChain documents, as they come: each is a page of its own, and no more than one is held.

    A document without id gets one that stays the same while its origin (``source`` or ``url`` of its
    metadata) and its text do. Of the documents in a row that have one URL for their origin, such as the
    chunks of a page, the first answers to links to it. Metadata becomes plain JSON.

    Args:
        documents: Any iterable; read once.
        name: Names the source within the store.
        prefix: Path below which the documents are stored, next to other sources; see :func:`index_folder`.
        claims: Which URLs a document may have; see :func:`index_documents`.

    Raises:
        LinkError: If the prefix is not a path.
    """

    def __init__(
        self, documents: Iterable[Document], name: str, *, prefix: str = "", claims: ClaimPolicy = "own"
    ) -> None:
        require_list("documents", documents=documents)
        require(str, "a string", source=name)
        self._documents = documents
        self._name = name
        self._policy: ClaimPolicy = claims
        self._site = Site(prefix=prefix)

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def site(self) -> Site:
        """Names the documents by their ids."""
        return self._site

    def __len__(self) -> int:
        """Return how many documents there are, 0 where that is not known beforehand."""
        return len(self._documents) if isinstance(self._documents, Sequence) else 0

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the documents in order. Those that come twice are reported."""
        seen: set[bytes] = set()
        claims = Claims(self._policy, None)
        before = None
        for number, document in enumerate(self._documents, start=1):
            if not isinstance(document, Document):
                raise DocumentError(f"document {number} must be a Document, not {repr(document)[:200]}")
            origin = _origin(document)
            id = document.id or _made_id(document, origin)
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
                metadata = plain({key: of for key, of in document.metadata.items() if key != LINKS_KEY})
                links = [link.to_dict() for link in get_links(document)]
            except (NotPlainError, LinkError) as error:
                yield BadInput(name=id, reason=f"document {number}: {error}")
                continue
            links += [link.to_dict() for link in incoming(url, self._site)] if url else []
            links = [link for link in links if _is_own(link, id, claims)]
            stored = Document(
                id=id, page_content=document.page_content, metadata={**metadata, LINKS_KEY: links}
            )
            yield SourcePage(url=id, digest=_digest(stored), read=partial(_read, stored))
        yield from claims.report()


def index_documents(
    store: PageStore,
    documents: Iterable[Document],
    *,
    source: str,
    prefix: str = "",
    links: Sequence[str | LinkExtractor[Any]] = DEFAULT_LINKS,
    claims: ClaimPolicy = "own",
    progress: Progress | None = None,
    dry_run: bool = False,
    prune: bool = False,
    jobs: int | None = None,
) -> Summary:
    """Index LangChain documents, such as ``loader.lazy_load()``: see :func:`index_source`.

    Documents are stored as they are, with the links they carry. Split them first where they are long.
    Documents of the source's last run that do not come again are removed. If those are more than half, they
    are removed only with ``prune``.

    Args:
        store: Where the documents go, such as a :class:`~linkstore.store.LinkStore`.
        documents: Any iterable, read once, and not held in memory.
        source: Name of these documents in the store. A later run with the same name replaces them.
        prefix: Path below which the documents are stored, next to other sources. See :func:`index_folder`.
        links: Names of link extractors, or extractors. Of these, those that read documents are asked.
        claims: ``"any"`` also accepts documents with URLs of another site than that of the first document
            with a URL: see :mod:`linkstore.ingest.claims`.
        progress: Called after each document.
        dry_run: Return what would be done, and write nothing.
        prune: Remove missing documents even if they are more than half of those stored.
        jobs: How many processes read. See :func:`~linkstore.ingest.index_source`.

    Raises:
        DocumentError: If one is not a Document.
        NothingIndexedError: If none of the documents can be indexed, and none are stored.
        RemovalRefusedError: If more than half of the stored documents do not come again.
        SourceConflictError: If another source has a document of the same id.
        LinkError: If the prefix is not a path.
        ExtractionError: If an extractor is not installed, or cannot be used here.
    """
    found = DocumentsSource(documents, source, prefix=prefix, claims=claims)
    return index_source(store, found, links=links, progress=progress, dry_run=dry_run, prune=prune, jobs=jobs)


def _is_own(link: Mapping[str, Any], id: str, claims: Claims) -> bool:
    """Say whether a link may be the document's. A hyperlink that leads in claims a URL."""
    leads_in = link["kind"] == HYPERLINK and link["direction"] != "out"
    return not leads_in or claims.accepted(link["tag"], id)


def _origin(document: Document) -> str:
    """Return the origin of a document, empty if it is not known."""
    found = (document.metadata.get(key) for key in _ORIGINS)
    return next((str(one) for one in found if one), "")


def _made_id(document: Document, origin: str) -> str:
    digest = xxhash.xxh3_128_hexdigest(document.page_content.encode(errors="replace"))
    cleaned = escaped_controls(without_surrogates(origin))
    return f"{cleaned}#{digest[:16]}" if cleaned else digest


def _digest(document: Document) -> str:
    said = (document.page_content.encode(errors="replace"), orjson.dumps(document.metadata))
    return xxhash.xxh3_128_hexdigest(b"\0".join(said))


def _read(document: Document) -> list[Document]:
    if not document.page_content.strip():
        raise UnreadablePageError("it has no text")
    return [document]

"""Documents on their way into a store: checked, embedded, and turned into the records of an engine."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.arrays import Floats, normalize_vectors
from linkstore.core.calls import call_engine
from linkstore.core.documents import check_id, convert_link_data
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.metadata import convert_metadata
from linkstore.core.plans import Operation
from linkstore.core.processes import run_without_collector
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record
from linkstore.errors import DocumentError, EmbeddingError
from linkstore.store.embedding import StoreEmbedding

CONTENT_ID: Final = "content_id"
"""The metadata key under which langchain-community's graph stores keep the id of a document."""
_GET_DATA: Final = attrgetter("data")


@dataclass(frozen=True, slots=True)
class Draft:
    """A validated document, not embedded yet."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    links: tuple[Link, ...]


def prepare_drafts(documents: Sequence[Document], ids: Sequence[str | None]) -> list[Draft]:
    """Check documents that are to be stored under these ids; None: the document's own, or a new one.

    Raises:
        DocumentError: If there are not as many ids, or a document cannot be stored.
        LinkError: If a link is invalid.
    """
    if len(ids) != len(documents):
        raise DocumentError(
            f"got {len(documents)} documents and {len(ids)} ids; pass one id for each document"
        )
    pairs = zip(documents, ids, strict=True)
    return run_without_collector(lambda: [_make_draft(document, id) for document, id in pairs])


def _make_draft(document: Document, id: str | None) -> Draft:
    metadata = document.metadata
    if id is None:
        id = document.id or metadata.get(CONTENT_ID) or str(uuid.uuid4())
    id = check_id(id)
    links = parse_links(metadata, id)
    if links and (any(map(_GET_DATA, links)) or not {*map(type, metadata[LINKS_KEY])} <= {dict}):
        metadata = {**metadata, LINKS_KEY: convert_link_data(metadata[LINKS_KEY])}
    # Links are checked already, and are most of what there is to check.
    own = {key: value for key, value in metadata.items() if key != LINKS_KEY}
    kept = convert_metadata(own, id) if own else own
    if kept is not own:
        metadata = {**metadata, **kept}
    check_text(id, document.page_content)
    return Draft(id, document.page_content, metadata, links)


def check_text(id: str, text: str) -> None:
    """Refuse a text that UTF-8 cannot hold.

    Raises:
        DocumentError: Naming the document.
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"document {id!r} cannot be stored: {error}") from error


def embed_drafts(
    backend: Backend, embedding: StoreEmbedding, drafts: Sequence[Draft], given: Floats | None = None
) -> Operation[list[Record]]:
    """Embed drafts, unless their vectors are given, and record the embedding if they are the first.

    Raises:
        EmbeddingError: If the embedding is not that of the store, or another client records one meanwhile.
        DocumentError: If a vector has no direction.
    """
    if not drafts:
        return []
    vectors: Any = given
    if vectors is None:
        try:
            vectors = yield from embedding.embed_documents([draft.text for draft in drafts])
        except EmbeddingError as error:
            if error.position is None:
                raise
            named = f"document {drafts[error.position].id!r}: {error}"
            raise EmbeddingError(named, error.position) from error
    manifest: Manifest = yield call_engine(backend, backend.manifest())
    vectors = normalize_vectors(vectors, manifest.dimension, [draft.id for draft in drafts])
    check_count(vectors, drafts)
    if manifest.dimension is None:
        mine = Manifest(embedding=embedding.name, dimension=vectors.shape[1])
        claimed: Manifest = yield call_engine(backend, backend.claim(mine))
        if claimed != mine:
            raise EmbeddingError(
                f"another client began to fill the store at the same time, with the embedding"
                f" {claimed.embedding!r} of dimension {claimed.dimension}, not {embedding.name!r} of"
                f" dimension {mine.dimension}; repeat the call, which then compares both"
            )
    return [
        Record(id=draft.id, text=draft.text, metadata=draft.metadata, vector=vector, links=draft.links)
        for draft, vector in zip(drafts, vectors, strict=True)
    ]


def check_count(vectors: Floats, texts: Sequence[object]) -> None:
    """Raise EmbeddingError unless there is a vector for each text."""
    if len(vectors) != len(texts):
        raise EmbeddingError(f"the embedding returned {len(vectors)} vectors for {len(texts)} texts")


def as_document(record: Record) -> Document:
    """Return a stored record as LangChain's document."""
    return Document(id=record.id, page_content=record.text, metadata=dict(record.metadata))

"""The operations of a store: generators that request embeddings and backend operations.

The classes in ``linkstore.store`` drive them, sync and async.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np
from langchain_core.documents import Document

from linkstore.arguments import given, require, require_list
from linkstore.backends.base import Backend, Change, Manifest, PageEntry, Record, Written
from linkstore.errors import DocumentError, EmbeddingError, LinkError, SourceConflictError
from linkstore.gc_pause import collection_paused
from linkstore.hits import Hits
from linkstore.ids import check_id, is_storable, storable
from linkstore.links import LINKS_KEY, Link, links_in, merge_links
from linkstore.metadata import stored_metadata
from linkstore.observing import counting_reached
from linkstore.pagedocuments import PageDocuments
from linkstore.plans import Candidates, Documents, Find, Operation, Plan, Stored
from linkstore.requests import EmbedDocuments, EmbedQuery, Engine
from linkstore.schemacheck import check_documents, check_links
from linkstore.searchoptions import SearchOptions
from linkstore.storedlinks import with_plain_data
from linkstore.strategies import Strategy
from linkstore.strategies.ceiling import check_depth, within_depth
from linkstore.vectors import Floats, as_matrix, question_vector, unit_vector, unit_vectors

T = TypeVar("T")
BATCH_SIZE: Final = 2048
"""How many documents are embedded and written at once, by default."""
CONTENT_ID: Final = "content_id"
"""The metadata key under which langchain-community's graph stores keep the id of a document."""
INCOMPLETE: Final = ""
"""Digest of a page that lost documents; it matches no source, so the next run indexes the page again."""


def search(
    backend: Backend,
    query: str | Sequence[float],
    strategy: Strategy,
    options: SearchOptions,
    max_depth: int | None = None,
    reached: list[int] | None = None,
) -> Operation[Hits]:
    """Embed the query unless it is a vector, run the strategy's plan, and apply its reranker.

    Args:
        backend: Where the documents are.
        query: The question, or its vector.
        strategy: How to search.
        options: Filters and additional starting points.
        max_depth: How many links in a row the search may follow. None: any number.
        reached: If given, takes the number of documents that each step along links gave.

    Raises:
        StrategyError: If the strategy follows more than ``max_depth`` links.
        EmbeddingError: If the query is neither a string nor a vector of the store's dimension.
    """
    text = query if isinstance(query, str) else ""
    given = None if isinstance(query, str) else question_vector(query)
    question = options.question(_UNASKED, text)  # raise on an invalid link before embedding
    check_depth(strategy, max_depth)
    vector = (yield EmbedQuery(text)) if given is None else given
    manifest: Manifest = yield Engine(backend.manifest())
    question = replace(question, vector=unit_vector(vector, manifest.dimension))
    plan = within_depth(strategy.plan(question), max_depth, str(strategy))
    if reached is not None:
        plan = counting_reached(plan, reached)
    hits: Hits = yield Engine(backend.answer(plan, options.conditions.scope))
    return (yield from strategy.judged(question, hits))


def answer(backend: Backend, plan: Plan[T]) -> Operation[T]:
    """Carry out a plan."""
    return (yield Engine(backend.answer(plan)))  # type: ignore[no-any-return]


def add(
    backend: Backend,
    embedding: str,
    documents: Sequence[Document],
    ids: Sequence[str | None],
    batch_size: int,
) -> Operation[list[str]]:
    """Add documents, replacing those with the same id, or none if one is invalid.

    Raises:
        DocumentError: If ``batch_size`` is less than 1, with which nothing would be written.
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise DocumentError(f"batch_size must be an integer of at least 1, not {batch_size!r}")
    prepared = _prepared(documents, ids)
    yield from check_documents(backend, prepared)
    for start in range(0, len(prepared), batch_size):
        records = yield from _embedded(backend, embedding, prepared[start : start + batch_size])
        yield Engine(backend.write(Change(put=records)))
    return [draft.id for draft in prepared]


def embed_pages(
    backend: Backend, source: str, pages: Sequence[PageDocuments]
) -> Operation[list[PageDocuments]]:
    """Return pages with the vectors of their documents, so that :func:`put_pages` embeds nothing.

    Raises:
        SourceConflictError: If another source has a page of the same name.
        DocumentError: If a text cannot be stored.
    """
    _refuse_others((yield Engine(backend.pages(None, [page.url for page in pages]))), source)
    documents = [document for page in pages for document in page.documents]
    if not documents:
        return list(pages)
    for document in documents:
        _check_text(document.id or "", document.page_content)
    vectors = as_matrix((yield EmbedDocuments([document.page_content for document in documents])))
    _check_count(vectors, documents)
    ends = accumulate(len(page.documents) for page in pages)
    return [
        replace(page, vectors=vectors[end - len(page.documents) : end])
        for page, end in zip(pages, ends, strict=True)
    ]


def put_pages(
    backend: Backend, embedding: str, source: str, pages: Sequence[PageDocuments]
) -> Operation[Written]:
    """Replace whole pages in one change, and remove the documents that they no longer have.

    Raises:
        SourceConflictError: If another source has a page of the same name.
    """
    entries: list[PageEntry] = yield Engine(backend.pages(None, [page.url for page in pages]))
    _refuse_others(entries, source)
    before = {one for entry in entries for one in entry.ids}
    documents = [document for page in pages for document in page.documents]
    prepared = _prepared(documents, [document.id for document in documents])
    yield from check_documents(backend, prepared)
    records = yield from _embedded(backend, embedding, prepared, _vectors_of(pages))
    change = Change(
        put=records,
        remove=sorted(before - {record.id for record in records}),
        put_pages=[
            PageEntry(
                source=source,
                url=page.url,
                digest=page.digest,
                ids=tuple(str(document.id) for document in page.documents),
            )
            for page in pages
        ],
    )
    return (yield Engine(backend.write(change)))  # type: ignore[no-any-return]


def check_pages(backend: Backend, source: str, urls: Sequence[str]) -> Operation[None]:
    """Raise if another source has one of these pages.

    Raises:
        SourceConflictError: If another source has one.
    """
    _refuse_others((yield Engine(backend.pages(None, urls))), source)


def _refuse_others(entries: Sequence[PageEntry], source: str) -> None:
    for entry in entries:
        if entry.source != source:
            raise SourceConflictError(
                f"the page {entry.url!r} was already indexed from the source {entry.source!r}; to update that"
                f" source, use its name; to keep both pages, index one source with a prefix"
            )


def remove_pages(backend: Backend, source: str, urls: Sequence[str]) -> Operation[Written]:
    """Remove pages with their documents, in one change."""
    gone: list[PageEntry] = yield Engine(backend.pages(source, urls))
    change = Change(
        remove=[id for entry in gone for id in entry.ids],
        remove_pages=[(source, entry.url) for entry in gone],
    )
    return (yield Engine(backend.write(change)))  # type: ignore[no-any-return]


def delete(backend: Backend, ids: Sequence[str]) -> Operation[Written]:
    """Remove documents, and mark their pages so that the next run of the source restores them."""
    ids = storable("ids", ids)
    pages: list[str] = yield from answer(backend, _pages_of(tuple(ids)))
    entries: list[PageEntry] = (yield Engine(backend.pages(None, pages))) if pages else []
    gone = frozenset(ids)
    marked = [
        replace(entry, digest=INCOMPLETE, ids=tuple(id for id in entry.ids if id not in gone))
        for entry in entries
        if not gone.isdisjoint(entry.ids)
    ]
    return (yield Engine(backend.write(Change(remove=ids, put_pages=marked))))  # type: ignore[no-any-return]


def _pages_of(ids: tuple[str, ...]) -> Plan[list[str]]:
    """Return the pages of documents, without duplicates. A document without a page counts as its own."""
    found: Candidates = yield Find(ids=ids)
    stored: list[Stored] = yield Documents(refs=found.refs)
    named = (one.metadata.get("page", one.id) for one in stored)
    return list(dict.fromkeys(id for id in named if is_storable(id)))


def delete_pages(backend: Backend, urls: Sequence[str]) -> Operation[Written]:
    """Remove pages of any source, with their documents, in one change."""
    gone: list[PageEntry] = yield Engine(backend.pages(None, storable("urls", urls)))
    change = Change(
        remove=[id for entry in gone for id in entry.ids],
        remove_pages=[(entry.source, entry.url) for entry in gone],
    )
    return (yield Engine(backend.write(change)))  # type: ignore[no-any-return]


def replace_links(
    backend: Backend, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
) -> Operation[Written]:
    """Replace the links of these kinds in stored documents, in one change.

    Raises:
        LinkError: If a new link has another kind. The message names the document and the link.
    """
    require_list("kinds", kinds=kinds)
    require(Mapping, "a dict of links by the ids of documents", links=links)
    wanted = frozenset(kinds)
    merged = {id: merge_links(links[id]) for id in storable("ids", links)}
    for id, listed in merged.items():
        for link in listed:
            if link.kind not in wanted:
                raise LinkError(
                    f"document {id!r}: the kind of {link} is not among the kinds to replace"
                    f" ({', '.join(sorted(wanted)) or 'none'}); add it to kinds"
                )
    yield from check_links(backend, merged)
    return (yield Engine(backend.relink(wanted, merged)))  # type: ignore[no-any-return]


def touch(backend: Backend, ids: Sequence[str], at: datetime | None) -> Operation[int]:
    """Record when documents were last accessed, and return how many of them there are.

    Raises:
        DocumentError: If ``at`` has no time zone, or lies before 1970 or in the future.
    """
    require(datetime, "a datetime", **given(at=at))
    now = datetime.now(UTC)
    moment = now if at is None else at
    if moment.tzinfo is None:
        raise DocumentError(f"the time of an access needs a time zone: {moment!r}; use datetime.now(UTC)")
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    if micros < 0:
        raise DocumentError(f"the time of an access must not lie before 1970: {moment!r}")
    if moment > now + _AHEAD:
        raise DocumentError(
            f"the time of an access must not lie in the future: {moment!r}, and it is {now!r}; the latest"
            " access stays, so this one would hide those to come"
        )
    times = dict.fromkeys(storable("ids", ids), micros)
    return (yield Engine(backend.touch(times)))  # type: ignore[no-any-return]


def accessed(backend: Backend, ids: Sequence[str]) -> Operation[dict[str, datetime]]:
    """Return when documents were last accessed, for those with a recorded time."""
    asked = list(dict.fromkeys(storable("ids", ids)))
    times: dict[str, int] = yield Engine(backend.accessed(asked))
    return {id: _EPOCH + timedelta(microseconds=times[id]) for id in asked if id in times}


@dataclass(frozen=True, slots=True)
class _Draft:
    """A validated document, not embedded yet."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    links: tuple[Link, ...]


def _prepared(documents: Sequence[Document], ids: Sequence[str | None]) -> list[_Draft]:
    if len(ids) != len(documents):
        raise DocumentError(
            f"got {len(documents)} documents and {len(ids)} ids; pass one id for each document"
        )
    pairs = zip(documents, ids, strict=True)
    return collection_paused(lambda: [_draft(document, id) for document, id in pairs])


def _draft(document: Document, id: str | None) -> _Draft:
    metadata = document.metadata
    if id is None:
        id = document.id or metadata.get(CONTENT_ID) or str(uuid.uuid4())
    id = check_id(id)
    links = links_in(metadata, id)
    if links and (any(map(_DATA, links)) or not {*map(type, metadata[LINKS_KEY])} <= {dict}):
        metadata = {**metadata, LINKS_KEY: with_plain_data(metadata[LINKS_KEY])}
    # Links are checked already, and are most of what there is to check.
    own = {key: value for key, value in metadata.items() if key != LINKS_KEY}
    kept = stored_metadata(own, id) if own else own
    if kept is not own:
        metadata = {**metadata, **kept}
    _check_text(id, document.page_content)
    return _Draft(id, document.page_content, metadata, links)


def _check_text(id: str, text: str) -> None:
    """Refuse a text that UTF-8 cannot hold.

    Raises:
        DocumentError: Naming the document.
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(f"document {id!r} cannot be stored: {error}") from error


def _vectors_of(pages: Sequence[PageDocuments]) -> Floats | None:
    """Return the vectors of the documents of pages, if all of them were embedded."""
    vectors = [page.vectors for page in pages if page.vectors is not None]
    return np.concatenate(vectors) if vectors and len(vectors) == len(pages) else None


def _embedded(
    backend: Backend, embedding: str, drafts: Sequence[_Draft], given: Any = None
) -> Operation[list[Record]]:
    """Embed drafts, unless their vectors are given, and record the embedding if they are the first."""
    if not drafts:
        return []
    if given is None:
        try:
            given = yield EmbedDocuments([draft.text for draft in drafts])
        except EmbeddingError as error:
            if error.position is None:
                raise
            named = f"document {drafts[error.position].id!r}: {error}"
            raise EmbeddingError(named, error.position) from error
    manifest: Manifest = yield Engine(backend.manifest())
    vectors = unit_vectors(given, manifest.dimension, [draft.id for draft in drafts])
    _check_count(vectors, drafts)
    if manifest.dimension is None:
        mine = Manifest(embedding=embedding, dimension=vectors.shape[1])
        claimed: Manifest = yield Engine(backend.claim(mine))
        if claimed != mine:
            raise EmbeddingError(
                f"another client began to fill the store at the same time, with the embedding"
                f" {claimed.embedding!r} of dimension {claimed.dimension}, not {embedding!r} of dimension"
                f" {mine.dimension}; repeat the call, which then compares both"
            )
    return [
        Record(id=draft.id, text=draft.text, metadata=draft.metadata, vector=vector, links=draft.links)
        for draft, vector in zip(drafts, vectors, strict=True)
    ]


def _check_count(vectors: Floats, texts: Sequence[object]) -> None:
    if len(vectors) != len(texts):
        raise EmbeddingError(f"the embedding returned {len(vectors)} vectors for {len(texts)} texts")


def scan(backend: Backend, after: str | None, batch: int = 500) -> Operation[list[Record]]:
    """Return the next records by id, or an empty list after the last one."""
    return (yield Engine(backend.scan(after, batch)))  # type: ignore[no-any-return]


def as_document(record: Record) -> Document:
    """Return a stored record as LangChain's document."""
    return Document(id=record.id, page_content=record.text, metadata=dict(record.metadata))


_DATA: Final = attrgetter("data")
_UNASKED: Final = unit_vector([1.0])
_AHEAD: Final = timedelta(minutes=1)
"""How far the clock of whoever says when an access was may be ahead of this machine's."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

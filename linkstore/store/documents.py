"""Methods of a store for single documents, and how documents become the records of an engine."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, TypeAlias

from langchain_core.documents import Document

from linkstore.core.arguments import (
    convert_metadata,
    make_argument_error,
    omit_none,
    quote_value,
    require_list,
)
from linkstore.core.arrays import Floats, as_matrix, normalize_vectors
from linkstore.core.calls import Operation, arun, call_engine, call_plan, run
from linkstore.core.documents import (
    ACCESS_KEY,
    HALF_LIFE_KEY,
    MEMORY_KEY,
    Draft,
    check_id,
    convert_link_data,
    is_storable,
    keep_storable,
    make_document,
)
from linkstore.core.hits import HIT_KEY
from linkstore.core.links import LINKS_KEY, get_links, parse_links
from linkstore.core.plans import Plan, StoredDocument, read_documents
from linkstore.core.processes import infrequent_gc
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, PageEntry, Record, WriteBatch, WriteCounts
from linkstore.errors import ArgumentError, DocumentError, EmbeddingError, warn
from linkstore.store.base import StoreBase
from linkstore.store.embedding import StoreEmbedding
from linkstore.store.usage import make_access_times

VectorsLike: TypeAlias = Floats | Sequence[Sequence[float]]
"""Vectors of documents, one for each."""
CONTENT_ID: Final = "content_id"
"""The metadata key under which langchain-community's graph stores keep the id of a document."""
_GET_DATA: Final = attrgetter("data")
BATCH_SIZE: Final = 2048
"""How many documents are embedded and written at once, by default."""
SCAN_SIZE: Final = 500
"""How many documents are read at once by a scan."""
INCOMPLETE_DIGEST: Final = ""
"""Digest of a page that lost documents; it matches no source, so the next run indexes the page again."""
_NAMED: Final = 5
"""How many of the documents that a warning is about are named."""
_QUOTED: Final = 60
"""Characters of a text that a warning quotes."""
_NO_LINKS: Final = (
    "none of the documents has a link, and the store has none, so searches have none to follow:"
    " LinkStore.from_documents() finds those in texts, add_links() writes them, and linkstore.ingest.index()"
    " reads those of pages"
)
_LOST_LINKS: Final = "has no metadata['links'] and loses those stored: extract its links, or give [] for none"


class DocumentMethods(StoreBase):
    """Methods that write and read documents by their ids."""

    def add_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        vectors: VectorsLike | None = None,
        batch_size: int = BATCH_SIZE,
        strict: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents with their links, replacing those with the same id.

        If one document is invalid, none is written. Each batch is one change, in an embedded store one
        transaction. A document without text, such as an empty page of a PDF, is left out with a warning, and
        what was stored of it is removed, unless its vector is given. Warns where a stored document has links
        and the new one has no ``metadata["links"]``, among the first ``batch_size`` documents.

        Args:
            documents: Documents, with links in ``metadata["links"]``. They are not modified.
            ids: One id for each document. Default its own id, else ``metadata["content_id"]``, else a
                new UUID.
            vectors: The vectors of the texts, if the store's embedding has computed them already: shape
                (documents, dimension), of any length. Only their dimension is checked.
            batch_size: Number of documents embedded and written at once.
            strict: Whether a document without text is an error.
            kwargs: Not supported. Any argument raises TypeError.

        Returns:
            The ids, in order, also of documents that are left out.

        Raises:
            LinkError: If a link is invalid. The message names the document and the link.
            DocumentError: If an id, text, metadata or vector cannot be stored, or ``batch_size`` is below 1,
                or with ``strict`` if a document has no text.
            EmbeddingError: If the embedding does not match the store, or vectors have another dimension.
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If the disk is full.
            StoreUnavailableError: If a server does not answer. Repeat the call to complete the change.
        """
        _refuse_arguments("add_documents", kwargs)
        return run(self._add(documents, ids, batch_size, vectors, strict=strict, advise=True))

    async def aadd_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        vectors: VectorsLike | None = None,
        batch_size: int = BATCH_SIZE,
        strict: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents with their links: see :meth:`add_documents`."""
        _refuse_arguments("aadd_documents", kwargs)
        return await arun(self._add(documents, ids, batch_size, vectors, strict=strict, advise=True))

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        vectors: VectorsLike | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts: see :meth:`add_documents`."""
        _refuse_arguments("add_texts", kwargs)
        return run(self._add(_make_documents(texts, metadatas), ids, BATCH_SIZE, vectors))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        vectors: VectorsLike | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts: see :meth:`add_documents`."""
        _refuse_arguments("aadd_texts", kwargs)
        return await arun(self._add(_make_documents(texts, metadatas), ids, BATCH_SIZE, vectors))

    def _add(
        self,
        documents: Sequence[Document] | Document,
        ids: Sequence[str | None] | None,
        batch_size: int,
        vectors: VectorsLike | None,
        *,
        strict: bool = False,
        advise: bool = False,
    ) -> Operation[list[str]]:
        """Add documents; ``advise`` warns if stored links go, or neither they nor the store have one."""
        if isinstance(documents, Document):  # iterating over one gives its fields
            raise ArgumentError("documents must be a list of documents, not a single document")
        listed: list[Document] = _list_items(Document, "documents", "a list of documents", documents)
        require_list("strings", **omit_none(ids=ids))
        if not isinstance(batch_size, int) or batch_size < 1:
            raise DocumentError(f"batch_size must be an integer of at least 1, not {batch_size!r}")
        own = [document.id for document in listed] if ids is None else list(ids)
        drafts = prepare_drafts(listed, own)
        if len(drafts) > 1:
            named = [document.id or document.metadata.get(CONTENT_ID) for document in listed]
            names = zip(drafts, own, named, strict=True)
            _report_duplicates(drafts, {draft.id for draft, id, name in names if not (id or name)})
        linkless = advise and len(drafts) > 1 and not any(draft.links for draft in drafts)
        if linkless and not (yield from call_engine(self.backend, self.backend.vocabulary())).kinds:
            warn(_NO_LINKS)
        elif advise:
            silent = [draft.id for draft in drafts if LINKS_KEY not in draft.metadata]
            plan = _read_documents(silent[:batch_size])
            stored = (yield from call_plan(self.backend, plan)) if silent else []
            if linked := [document.id or "" for document in stored if get_links(document)]:
                warn(f"each of the documents {_list_first(linked)} {_LOST_LINKS}")
        yield from self._write_drafts(drafts, vectors, batch_size, strict=strict)
        return [draft.id for draft in drafts]

    def _write_drafts(
        self, drafts: Sequence[Draft], vectors: VectorsLike | None, batch_size: int, *, strict: bool = False
    ) -> Operation[list[WriteCounts]]:
        """Check all drafts, write them in batches, and return what each batch did."""
        from linkstore.store.schema_graph import check_documents  # late: a search needs nothing of it

        matrix = _match_vectors(vectors, drafts)
        blank = [draft.id for draft in drafts if matrix is None and not draft.text.strip()]
        if blank:
            message = f"{len(blank):,} of {len(drafts):,} documents have no text: {_list_first(blank)}"
            if strict:
                raise DocumentError(message)
            warn(f"{message}; they are left out (strict=True refuses them)")
            drafts = [draft for draft in drafts if draft.text.strip()]
        yield from check_documents(self.backend, drafts)
        written: list[WriteCounts] = []
        for start in range(0, len(drafts) or bool(blank), batch_size):
            part = slice(start, start + batch_size)
            of_batch = None if matrix is None else matrix[part]
            records = yield from embed_drafts(self.backend, self._embedding, drafts[part], of_batch)
            change = WriteBatch(put=records, remove=() if start else blank)
            written.append((yield from call_engine(self.backend, self.backend.write(change))))
        yield from record_writing(self.backend, drafts)
        return written

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links by id. Unknown ids are ignored.

        The next run of a source restores deleted documents that the source still has. Use
        ``store.pages.remove`` to remove whole pages.

        Raises:
            ArgumentError: If no ids are given, or one is not a string.
        """
        _refuse_arguments("delete", kwargs)
        return run(self._delete(ids))

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links: see :meth:`delete`."""
        _refuse_arguments("adelete", kwargs)
        return await arun(self._delete(ids))

    def _delete(self, ids: Sequence[str] | None) -> Operation[bool]:
        """Remove documents, and mark their pages so that the next run of the source restores them."""
        if ids is None:
            raise ArgumentError(
                "delete() needs a list of ids; to delete everything, remove the store's folder or tables"
            )
        backend, gone = self.backend, dict.fromkeys(keep_storable("ids", ids))
        pages = yield from call_plan(backend, _find_pages(tuple(gone)))
        entries: list[PageEntry] = (
            (yield from call_engine(backend, backend.pages(None, pages))) if pages else []
        )
        marked = [
            replace(entry, digest=INCOMPLETE_DIGEST, ids=tuple(id for id in entry.ids if id not in gone))
            for entry in entries
            if not gone.keys().isdisjoint(entry.ids)
        ]
        yield from call_engine(backend, backend.write(WriteBatch(remove=list(gone), put_pages=marked)))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in the order of ``ids``. Unknown ids are omitted.

        Raises:
            ArgumentError: If the ids are not a list of strings.
        """
        return self.backend.run(self._read_by_ids(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids: see :meth:`get_by_ids`."""
        return await self.backend.arun(self._read_by_ids(ids))

    def _read_by_ids(self, ids: Sequence[str]) -> Operation[list[Document]]:
        return self.backend.answer(_read_documents(keep_storable("ids", ids)))

    def scan(self) -> Iterator[Document]:
        """Iterate over all documents in batches, in the backend's order (embedded: by id)."""
        return map(as_document, scan_records(self.backend))

    async def ascan(self) -> AsyncIterator[Document]:
        """Iterate over all documents: see :meth:`scan`."""
        after: str | None = None
        while records := await self.backend.arun(self.backend.scan(after, SCAN_SIZE)):
            for record in records:
                yield as_document(record)
            after = records[-1].id


def put_documents(
    store: DocumentMethods, documents: Sequence[Document], vectors: VectorsLike | None = None
) -> WriteCounts:
    """Add or replace documents in one change, and count what it did."""
    drafts = prepare_drafts(documents, [document.id for document in documents])
    written = run(store._write_drafts(drafts, vectors, max(1, len(drafts))))  # noqa: SLF001
    return written[0] if written else WriteCounts()


def scan_records(backend: Backend) -> Iterator[Record]:
    """Iterate over all records in batches, in the backend's order."""
    after: str | None = None
    while records := backend.run(backend.scan(after, SCAN_SIZE)):
        yield from records
        after = records[-1].id


def record_writing(backend: Backend, drafts: Sequence[Draft]) -> Operation[None]:
    """Record the writing of memories, which fade with time, as accesses, unless they tell of one."""
    fading = [
        draft.id
        for draft in drafts
        if (MEMORY_KEY in draft.metadata or HALF_LIFE_KEY in draft.metadata)
        and draft.metadata.get(ACCESS_KEY) is None
    ]
    if fading:
        yield from call_engine(backend, backend.touch(make_access_times(fading, None)))


def _find_pages(ids: tuple[str, ...]) -> Plan[list[str]]:
    """Return the pages of documents, without duplicates. A document without a page counts as its own."""
    stored = yield from read_documents(ids)
    named = (document.metadata.get("page", document.id) for document in stored)
    return list(dict.fromkeys(id for id in named if is_storable(id)))


def _read_documents(ids: Sequence[str]) -> Plan[list[Document]]:
    stored = yield from read_documents(ids)
    return list(map(as_document, stored))


def _make_documents(texts: Iterable[str], metadatas: list[dict[str, Any]] | None) -> list[Document]:
    listed: list[str] = _list_items(str, "texts", "a list of strings", texts)
    fields: list[dict[str, Any]] = [{}] * len(listed)
    if metadatas is not None:
        fields = _list_items(Mapping, "metadatas", "a list of dicts", metadatas)
    if len(fields) != len(listed):
        raise DocumentError(
            f"got {len(listed)} texts and {len(fields)} metadatas; pass one dict for each text"
        )
    return [Document(page_content=text, metadata=dict(own)) for text, own in zip(listed, fields, strict=True)]


def _list_items(kind: type, name: str, what: str, given: Iterable[Any]) -> list[Any]:
    """Return the items of an argument, which must all be of one class.

    Raises:
        ArgumentError: If it is not a list, or an item is something else.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise make_argument_error(name, what, given)
    listed = list(given)
    for item in listed:
        if not isinstance(item, kind):
            raise ArgumentError(f"{name} must be {what}; {quote_value(item)[:200]} is not one")
    return listed


def _refuse_arguments(method: str, unknown: dict[str, Any]) -> None:
    """Raise TypeError for unknown names, which LangChain's signature allows."""
    for name in unknown:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


@infrequent_gc()
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
    return [_make_draft(document, id) for document, id in zip(documents, ids, strict=True)]


def _make_draft(document: Document, id: str | None) -> Draft:
    metadata = document.metadata
    if id is None:
        id = document.id or metadata.get(CONTENT_ID) or str(uuid.uuid4())
    id = check_id(id)
    if isinstance(hit := metadata.get(HIT_KEY), dict) and {"score", "path"} <= hit.keys():
        raise DocumentError(
            f"document {id!r} is the result of a search, which leaves out its links: change what get_by_ids()"
            f" returns, or remove metadata[{HIT_KEY!r}]"
        )
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


def _report_duplicates(drafts: Sequence[Draft], new: AbstractSet[str]) -> None:
    """Warn that documents have the same id, or the same text and no id of their own.

    Args:
        drafts: The documents of one call.
        new: The ids that were made for those without one.
    """
    ids = Counter(draft.id for draft in drafts)
    if twice := [id for id in ids if ids[id] > 1]:
        warn(
            f"several of {len(drafts):,} documents have the id {_list_first(twice)}, and the last of each is"
            " kept; give each document an id of its own"
        )
    texts = Counter(draft.text for draft in drafts if draft.id in new and draft.text.strip())
    if same := [text[:_QUOTED] for text in texts if texts[text] > 1]:
        warn(
            f"several of {len(drafts):,} documents have the same text and no id, and each will be found:"
            f" {_list_first(list(map(repr, same)))}; leave the others out, or give each an id"
        )


def _list_first(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _match_vectors(vectors: VectorsLike | None, drafts: Sequence[Draft]) -> Floats | None:
    """Return the vectors passed for drafts, all of which have a direction.

    Raises:
        DocumentError: If there are not as many, or one has no direction.
        EmbeddingError: If they are no vectors of one dimension.
    """
    if vectors is None:
        return None
    matrix = as_matrix(vectors)
    if len(matrix) != len(drafts):
        raise DocumentError(
            f"got {len(drafts)} documents and {len(matrix)} vectors; pass one vector for each document"
        )
    normalize_vectors(matrix, ids=[draft.id for draft in drafts])
    return matrix


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
    manifest = yield from call_engine(backend, backend.manifest())
    vectors = normalize_vectors(vectors, manifest.dimension, [draft.id for draft in drafts])
    check_count(vectors, drafts)
    if manifest.dimension is None:
        mine = Manifest(embedding=embedding.name, dimension=vectors.shape[1])
        claimed = yield from call_engine(backend, backend.claim(mine))
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


def as_document(stored: Record | StoredDocument) -> Document:
    """Return a stored document as LangChain's, with metadata of its own."""
    return make_document(stored.id, stored.text, stored.metadata)

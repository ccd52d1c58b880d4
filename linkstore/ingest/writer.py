"""Writes documents from any number of processes into one store: tasks of Dask, Ray, Spark or a job scheduler.

A :class:`Writer` holds no connection, so it can be pickled and sent to other processes, each of which opens
the store once. What is stored follows from the documents alone: writing them again, in other batches, at the
same time or after a failure, leaves the store as writing them once does.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from uuid import uuid4

import numpy as np
import orjson
import xxhash
from langchain_core.documents import Document

from linkstore.core.arguments import (
    MAX_SETTING,
    as_path,
    make_argument_error,
    require_at_least,
    require_having,
    require_within,
)
from linkstore.core.arrays import Floats, Ints, as_matrix, cosine_similarities, normalize_vectors
from linkstore.core.documents import check_id
from linkstore.core.plans import Ids, Members, Plan, Resolve, Side, ask
from linkstore.core.processes import Lock
from linkstore.embeddings.names import get_embedding
from linkstore.engines.contract import WriteCounts
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import ArgumentError, DocumentError, LinkError, StoreNotFoundError
from linkstore.ingest.relink import Relinked, link_corpus
from linkstore.store.base import PATIENCE, close_on_failure, retry
from linkstore.store.documents import prepare_drafts, put_documents
from linkstore.store.embedding import MIN_COSINE
from linkstore.store.linkstore import LinkStore

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from linkstore.engines.bookkeeping import Backend
    from linkstore.engines.cassandra.settings import CassandraSettings
    from linkstore.engines.contract import Record
    from linkstore.engines.embedded import EmbeddedSettings

Vectors: TypeAlias = "Floats | Sequence[Sequence[float]]"
_MOST_OPEN: Final = 4
"""Stores that a process holds open for writers. With one more, the one unused for longest is closed."""
_LARGEST_GROUP: Final = 100
"""Members of the link groups in which a sampled document is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of a job that wrote documents.

    Args:
        counts: The sum of what its tasks counted.
        sampled: How many documents were compared with what is derived from them.
        problems: What is wrong with those, by id; empty in a sound store.
        linked: The links made of the whole corpus.
    """

    counts: WriteCounts
    sampled: int
    problems: Mapping[str, str]
    linked: Relinked


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes documents into a store, in whatever process it is used.

    Constructing it makes the store if there is none. Copies of it, which pickling makes, open that store,
    once in each process, and make none: so a path that another machine does not have is an error there.

    A store on Cassandra takes any number of writers. The folder of an embedded store takes those of one
    machine, one at a time: they read and embed at the same time, and wait for each other to write, up to
    ``patience``. A store in memory cannot be written from other processes.

    Args:
        place: The store: ``cassandra://host:port/keyspace/table``, or a folder.
        embedding: Its name, or an object that can be pickled. None: that of the store, else wordllama.
        batch_documents: Most documents that are embedded and written at once.
        batch_bytes: Most bytes of their texts, metadata and vectors, unless a single document has more.
        patience: Seconds for which a batch is tried again while others write, or no server answers.
        settings: Those of a new store, as for :meth:`LinkStore.cassandra` or :meth:`LinkStore.open`.

    Raises:
        ArgumentError: If an argument has the wrong type, or the place is in memory.
        StrategyError: If a bound of batches is below 1, or ``patience`` below 0.
        BackendError: If the store cannot be opened.
        EmbeddingError: If there is no such embedding, or the store was built with one of another dimension.
    """

    place: str | Path
    embedding: str | Embeddings | None = field(default=None, compare=False)
    _: KW_ONLY
    batch_documents: int = 512
    batch_bytes: int = 4 * 2**20
    patience: float = PATIENCE
    settings: CassandraSettings | EmbeddedSettings | None = None
    _key: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_at_least(1, batch_documents=self.batch_documents, batch_bytes=self.batch_bytes)
        require_within(0, MAX_SETTING, patience=self.patience)
        if not isinstance(self.embedding, str | None):
            literal = "the name of an embedding, or an Embeddings object"
            require_having("embed_documents", literal, embedding=self.embedding)
        if "://" not in str(self.place):
            if str(self.place) == ":memory:":
                raise ArgumentError("other processes cannot write into a store in memory; give a folder")
            object.__setattr__(self, "place", str(as_path("place", self.place).absolute()))
        retry(partial(_STORES.get, self, create=True), self.patience)

    def write(self, documents: Iterable[Document], vectors: Vectors | None = None) -> WriteCounts:
        """Write documents, and return once the store has acknowledged them all.

        A list is checked as a whole before any of it is written, an iterator batch by batch as it is read.
        Documents that are stored already are not embedded again.

        Args:
            documents: Each with an id, such as a list of them, or the iterator of a partition.
            vectors: What the store's embedding gives for the texts, if that is known, of shape (documents,
                dimension), in their order.

        Raises:
            ArgumentError: If these are no documents.
            DocumentError: If a document has no id, or that of an earlier one, or cannot be stored.
            LinkError: If a link is invalid.
            EmbeddingError: If the embedding or the vectors do not fit the store.
            StoreNotFoundError: If this is another machine, and the store a folder.
            StoreBusyError: If others write into the folder for longer than ``patience``.
            StoreUnavailableError: If no server answers for longer than ``patience``. What was acknowledged
                stays; write the documents again.
        """
        batches: Iterable[Batch] = split_documents(
            documents, vectors, most_documents=self.batch_documents, most_bytes=self.batch_bytes
        )
        if isinstance(documents, Sized):
            batches = list(batches)
        return sum((retry(partial(self._write, batch), self.patience) for batch in batches), WriteCounts())

    def write_texts(
        self,
        texts: Sequence[str],
        vectors: Vectors,
        *,
        ids: Sequence[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
    ) -> WriteCounts:
        """Write texts whose vectors are known, as :meth:`write` does with documents.

        Args:
            texts: The texts.
            vectors: What the store's embedding gives for them, of shape (texts, dimension).
            ids: Of the texts.
            metadatas: Of the texts. Default none.

        Raises:
            DocumentError: If the lists differ in length, or as for :meth:`write`.
        """
        lists = {
            "texts": texts,
            "ids": ids,
            "metadatas": [{}] * len(texts) if metadatas is None else metadatas,
        }
        if len({len(values) for values in lists.values()}) > 1:
            lengths = ", ".join(f"{len(values)} {name}" for name, values in lists.items())
            raise DocumentError(f"got {lengths}; pass as many of each")
        documents = [
            Document(id=id, page_content=text, metadata=dict(metadata))
            for text, id, metadata in zip(*lists.values(), strict=True)
        ]
        return self.write(documents, vectors)

    def finish(
        self, counts: Iterable[WriteCounts] = (), *, links: Sequence[str] = (), sample: int = 100
    ) -> Finished:
        """Do what needs all documents, once all tasks are done.

        Links that need the corpus are made (see :func:`~linkstore.ingest.link_corpus`), and a sample of the
        documents is compared with what is derived from them: texts are embedded again and compared with their
        vectors, and documents are looked for in their link groups of at most 100. ``linkstore
        doctor --verify`` compares all documents.

        Args:
            counts: What the tasks counted.
            links: Extractors such as ``"mention"`` and ``"entity"``.
            sample: How many documents are compared, beginning at a random place of the store's order.

        Raises:
            ExtractionError: If an extractor is not installed, or does not need the corpus.
        """
        require_at_least(0, sample=sample)
        store = retry(partial(_STORES.get, self), self.patience)
        linked = link_corpus(store, links) if links else Relinked()
        store.backend.run(store.backend.flush())
        read = store.backend.scan
        sampled = store.backend.run(read(uuid4().hex, sample)) if sample else []
        if len(sampled) < sample:
            sampled = store.backend.run(read(None, sample))
        return Finished(
            counts=sum(counts, WriteCounts()),
            sampled=len(sampled),
            problems=dict(_find_problems(store, sampled)),
            linked=linked,
        )

    def close(self) -> None:
        """Close the store in this process. Writing opens it again; the end of a process closes it as well."""
        _STORES.close(self)

    def _write(self, batch: Batch) -> WriteCounts:
        store = _STORES.get(self)
        all_documents, vectors = batch
        documents = all_documents
        if vectors is None:
            stored = {
                id.id: pack_document(id)
                for id in store.get_by_ids([document.id or "" for document in documents])
            }
            documents = [
                document for document in documents if stored.get(document.id) != pack_document(document)
            ]
        written = put_documents(store, documents, vectors)
        return written + WriteCounts(unchanged=len(all_documents) - len(documents))


def _find_problems(store: LinkStore, sampled: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Yield the ids of stored documents with a wrong vector or missing links, and the problem."""
    texts = [record for record in sampled if record.text.strip()]
    vectors = store.embeddings.embed_documents([text.text for text in texts]) if texts else []
    for record, vector in zip(texts, vectors, strict=True):
        alike = float(cosine_similarities(normalize_vectors([vector]), record.vector)[0])
        if alike < MIN_COSINE:
            yield record.id, f"its vector is not that of its text: their cosine is {alike:.3f}"
    for record in sampled:
        if missing := store.backend.run(store.backend.answer(_find_missing_groups(record))):
            yield record.id, f"the link group {missing[0]} lacks it; run linkstore doctor --repair"


def _find_missing_groups(record: Record) -> Plan[list[str]]:
    """Return the names of small link groups that a document has links of, and is not a member of."""
    missing: list[str] = []
    sides: tuple[Side, ...] = ("out", "in")
    for side in sides:
        own = sorted(
            {
                (link.kind, link.tag)
                for link in record.links
                if (link.leads_out if side == "out" else link.leads_in)
            }
        )
        refs: Ints = (yield from ask(Resolve(tags=tuple(own)))) if own else np.empty(0, np.int64)
        existing = np.flatnonzero(refs >= 0)
        reached = yield from ask(
            Members(groups=refs[existing], side=side, take=_LARGEST_GROUP, cap=_LARGEST_GROUP)
        )
        ids = yield from ask(Ids(refs=reached.refs))
        there = {at for at, id in zip(reached.group.tolist(), ids, strict=True) if id == record.id}
        there.update(np.flatnonzero(reached.sizes > _LARGEST_GROUP).tolist())
        linked = {int(existing[at]) for at in there}
        missing += [f"{kind} {tag!r}" for at, (kind, tag) in enumerate(own) if at not in linked]
    return missing


def _open(writer: Writer, *, create: bool) -> LinkStore:
    place, model = str(writer.place), writer.embedding
    embedding = get_embedding(model) if isinstance(model, str) else model
    try:
        if "://" in place:
            from linkstore.store.cassandra import make_url_backend

            backend: Backend = make_url_backend(place, create=create, settings=cast("Any", writer.settings))
        else:
            backend = EmbeddedBackend(place, create=create, settings=cast("Any", writer.settings))
    except StoreNotFoundError as error:
        raise StoreNotFoundError(
            f"there is no store at {place} here: a Writer makes it where it is constructed, and copies of it"
            " only open it. Other machines do not have that folder; for writers on several machines, give"
            " cassandra://host:port/keyspace/table"
        ) from error
    with close_on_failure(backend):
        return LinkStore(embedding, backend=backend)


class _OpenStores:
    """The stores that this process has open for writers.

    A store is closed when nothing uses it any more.
    """

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Begin anew: in a forked child, which must not use the connections of its parent."""
        self._lock = Lock()
        self._stores: dict[str, LinkStore] = {}

    def get(self, writer: Writer, *, create: bool = False) -> LinkStore:
        """Return the store of a writer, opened if need be."""
        key = writer._key  # noqa: SLF001 - of the class that this one serves
        with self._lock:
            store = self._stores.pop(key, None)
            if store is None:
                store = _open(writer, create=create)
                weakref.finalize(store, _close_in, os.getpid(), store.backend)
            self._stores[key] = store
            for oldest in list(self._stores)[:-_MOST_OPEN]:
                del self._stores[oldest]
        return store

    def close(self, writer: Writer) -> None:
        """Close the store of a writer, if it is open."""
        with self._lock:
            store = self._stores.pop(writer._key, None)  # noqa: SLF001
        if store is not None:
            store.close()


def _close_in(process: int, backend: Backend) -> None:
    if os.getpid() == process:
        backend.close()


_STORES: Final = _OpenStores()


Batch: TypeAlias = tuple[list[Document], Floats | None]
"""Documents that are written together, as they will be stored, and their vectors.

These are of shape (documents, dimension); None if the documents are to be embedded.
"""


def split_documents(
    documents: Iterable[Document], vectors: Vectors | None, *, most_documents: int, most_bytes: int
) -> Iterator[Batch]:
    """Yield documents in batches, as they will be stored.

    Args:
        documents: The documents.
        vectors: Of shape (documents, dimension), in their order; None if they are to be embedded.
        most_documents: Of a batch.
        most_bytes: Of the texts, metadata and vectors of a batch, unless a single document has more.

    Raises:
        ArgumentError: If these are no documents.
        DocumentError: If a document has no id, or that of an earlier one, or cannot be stored; or if there is
            not a vector for each.
        LinkError: If a link is invalid.
    """
    if not isinstance(documents, Iterable) or isinstance(documents, str | bytes | Mapping | Document):
        raise make_argument_error("documents", "a list or iterator of Documents", documents)
    matrix = None if vectors is None else as_matrix(vectors)
    if matrix is not None and (not isinstance(documents, Sized) or len(documents) != len(matrix)):
        count = len(documents) if isinstance(documents, Sized) else "an iterator of"
        raise DocumentError(
            f"got {count} documents and {len(matrix)} vectors; pass a list, and a vector for each document"
        )
    seen: set[bytes] = set()
    batch: list[Document] = []
    size = start = 0
    for number, listed in enumerate(documents, start=1):
        document = _prepare_document(listed, f"document {number}")
        key = xxhash.xxh3_128_digest((document.id or "").encode())
        if key in seen:
            raise DocumentError(f"document {number}: an earlier one has the same id {document.id!r}")
        seen.add(key)
        own = len(pack_document(document)) + (0 if matrix is None else matrix[number - 1].nbytes)
        if batch and (len(batch) == most_documents or size + own > most_bytes):
            yield batch, None if matrix is None else matrix[start : start + len(batch)]
            start += len(batch)
            batch, size = [], 0
        batch.append(document)
        size += own
    if batch:
        yield batch, None if matrix is None else matrix[start:]


def pack_document(document: Document) -> bytes:
    """Return the bytes of what is stored of a document besides its id and vector."""
    return orjson.dumps((document.page_content, document.metadata))


def _prepare_document(document: Any, where: str) -> Document:
    """Return a document as it will be stored."""
    if not isinstance(document, Document):
        raise ArgumentError(f"{where} is {repr(document)[:200]}; make a Document of it")
    if document.id is None or not document.id.strip():
        raise DocumentError(
            f"{where} has the id {document.id!r}; each needs an id of its own, so that writing it again"
            " replaces it"
        )
    try:
        check_id(document.id)
        (draft,) = prepare_drafts([document], [document.id])
    except LinkError as error:
        raise LinkError(f"{where}: {error}") from error
    except DocumentError as error:
        raise DocumentError(f"{where}: {error}") from error
    return Document(id=document.id, page_content=draft.text, metadata=dict(draft.metadata))

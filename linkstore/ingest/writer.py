"""Writes documents from any number of processes into one store: tasks of Dask, Ray, Spark or a job scheduler.

A :class:`Writer` holds no connection, so it can be pickled and sent to other processes, each of which opens
the store once. What is stored follows from the rows alone: writing them again, in other batches, at the same
time or after a failure, leaves the store as writing them once does.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import numpy as np

from linkstore.core.arguments import (
    MAX_SETTING,
    as_path,
    require_at_least,
    require_having,
    require_list,
    require_within,
)
from linkstore.core.arrays import Floats, Ints, cosine_similarities, normalize_vectors
from linkstore.core.calls import Lock
from linkstore.core.plans import Ids, Members, Plan, ReachedMembers, Resolve, Side
from linkstore.embeddings.names import get_embedding
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import (
    ArgumentError,
    StoreNotFoundError,
)
from linkstore.ingest.records import ROW_KEYS
from linkstore.ingest.relink import Relinked, link_corpus
from linkstore.ingest.rows import VECTOR, Batch, Row, pack_document, split_rows
from linkstore.store.base import close_on_failure
from linkstore.store.embedding import MIN_COSINE
from linkstore.store.linkstore import LinkStore
from linkstore.store.retry import PATIENCE, retry

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from linkstore.engines.bookkeeping import Backend
    from linkstore.engines.cassandra.settings import CassandraSettings
    from linkstore.engines.contract import Record
    from linkstore.engines.embedded import EmbeddedSettings

_MOST_OPEN: Final = 4
"""Stores that a process holds open for writers. With one more, the one unused for longest is closed."""
_LARGEST_GROUP: Final = 100
"""Members of the link groups in which a sampled document is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was done with documents; counts of several calls can be added.

    Args:
        added: They were not there before.
        updated: They replaced others of the same ids.
        unchanged: They were there already.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0

    @property
    def total(self) -> int:
        """The number of documents."""
        return self.added + self.updated + self.unchanged

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        sums = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        return Counts(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of a job that wrote documents.

    Args:
        counts: The sum of what its tasks counted.
        sampled: How many documents were compared with what is derived from them.
        problems: What is wrong with those, by id; empty in a sound store.
        linked: The links made of the whole corpus.
    """

    counts: Counts
    sampled: int
    problems: Mapping[str, str]
    linked: Relinked


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes rows or documents into a store, in whatever process it is used.

    Constructing it makes the store if there is none. Copies of it, which pickling makes, open that store,
    once in each process, and make none: so a path that another machine does not have is an error there.

    A store on Cassandra takes any number of writers. The folder of an embedded store takes those of one
    machine, one at a time: they read and embed at the same time, and wait for each other to write, up to
    ``patience``. A store in memory cannot be written from other processes.

    Args:
        place: The store: ``cassandra://host:port/keyspace/table``, or a folder.
        embedding: Its name, or an object that can be pickled. None: that of the store, else wordllama.
        metadata: Columns that become fields of the metadata of their documents, where they are not null.
        batch_rows: Most documents that are embedded and written at once.
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
    metadata: Sequence[str] = ()
    batch_rows: int = 512
    batch_bytes: int = 4 * 2**20
    patience: float = PATIENCE
    settings: CassandraSettings | EmbeddedSettings | None = None
    _key: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_list("names of columns", metadata=self.metadata)
        require_at_least(1, batch_rows=self.batch_rows, batch_bytes=self.batch_bytes)
        require_within(0, MAX_SETTING, patience=self.patience)
        if not isinstance(self.embedding, str | None):
            known = "the name of an embedding, or an Embeddings object"
            require_having("embed_documents", known, embedding=self.embedding)
        if clash := sorted({*ROW_KEYS, VECTOR}.intersection(self.metadata)):
            raise ArgumentError(f"metadata names {', '.join(clash)}, which rows have for other uses")
        if "://" not in str(self.place):
            if str(self.place) == ":memory:":
                raise ArgumentError("other processes cannot write into a store in memory; give a folder")
            object.__setattr__(self, "place", str(as_path("place", self.place).absolute()))
        retry(partial(_STORES.get, self, create=True), self.patience)

    def write(self, rows: Iterable[Row], vectors: Floats | None = None) -> Counts:
        """Write documents, and return once the store has acknowledged them all.

        A row has the fields of a line of JSON: ``id``, ``text``, and perhaps ``title``, ``url``, ``links``,
        ``metadata`` and ``answers`` (see :class:`~linkstore.ingest.JsonLinesSource`), a ``vector``, and the
        columns named in ``metadata``. A list or table is checked as a whole before any of it is written, an
        iterator batch by batch as it is read. Documents that are stored already are not embedded again.

        Args:
            rows: Documents or rows, such as a list of them, the iterator of a partition, a table of pandas,
                Arrow or Polars, or a dict of columns.
            vectors: What the store's embedding gives for the texts, if that is known, in the order of the
                rows.

        Raises:
            ArgumentError: If these are no rows.
            DocumentError: If a row has no id, or that of an earlier row, or cannot be stored.
            LinkError: If a link is invalid.
            EmbeddingError: If the embedding or the vectors do not fit the store.
            StoreNotFoundError: If this is another machine, and the store a folder.
            StoreBusyError: If others write into the folder for longer than ``patience``.
            StoreUnavailableError: If no server answers for longer than ``patience``. What was acknowledged
                stays; write the rows again.
        """
        batches: Iterable[Batch] = split_rows(
            rows,
            vectors,
            metadata=self.metadata,
            most_rows=self.batch_rows,
            most_bytes=self.batch_bytes,
        )
        if isinstance(rows, Sized):
            batches = list(batches)
        return sum((retry(partial(self._write, batch), self.patience) for batch in batches), Counts())

    def finish(
        self, counts: Iterable[Counts] = (), *, links: Sequence[str] = (), sample: int = 100
    ) -> Finished:
        """Do what needs all documents, once all tasks are done.

        Links that need the corpus are made (see :func:`~linkstore.ingest.link_corpus`), and a sample of the
        documents is compared with what is derived from them: texts are embedded again and compared with their
        vectors, and documents are looked for in their link groups of at most 100. ``linkstore verify``
        compares all documents.

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
        store.flush()
        read = store.backend.scan
        sampled = store.backend.run(read(uuid4().hex, sample)) if sample else []
        if len(sampled) < sample:
            sampled = store.backend.run(read(None, sample))
        return Finished(
            counts=sum(counts, Counts()),
            sampled=len(sampled),
            problems=dict(_find_problems(store, sampled)),
            linked=linked,
        )

    def close(self) -> None:
        """Close the store in this process. Writing opens it again; the end of a process closes it as well."""
        _STORES.close(self)

    def _write(self, batch: Batch) -> Counts:
        store = _STORES.get(self)
        documents, vectors = batch.documents, batch.vectors
        if vectors is None:
            stored = {
                one.id: pack_document(one) for one in store.get_by_ids([one.id or "" for one in documents])
            }
            documents = [one for one in documents if stored.get(one.id) != pack_document(one)]
        written = store.put_documents(documents, vectors=vectors)
        kept = len(batch.documents) - len(documents)
        return Counts(added=written.added, updated=written.updated, unchanged=written.unchanged + kept)


def _find_problems(store: LinkStore, sampled: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Yield the ids of stored documents that differ from what is derived from them, and how."""
    texts = [one for one in sampled if one.text.strip()]
    given = store.embeddings.embed_documents([one.text for one in texts]) if texts else []
    for record, vector in zip(texts, given, strict=True):
        alike = float(cosine_similarities(normalize_vectors([vector]), record.vector)[0])
        if alike < MIN_COSINE:
            yield record.id, f"its vector is not that of its text: their cosine is {alike:.3f}"
    for record in sampled:
        if missing := store.backend.run(store.backend.answer(_find_missing_groups(record))):
            yield record.id, f"the link group {missing[0]} lacks it; run linkstore repair"


def _find_missing_groups(record: Record) -> Plan[list[str]]:
    """Return the names of small link groups that a document has links of, and is not a member of."""
    missing: list[str] = []
    sides: tuple[Side, ...] = ("out", "in")
    for side in sides:
        own = sorted(
            {
                (one.kind, one.tag)
                for one in record.links
                if (one.leads_out if side == "out" else one.leads_in)
            }
        )
        refs: Ints = (yield Resolve(tags=tuple(own))) if own else np.empty(0, np.int64)
        known = np.flatnonzero(refs >= 0)
        reached: ReachedMembers = yield Members(
            groups=refs[known], side=side, take=_LARGEST_GROUP, cap=_LARGEST_GROUP
        )
        ids: list[str] = yield Ids(refs=reached.refs)
        there = {at for at, id in zip(reached.group.tolist(), ids, strict=True) if id == record.id}
        there.update(np.flatnonzero(reached.sizes > _LARGEST_GROUP).tolist())
        found = {int(known[at]) for at in there}
        missing += [f"{kind} {tag!r}" for at, (kind, tag) in enumerate(own) if at not in found]
    return missing


def _open(writer: Writer, *, create: bool) -> LinkStore:
    place, given = str(writer.place), writer.embedding
    embedding = get_embedding(given) if isinstance(given, str) else given
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
    """The stores that this process has open for writers. Those that nothing uses any more are closed."""

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

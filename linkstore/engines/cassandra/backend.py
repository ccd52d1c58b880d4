"""The Cassandra backend: the same store on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NoReturn, TypeVar

from linkstore.core import calls
from linkstore.core.calls import answer_plan
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.links import Link
from linkstore.core.plans import EngineOperation, Plan
from linkstore.core.vocabulary import Vocabulary, collect_names
from linkstore.engines.bookkeeping import Backend, collect_record_names
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra import tables, writing
from linkstore.engines.cassandra.codec import DocumentVersion, read_versions
from linkstore.engines.cassandra.derived import DerivedRows
from linkstore.engines.cassandra.driver import Session
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.lexical import CorpusStatistics, WordSearch
from linkstore.engines.cassandra.limits import LostTime
from linkstore.engines.cassandra.listing import read_splits
from linkstore.engines.cassandra.members import GroupReader
from linkstore.engines.cassandra.placement import Placement
from linkstore.engines.cassandra.reader import CassandraReader
from linkstore.engines.cassandra.reading import EXPIRING_RANGES, ReadScope, RowFetcher, SearchHistory
from linkstore.engines.cassandra.repair import RowInspection, read_links
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.contract import (
    Finding,
    Manifest,
    PageEntry,
    Record,
    StoredLinks,
    WriteBatch,
    WriteCounts,
    check_dimension,
    make_findings,
)
from linkstore.errors import CapabilityError, StoreClosedError

T = TypeVar("T")


class CassandraBackend(Backend):
    """A store in the tables of one keyspace, for any number of clients.

    Each document is written atomically, and readers see its link group members change with it. A change of
    several documents is not one transaction. A plan keeps what it read of each document first, so all it
    learns about a document is of one state, but it may read different documents at different moments.

    Args:
        session: The driver's. It is not closed with the backend unless ``close_session`` is given.
        keyspace: Where the tables are.
        table: Name of the table of documents. The others' names begin with it.
        create: Create the tables if they do not exist.
        settings: See :class:`CassandraSettings`.
        close_session: Called when the backend is closed.

    Raises:
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreFormatError: If it is of a version that this linkstore does not know.
        ClockSkewError: If the clocks of this machine and of a node differ by more than is allowed.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        table: str = "linkstore",
        *,
        create: bool = True,
        settings: CassandraSettings | None = None,
        close_session: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings or CassandraSettings()
        self._tables = Tables(keyspace, table)
        self._executor = Executor(session, self._settings, self._tables)
        self._clock = writing.Clock()
        self._close_session = close_session
        self._closed = False
        self._nodes = max(1, len(session.cluster.metadata.all_hosts()))
        self.run(tables.check_clocks(self._nodes, self._settings.max_clock_skew))
        recorded = self.run(tables.set_up_tables(self._tables, self._settings, create=create))
        self._manifest = recorded.manifest
        self._placement = Placement(session, keyspace)
        expiring = recorded.expiring or self._settings.ttl is not None
        self._fetcher = RowFetcher(self._placement, EXPIRING_RANGES if expiring else 1)
        self._members = GroupReader(self._fetcher)
        self._corpus = CorpusStatistics()
        self._history = SearchHistory()
        self._sources: set[str] = set()
        self._words = WordSearch(recorded.shards, self._corpus, indexed=recorded.lexical)
        self._derived = DerivedRows(self._fetcher, recorded.shards, lexical=recorded.lexical)
        self._derived_members = DerivedRows(self._fetcher, recorded.shards, lexical=False, listed=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(keyspace={self._tables.keyspace!r}, table={self._tables.name!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse pickle and deepcopy.

        Raises:
            CapabilityError: Always: a session is connections and threads of this process.
        """
        raise CapabilityError(
            "a store in Cassandra cannot be pickled or copied: its session is open in this process alone;"
            " open another one where it is needed, LinkStore.cassandra(...)"
        )

    def manifest(self) -> EngineOperation[Manifest]:
        """Read the table of settings, until an embedding is recorded there."""
        if self._manifest.dimension is None:
            self._manifest = (yield from tables.read_settings()).manifest
        return self._manifest

    def claim(self, manifest: Manifest) -> EngineOperation[Manifest]:
        """Create the tables of documents and members, then record the embedding unless one is recorded."""
        self._manifest = yield from tables.claim_embedding(manifest, self._nodes, self._clock.now())
        return self._manifest

    def write(self, change: WriteBatch) -> EngineOperation[WriteCounts]:
        """Write in an order that leaves the store consistent if the client stops after any statement."""
        put, put_pages = tuple(change.put), tuple(change.put_pages)
        dimension = (yield from self.manifest()).dimension
        change = WriteBatch(
            put=put,
            remove=() if dimension is None else tuple(change.remove),
            put_pages=put_pages,
            remove_pages=tuple(change.remove_pages),
        )
        check_dimension(put, dimension)
        versions = {record.id: DocumentVersion.of_record(record) for record in put}
        for version in versions.values():
            version.check_size(self._settings.max_document_bytes)
        yield from self.record_names(collect_record_names(put))
        derived = self._derived.with_splits(frozenset() if dimension is None else (yield from read_splits()))
        writer = writing.CassandraWriter(
            self._fetcher, self._clock, derived, self._settings, self._corpus, self._sources
        )
        return (yield from writer.apply(change, list(versions.values())))

    def relink(
        self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
    ) -> EngineOperation[WriteCounts]:
        """Write only the column of links and the members derived from it."""
        if not (yield from self._is_claimed()):
            return WriteCounts()
        yield from self.record_names(collect_names({}, list(chain.from_iterable(links.values()))))
        derived = self._derived_members.with_splits((yield from read_splits()))
        return (yield from writing.Relinker(self._fetcher, derived).replace(kinds, links))

    def touch(self, times: Mapping[str, int]) -> EngineOperation[int]:
        """Write to the table of accesses."""
        if not (yield from self._is_claimed()):
            return 0
        lifetime = self._settings.ttl or 0
        return (yield from tables.record_accesses(self._fetcher, times, lifetime))

    def accessed(self, ids: Sequence[str]) -> EngineOperation[dict[str, int]]:
        """Read the table of accesses."""
        if not (yield from self._is_claimed()):
            return {}
        return (yield from tables.read_accesses(self._fetcher, ids))

    def pages(
        self, source: str | None, urls: Sequence[str] | None = None
    ) -> EngineOperation[list[PageEntry]]:
        """Read the table of pages."""
        return (yield from tables.read_pages(source, urls))

    def scan(self, after: str | None, limit: int) -> EngineOperation[list[Record]]:
        """Read documents in token order, fewer at once where texts are long."""
        if not (yield from self._is_claimed()) or limit < 1:
            return []
        versions = yield from self._fetcher.whole(after, limit)
        return [version.record() for version in versions]

    def links(self) -> EngineOperation[StoredLinks]:
        """Read the links of all documents."""
        claimed = yield from self._is_claimed()
        return (yield from read_links(self._fetcher if claimed else None))

    def read_notes(self, names: Sequence[str] | None) -> EngineOperation[dict[str, str]]:
        """Read the table of settings."""
        return (yield from tables.read_notes(names))

    def add_notes(self, names: Collection[str]) -> EngineOperation[None]:
        """Write to the table of settings."""
        yield from tables.add_notes(names)

    def exchange_note(
        self, name: str, value: str | None, expected: str | None
    ) -> EngineOperation[str | None]:
        """Write to the table of settings, with a lightweight transaction."""
        return (yield from tables.exchange_note(name, value, expected))

    def collect_names(self) -> EngineOperation[Vocabulary]:
        """Read all documents, without long texts."""
        names = Vocabulary()
        scan = self._fetcher.scan(cql.READ_ALL_VERSIONS)
        while (yield from self._is_claimed()) and (rows := (yield from scan.read())):
            names |= collect_record_names(version.record() for version in read_versions(rows))
        return names

    def flush(self) -> EngineOperation[None]:
        """Do nothing: the server updates its index with the documents."""
        yield from ()

    def compact(self) -> EngineOperation[None]:
        """Do nothing: the servers compact on their own after ``gc_grace_seconds``."""
        yield from ()

    def inspect(self, *, repair: bool) -> EngineOperation[list[Finding]]:
        """Compare members with the links and vectors of documents, and postings with their words.

        Repair deletes members and postings without a document, and writes those that are missing or differ.
        A document that lacks a column or whose metadata are not JSON stays as it is: what it lacks is written
        nowhere else.
        """
        if not (yield from self._is_claimed()):
            return []
        missing = yield from tables.find_missing_tables(self._tables, self._derived.tables)
        findings = make_findings("tables derived from the documents that do not exist", missing)
        if missing and not repair:
            return findings
        if missing:
            yield from tables.create_derived_tables(lexical=self._derived.lexical)
        derived = self._derived.with_splits((yield from read_splits()))
        horizon = self._clock.now() - round(self._settings.settle * 1e6)
        mend_at = self._clock.now() if repair else None
        return findings + (yield from RowInspection(self._fetcher, derived, horizon).inspect(mend_at))

    def run(self, operation: EngineOperation[T]) -> T:
        """Run an operation in the caller's thread."""
        self._check_open()
        lost = LostTime()
        return calls.drive(operation, lambda requests: self._executor.run(replace(requests, lost=lost)))

    async def arun(self, operation: EngineOperation[T]) -> T:
        """Run an operation on the caller's event loop."""
        self._check_open()
        lost = LostTime()
        return await calls.adrive(
            operation, lambda requests: self._executor.arun(replace(requests, lost=lost))
        )

    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> EngineOperation[T]:
        """Answer the plan from the version of each document that was read first."""
        claimed = yield from self._is_claimed()
        within = ReadScope(scope, self._fetcher, self._settings.scan_limit, self._history)
        replicated = self._placement.is_replicated
        reader = CassandraReader(within, self._members, self._words, replicated=replicated, empty=not claimed)
        return (yield from answer_plan(plan, reader.answer))

    def close(self) -> None:
        """Refuse further use, and close the session if this backend owns it."""
        if not self._closed:
            self._closed = True
            if self._close_session:
                self._close_session()

    def _is_claimed(self) -> EngineOperation[bool]:
        """Say whether the tables of documents and members exist."""
        return (yield from self.manifest()).dimension is not None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"the store {self._tables.name!r} is closed; open it again")

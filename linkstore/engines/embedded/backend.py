"""The embedded backend: one folder, no server.

EmbeddedSettings: how an embedded store behaves.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from linkstore.core.arguments import omit_none, require, require_at_least, require_within
from linkstore.core.calls import answer_plan, run, run_in_thread
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.links import Link
from linkstore.core.plans import Operation, Plan
from linkstore.core.processes import run_without_collector
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.contract import (
    Backend,
    Change,
    Finding,
    LinkedPage,
    Manifest,
    PageEntry,
    Record,
    Report,
    Survey,
    Written,
    check_dimension,
    immediate,
)
from linkstore.engines.embedded import maintenance, small_tables, snapshot, statistics, verification
from linkstore.engines.embedded.database import Database
from linkstore.engines.embedded.location import Place
from linkstore.engines.embedded.maintenance import ProcessLocal, StoreResources, Upkeep
from linkstore.engines.embedded.reader import EmbeddedReader, StoreView
from linkstore.engines.embedded.schema import convert_row_errors, read_raw_settings, read_settings
from linkstore.engines.embedded.shared import SharedData
from linkstore.engines.embedded.small_tables import read_page_digests, read_page_entries
from linkstore.engines.embedded.snapshot import Snapshot, parse_snapshot
from linkstore.engines.embedded.statistics import look_up_vocabulary as look_up
from linkstore.engines.embedded.writing import (
    ChangeWriter,
    GroupKeyCache,
    PreparedRecord,
    find_changed_words,
    prepare_records,
    prepare_relinked,
)
from linkstore.errors import CapabilityError, StoreClosedError


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """The settings of an embedded store.

    Args:
        exact_below: A store of at most this many documents has no index, and a search compares the query
            with all of them; default 20,000. That takes about half a millisecond at 256 dimensions.
        grow_share: A new snapshot is taken when the documents added since the last one are at least this
            share of those in it, and at least a quarter of ``exact_below``; default 1/2.
        durable: Whether an acknowledged write survives a power cut, at the cost of one disk flush per
            write; default True. A write survives a crash of the process either way. If False, a power cut
            may lose the last writes, each one as a whole, but never what was stored before.

    Raises:
        StrategyError: If a number is negative or none.
    """

    exact_below: int = 20_000
    grow_share: float = 0.5
    durable: bool = True

    def __post_init__(self) -> None:
        require_at_least(0, exact_below=self.exact_below)
        require_within(0, math.inf, grow_share=self.grow_share)


T = TypeVar("T")
MEMORY: Final = ":memory:"


class EmbeddedBackend(Backend):
    """A store in one folder, for any number of threads and processes; one of them writes at a time.

    Args:
        path: The folder. It is made absolute and its symbolic links are followed once, here. With
            ``":memory:"`` the store lies in a temporary folder that is removed on close.
        create: Create the store if it does not exist.
        settings: See :class:`EmbeddedSettings`.

    Raises:
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreFormatError: If the path is not a folder, or the database is damaged or not a linkstore database.
        StorePermissionError: If this process may not read its files.
        StoreReadOnlyError: If the store does not exist and cannot be created, or if it must be written to
            before it can be read.
    """

    def __init__(
        self, path: str | Path, *, create: bool = True, settings: EmbeddedSettings | None = None
    ) -> None:
        self._temporary = str(path) == MEMORY
        place = Place(tempfile.mkdtemp(prefix="linkstore-") if self._temporary else path)
        self.folder = place.folder
        require(EmbeddedSettings, "an EmbeddedSettings", **omit_none(settings=settings))
        self._settings = settings or EmbeddedSettings(durable=not self._temporary)
        removal = (
            weakref.finalize(self, _remove_folder, self.folder, os.getpid()) if self._temporary else None
        )
        self._remove_temporary = removal
        place.prepare(create=create or self._temporary)
        self._closed = False
        self._manifest = Manifest()
        settings = self._settings
        self._opened = ProcessLocal(
            lambda: StoreResources.at(
                place,
                durable=settings.durable,
                exact_below=settings.exact_below,
                grow_share=settings.grow_share,
            )
        )
        self._upkeep.at_open()

    def beside(self, name: str, *, create: bool) -> EmbeddedBackend:
        """Return the backend of another store, which lies in a subfolder of this name.

        Raises:
            StoreNotFoundError: If there is none and ``create`` is False.
        """
        return EmbeddedBackend(self.folder / name, create=create, settings=self._settings)

    @property
    def _database(self) -> Database:
        return self._opened.get().database

    @property
    def _upkeep(self) -> Upkeep:
        return self._opened.get().upkeep

    @property
    def _shared(self) -> SharedData:
        return self._upkeep.shared

    @property
    def _groups(self) -> GroupKeyCache:
        return self._opened.get().groups

    def _current(self) -> Database:
        """Return the database as opened by this process."""
        if self._closed:
            place = "in memory" if self._temporary else f"at {self.folder}"
            raise StoreClosedError(f"the store {place} is closed; open it again")
        return self._database

    @immediate
    def manifest(self) -> Manifest:
        """Read the table of settings, until it records an embedding, which never changes afterwards."""
        database = self._current()
        if self._manifest.dimension is None:
            self._manifest = database.read(lambda connection: _make_manifest(read_settings(connection)))
        return self._manifest

    @immediate
    def claim(self, manifest: Manifest) -> Manifest:
        """Write to the table of settings, if it has no manifest."""

        def record_once(connection: apsw.Connection) -> Manifest:
            known = _make_manifest(read_settings(connection))
            if known.dimension is not None:
                return known
            connection.executemany(
                "INSERT OR REPLACE INTO setting VALUES (?, ?)",
                [("embedding", manifest.embedding), ("dimension", manifest.dimension)],
            )
            return manifest

        return self._current().write(record_once)

    @immediate
    def write(self, change: Change) -> Written:
        """Write in one transaction."""
        prepared, found = run_without_collector(lambda: self._prepare(change))

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            check_dimension(change.put, read_settings(connection).get("dimension"))
            return writer.apply(change, prepared, found)

        return self._write(apply)

    def _prepare(self, change: Change) -> tuple[list[PreparedRecord], dict[str, str]]:
        prepared = prepare_records(change.put)
        find = partial(find_changed_words, prepared=prepared)
        return prepared, self._current().read(find) if prepared else {}

    @immediate
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Read the documents and write them again, in one transaction."""

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            changed, unchanged = prepare_relinked(connection, kinds, links)
            return replace(writer.apply(Change(), changed), unchanged=unchanged)

        return self._write(apply)

    def _write(self, apply: Callable[[apsw.Connection, ChangeWriter], Written]) -> Written:
        """Run one write transaction, then take a snapshot if enough has changed since the last one."""

        def work(connection: apsw.Connection) -> tuple[ChangeWriter, Written, dict[str, Any]]:
            writer = ChangeWriter(connection, self._groups)
            return writer, apply(connection, writer), read_settings(connection)

        writer, written, settings = self._current().write(
            lambda connection: run_without_collector(lambda: work(connection))
        )
        self._groups.learn(writer.epoch, writer.learned)
        if not self._closed:  # a signal handler may have closed the store meanwhile; the change is committed
            self._upkeep.after_write(settings)
        return written

    @immediate
    def touch(self, times: Mapping[str, int]) -> int:
        """Write to the table of access times, in one transaction that changes nothing else."""
        return (
            self._current().write(lambda connection: small_tables.record_accesses(connection, times))
            if times
            else 0
        )

    @immediate
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """Read the table of access times."""
        return self._current().read(lambda connection: small_tables.read_accesses(connection, ids))

    @immediate
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Read the table of pages."""
        return self._current().read(lambda connection: read_page_entries(connection, source, urls))

    @immediate
    def digests(self, source: str | None) -> dict[str, str]:
        """Read the table of pages, row by row."""
        return self._current().read(lambda connection: read_page_digests(connection, source))

    @immediate
    def linked(self, kind: str, take: int) -> list[LinkedPage]:
        """Read the table of pages and the mirror's links."""
        return self._view(lambda view: statistics.find_most_linked(view, kind, take))

    @immediate
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Read the tables in the order of the index on ids."""
        return self._current().read(lambda connection: verification.read_records(connection, after, limit))

    @immediate
    def survey(self) -> Survey:
        """Count in the mirror."""
        return self._view(statistics.survey_store)

    @immediate
    def vocabulary(self, asked: Vocabulary | None = None) -> Vocabulary:
        """Read the tables of link groups and documents."""
        known = self._opened.get().fields
        return self._current().read(lambda connection: look_up(connection, known, asked))

    @immediate
    def note(self, name: str) -> str | None:
        """Read the table of settings."""
        return self._current().read(lambda connection: small_tables.read_note(connection, name))

    @immediate
    def set_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Write to the table of settings, in one transaction."""
        return self._current().write(
            lambda connection: small_tables.exchange_note(connection, name, value, expected)
        )

    @immediate
    def flush(self) -> None:
        """Take a snapshot if anything has changed since the last one and the store is large enough."""
        if not self._current().read_only:  # a process that can write takes the snapshots
            self._upkeep.flush()

    @immediate
    def compact(self) -> None:
        """Compact the store: see :meth:`linkstore.engines.embedded.maintenance.Upkeep.compact`."""
        self._current()
        self._upkeep.compact()

    @immediate
    def verify(self) -> Report:
        """Compare links, vectors, counts, files and memory with the documents."""
        found = self._current().inspect(self._inspect_tables)
        if not found:  # if the tables are damaged, the derived data differ in any case
            found = self._upkeep.inspected(self._compare_derived)
        if problem := self._upkeep.indexer.problem:
            found.append(Finding(problem=f"the process that builds the index {problem}", count=1))
        return Report(findings=tuple(found))

    def _inspect_tables(self, connection: apsw.Connection) -> list[Finding]:
        recorded = parse_snapshot(read_raw_settings(connection))
        damaged = self._upkeep.damaged_files(recorded) if recorded else []
        with convert_row_errors("tables"):
            return list(verification.inspect_tables(connection, damaged))

    def _compare_derived(self, view: StoreView) -> list[Finding]:
        recorded = parse_snapshot(read_settings(view.connection))
        return list(
            verification.inspect_derived(view, self._upkeep.files, recorded, self._upkeep.builder.live)
        )

    @immediate
    def repair(self) -> Report:
        """Rewrite the rows that differ from the documents. If there are any, rebuild all derived data too."""
        report = run(self.verify(), _refuse_to_wait)
        if report.sound:
            return report

        def mend(connection: apsw.Connection) -> Snapshot | None:
            with convert_row_errors("tables"):
                verification.repair_tables(connection)
            maintenance.begin_epoch(
                connection
            )  # a link group may be deleted whose key other processes remember
            recorded = parse_snapshot(read_settings(connection))
            snapshot.forget_snapshot(connection)  # its files may have the recorded hashes and still be wrong
            return recorded

        self._upkeep.indexer.end()
        recorded = self._current().write(mend)
        self._shared.forget()
        if recorded:
            self._upkeep.take_snapshot(wait=True, afresh=True)
        return report

    @immediate
    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> T:
        """Answer the plan in one read transaction."""
        return self._view(
            lambda view: run(
                answer_plan(plan, EmbeddedReader(view, scope, self._settings.exact_below).answer),
                _refuse_to_wait,
            )
        )

    def run(self, operation: Operation[T]) -> T:
        """Run the operation in the caller's thread."""
        return run(operation, _refuse_to_wait)

    async def arun(self, operation: Operation[T]) -> T:
        """Run the operation in a worker thread."""
        return await run_in_thread(self.run, operation)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({MEMORY if self._temporary else str(self.folder)!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Support pickle and deepcopy: the copy opens the folder again.

        Raises:
            CapabilityError: If the store is in memory only.
            StoreClosedError: If the store is closed.
        """
        self._current()
        if self._temporary:
            raise CapabilityError(
                "a store in memory cannot be pickled or copied: it is deleted when it is closed;"
                " keep it in a folder, LinkStore.open(path)"
            )
        return _reopen_backend, (type(self), self.folder, self._settings)

    def close(self) -> None:
        """Take a snapshot if much has changed since the last one, and release everything.

        A signal handler that interrupted this store's own work takes no snapshot, because the snapshot would
        lack the rest of that work. The work goes on, and the resources that it holds are released at its end.
        """
        if self._closed:
            return
        try:
            if self._opened.is_ours and not self._temporary and not self._database.interrupted:
                self._upkeep.at_close()
        finally:
            self._closed = True
            if self._opened.is_ours:
                self._upkeep.indexer.end()
                self._database.close()
            if self._remove_temporary:
                self._remove_temporary()

    def _view(self, use: Callable[[StoreView], T]) -> T:
        self._current()
        return self._upkeep.viewed(use)


def _reopen_backend(kind: type[EmbeddedBackend], folder: Path, settings: EmbeddedSettings) -> EmbeddedBackend:
    """Open the store in a folder, which must still exist."""
    return kind(folder, create=False, settings=settings)


def _remove_folder(folder: Path, owner: int) -> None:
    """Delete a temporary store, unless this is a forked child of the process that owns it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _make_manifest(settings: dict[str, Any]) -> Manifest:
    return Manifest(embedding=settings.get("embedding"), dimension=settings.get("dimension"))


def _refuse_to_wait(request: object) -> object:
    raise AssertionError(f"an immediate operation asked to wait for {request!r}")

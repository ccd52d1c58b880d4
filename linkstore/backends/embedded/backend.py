"""The embedded backend: one folder, no server."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from linkstore.arguments import given, require
from linkstore.backends.base import (
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
)
from linkstore.backends.embedded import access, cleaning, derived, inspection, notes, snapshot, tallies
from linkstore.backends.embedded.database import Database
from linkstore.backends.embedded.pages import page_digests, page_entries
from linkstore.backends.embedded.place import Place
from linkstore.backends.embedded.process import Opened, PerProcess
from linkstore.backends.embedded.reader import EmbeddedReader, View
from linkstore.backends.embedded.recorded import decoding, raw_settings, settings_of
from linkstore.backends.embedded.relinking import relinked
from linkstore.backends.embedded.settings import EmbeddedSettings
from linkstore.backends.embedded.sharing import Shared
from linkstore.backends.embedded.snapshot import Snapshot, snapshot_of
from linkstore.backends.embedded.upkeep import Upkeep
from linkstore.backends.embedded.vocabulary import vocabulary as look_up
from linkstore.backends.embedded.writing import (
    ChangeWriter,
    GroupKeys,
    PreparedRecord,
    prepare,
    words_of_changed,
)
from linkstore.backends.reader import immediate
from linkstore.drivers import answered, in_thread, run
from linkstore.errors import CapabilityError, StoreClosedError
from linkstore.filters import EVERYTHING, Condition
from linkstore.gc_pause import collection_paused
from linkstore.links import Link
from linkstore.plans import Operation, Plan
from linkstore.vocabulary import Vocabulary

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
        require(EmbeddedSettings, "an EmbeddedSettings", **given(settings=settings))
        self._settings = settings or EmbeddedSettings(durable=not self._temporary)
        removal = weakref.finalize(self, _remove, self.folder, os.getpid()) if self._temporary else None
        self._remove_temporary = removal
        place.prepare(create=create or self._temporary)
        self._closed = False
        self._manifest = Manifest()
        settings = self._settings
        self._opened = PerProcess(
            lambda: Opened.at(
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
    def _shared(self) -> Shared:
        return self._upkeep.shared

    @property
    def _groups(self) -> GroupKeys:
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
            self._manifest = database.read(lambda connection: _manifest(settings_of(connection)))
        return self._manifest

    @immediate
    def claim(self, manifest: Manifest) -> Manifest:
        """Write to the table of settings, if it has no manifest."""

        def record_once(connection: apsw.Connection) -> Manifest:
            known = _manifest(settings_of(connection))
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
        prepared, found = collection_paused(lambda: self._prepare(change))

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            check_dimension(change.put, settings_of(connection).get("dimension"))
            return writer.apply(change, prepared, found)

        return self._write(apply)

    def _prepare(self, change: Change) -> tuple[list[PreparedRecord], dict[str, str]]:
        prepared = prepare(change.put)
        find = partial(words_of_changed, prepared=prepared)
        return prepared, self._current().read(find) if prepared else {}

    @immediate
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Read the documents and write them again, in one transaction."""

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            changed, unchanged = relinked(connection, kinds, links)
            return replace(writer.apply(Change(), changed), unchanged=unchanged)

        return self._write(apply)

    def _write(self, apply: Callable[[apsw.Connection, ChangeWriter], Written]) -> Written:
        """Run one write transaction, then take a snapshot if enough has changed since the last one."""

        def work(connection: apsw.Connection) -> tuple[ChangeWriter, Written, dict[str, Any]]:
            writer = ChangeWriter(connection, self._groups)
            return writer, apply(connection, writer), settings_of(connection)

        writer, written, settings = self._current().write(
            lambda connection: collection_paused(lambda: work(connection))
        )
        self._groups.learn(writer.epoch, writer.learned)
        if not self._closed:  # a signal handler may have closed the store meanwhile; the change is committed
            self._upkeep.after_write(settings)
        return written

    @immediate
    def touch(self, times: Mapping[str, int]) -> int:
        """Write to the table of access times, in one transaction that changes nothing else."""
        return self._current().write(lambda connection: access.touch(connection, times)) if times else 0

    @immediate
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """Read the table of access times."""
        return self._current().read(lambda connection: access.accessed(connection, ids))

    @immediate
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Read the table of pages."""
        return self._current().read(lambda connection: page_entries(connection, source, urls))

    @immediate
    def digests(self, source: str | None) -> dict[str, str]:
        """Read the table of pages, row by row."""
        return self._current().read(lambda connection: page_digests(connection, source))

    @immediate
    def linked(self, kind: str, take: int) -> list[LinkedPage]:
        """Read the table of pages and the mirror's links."""
        return self._view(lambda view: tallies.most_linked(view, kind, take))

    @immediate
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Read the tables in the order of the index on ids."""
        return self._current().read(lambda connection: inspection.records(connection, after, limit))

    @immediate
    def survey(self) -> Survey:
        """Count in the mirror."""
        return self._view(tallies.survey)

    @immediate
    def vocabulary(self, asked: Vocabulary | None = None) -> Vocabulary:
        """Read the tables of link groups and documents."""
        known = self._opened.get().fields
        return self._current().read(lambda connection: look_up(connection, known, asked))

    @immediate
    def note(self, name: str) -> str | None:
        """Read the table of settings."""
        return self._current().read(lambda connection: notes.read(connection, name))

    @immediate
    def set_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Write to the table of settings, in one transaction."""
        return self._current().write(lambda connection: notes.exchange(connection, name, value, expected))

    @immediate
    def flush(self) -> None:
        """Take a snapshot if anything has changed since the last one and the store is large enough."""
        if not self._current().read_only:  # a process that can write takes the snapshots
            self._upkeep.flush()

    @immediate
    def compact(self) -> None:
        """Compact the store: see :meth:`linkstore.backends.embedded.upkeep.Upkeep.compact`."""
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
        recorded = snapshot_of(raw_settings(connection))
        damaged = self._upkeep.damaged_files(recorded) if recorded else []
        with decoding("tables"):
            return list(inspection.findings(connection, damaged))

    def _compare_derived(self, view: View) -> list[Finding]:
        recorded = snapshot_of(settings_of(view.connection))
        return list(derived.findings(view, self._upkeep.files, recorded, self._upkeep.builder.live))

    @immediate
    def repair(self) -> Report:
        """Rewrite the rows that differ from the documents. If there are any, rebuild all derived data too."""
        report = run(self.verify(), _nothing_to_wait_for)
        if report.sound:
            return report

        def mend(connection: apsw.Connection) -> Snapshot | None:
            with decoding("tables"):
                inspection.mend(connection)
            cleaning.begin_epoch(connection)  # a link group may be deleted whose key other processes remember
            recorded = snapshot_of(settings_of(connection))
            snapshot.forget(connection)  # its files may have the recorded hashes and still be wrong
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
                answered(plan, EmbeddedReader(view, scope, self._settings.exact_below).answer),
                _nothing_to_wait_for,
            )
        )

    def run(self, operation: Operation[T]) -> T:
        """Run the operation in the caller's thread."""
        return run(operation, _nothing_to_wait_for)

    async def arun(self, operation: Operation[T]) -> T:
        """Run the operation in a worker thread."""
        return await in_thread(self.run, operation)

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
        return _reopened, (type(self), self.folder, self._settings)

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

    def _view(self, use: Callable[[View], T]) -> T:
        self._current()
        return self._upkeep.viewed(use)


def _reopened(kind: type[EmbeddedBackend], folder: Path, settings: EmbeddedSettings) -> EmbeddedBackend:
    """Open the store in a folder, which must still exist."""
    return kind(folder, create=False, settings=settings)


def _remove(folder: Path, owner: int) -> None:
    """Delete a temporary store, unless this is a forked child of the process that owns it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _manifest(settings: dict[str, Any]) -> Manifest:
    return Manifest(embedding=settings.get("embedding"), dimension=settings.get("dimension"))


def _nothing_to_wait_for(request: object) -> object:
    raise AssertionError(f"an immediate operation asked to wait for {request!r}")

"""The embedded backend: one folder, no server."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from linkstore.core.arguments import omit_none, require
from linkstore.core.calls import answer_plan, run, run_in_thread
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.links import Link
from linkstore.core.plans import EngineOperation, Plan
from linkstore.core.processes import infrequent_gc
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import (
    Finding,
    Manifest,
    PageEntry,
    Record,
    StoredLinks,
    WriteBatch,
    WriteCounts,
    as_operation,
    check_dimension,
)
from linkstore.engines.embedded import schema
from linkstore.engines.embedded.database import Database
from linkstore.engines.embedded.filters import StoreView
from linkstore.engines.embedded.location import FORKS, StoreFolder
from linkstore.engines.embedded.maintenance import EmbeddedSettings, OpenStore
from linkstore.engines.embedded.memory import MEMORY
from linkstore.engines.embedded.reader import EmbeddedReader, read_links
from linkstore.engines.embedded.writing import EmbeddedWriter, add_words, prepare_records, prepare_relinked
from linkstore.errors import BackendError, CapabilityError, StoreClosedError

T = TypeVar("T")


class EmbeddedBackend(Backend):
    """A store in one folder, for any number of threads and processes; one of them writes at a time.

    Args:
        path: The folder. It is made absolute and its symbolic links are followed once, here. With
            ``":memory:"`` the store is in memory, and gone once it is closed or the process ends.
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
        require(EmbeddedSettings, "an EmbeddedSettings", **omit_none(settings=settings))
        self._settings = settings or EmbeddedSettings()
        self._place = None if str(path) == MEMORY else StoreFolder(path)
        self.folder = Path(MEMORY) if self._place is None else self._place.folder
        self._closed = False
        self._manifest = Manifest()
        if self._place is not None:
            self._place.prepare(create=create)
        self._opened = OpenStore(self._place, self._settings)
        self._opened.at_open()

    @property
    def _store(self) -> OpenStore:
        """The store as this process has it open; a forked child opens it for itself at first use."""
        if self._opened.pid != os.getpid():
            with FORKS.opening:
                if self._opened.pid != os.getpid():
                    self._opened = self._open_in_child(self._opened)
        return self._opened

    def _open_in_child(self, inherited: OpenStore) -> OpenStore:
        if not inherited.database.left_to_parent:
            raise BackendError(
                f"{inherited.database.path}: this process was forked while a transaction was under"
                " way; fork between uses of a store, or start processes by spawn or forkserver"
            )
        if self._place is None:
            inherited.pid = os.getpid()
            return inherited
        # The child must not free the rest: a thread of the parent may have been changing it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
        return OpenStore(self._place, self._settings)

    @property
    def _database(self) -> Database:
        return self._store.database

    def _current(self) -> Database:
        """Return the database as opened by this process."""
        if self._closed:
            place = "in memory" if self._place is None else f"at {self.folder}"
            raise StoreClosedError(f"the store {place} is closed; open it again")
        return self._store.database

    @as_operation
    def manifest(self) -> Manifest:
        """Read the table of settings, until it records an embedding, which never changes afterwards."""
        database = self._current()
        if self._manifest.dimension is None:
            self._manifest = database.read(_read_manifest)
        return self._manifest

    @as_operation
    def claim(self, manifest: Manifest) -> Manifest:
        """Write to the table of settings, if it has no manifest."""

        def record_once(connection: apsw.Connection) -> Manifest:
            recorded = _read_manifest(connection)
            if recorded.dimension is not None:
                return recorded
            schema.write_settings(connection, dataclasses.asdict(manifest))
            return manifest

        return self._current().write(record_once)

    @as_operation
    @infrequent_gc()
    def write(self, change: WriteBatch) -> WriteCounts:
        """Write in one transaction."""
        self._current()
        prepared = prepare_records(change.put)
        if prepared:
            prepared = self._current().read(lambda connection: add_words(connection, prepared))

        def apply(connection: apsw.Connection, writer: EmbeddedWriter) -> WriteCounts:
            check_dimension(change.put, schema.read_settings(connection).get("dimension"))
            return writer.apply(change, prepared)

        return self._write(apply)

    @as_operation
    @infrequent_gc()
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> WriteCounts:
        """Read the documents and write them again, in one transaction."""

        def apply(connection: apsw.Connection, writer: EmbeddedWriter) -> WriteCounts:
            changed, unchanged = prepare_relinked(connection, kinds, links)
            return dataclasses.replace(writer.apply(WriteBatch(), changed), unchanged=unchanged)

        return self._write(apply)

    def _write(self, apply: Callable[[apsw.Connection, EmbeddedWriter], WriteCounts]) -> WriteCounts:
        """Run one write transaction, then take a snapshot if enough has changed since the last one."""

        def work(connection: apsw.Connection) -> tuple[WriteCounts, dict[str, Any]]:
            return apply(connection, EmbeddedWriter(connection)), schema.read_settings(connection)

        written, settings = self._current().write(work)
        if not self._closed:  # a signal handler may have closed the store meanwhile; the change is committed
            self._store.after_write(settings)
        return written

    @as_operation
    def touch(self, times: Mapping[str, int]) -> int:
        """Write to the table of access times, in one transaction that changes nothing else."""
        database = self._current()
        return database.write(lambda connection: schema.record_accesses(connection, times)) if times else 0

    @as_operation
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """Read the table of access times."""
        return self._current().read(lambda connection: schema.read_accesses(connection, ids))

    @as_operation
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Read the table of pages."""
        return self._current().read(lambda connection: schema.read_page_entries(connection, source, urls))

    @as_operation
    def page_digests(self, source: str | None) -> dict[tuple[str, str], str]:
        """Read the table of pages without the ids in it: seven times as fast as reading whole entries."""
        return self._current().read(lambda connection: schema.read_page_digests(connection, source))

    @as_operation
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Read the tables in the order of the index on ids."""
        return self._current().read(lambda connection: schema.read_records(connection, after, limit))

    @as_operation
    def links(self) -> StoredLinks:
        """Read the mirror's columns."""
        return self._view(read_links)

    @as_operation
    def read_notes(self, names: Sequence[str] | None) -> dict[str, str]:
        """Read the table of notes."""
        database = self._current()
        if names is not None and not names:
            return {}
        return database.read(lambda connection: schema.read_notes(connection, names))

    @as_operation
    def add_notes(self, names: Collection[str]) -> None:
        """Write to the table of notes."""
        rows = [(name,) for name in names]
        self._current().write(lambda connection: connection.executemany(schema.ADD_NOTE, rows))

    @as_operation
    def exchange_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Write to the table of notes, in one transaction."""
        return self._current().write(
            lambda connection: schema.exchange_note(connection, name, value, expected)
        )

    @as_operation
    def collect_names(self) -> Vocabulary:
        """Read the tables of documents and link groups."""
        return self._current().read(schema.collect_names)

    @as_operation
    def flush(self) -> None:
        """Take a snapshot if anything has changed since the last one and the store is large enough."""
        if not self._current().read_only:  # a process that can write takes the snapshots
            self._store.flush()

    @as_operation
    def compact(self) -> None:
        """Erase all deleted content from all files, and make the files as small as possible."""
        self._current()
        self._store.compact()

    @as_operation
    def inspect(self, *, repair: bool) -> list[Finding]:
        """Compare links, vectors, counts, files and memory with the documents. Repair rebuilds all of it."""
        self._current()
        from linkstore.engines.embedded import verification  # late: only checks need it

        findings = verification.inspect_store(self._store)
        if repair and findings:
            verification.rebuild_store(self._store)
        return findings

    @as_operation
    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> T:
        """Answer the plan in one read transaction."""
        return self._view(
            lambda view: run(
                answer_plan(plan, EmbeddedReader(view, scope, self._settings.exact_below).answer)
            )
        )

    def run(self, operation: EngineOperation[T]) -> T:
        """Run the operation in the caller's thread. It waits for nothing: see :func:`as_operation`."""
        return run(operation)

    async def arun(self, operation: EngineOperation[T]) -> T:
        """Run the operation in a worker thread."""
        return await run_in_thread(self.run, operation)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Support pickle and deepcopy: the copy opens the folder again.

        Raises:
            CapabilityError: If the store is in memory only.
            StoreClosedError: If the store is closed.
        """
        self._current()
        if self._place is None:
            raise CapabilityError(
                "a store in memory cannot be pickled or copied: it is deleted when it is closed;"
                " keep it in a folder, LinkStore.open(path)"
            )
        return partial(type(self), create=False, settings=self._settings), (self.folder,)

    def close(self) -> None:
        """Take a snapshot if much has changed since the last one, and release everything.

        A signal handler that interrupted this store's own work takes no snapshot, because the snapshot would
        lack the rest of that work. The work goes on, and the resources that it holds are released at its end.
        """
        if self._closed:
            return
        try:
            if self._opened.pid == os.getpid() and self._place is not None and not self._database.interrupted:
                self._store.at_close()
        finally:
            self._closed = True
            if self._opened.pid == os.getpid():
                self._opened.database.close()

    def _view(self, use: Callable[[StoreView], T]) -> T:
        self._current()
        return self._store.read_view(use)


def _read_manifest(connection: apsw.Connection) -> Manifest:
    settings = schema.read_settings(connection)
    return Manifest(embedding=settings.get("embedding"), dimension=settings.get("dimension"))

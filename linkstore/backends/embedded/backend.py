"""The embedded backend: one folder, no server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
from filelock import Timeout

from linkstore.backends.base import (
    Backend,
    Change,
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
from linkstore.backends.embedded import inspection, tallies
from linkstore.backends.embedded.database import Database, settings_of
from linkstore.backends.embedded.mirror import Mirror
from linkstore.backends.embedded.pages import page_digests, page_entries
from linkstore.backends.embedded.place import Place
from linkstore.backends.embedded.process import Opened, PerProcess
from linkstore.backends.embedded.reader import EmbeddedReader, View
from linkstore.backends.embedded.relinking import relinked
from linkstore.backends.embedded.sharing import Shared, StaleStateError, snapshot_of, stamp_of
from linkstore.backends.embedded.snapshot import Builder, Snapshot, SnapshotFiles, record
from linkstore.backends.embedded.writing import ChangeWriter, GroupKeys, prepare, with_words
from linkstore.drivers import answered, run
from linkstore.errors import (
    StoreBusyError,
    StoreClosedError,
    StoreFullError,
    StoreMovedError,
)
from linkstore.filters import EVERYTHING, Condition
from linkstore.gc_pause import collection_paused
from linkstore.links import Link
from linkstore.plans import Operation, Plan

T = TypeVar("T")
MEMORY: Final = ":memory:"
STALE_SECONDS: Final = 10.0
"""How long a reader tries to begin with a state no older than what is loaded."""
_LOG: Final = logging.getLogger("linkstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """How an embedded store behaves.

    Args:
        exact_below: Up to so many documents all are compared, and no index is kept; default
            20,000, where that still takes about half a millisecond at 256 dimensions.
        grow_share: A new snapshot is taken when documents past the last one are more than this
            share of those in it, and more than ``exact_below``; default 1/2.
        durable: Whether an acknowledged write outlives a power cut, at one disk flush a write; it outlives
            a crash of the process either way. Without, a power cut may take the last writes, each of them
            whole, and never what was stored before; default True.
    """

    exact_below: int = 20_000
    grow_share: float = 0.5
    durable: bool = True


class EmbeddedBackend(Backend):
    """A store in one folder, for any number of threads and processes; one writes at a time.

    Args:
        path: The folder; ``":memory:"`` keeps it in a temporary one, removed on close. It is made absolute
            and its symbolic links are followed once, here.
        create: Make the store if it is not there.
        settings: See :class:`EmbeddedSettings`.

    Raises:
        StoreNotFoundError: If there is no store and ``create`` is False.
        StoreFormatError: If the path is no folder, or the database is not ours, or damaged.
        StorePermissionError: If its files may not be read.
        StoreReadOnlyError: If there is no store and none can be made, or one that needs to be written first.
    """

    def __init__(
        self, path: str | Path, *, create: bool = True, settings: EmbeddedSettings | None = None
    ) -> None:
        self._temporary = str(path) == MEMORY
        place = Place(tempfile.mkdtemp(prefix="linkstore-") if self._temporary else path)
        self.folder = place.folder
        self._settings = settings or EmbeddedSettings(durable=not self._temporary)
        removal = weakref.finalize(self, _remove, self.folder, os.getpid()) if self._temporary else None
        self._remove_temporary = removal
        place.prepare(create=create or self._temporary)
        self._closed = False
        durable = self._settings.durable
        self._opened = PerProcess(lambda: Opened.at(place, durable=durable))
        self._mend_snapshot()

    @property
    def _database(self) -> Database:
        return self._opened.get().database

    @property
    def _files(self) -> SnapshotFiles:
        return self._opened.get().files

    @property
    def _builder(self) -> Builder:
        return self._opened.get().builder

    @property
    def _shared(self) -> Shared:
        return self._opened.get().shared

    @property
    def _groups(self) -> GroupKeys:
        return self._opened.get().groups

    def _current(self) -> Database:
        """The database, of this process."""
        if self._closed:
            raise StoreClosedError(f"the store at {self.folder} is closed; open it again")
        return self._database

    @immediate
    def manifest(self) -> Manifest:
        """From the table of settings."""
        return self._current().read(lambda connection: _manifest(settings_of(connection)))

    @immediate
    def claim(self, manifest: Manifest) -> Manifest:
        """Into the table of settings, if it has none."""

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
        """One transaction."""
        with collection_paused():
            prepared = prepare(change.put)
            if prepared:
                prepared = self._current().read(partial(with_words, prepared=prepared))

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            check_dimension(change.put, settings_of(connection).get("dimension"))
            return writer.apply(change, prepared)

        return self._write(apply)

    @immediate
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """One transaction, in which the documents are read and written anew."""

        def apply(connection: apsw.Connection, writer: ChangeWriter) -> Written:
            changed, unchanged = relinked(connection, kinds, links)
            return replace(writer.apply(Change(), changed), unchanged=unchanged)

        return self._write(apply)

    def _write(self, apply: Callable[[apsw.Connection, ChangeWriter], Written]) -> Written:
        """One write transaction; then a snapshot, when enough has come since the last."""

        def work(connection: apsw.Connection) -> tuple[ChangeWriter, Written, dict[str, Any]]:
            with collection_paused():
                writer = ChangeWriter(connection, self._groups)
                return writer, apply(connection, writer), settings_of(connection)

        writer, written, settings = self._current().write(work)
        self._groups.learn(writer.learned)
        if self._due(settings, self._settings.grow_share):
            self._take_snapshot()
        elif self._growing(settings):
            self._extend_index()
        return written

    @immediate
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """From the table of pages."""
        return self._current().read(lambda connection: page_entries(connection, source, urls))

    @immediate
    def digests(self, source: str | None) -> dict[str, str]:
        """From the table of pages, row by row."""
        return self._current().read(lambda connection: page_digests(connection, source))

    @immediate
    def linked(self, kind: str, take: int) -> list[LinkedPage]:
        """From the table of pages and the mirror's links."""
        return self._with_view(lambda view: tallies.most_linked(view, kind, take))

    @immediate
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """From the tables, by the ids' index."""
        return self._current().read(lambda connection: inspection.records(connection, after, limit))

    @immediate
    def survey(self) -> Survey:
        """From the mirror."""
        return self._with_view(tallies.survey)

    @immediate
    def flush(self) -> None:
        """Take a snapshot of whatever has come since the last, if the store is of a size for it."""
        if self._current().read_only:
            return  # whoever wrote it takes snapshots
        if self._due(self._current().read(settings_of), None):
            self._take_snapshot(wait=True)

    @immediate
    def verify(self) -> Report:
        """Compare links, vectors, counts and files with the documents."""

        def compare(connection: apsw.Connection) -> Report:
            snapshot = snapshot_of(settings_of(connection))
            damaged = self._files.problems(snapshot) if snapshot else []
            return Report(findings=tuple(inspection.findings(connection, damaged)))

        return self._current().inspect(compare)

    @immediate
    def repair(self) -> Report:
        """Write anew what differs from the documents; build the snapshot anew if a file differs."""
        report = run(self.verify(), _nothing_to_wait_for)
        if report.sound:
            return report

        def mend(connection: apsw.Connection) -> Snapshot | None:
            inspection.mend(connection)
            return snapshot_of(settings_of(connection))

        recorded = self._current().write(mend)
        self._groups.known = {}
        self._shared.forget()
        if recorded:
            self._take_snapshot(wait=True, afresh=True)
        return report

    @immediate
    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> T:
        """In one read transaction."""
        return self._with_view(
            lambda view: run(
                answered(plan, EmbeddedReader(view, scope, self._settings.exact_below).answer),
                _nothing_to_wait_for,
            )
        )

    def run(self, operation: Operation[T]) -> T:
        """In the caller's thread."""
        return run(operation, _nothing_to_wait_for)

    async def arun(self, operation: Operation[T]) -> T:
        """In a worker thread."""
        return await asyncio.to_thread(self.run, operation)

    def close(self) -> None:
        """Take a snapshot if much has come since the last, and release everything."""
        if self._closed:
            return
        try:
            if self._opened.is_ours:
                self._last_snapshot()
        finally:
            self._closed = True
            if self._opened.is_ours:
                self._database.close()
            if self._remove_temporary:
                self._remove_temporary()

    def _last_snapshot(self) -> None:
        database = self._database
        if self._temporary or database.read_only or database.place.moved:
            return
        if self._due(database.read(settings_of), self._settings.grow_share / 8):
            self._take_snapshot()

    def _due(self, settings: dict[str, Any], share: float | None) -> bool:
        """Whether a snapshot should be taken: enough has come since the last (None: anything)."""
        stamp, snapshot = stamp_of(settings), snapshot_of(settings)
        if stamp.documents <= self._settings.exact_below:
            return False
        covered = snapshot.last_key if snapshot else 0
        since = stamp.last_key - covered
        if share is None or snapshot is None:
            return since > 0
        return since >= max(self._settings.exact_below // 4, share * covered)

    def _growing(self, settings: dict[str, Any]) -> bool:
        """Whether enough has come since the last snapshot for the index in memory to take it in."""
        stamp, snapshot = stamp_of(settings), snapshot_of(settings)
        if snapshot is None:
            return False
        covered = max(snapshot.last_key, self._builder.live.covered)
        return stamp.last_key - covered >= max(self._settings.exact_below // 4, covered // 50)

    def _extend_index(self) -> None:
        """Bring the index in memory up to date, unless a snapshot is being taken."""
        mutex = self._opened.get().snapshot_mutex
        if not mutex.acquire(blocking=False):
            return
        try:
            self._with_view(self._extend)
        finally:
            mutex.release()

    def _extend(self, view: View) -> None:
        before = snapshot_of(settings_of(view.connection))
        self._builder.extend(view.mirror, view.stamp, before)

    def _mend_snapshot(self) -> None:
        """Make derived files anew if they are not what the database records."""
        snapshot = snapshot_of(self._database.read(settings_of))
        if not snapshot or not self._files.problems(snapshot):
            return
        if self._database.read_only:
            _LOG.warning("derived files in %s are damaged; searches do without them", self.folder)
        else:
            _LOG.warning("derived files in %s are damaged; making them anew from the documents", self.folder)
            self._take_snapshot(wait=True, afresh=True)

    def _take_snapshot(self, *, wait: bool = False, afresh: bool = False) -> None:
        """Write and record a snapshot, unless someone else is at it (or: after they are done).

        The documents are safe before this begins. If there is no space for derived files, queries
        stay right without them, so that is a warning and no error.
        """
        opened = self._opened.get()
        if not opened.snapshot_mutex.acquire(blocking=wait):
            return
        try:
            with opened.snapshot_lock.acquire(timeout=-1 if wait else 0):
                self._write_snapshot(afresh=afresh)
        except Timeout:
            return
        except (OSError, StoreBusyError, StoreFullError) as error:
            _LOG.warning("no snapshot of %s was taken, searches stay exact: %s", self.folder, error)
        finally:
            opened.snapshot_mutex.release()

    def _write_snapshot(self, *, afresh: bool) -> None:
        def build(view: View) -> tuple[Mirror, Snapshot]:
            before = snapshot_of(settings_of(view.connection))
            return view.mirror, self._builder.build(view.mirror, view.stamp, before, afresh=afresh)

        mirror, snapshot = self._with_view(build)
        self._database.write(lambda connection: record(connection, snapshot))
        self._files.remove_older(snapshot)
        self._shared.replace(mirror, snapshot)

    def _with_view(self, use: Callable[[View], T]) -> T:
        """Read from a view of the current state.

        A transaction may be older than what another thread has loaded meanwhile, so this tries again;
        the next transaction is newer. Only a database that was set back to an older state keeps failing.
        """
        ends = time.monotonic() + STALE_SECONDS
        while time.monotonic() < ends:
            with contextlib.suppress(StaleStateError):
                return self._current().read(lambda connection: use(self._shared.view(connection)))
        raise StoreMovedError(
            f"the database in {self.folder} shows an older state than was read before: it was restored"
            " from a copy while it was open, so open the store again"
        )


def _remove(folder: Path, owner: int) -> None:
    """Delete a temporary store, unless this is a forked child of the process that owns it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _manifest(settings: dict[str, Any]) -> Manifest:
    return Manifest(embedding=settings.get("embedding"), dimension=settings.get("dimension"))


def _nothing_to_wait_for(request: object) -> object:
    raise AssertionError(f"an immediate operation asked to wait for {request!r}")

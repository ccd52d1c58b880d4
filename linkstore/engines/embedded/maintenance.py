"""The data that readers of a process share, and the work that keeps it small and current.

Deletion of rows that no document needs: old records of removals, and link groups without links.

Maintenance that keeps a store's cost in proportion to its content: snapshots, cleaning, compaction.

The resources that a store has open in one process, and how a forked child replaces them.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import apsw
import numpy as np

from linkstore.core.arrays import Ints
from linkstore.engines.embedded import lexical, snapshot
from linkstore.engines.embedded.database import Database, fetch_rows
from linkstore.engines.embedded.index_process import AHEAD, BACKLOG, Indexer
from linkstore.engines.embedded.location import Place, run_exclusively
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.schema import find_setting_problems, read_raw_settings, read_settings
from linkstore.engines.embedded.shared import FLOOR, SharedData, StaleStateError, make_stamp
from linkstore.engines.embedded.snapshot import (
    Snapshot,
    SnapshotBuilder,
    SnapshotFiles,
    SnapshotState,
    parse_snapshot,
)
from linkstore.engines.embedded.statistics import KnownFields
from linkstore.engines.embedded.writing import GroupKeyCache
from linkstore.errors import BackendError, StoreBusyError, StoreFullError, StoreMovedError

UNLISTED: Final = "unlisted"
"""The setting that counts the removals that are no longer listed."""
EPOCH: Final = "epoch"
_LEAST_KEPT: Final = 1000
"""Even the smallest store keeps up to this many listed removals, and link groups without links."""
_FREE_PAGES: Final = 256


def is_cleaning_due(settings: dict[str, Any]) -> bool:
    """Say whether the listed removals outnumber the documents (or 2,000, if more): then cleaning is cheap."""
    documents: int = settings["documents"]
    return _count_listed_removals(settings) > 2 * max(_LEAST_KEPT, documents // 2)


def clean_tables(connection: apsw.Connection, view: StoreView, *, everything: bool = False) -> None:
    """Delete unneeded rows, in an open write transaction.

    A mirror that has not seen a removal that is no longer listed must be loaded again. A link group that is
    deleted and later used again gets a new key.

    Args:
        connection: In the write transaction.
        view: A view of the state that the transaction began with.
        everything: Whether to delete also what is cheaper to keep.
    """
    settings = read_settings(connection)
    kept = 0 if everything else max(_LEAST_KEPT, settings["documents"] // 2)
    rows = fetch_rows(
        connection, "SELECT change FROM departed ORDER BY change DESC LIMIT 1 OFFSET ?", (kept,)
    )
    if rows:
        connection.execute("DELETE FROM departed WHERE change <= ?", rows[0])
        _write_setting(connection, FLOOR, rows[0][0])
    listed = connection.execute("SELECT count(*) FROM departed").get
    _write_setting(connection, UNLISTED, settings["last_key"] - settings["documents"] - listed)
    orphans, living = _find_orphan_groups(view)
    if len(orphans) > (0 if everything else max(_LEAST_KEPT, living)):
        connection.executemany("DELETE FROM link_group WHERE key = ?", [(key,) for key in orphans.tolist()])
        begin_epoch(connection)


def begin_epoch(connection: apsw.Connection) -> None:
    """Make every process forget the keys of link groups, in an open write transaction."""
    _write_setting(connection, EPOCH, read_settings(connection).get(EPOCH, 0) + 1)


def return_free_pages(connection: apsw.Connection) -> None:
    """Return free pages to the file system if there are many, in an open write transaction."""
    free, pages = connection.pragma("freelist_count"), connection.pragma("page_count")
    if free > max(_FREE_PAGES, pages // 2):
        connection.execute("PRAGMA incremental_vacuum").fetchall()


def _count_listed_removals(settings: dict[str, Any]) -> int:
    gone: int = settings["last_key"] - settings["documents"]
    return gone - int(settings.get(UNLISTED) or 0)


def _write_setting(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))


def _find_orphan_groups(view: StoreView) -> tuple[Ints, int]:
    """Return the keys of the link groups without members, and how many link groups have members."""
    mirror, stamp = view.mirror, view.stamp
    end = int(mirror.links_at.take(np.array([mirror.rows_seen(stamp)]))[0])
    documents = mirror.link_document.rows(0, end).astype(np.int64)
    groups = mirror.link_group.rows(0, end)
    there = mirror.visible(documents, stamp)
    used = np.zeros(len(mirror.group_keys), np.bool_)
    used[groups if there is None else groups[there]] = True
    known = mirror.group_keys.count_up_to(stamp.last_group)
    return mirror.group_keys.take(np.flatnonzero(~used[:known])), int(np.count_nonzero(used))


T = TypeVar("T")
GONE_SHARE: Final = 0.25
"""A new snapshot is taken when at least this share of the last one's documents was removed."""
LEAST_SHARE: Final = 0.02
"""If the index lacks fewer than this share of the documents, they are not added yet."""
STALE_SECONDS: Final = 10.0
"""How long a reader tries to begin a transaction that the loaded mirror can serve."""
_LOG: Final = logging.getLogger("linkstore")
_POSTPONING_ERRORS = (OSError, MemoryError, StoreBusyError, StoreFullError)
"""Errors that postpone the making of derived files; documents are safe and searches correct without them."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """The states that a store and its index have reached.

    Args:
        change: The number of the last change.
        covered: The largest document key that the index covers.
    """

    change: int
    covered: int


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Brings derived data up to date, and deletes what is no longer needed.

    Args:
        database: The tables of the store.
        files: The files of its snapshots.
        builder: Makes snapshots.
        shared: The data that readers of this process share.
        indexer: Has another process take snapshots while this one writes.
        exact_below: A store of at most this many documents gets no snapshot.
        grow_share: A snapshot is taken when the documents added since the last one are at least this share
            of those in it.
    """

    database: Database
    files: SnapshotFiles
    builder: SnapshotBuilder
    shared: SharedData
    indexer: Indexer
    exact_below: int
    grow_share: float

    def viewed(self, use: Callable[[StoreView], T]) -> T:
        """Read from a view of the current state."""
        return self._read_view(self.database.read, use)

    def inspected(self, use: Callable[[StoreView], T]) -> T:
        """Read like :meth:`viewed`, but with a new connection."""
        return self._read_view(self.database.inspect, use)

    def _read_view(
        self, read: Callable[[Callable[[apsw.Connection], T]], T], use: Callable[[StoreView], T]
    ) -> T:
        """Read from a view, in a new transaction if the first one is too old for the loaded mirror.

        A transaction is too old if another thread has loaded a later state since it began. Every attempt
        fails only if the database was set back to an older state.
        """
        ends = time.monotonic() + STALE_SECONDS
        while time.monotonic() < ends:
            with contextlib.suppress(StaleStateError):
                return read(lambda connection: use(self.shared.view(connection)))
        raise StoreMovedError(
            f"the database in {self.database.place.folder} shows an older state than was read before: it was"
            " restored from a copy while it was open, so open the store again"
        )

    def after_write(self, settings: dict[str, Any]) -> None:
        """Do the maintenance that is due after a write: cleaning, a snapshot, or an addition to the index.

        Args:
            settings: The settings as committed by the write.
        """
        if is_cleaning_due(settings):
            self._try_or_postpone(self._clean)
        if self._has_shrunk(settings):
            self._try_or_postpone(lambda: self._run_exclusively(self._remove_snapshot, wait=False))
        elif self._leave_to_indexer(settings):
            self.indexer.hold_back(settings["last_key"])
        elif self._is_snapshot_due(settings, self.grow_share):
            self.take_snapshot()
        elif self._growing(settings):
            self._try_or_postpone(lambda: self._run_exclusively(self._extend, wait=False))

    def flush(self) -> None:
        """Take a snapshot if anything has changed since the last one and the store is large enough."""
        self._flush_indexer(self.database.read(read_settings), None)
        if self._is_snapshot_due(self.database.read(read_settings), None):
            self.take_snapshot(wait=True)

    def at_close(self) -> None:
        """Take a snapshot if much has changed since the last one."""
        if self.database.read_only or self.database.place.moved:
            return
        if not find_setting_problems(settings := self.database.read(read_raw_settings)):
            self._flush_indexer(settings, self.grow_share / 8)
            if self._is_snapshot_due(self.database.read(read_raw_settings), self.grow_share / 8):
                self.take_snapshot()

    def catch_up(self, *, settled: bool) -> bool:
        """Do the work that is due, in the process that builds the index, and return whether there was any.

        Args:
            settled: Whether no process has written for a while. Then less growth suffices for a snapshot.
        """
        settings = self.database.read(read_settings)
        if self._is_snapshot_due(settings, LEAST_SHARE if settled else self.grow_share):
            return self._run_exclusively(lambda: self._write(afresh=False), wait=False) is not None
        return self._growing(settings) and self._run_exclusively(self._extend, wait=False) is not None

    def complete(self) -> None:
        """Flush like :meth:`flush` in the process that builds the index, but raise errors."""
        if self._is_snapshot_due(self.database.read(read_settings), None):
            self._run_exclusively(lambda: self._write(afresh=False), wait=True)

    def progress(self) -> IndexProgress:
        """Return how far the store and its index are."""
        settings = self.database.read(read_settings)
        return IndexProgress(settings["change"], settings["last_key"] - self._count_lacking(settings))

    def _flush_indexer(self, settings: dict[str, Any], share: float | None) -> None:
        """Have the index process, if it runs, take a snapshot that is due. An interrupt ends that process."""
        if self._is_snapshot_due(settings, share) and self.indexer.running:
            try:
                self.indexer.flush(settings["last_key"])
            except BaseException:
                self.indexer.end()
                raise

    def at_open(self) -> None:
        """Make derived files anew if they are missing or do not match the hashes in the database."""
        settings = self.database.read(read_raw_settings)
        if wrong := find_setting_problems(settings):
            _LOG.warning("%s is damaged and needs repair: %s", self.database.path, "; ".join(wrong))
            return
        recorded = parse_snapshot(settings)
        if recorded is None:
            if self._is_snapshot_due(settings, None) and not self.database.read_only:
                self.take_snapshot()
        elif not self.damaged_files(recorded):
            return
        elif self.database.read_only:
            _LOG.warning(
                "derived files in %s are damaged; searches do without them", self.database.path.parent
            )
        else:
            _LOG.warning(
                "derived files in %s are damaged; making them anew from the documents",
                self.database.place.folder,
            )
            self.take_snapshot(wait=True, afresh=True)

    def damaged_files(self, recorded: Snapshot) -> list[str]:
        """Return the names of the recorded snapshot's files that do not match their hashes.

        Args:
            recorded: The snapshot that was recorded when the caller began to read. If other processes have
                taken more snapshots since, its files may be gone, and the files of the latest are checked.
        """
        while found := self.files.problems(recorded):
            now = parse_snapshot(self.database.read(read_raw_settings))
            if now is None:
                return []
            if now == recorded:
                return found
            recorded = now
        return []

    def take_snapshot(self, *, wait: bool = False, afresh: bool = False) -> None:
        """Write and record a snapshot. If another is being written, wait for its end, or do nothing."""
        self._try_or_postpone(lambda: self._run_exclusively(lambda: self._write(afresh=afresh), wait=wait))

    def compact(self) -> None:
        """Erase all deleted content from all files, and make the files as small as possible.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If there is not enough space to write the files anew.
        """
        self.database.write(read_settings)  # raises the right error if nothing can be written
        self.indexer.end()
        self._run_exclusively(self._compact, wait=True)

    def _compact(self) -> None:
        self._load()
        self.database.write(lambda connection: self._clean_tables(connection, everything=True))
        if self._is_large_enough(self.database.read(read_settings)):
            kept = [self._write(afresh=True)]
        else:
            self._remove_snapshot()
            kept = []
        self.database.rewrite()
        self.files.remove_others(kept)
        self.database.place.sync()  # a power cut does not bring back what was erased
        self.shared.forget()

    def _load(self) -> None:
        """Load the derived data before the store is locked for writing, because loading takes time."""
        self.viewed(lambda view: view.stamp)

    def _clean(self) -> None:
        self._load()
        self.database.write(lambda connection: self._clean_tables(connection, everything=False))

    def _clean_tables(self, connection: apsw.Connection, *, everything: bool) -> None:
        clean_tables(connection, self.shared.view(connection), everything=everything)
        if everything:
            lexical.optimize_word_index(connection)
        return_free_pages(connection)

    def _run_exclusively(self, work: Callable[[], T], *, wait: bool) -> T | None:
        return run_exclusively(self.database.place.folder / "snapshot.lock", work, wait=wait)

    def _try_or_postpone(self, work: Callable[[], object]) -> None:
        try:
            work()
        except _POSTPONING_ERRORS as error:
            _LOG.warning(
                "derived files of %s were not brought up to date: %s", self.database.place.folder, error
            )

    def _write(self, *, afresh: bool) -> Snapshot:
        try:
            state = self._read_state()
            made = self.builder.build(state, afresh=afresh)
            self.database.write(lambda connection: snapshot.record_snapshot(connection, made))
        except _POSTPONING_ERRORS:
            recorded = parse_snapshot(self.database.read(read_settings))
            self.files.remove_others([recorded] if recorded else [])  # documents may need the space
            raise
        self.files.remove_others([made, state.before] if state.before else [made])
        return made

    def _read_state(self) -> SnapshotState:
        """Return the current state. No transaction stays open, which would keep the log from shrinking."""
        return self.viewed(lambda view: SnapshotState.of(view.connection, view.mirror, view.stamp))

    def _remove_snapshot(self) -> None:
        self.database.write(snapshot.forget_snapshot)
        self.builder.live.drop()
        self.files.remove_others([])

    def _extend(self) -> bool:
        self.builder.extend(self._read_state())
        return True

    def _is_large_enough(self, settings: dict[str, Any]) -> bool:
        documents: int = settings["documents"]
        return documents > self.exact_below

    def _has_shrunk(self, settings: dict[str, Any]) -> bool:
        """Say whether there is a snapshot although the store has become too small for one."""
        return snapshot.SNAPSHOT_SETTING in settings and 2 * settings["documents"] <= self.exact_below

    def _is_snapshot_due(self, settings: dict[str, Any], share: float | None) -> bool:
        """Say whether enough documents were added or removed since the last snapshot (None: any at all)."""
        stamp, last = make_stamp(settings), parse_snapshot(settings)
        if not self._is_large_enough(settings):
            return False
        if last is None:
            return True
        came = stamp.last_key - last.last_key
        gone = came + last.documents - stamp.documents
        if share is None:
            return came + gone > 0
        gone_share = min(share, GONE_SHARE)
        least = self.exact_below // 4
        return came >= max(least, share * last.documents) or gone >= max(least, gone_share * last.documents)

    def _growing(self, settings: dict[str, Any]) -> bool:
        """Say whether enough documents were added since the last snapshot to extend the index in memory."""
        if parse_snapshot(settings) is None:
            return False
        enough: float = max(self.exact_below // 4, LEAST_SHARE * settings["documents"])
        return self._count_lacking(settings) >= min(enough, AHEAD // 2)  # beyond AHEAD, writers wait for this

    def _leave_to_indexer(self, settings: dict[str, Any]) -> bool:
        """Say whether another process builds the index, and start that process if the index lacks much."""
        if not self._is_large_enough(settings):
            return False
        if self.indexer.running:
            return True
        lacking = self._count_lacking(settings)
        if lacking < BACKLOG or not (
            self._is_snapshot_due(settings, self.grow_share) or self._growing(settings)
        ):
            return False
        return self.indexer.started(settings["last_key"] - lacking)

    def _count_lacking(self, settings: dict[str, Any]) -> int:
        """Count the documents that neither the last snapshot nor the index in memory has."""
        last = parse_snapshot(settings)
        covered: int = max(last.last_key if last else 0, self.builder.live.covered)
        return make_stamp(settings).last_key - covered


@dataclass(frozen=True, slots=True)
class StoreResources:
    """Everything that a forked child must not use: connections, locks, memory that threads may be changing.

    Args:
        database: The SQLite file.
        upkeep: Maintains everything that is derived from it.
        groups: Cached keys of link groups.
        fields: Cached names of metadata fields.
    """

    database: Database
    upkeep: Upkeep
    groups: GroupKeyCache = field(default_factory=GroupKeyCache)
    fields: KnownFields = field(default_factory=KnownFields)

    @classmethod
    def at(
        cls,
        place: Place,
        *,
        durable: bool,
        exact_below: int,
        grow_share: float,
        told: Callable[[int], None] | None = None,
    ) -> StoreResources:
        """Open a store.

        Args:
            place: Where it lies.
            durable: As in ``EmbeddedSettings``, like the next two.
            exact_below: See there.
            grow_share: See there.
            told: See :class:`.LiveIndex`; given in a process that only builds
                the index.
        """
        database = Database(place, durable=durable, indexes=told is not None)
        files = SnapshotFiles(place.folder)
        builder = SnapshotBuilder(files, told)
        shared = SharedData(files, builder.live)
        settings = {"durable": durable, "exact_below": exact_below, "grow_share": grow_share}
        indexer = Indexer(place.folder, settings)
        return cls(database, Upkeep(database, files, builder, shared, indexer, exact_below, grow_share))


class ProcessLocal:
    """The open resources of each process that uses a store; a forked child opens its own at first use.

    Args:
        open: Opens the store.
    """

    def __init__(self, open: Callable[[], StoreResources]) -> None:
        self._open = open
        self._state = os.getpid(), open()  # one tuple, so that it is replaced atomically

    @property
    def is_ours(self) -> bool:
        """Whether this process has opened the store."""
        return self._state[0] == os.getpid()

    def get(self) -> StoreResources:
        """Return the open resources of this process."""
        pid, opened = self._state
        return opened if pid == os.getpid() else self._open_in_child()

    def _open_in_child(self) -> StoreResources:
        with _CHILD_LOCK.lock:
            if not self.is_ours:
                inherited = self._state[1]
                if not inherited.database.left_to_parent:
                    raise BackendError(
                        f"{inherited.database.path}: this process was forked while a transaction was under"
                        " way; fork between uses of a store, or start processes by spawn or forkserver"
                    )
                # The child must not free the rest: a thread of the parent may have been changing it.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
                self._state = os.getpid(), self._open()
            return self._state[1]


class _ChildLock:
    """The lock under which the threads of a child open stores; new in each child."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Make a new lock: a thread that held the old one at the fork does not exist here to release it."""
        self.lock = threading.Lock()


_CHILD_LOCK = _ChildLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHILD_LOCK.renew)

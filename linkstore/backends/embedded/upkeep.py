"""Maintenance that keeps a store's cost in proportion to its content: snapshots, cleaning, compaction."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import apsw

from linkstore.backends.embedded import cleaning, snapshot, words
from linkstore.backends.embedded.alone import alone
from linkstore.backends.embedded.database import Database
from linkstore.backends.embedded.indexer import AHEAD, BACKLOG, Indexer
from linkstore.backends.embedded.reader import View
from linkstore.backends.embedded.recorded import problems, raw_settings, settings_of
from linkstore.backends.embedded.sharing import Shared, StaleStateError, stamp_of
from linkstore.backends.embedded.snapshot import Builder, Snapshot, SnapshotFiles, State, snapshot_of
from linkstore.errors import StoreBusyError, StoreFullError, StoreMovedError

T = TypeVar("T")
GONE_SHARE: Final = 0.25
"""A new snapshot is taken when at least this share of the last one's documents was removed."""
LEAST_SHARE: Final = 0.02
"""If the index lacks fewer than this share of the documents, they are not added yet."""
STALE_SECONDS: Final = 10.0
"""How long a reader tries to begin a transaction that the loaded mirror can serve."""
_LOG: Final = logging.getLogger("linkstore")
_PUT_OFF = (OSError, MemoryError, StoreBusyError, StoreFullError)
"""Errors that postpone the making of derived files; documents are safe and searches correct without them."""


@dataclass(frozen=True, slots=True)
class Progress:
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
    builder: Builder
    shared: Shared
    indexer: Indexer
    exact_below: int
    grow_share: float

    def viewed(self, use: Callable[[View], T]) -> T:
        """Read from a view of the current state."""
        return self._read_view(self.database.read, use)

    def inspected(self, use: Callable[[View], T]) -> T:
        """Read like :meth:`viewed`, but with a new connection."""
        return self._read_view(self.database.inspect, use)

    def _read_view(self, read: Callable[[Callable[[apsw.Connection], T]], T], use: Callable[[View], T]) -> T:
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
        if cleaning.due(settings):
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
        self._flush_indexer(self.database.read(settings_of), None)
        if self._is_snapshot_due(self.database.read(settings_of), None):
            self.take_snapshot(wait=True)

    def at_close(self) -> None:
        """Take a snapshot if much has changed since the last one."""
        if self.database.read_only or self.database.place.moved:
            return
        if not problems(settings := self.database.read(raw_settings)):
            self._flush_indexer(settings, self.grow_share / 8)
            if self._is_snapshot_due(self.database.read(raw_settings), self.grow_share / 8):
                self.take_snapshot()

    def catch_up(self, *, settled: bool) -> bool:
        """Do the work that is due, in the process that builds the index, and return whether there was any.

        Args:
            settled: Whether no process has written for a while. Then less growth suffices for a snapshot.
        """
        settings = self.database.read(settings_of)
        if self._is_snapshot_due(settings, LEAST_SHARE if settled else self.grow_share):
            return self._run_exclusively(lambda: self._write(afresh=False), wait=False) is not None
        return self._growing(settings) and self._run_exclusively(self._extend, wait=False) is not None

    def complete(self) -> None:
        """Flush like :meth:`flush` in the process that builds the index, but raise errors."""
        if self._is_snapshot_due(self.database.read(settings_of), None):
            self._run_exclusively(lambda: self._write(afresh=False), wait=True)

    def progress(self) -> Progress:
        """Return how far the store and its index are."""
        settings = self.database.read(settings_of)
        return Progress(settings["change"], settings["last_key"] - self._count_lacking(settings))

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
        settings = self.database.read(raw_settings)
        if wrong := problems(settings):
            _LOG.warning("%s is damaged and needs repair: %s", self.database.path, "; ".join(wrong))
            return
        recorded = snapshot_of(settings)
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
            now = snapshot_of(self.database.read(raw_settings))
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
        self.database.write(settings_of)  # raises the right error if nothing can be written
        self.indexer.end()
        self._run_exclusively(self._compact, wait=True)

    def _compact(self) -> None:
        self._load()
        self.database.write(lambda connection: self._clean_tables(connection, everything=True))
        if self._is_large_enough(self.database.read(settings_of)):
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
        cleaning.clean(connection, self.shared.view(connection), everything=everything)
        if everything:
            words.merge(connection)
        cleaning.give_back(connection)

    def _run_exclusively(self, work: Callable[[], T], *, wait: bool) -> T | None:
        return alone(self.database.place.folder / "snapshot.lock", work, wait=wait)

    def _try_or_postpone(self, work: Callable[[], object]) -> None:
        try:
            work()
        except _PUT_OFF as error:
            _LOG.warning(
                "derived files of %s were not brought up to date: %s", self.database.place.folder, error
            )

    def _write(self, *, afresh: bool) -> Snapshot:
        try:
            state = self._read_state()
            made = self.builder.build(state, afresh=afresh)
            self.database.write(lambda connection: snapshot.record(connection, made))
        except _PUT_OFF:
            recorded = snapshot_of(self.database.read(settings_of))
            self.files.remove_others([recorded] if recorded else [])  # documents may need the space
            raise
        self.files.remove_others([made, state.before] if state.before else [made])
        return made

    def _read_state(self) -> State:
        """Return the current state. No transaction stays open, which would keep the log from shrinking."""
        return self.viewed(lambda view: State.of(view.connection, view.mirror, view.stamp))

    def _remove_snapshot(self) -> None:
        self.database.write(snapshot.forget)
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
        return snapshot.SETTING in settings and 2 * settings["documents"] <= self.exact_below

    def _is_snapshot_due(self, settings: dict[str, Any], share: float | None) -> bool:
        """Say whether enough documents were added or removed since the last snapshot (None: any at all)."""
        stamp, last = stamp_of(settings), snapshot_of(settings)
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
        if snapshot_of(settings) is None:
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
        last = snapshot_of(settings)
        covered: int = max(last.last_key if last else 0, self.builder.live.covered)
        return stamp_of(settings).last_key - covered

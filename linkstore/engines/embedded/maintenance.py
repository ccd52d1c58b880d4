"""A store as one process has it open, and the work that keeps its cost in proportion to its content.

That work is to take snapshots, to delete rows that no document needs (old records of removals, and link
groups without links), and to compact the files.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

import apsw
import numpy as np

from linkstore.core.arguments import require_at_least, require_within
from linkstore.core.arrays import Ints
from linkstore.engines.embedded import lexical
from linkstore.engines.embedded.database import Database, fetch_rows
from linkstore.engines.embedded.derived import (
    FLOOR,
    SNAPSHOT_SETTING,
    DerivedData,
    Snapshot,
    StaleStateError,
    StoreState,
    forget_snapshot,
    make_stamp,
    parse_snapshot,
    record_snapshot,
)
from linkstore.engines.embedded.index_process import Indexer
from linkstore.engines.embedded.location import Place, run_exclusively
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.schema import (
    FORGET_NAMES,
    collect_names,
    find_setting_problems,
    read_raw_settings,
    read_settings,
    record_names,
)
from linkstore.engines.embedded.writing import GroupKeyCache
from linkstore.errors import StoreBusyError, StoreClosedError, StoreFullError, StoreMovedError

T = TypeVar("T")
GONE_SHARE: Final = 0.25
"""A new snapshot is taken when at least this share of the last one's documents was removed."""
LEAST_SHARE: Final = 0.02
"""If the index lacks fewer than this share of the documents, they are not added yet."""
BACKLOG: Final = 5_000
"""Number of documents that the index must lack before the index process starts; the writer adds fewer."""
MOST_LACKING: Final = 25_000
"""The index process starts when the index lacks so many documents, however large the store is."""
STALE_SECONDS: Final = 10.0
"""How long a reader tries to begin a transaction that the loaded mirror can serve."""
_LOG: Final = logging.getLogger("linkstore")
_POSTPONING_ERRORS = (OSError, MemoryError, StoreBusyError, StoreClosedError, StoreFullError)
"""Errors that postpone the making of derived files; documents are safe and searches correct without them."""
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
    mirror, end = view.mirror, len(view.mirror.link_group)
    groups = mirror.link_group.rows(0, end)
    there = mirror.visible(mirror.link_document.rows(0, end).astype(np.int64))
    used = np.zeros(len(mirror.group_keys), np.bool_)
    used[groups if there is None else groups[there]] = True
    return mirror.group_keys.take(np.flatnonzero(~used)), int(np.count_nonzero(used))


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


class OpenStore:
    """A store as one process has it open: its tables, and the work that keeps derived data current and small.

    A forked child must not use it: it has connections, locks, and memory that threads may be changing.

    Args:
        place: Where the store lies.
        settings: See :class:`EmbeddedSettings`.
        told: See :class:`.DerivedData`; given in a process that only builds the index.

    Attributes:
        pid: The process that opened the store.
        database: Its tables.
        derived: What this process has derived from them, and its files.
        indexer: Has another process take snapshots while this one writes.
        groups: Cached keys of link groups.
    """

    def __init__(
        self, place: Place, settings: EmbeddedSettings, told: Callable[[int], None] | None = None
    ) -> None:
        self.pid = os.getpid()
        self.database = Database(place, durable=settings.durable)
        self.derived = DerivedData(place.folder, told)
        self.indexer = Indexer(place.folder, asdict(settings))
        self.groups = GroupKeyCache()
        self._exact_below = settings.exact_below
        self._grow_share = settings.grow_share

    def read_view(self, use: Callable[[StoreView], T], *, anew: bool = False) -> T:
        """Read from a view of the current state, in a new transaction if the first is too old for the mirror.

        A transaction is too old if another thread has loaded a later state since it began. Every attempt
        fails only if the database was set back to an older state.

        Args:
            use: Reads from the view.
            anew: Whether to read with a new connection: see :meth:`.Database.read`.
        """
        ends = time.monotonic() + STALE_SECONDS
        while time.monotonic() < ends:
            with contextlib.suppress(StaleStateError):
                return self.database.read(lambda connection: use(self.derived.view(connection)), anew=anew)
        raise StoreMovedError(
            f"the database in {self.database.place.folder} shows an older state than was read before: it was"
            " restored from a copy while it was open, so open the store again"
        )

    def after_write(self, settings: dict[str, Any]) -> None:
        """Do the maintenance that is due after a write: cleaning, or a snapshot, here or in another process.

        Args:
            settings: The settings as committed by the write.
        """
        if is_cleaning_due(settings):
            self._try_or_postpone(self._clean)
        if SNAPSHOT_SETTING in settings and 2 * settings["documents"] <= self._exact_below:
            self._try_or_postpone(lambda: self._run_exclusively(self._remove_snapshot, wait=False))
        elif settings["documents"] <= self._exact_below or self._leave_to_indexer(settings):
            return
        elif self._is_snapshot_due(settings, self._grow_share):
            self.take_snapshot()

    def _leave_to_indexer(self, settings: dict[str, Any]) -> bool:
        """Say whether another process builds the index, and start that process if the index lacks much."""
        lacking = self._count_lacking(settings)
        enough = max(BACKLOG, min(LEAST_SHARE * settings["documents"], MOST_LACKING))
        return self.indexer.running or (lacking >= enough and self.indexer.start())

    def _count_lacking(self, settings: dict[str, Any]) -> int:
        """Count the documents that no index has."""
        last = parse_snapshot(settings)
        return make_stamp(settings).last_key - max(last.last_key if last else 0, self.derived.covered)

    def flush(self, share: float | None = None, *, wait: bool = True) -> None:
        """Take a snapshot if much has changed since the last one (None: anything), and the store is large.

        Args:
            share: How much counts as much, as a share of the documents.
            wait: Whether to wait for another that is being taken, or else leave it at that one.
        """
        settings = self.database.read(read_settings)
        if self._is_snapshot_due(settings, share):
            self.indexer.finish(settings["last_key"])
            if self._is_snapshot_due(self.database.read(read_settings), share):
                self.take_snapshot(wait=wait)

    def at_close(self) -> None:
        """Take a snapshot if much has changed since the last one, and none is being taken.

        The one that is being taken may be this thread's own, which a signal handler interrupted.
        """
        if self.database.read_only or self.database.place.moved:
            return
        if not find_setting_problems(self.database.read(read_raw_settings)):
            self.flush(self._grow_share / 8, wait=False)

    def catch_up(self, *, settled: bool) -> bool:
        """Do the work that is due, in the process that builds the index, and return whether there was any.

        Args:
            settled: Whether nobody has written for a while, or nobody waits for more. Then less growth
                suffices.
        """
        settings = self.database.read(read_settings)
        if self._is_snapshot_due(settings, LEAST_SHARE if settled else self._grow_share):
            work: Callable[[], object] = self._write
        elif self._count_lacking(settings) >= max(
            self._exact_below // 4, LEAST_SHARE * settings["documents"]
        ):
            work = self._extend
        else:
            return False
        return self._run_exclusively(lambda: bool(work()), wait=settled) or False

    def _extend(self) -> bool:
        return bool(self.derived.extend(self.read_view(StoreState.of)))

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
        while found := self.derived.find_damaged_files(recorded):
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
        if self.database.read(read_settings)["documents"] > self._exact_below:
            kept = [self._write(afresh=True)]
        else:
            self._remove_snapshot()
            kept = []
        self.database.rewrite()
        self.derived.remove_others(kept)
        self.database.place.sync()  # a power cut does not bring back what was erased
        self.derived.forget()

    def _load(self) -> None:
        """Load the derived data before the store is locked for writing, because loading takes time."""
        self.read_view(lambda view: view)

    def _clean(self) -> None:
        self._load()
        self.database.write(lambda connection: self._clean_tables(connection, everything=False))

    def _clean_tables(self, connection: apsw.Connection, *, everything: bool) -> None:
        clean_tables(connection, self.derived.view(connection), everything=everything)
        if everything:
            lexical.optimize_word_index(connection)
            connection.execute(FORGET_NAMES)
            record_names(connection, collect_names(connection))
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

    def _write(self, *, afresh: bool = False) -> Snapshot:
        try:
            # No transaction stays open meanwhile, which would keep the log from shrinking.
            state = self.read_view(StoreState.of)
            made = self.derived.write(state, afresh=afresh)
            self.database.write(lambda connection: record_snapshot(connection, made))
        except _POSTPONING_ERRORS:
            recorded = parse_snapshot(self.database.read(read_settings))
            self.derived.remove_others([recorded] if recorded else [])  # documents may need the space
            raise
        self.derived.remove_others([made, state.before] if state.before else [made])
        return made

    def _remove_snapshot(self) -> None:
        self.database.write(forget_snapshot)
        self.derived.remove_others([])

    def _is_snapshot_due(self, settings: dict[str, Any], share: float | None) -> bool:
        """Say whether enough documents were added or removed since the last snapshot (None: any at all)."""
        stamp, last = make_stamp(settings), parse_snapshot(settings)
        if settings["documents"] <= self._exact_below:
            return False
        if last is None:
            return True
        came = stamp.last_key - last.last_key
        gone = came + last.documents - stamp.documents
        if share is None:
            return came + gone > 0
        gone_share = min(share, GONE_SHARE)
        least = self._exact_below // 4
        return came >= max(least, share * last.documents) or gone >= max(least, gone_share * last.documents)

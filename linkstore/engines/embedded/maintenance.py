"""A store as one process has it open, and the work that keeps its cost in proportion to its content.

That work is to take snapshots, to delete rows that no document needs (old records of removals, and link
groups without links), and to compact the files.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from linkstore.core.arguments import require_at_least, require_within
from linkstore.core.processes import count_cores
from linkstore.engines.embedded import schema
from linkstore.engines.embedded.database import Database
from linkstore.engines.embedded.derived import (
    DerivedData,
    MemoryDerivedData,
    Snapshot,
    StaleStateError,
    forget_snapshot,
    parse_snapshot,
    record_snapshot,
)
from linkstore.engines.embedded.files import name_file
from linkstore.engines.embedded.filters import StoreView
from linkstore.engines.embedded.location import StoreFolder
from linkstore.engines.embedded.memory import MemoryDatabase
from linkstore.errors import BackendError, StoreMovedError

T = TypeVar("T")
STALE_SECONDS: Final = 10.0
"""How long a reader tries to begin a transaction that the loaded mirror can serve."""
_LOG: Final = logging.getLogger("linkstore")
_LEAST_KEPT: Final = 1000
"""Even the smallest store keeps up to this many listed removals, and link groups without links."""
_FREE_PAGES: Final = 256
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[2:];"
    " from linkstore.engines.embedded.maintenance import take_snapshot; take_snapshot(sys.argv[1])"
)
BESIDE_FROM: Final = 5_000
"""A snapshot with at least this many new documents is taken by a process of its own. To start one takes as
long as to add a few thousand documents to the index."""


def clean_tables(connection: apsw.Connection, *, everything: bool = False) -> None:
    """Delete the rows that no document needs, in an open write transaction.

    These are old records of removals, and link groups without links. A mirror that has not seen a removal
    that is no longer listed must be loaded again. A link group that is used again later gets a new key.

    Args:
        connection: In the write transaction.
        everything: Whether to delete also what is cheaper to keep.
    """
    settings = schema.read_settings(connection)
    gone = settings["last_key"] - settings["documents"]
    kept = 0 if everything else _count_kept(settings)
    query = "SELECT change FROM departed ORDER BY change DESC LIMIT 1 OFFSET ?"
    for (change,) in schema.fetch_rows(connection, query, (kept,)):
        connection.execute("DELETE FROM departed WHERE change <= ?", (change,))
        schema.write_settings(connection, {schema.FLOOR: change})
    listed = connection.execute("SELECT count(*) FROM departed").get
    schema.write_settings(connection, {schema.UNLISTED: gone - listed})
    connection.execute("DELETE FROM link_group WHERE key NOT IN (SELECT link_group FROM link)")
    free, pages = connection.pragma("freelist_count"), connection.pragma("page_count")
    if free > max(_FREE_PAGES, pages // 2):
        connection.execute("PRAGMA incremental_vacuum").fetchall()


def _count_kept(settings: dict[str, Any]) -> int:
    """Return how many removals are listed after cleaning, which is due when they are twice as many."""
    return max(_LEAST_KEPT, int(settings["documents"]) // 2)


def _erase(connection: apsw.Connection) -> None:
    """Delete all that no document needs, also from the indexes, in an open write transaction."""
    clean_tables(connection, everything=True)
    connection.execute("INSERT INTO word (word) VALUES ('optimize')")
    connection.execute(schema.FORGET_NAMES)
    schema.record_names(connection, schema.collect_names(connection))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """The settings of an embedded store.

    Args:
        exact_below: A store that outgrows this many documents gets an index, and has it until it is left with
            half as many; default 20,000. Without one, a search compares the query with all documents, which
            takes about half a millisecond for so many at 256 dimensions.
        grow_share: A new snapshot is taken when the documents added since the last one, or those removed,
            are at least this share of those in it, and at least a quarter of ``exact_below``; default 1/2.
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


class Builder:
    """Takes snapshots of a store in a process of its own, one at a time, while this one goes on.

    Any process that opens a store can take its snapshots. So that one is told where the store lies, takes one
    snapshot and ends, whatever has become of its parent; nothing else is said to it, and it answers nothing.
    If it fails, the process that writes takes the snapshot itself, with the errors that this brings.

    Args:
        folder: Where the store lies; None for a store in memory, which no other process can open.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start a process unless one is at work, and return whether one is.

        None is started, and the caller takes the snapshot, if the last one failed, or where a folder, another
        core, the interpreter or a way to wait for its end is missing.
        """
        last = self._process
        if last is not None and last.poll() is None:
            return True
        self._process = None
        able = self._folder and count_cores() > 1 and hasattr(os, "waitid")
        if last is not None and last.returncode:
            _LOG.info("the process that indexed %s ended with %d", self._folder, last.returncode)
        elif able and sys.executable and not hasattr(sys, "frozen"):
            command = [sys.executable, "-c", _PROGRAM, str(self._folder), *sys.path]
            try:
                # In a session of its own, Ctrl-C in the terminal does not reach it.
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                _LOG.info("no process can be started to index %s: %s", self._folder, error)
        return self._process is not None

    def wait(self) -> None:
        """Wait until no process is at work. A signal handler may do so in the middle of it.

        ``Popen.wait`` holds a lock meanwhile, for which the handler would wait forever.
        """
        at_work = self._process
        if at_work is not None and at_work.poll() is None:
            with contextlib.suppress(ChildProcessError):  # somebody else has waited for it
                os.waitid(os.P_PID, at_work.pid, os.WEXITED | os.WNOWAIT)
            at_work.poll()


class OpenStore:
    """A store as one process has it open: its tables, and the work that keeps derived data current and small.

    A forked child must not use it, unless the store is in memory: it has connections, locks, and memory that
    threads may be changing.

    Args:
        place: Where the store lies; None for a store in memory.
        settings: See :class:`EmbeddedSettings`.

    Attributes:
        pid: The process that opened the store.
        database: Its tables.
        derived: What this process has derived from them, and its files.
    """

    def __init__(self, place: StoreFolder | None, settings: EmbeddedSettings) -> None:
        self.pid = os.getpid()
        self._settings = settings
        self._builder = Builder(None if place is None else place.folder)
        if place is None:
            self.database: Database = MemoryDatabase()
            self.derived: DerivedData = MemoryDerivedData()
        else:
            self.database = Database(place, durable=settings.durable)
            self.derived = DerivedData(place.folder)

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
        """Do the work due after a write: clean the tables, take a snapshot, or remove that of a small store.

        Args:
            settings: The settings as committed by the write.
        """
        listed = settings["last_key"] - settings["documents"] - int(settings.get(schema.UNLISTED) or 0)
        if listed > 2 * _count_kept(settings):
            self._try_or_postpone(lambda: self.database.write(clean_tables))
        if schema.SNAPSHOT in settings and 2 * settings["documents"] <= self._settings.exact_below:
            self._try_or_postpone(lambda: self.database.run_alone(self._remove_snapshot, wait=False))
        elif self._is_snapshot_due(settings, self._settings.grow_share) and (
            _count_changes(settings)[0] < BESIDE_FROM or not self._builder.start()
        ):
            self.take_snapshot()

    def flush(self, share: float | None = None, *, wait: bool = True) -> None:
        """Take a snapshot if much has changed since the last one (None: anything), and the store is large.

        Args:
            share: How much counts as much, as a share of the documents.
            wait: Whether to wait for another that is being taken, or else leave it at that one.
        """
        self._builder.wait()
        settings = self.database.read(schema.read_settings)
        if self._is_snapshot_due(settings, share):
            self.take_snapshot(wait=wait)

    def at_close(self) -> None:
        """Take a snapshot if much has changed since the last one, and none is being taken.

        The one that is being taken may be this thread's own, which a signal handler interrupted.
        """
        if self.database.read_only or self.database.place.moved:
            return
        if not schema.find_setting_problems(self.database.read(schema.read_raw_settings)):
            self.flush(self._settings.grow_share / 8, wait=False)

    def at_open(self) -> None:
        """Make derived files anew if they are missing or do not match the hashes in the database."""
        settings = self.database.read(schema.read_raw_settings)
        if wrong := schema.find_setting_problems(settings):
            _LOG.warning("%s is damaged and needs repair: %s", self.database.path, "; ".join(wrong.values()))
            return
        if damaged := self.find_damaged():
            _LOG.warning(
                "the derived file %s is damaged; searches do without it until it is made anew", damaged
            )
        lacking = parse_snapshot(settings) is None and self._is_snapshot_due(settings, None)
        if (damaged or lacking) and not self.database.read_only:
            self.take_snapshot(wait=bool(damaged))

    def find_damaged(self) -> str | None:
        """Return the name of the recorded snapshot's file if it does not match its hash.

        If another process has taken more snapshots since the record was read, the file may be gone, and that
        of the latest is checked.
        """
        previous = None
        while (recorded := parse_snapshot(self.database.read(schema.read_raw_settings))) is not None:
            if recorded == previous:
                return name_file(recorded.digest)
            if self.derived.load(recorded) is not None:
                break
            previous = recorded
        return None

    def take_snapshot(self, *, wait: bool = False) -> None:
        """Write and record a snapshot. If another is being written, wait for its end, or do nothing."""
        self._try_or_postpone(lambda: self.database.run_alone(self.write_snapshot, wait=wait))

    def compact(self) -> None:
        """Erase all deleted content from all files, and make the files as small as possible.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If there is not enough space to write the files anew.
        """
        self.database.write(schema.read_settings)  # raises the right error if nothing can be written
        self.database.run_alone(self._compact, wait=True)

    def _compact(self) -> None:
        self.database.write(_erase)
        if self.database.read(schema.read_settings)["documents"] > self._settings.exact_below:
            self.derived.remove_others(self.write_snapshot(afresh=True))
        else:
            self._remove_snapshot()
        self.database.rewrite()
        self.derived.forget()

    def _try_or_postpone(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (BackendError, MemoryError) as error:  # documents are safe, and searches correct without them
            _LOG.warning(
                "derived files of %s were not brought up to date: %s", self.database.place.folder, error
            )

    def write_snapshot(self, *, afresh: bool = False) -> Snapshot:
        """Write and record a snapshot, while no other is being written."""
        try:
            # No transaction stays open meanwhile, which would keep the log from shrinking.
            mirror, settings = self.read_view(
                lambda view: (view.mirror, schema.read_settings(view.connection))
            )
            made = self.derived.write(mirror, settings, afresh=afresh)
            self.database.write(lambda connection: record_snapshot(connection, made))
        except Exception:
            recorded = parse_snapshot(self.database.read(schema.read_settings))
            self.derived.remove_others(recorded)  # documents may need the space
            raise
        self.derived.remove_others(made, parse_snapshot(settings))  # others may use the one before
        return made

    def _remove_snapshot(self) -> None:
        self.database.write(forget_snapshot)
        self.derived.remove_others()

    def _is_snapshot_due(self, settings: dict[str, Any], share: float | None) -> bool:
        """Say whether enough documents were added or removed since the last snapshot (None: any at all)."""
        if settings["documents"] <= self._settings.exact_below:
            return False
        came, gone, before = _count_changes(settings)
        if share is None:
            return came + gone > 0
        return max(came, gone) >= max(self._settings.exact_below // 4, share * before)


def _count_changes(settings: dict[str, Any]) -> tuple[int, int, int]:
    """Count the documents added and removed since the last snapshot, and those in it (without one, 0)."""
    last = parse_snapshot(settings)
    key, before = (last.last_key, last.documents) if last else (0, 0)
    came: int = settings["last_key"] - key
    return came, came + before - settings["documents"], before


def take_snapshot(folder: str) -> None:
    """Take a snapshot of the store in a folder, unless another is being taken; see :class:`Builder`."""
    place = StoreFolder(folder)
    place.prepare(create=False)
    store = OpenStore(place, EmbeddedSettings())
    with contextlib.closing(store.database):
        store.database.run_alone(store.write_snapshot, wait=False)

"""The SQLite file of a store in one process: its connections, and transactions on them.

SQLite itself makes writers wait for each other, the threads of one process as well as processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from linkstore.core.processes import Lock
from linkstore.engines.embedded.location import FORKS, StoreFolder, run_exclusively
from linkstore.engines.embedded.schema import check_format, create_tables
from linkstore.errors import (
    BackendError,
    StoreBusyError,
    StoreClosedError,
    StoreFormatError,
    StoreFullError,
    StoreMovedError,
    StoreReadOnlyError,
)

T = TypeVar("T")
LOG_BYTES: Final = 64 << 20
"""If the write-ahead log is larger than this, a writer waits for readers so that it can empty the log."""
LOG_SHARE: Final = 0.5
"""A log larger than this share of the database is emptied if no reader stays that uses it."""
LEAST_LOG_BYTES: Final = 1 << 20
"""A log up to this size is not emptied, however small the database is."""
_PATIENCE_SECONDS: Final = 0.05
_LOG: Final = logging.getLogger("linkstore")
BUSY_SECONDS: Final = 5.0
"""How long a writer waits for another writer before it gives up."""
PRAGMAS: Final[Mapping[str, int]] = {"cache_size": -16_384}
"""Settings of every connection that differ from SQLite's defaults: see ``benchmarks/connections.py``."""
CHECKPOINT_PAGES: Final = 1_000
"""The write-ahead log is folded into the database once it holds this many pages (4 MB)."""


def open_connection(place: StoreFolder, *, durable: bool, create: bool = False) -> apsw.Connection:
    """Open a connection that may write.

    Args:
        place: Where the store lies.
        durable: Whether an acknowledged write survives a power cut.
        create: Create the file and its tables if they do not exist.

    Raises:
        StoreMovedError: If another file than before is at the path.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(str(place.database), flags=flags)
    try:
        connection.set_busy_handler(make_busy_handler())
        if create and not connection.pragma("page_count"):
            connection.pragma("auto_vacuum", 2)  # incremental: free pages can be given back
        connection.pragma("journal_mode", "wal")
        connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        _configure_connection(connection, place)
        if create:
            create_tables(connection, str(place.database))  # always synced, as by default
        # NORMAL syncs before each checkpoint: a power cut may lose the last writes, never the store.
        connection.pragma("synchronous", "FULL" if durable else "NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def open_read_only(place: StoreFolder) -> apsw.Connection:
    """Open a connection that writes nothing, not even a lock file.

    If another process has the store open, the connection uses that process's lock files. Otherwise it reads
    the database without locks, as an immutable file; the caller checks :meth:`.StoreFolder.fingerprint` for
    writes.

    Raises:
        StoreReadOnlyError: If there is a write-ahead log that must be checkpointed first.
        StoreMovedError: If another file than before is at the path.
    """
    options = "mode=ro"
    if place.get_size("-shm") < 0:
        if place.get_size("-wal") > 0:
            raise StoreReadOnlyError(
                f"{place.database} was not closed, and its log cannot be folded in here, where nothing can"
                " be written: open and close the store once where it can be written"
            )
        options += "&immutable=1"
    connection = apsw.Connection(
        f"{place.database.as_uri()}?{options}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        connection.set_busy_handler(make_busy_handler())
        _configure_connection(connection, place)
        check_format(connection, str(place.database))
    except BaseException:
        connection.close()
        raise
    return connection


def _configure_connection(connection: apsw.Connection, place: StoreFolder) -> None:
    for name, value in PRAGMAS.items():
        connection.pragma(name, value)
    connection.execute("SELECT 1 FROM sqlite_schema").fetchall()  # opens the log too, by its path
    place.check()
    moved = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    if moved.value:
        raise StoreMovedError(f"{place.database} was replaced while it was being opened; open it again")


def make_busy_handler(seconds: float | None = None) -> Callable[[int], bool]:
    """Return a busy handler that tries again every few ms. SQLite's own handler sleeps too long to be fair.

    Args:
        seconds: How long it tries; None: 5 s.
    """
    ends = 0.0

    def again(count: int) -> bool:
        nonlocal ends
        now = time.monotonic()
        if count == 0:
            ends = now + (BUSY_SECONDS if seconds is None else seconds)
        if now > ends:
            return False
        time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311 - spreads writers out, no secret
        return True

    return again


def _convert_error(error: apsw.Error | OSError, operation: str, path: Path) -> BackendError:
    """Return linkstore's error for SQLite's or the system's. The message names the file and the operation."""
    full = isinstance(error, apsw.FullError) or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT)
    if full or (isinstance(error, apsw.IOError) and _count_free_bytes(path) < 1 << 20):  # perhaps full
        return StoreFullError(
            f"{operation} {path}: no space left ({error}); this step wrote nothing, and what was stored"
            " before is intact: free some space and try again"
        )
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return StoreFormatError(
            f"{operation} {path}: {error}; it is no SQLite database, or is damaged: restore it from a copy,"
            " or choose another folder"
        )
    if isinstance(error, apsw.ReadOnlyError):
        if getattr(error, "extendedresult", None) == apsw.SQLITE_READONLY_DBMOVED:
            return StoreMovedError(f"{path} was deleted or moved while the store was open; open it again")
        return StoreReadOnlyError(f"{operation} {path}: it lies where nothing can be written")
    if isinstance(error, apsw.CantOpenError):
        return BackendError(
            f"{operation} {path}: the system does not open it, or not its -wal and -shm files ({error})"
        )
    missing = isinstance(error, apsw.SQLError) and str(error).startswith(("no such table", "no such column"))
    if missing or isinstance(error, apsw.SchemaChangeError):
        return StoreFormatError(f"{operation} {path}: {error}; tables are missing or not linkstore's")
    return BackendError(f"{operation} {path}: {error}")


def _count_free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Connections to one file, or to one database in memory.

    Args:
        connect: Opens a further one.
        idle: Those that nobody uses.
    """

    connect: Callable[[], apsw.Connection]
    idle: list[apsw.Connection] = field(default_factory=list)


class Database:
    """The SQLite file of one store, for use by the process that made this object.

    Connections are used in :meth:`_use` alone, which delays any fork until it ends: a child could neither use
    nor close a connection that another thread of its parent was using.

    Args:
        place: Where the store lies; the file is created if missing.
        durable: Whether an acknowledged write survives a power cut (it always survives a crash).

    Attributes:
        read_only: Whether this process cannot write to the store.
        left_to_parent: Whether this is a forked child that has closed the connections it inherited.
    """

    def __init__(self, place: StoreFolder, *, durable: bool) -> None:
        self.place = place
        self.path = place.database
        self._pid_file = place.folder / "writer.pid"
        self._durable = durable
        self._pool: Pool | None = None
        self._lock = Lock()  # a signal handler may close the store while its thread holds it
        self._log_left = 0
        self.left_to_parent = False
        self.read_only = not place.writable
        FORKS.databases.add(self)
        self._use("open", lambda: setattr(self, "_pool", self._open()))  # before any fork

    def read(self, work: Callable[[apsw.Connection], T], *, anew: bool = False) -> T:
        """Return the result of ``work(connection)`` in a read transaction, which sees one state of the store.

        Args:
            work: Reads.
            anew: Whether to open a new connection. SQLite checks the tables of FTS5 against what the
                connection has cached of them. If the connection searched before another one wrote, its
                cache is older than the state it reads.

        Raises:
            StoreMovedError: If the folder was deleted, renamed or replaced.
            StoreBusyError: If this process can only read the store, and another wrote to it meanwhile.
        """
        self._check_usable()
        return self._use("read", partial(self._read, work, anew=anew or self.read_only))

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run ``work(connection)`` in the only write transaction, commit or roll back, and return the result.

        Raises:
            StoreBusyError: If another writer holds the store for more than 5 s, or, at once, if this thread
                is writing.
            StoreFullError: If there is no space left.
            StoreReadOnlyError: If this process can only read the store.
            StoreMovedError: If the folder was deleted, renamed or replaced.
        """
        self._check_usable(write=True)
        return self._use("write", lambda: self._write(work))

    def rewrite(self) -> None:
        """Rewrite the whole file without deleted content, and empty the log.

        Raises:
            StoreBusyError: If others read or write for more than 5 s.
            StoreFullError: If there is not enough space for the new file.
        """
        self._check_usable(write=True)
        self._use("write", self._rewrite)
        self.place.sync()  # a power cut does not bring back what was erased, here or in files before

    def run_alone(self, work: Callable[[], T], *, wait: bool) -> T | None:
        """Do some work alone among all processes, or return None if another does and ``wait`` is False.

        Raises:
            StoreFullError: If there is not enough space for a file.
            BackendError: If the system refuses something else, such as to open a file.
        """
        try:
            return run_exclusively(self.place.folder / "snapshot.lock", work, wait=wait)
        except BackendError:
            raise
        except OSError as error:
            raise _convert_error(error, "write the files of", self.path) from error

    def _use(self, operation: str, work: Callable[[], T]) -> T:
        """Do something with connections, while no fork can happen.

        A signal handler may raise anywhere in here. Each step has then either not begun, or the ``finally``
        block undoes it. That block is a call into C, which a signal cannot interrupt before it takes effect,
        while it could interrupt a context manager written in Python.
        """
        use = object()
        try:
            FORKS.enter(use, self, operation)
            return work()
        except apsw.BusyError as error:
            raise StoreBusyError(self._describe_holder()) from error
        except apsw.Error as error:
            raise _convert_error(error, operation, self.path) from error
        except UnicodeDecodeError as error:
            raise StoreFormatError(
                f"{self.path}: a text is not valid UTF-8 ({error}); run verify, or restore the store from a"
                " copy"
            ) from error
        finally:
            FORKS.under_way.pop(use, None)

    def _open(self) -> Pool:
        """Open the first connection, and create the database if necessary.

        If several processes create a database at the same time, all but one must wait. This method tries
        again by itself, because SQLite does not call the busy handler while the journal mode changes.
        """
        if self.read_only:
            open_read_only(self.place).close()
            return Pool(partial(open_read_only, self.place))
        pool = Pool(partial(open_connection, self.place, durable=self._durable))
        ends = time.monotonic() + BUSY_SECONDS
        while not pool.idle:
            try:
                pool.idle.append(open_connection(self.place, durable=self._durable, create=True))
            except apsw.BusyError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.01)
        return pool

    def _read(self, work: Callable[[apsw.Connection], T], *, anew: bool) -> T:
        before = self.place.fingerprint() if self.read_only else None
        pool, connection = self._take_connection(anew=anew)
        result = self._transact(connection, "BEGIN", work)
        self._give_back(pool, connection)
        if before is not None and self.place.fingerprint() != before:
            raise StoreBusyError(f"{self.path} was written by another process while it was read; try again")
        return result

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        def write(connection: apsw.Connection) -> T:
            self._write_pid()
            return work(connection)

        pool, connection = self._take_connection()
        result = self._transact(connection, "BEGIN IMMEDIATE", write)
        self._shorten_log(connection)
        self._give_back(pool, connection)
        return result

    def _transact(self, connection: apsw.Connection, begin: str, work: Callable[[apsw.Connection], T]) -> T:
        """Run a transaction. If it fails, the connection is closed, which rolls back whatever was done."""
        pid = os.getpid()
        try:
            connection.execute(begin)
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if pid == os.getpid():  # in a forked child, the connection is its parent's
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # the store may have moved
                connection.close(True)
            raise
        return result

    def _rewrite(self) -> None:
        _, connection = self._take_connection(anew=True)
        try:
            connection.pragma("secure_delete", 1)
            connection.pragma("auto_vacuum", 2)  # for stores made without it; takes effect with VACUUM
            connection.execute("VACUUM")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._close_connection(connection)

    def _shorten_log(self, writer: apsw.Connection) -> None:
        """Empty the log if it is large and no reader stays that uses it. The change is committed already.

        Readers may overlap and keep the log in use: the larger it is, the longer this waits for them, and
        it is not tried again before the log has grown as much once more.
        """
        size = self.place.get_size("-wal")
        self._log_left = min(self._log_left, max(size, 0))  # another process may have emptied it
        least = min(LOG_BYTES, max(LEAST_LOG_BYTES, LOG_SHARE * self.place.get_size("")))
        if size <= self._log_left + least:
            return
        waits = _PATIENCE_SECONDS * max(1.0, size / LOG_BYTES)
        try:
            writer.set_busy_handler(make_busy_handler(min(waits, BUSY_SECONDS / 5)))
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._log_left = 0
        except apsw.BusyError:
            self._log_left = size
        except apsw.Error as error:
            _LOG.warning("the log of %s could not be folded in, and will be later: %s", self.path, error)
        writer.set_busy_handler(make_busy_handler())

    def _check_usable(self, *, write: bool = False) -> None:
        """Check where a transaction begins that the store is open, at its place, and perhaps writable.

        If a write of this thread is under way, a signal handler interrupted it, and cannot wait for its end.
        """
        if self._pool is None:
            raise self._make_closed_error()
        self.place.check()
        if write and self.read_only:
            raise StoreReadOnlyError(
                f"{self.path} lies where nothing can be written; it can be searched, but not changed"
            )
        if write and self._is_writing_here():
            raise StoreBusyError(
                f"{self.path}: a write of this thread is under way, so another cannot wait for its"
                " end; a signal handler may close the store, but not write to it"
            )

    def close(self) -> None:
        """Close all connections; those in use, at the end of their use.

        The last process to close the store checkpoints the write-ahead log.
        """
        self._use("close", self._close)

    def _close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        for connection in pool.idle if pool else ():
            self._close_connection(connection)

    def close_inherited(self) -> None:
        """Close all connections without touching the files, in a forked child, between transactions."""
        for connection in self._pool.idle if self._pool else ():
            with contextlib.suppress(apsw.ConnectionClosedError):  # by a close that was interrupted
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close(True)
        self._pool, self.left_to_parent = None, True

    def _is_writing_here(self) -> bool:
        return (threading.get_ident(), self, "write") in tuple(FORKS.under_way.values())

    @property
    def interrupted(self) -> bool:
        """Whether this thread is in the middle of a use, as in a signal handler that interrupted one."""
        return (threading.get_ident(), self) in [use[:2] for use in tuple(FORKS.under_way.values())]

    def _take_connection(self, *, anew: bool = False) -> tuple[Pool, apsw.Connection]:
        """Return an idle connection, or a new one, and the pool to give it back to."""
        pool = self._pool
        if pool is None:
            raise self._make_closed_error()
        if not anew:
            with contextlib.suppress(IndexError):
                return pool, pool.idle.pop()
        return pool, pool.connect()

    def _give_back(self, pool: Pool, connection: apsw.Connection) -> None:
        """Return a connection to its pool, or close it if the store is closed or can only be read."""
        with self._lock:
            if pool is self._pool and not self.read_only:
                pool.idle.append(connection)
                return
        self._close_connection(connection)

    def _make_closed_error(self) -> StoreClosedError:
        return StoreClosedError(f"the store at {self.path.parent} is closed; open it again")

    def _close_connection(self, connection: apsw.Connection) -> None:
        """Close a connection. If the store moved, do not touch the files that are now at its path."""
        if self.place.moved:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _write_pid(self) -> None:
        """Write the id of this process to a file, for the error message of a writer that waits in vain."""
        with contextlib.suppress(OSError):
            self._pid_file.write_text(str(os.getpid()), encoding="ascii")

    def _describe_holder(self) -> str:
        holder = "another thread or process"
        with contextlib.suppress(OSError, ValueError):
            pid = int(self._pid_file.read_text(encoding="ascii"))
            if pid != os.getpid():
                holder = f"process {pid}"
        return (
            f"{self.path} has been locked by {holder} for more than {BUSY_SECONDS:.0f} s; wait until it is"
            " done, or end it, and try again"
        )

"""The SQLite file of a store in one process: its connections, a pool of readers, and one writer at a time."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import math
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from linkstore.core.calls import Lock
from linkstore.engines.embedded.location import FORKS, Place, run_exclusively
from linkstore.engines.embedded.schema import check_format, create_or_migrate
from linkstore.errors import (
    BackendError,
    StoreBusyError,
    StoreClosedError,
    StoreFormatError,
    StoreFullError,
    StoreMovedError,
    StoreNotFoundError,
    StorePermissionError,
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


def open_writable(place: Place, *, create: bool = False, ends: float | None = None) -> apsw.Connection:
    """Open a connection that may write.

    Args:
        place: Where the store lies.
        create: Create the file if it does not exist.
        ends: When to stop waiting for other processes, by the monotonic clock; None: after 5 s.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(str(place.database), flags=flags)
    try:
        connection.set_busy_handler(make_busy_handler(ends))
        if create and not connection.pragma("page_count"):
            connection.pragma("auto_vacuum", 2)  # incremental: free pages can be given back
        connection.pragma("journal_mode", "wal")
        connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        _configure_connection(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def open_read_only(place: Place) -> apsw.Connection:
    """Open a connection that writes nothing, not even a lock file.

    If another process has the store open, the connection uses that process's lock files. Otherwise it reads
    the database without locks, as an immutable file; the caller checks :meth:`Place.contents` for writes.

    Raises:
        StoreReadOnlyError: If there is a write-ahead log that must be checkpointed first.
    """
    options = "mode=ro"
    if place.beside("-shm") < 0:
        if place.beside("-wal") > 0:
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
    except BaseException:
        connection.close()
        raise
    return connection


def _configure_connection(connection: apsw.Connection, place: Place) -> None:
    for name, value in PRAGMAS.items():
        connection.pragma(name, value)
    connection.execute("SELECT 1 FROM sqlite_schema").fetchall()  # opens the log too, by its path
    place.check()
    if _has_moved(connection):
        raise StoreMovedError(f"{place.database} was replaced while it was being opened; open it again")


def _has_moved(connection: apsw.Connection) -> bool:
    """Say whether the file of a connection was moved or replaced, as far as the system can tell."""
    moved = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def make_busy_handler(ends: float | None = None) -> Callable[[int], bool]:
    """Return a busy handler that tries again every few ms. SQLite's own handler sleeps too long to be fair.

    Args:
        ends: When the handler gives up, by the monotonic clock; None: 5 s after the first try.
    """
    until = ends or 0.0

    def again(count: int) -> bool:
        nonlocal until
        now = time.monotonic()
        if ends is None and count == 0:
            until = now + BUSY_SECONDS
        if now > until:
            return False
        time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311 - spreads writers out, no secret
        return True

    return again


@contextlib.contextmanager
def convert_sqlite_errors(operation: str, path: Path, busy: Callable[[], str]) -> Iterator[None]:
    """Convert SQLite's errors to linkstore's, with messages that name the file and the operation.

    Args:
        operation: What is being done, such as ``"read"``.
        path: The database.
        busy: Returns the message of a StoreBusyError, which says who holds the lock.
    """
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusyError(busy()) from error
    except apsw.FullError as error:
        raise StoreFullError(
            f"{operation} {path}: no space left; nothing was written and what was stored"
            " before is intact: free some space and try again"
        ) from error
    except apsw.NotADBError as error:
        raise StoreFormatError(
            f"{operation} {path}: the file is not an SQLite database, or its start is damaged:"
            " restore it from a copy, or choose another folder"
        ) from error
    except apsw.CorruptError as error:
        raise StoreFormatError(
            f"{operation} {path}: {error}; the database is damaged: restore it from a copy"
        ) from error
    except apsw.Error as error:
        raise _convert_other_error(error, operation, path) from error


def _convert_other_error(error: apsw.Error, operation: str, path: Path) -> BackendError:
    if isinstance(error, apsw.ReadOnlyError):
        if getattr(error, "extendedresult", None) == apsw.SQLITE_READONLY_DBMOVED:
            return StoreMovedError(f"{path} was deleted or moved while the store was open; open it again")
        return StoreReadOnlyError(f"{operation} {path}: it lies where nothing can be written")
    if isinstance(error, apsw.CantOpenError):
        return _explain_unopened(operation, path)
    if isinstance(error, apsw.SchemaChangeError) or _is_missing_table(error):
        return StoreFormatError(f"{operation} {path}: {error}; tables are missing or not linkstore's")
    # The system may also report a full disk as an input/output error.
    if isinstance(error, apsw.IOError) and _count_free_bytes(path) < 1 << 20:
        return StoreFullError(
            f"{operation} {path}: no space left ({error}); what was stored before is intact:"
            " free some space and try again"
        )
    return BackendError(f"{operation} {path}: {error}")


def _is_missing_table(error: apsw.Error) -> bool:
    return isinstance(error, apsw.SQLError) and str(error).startswith(("no such table", "no such column"))


def _count_free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return 1 << 62


def _explain_unopened(operation: str, path: Path) -> BackendError:
    """Find the reason why a file cannot be opened, which SQLite's error does not give."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return StoreNotFoundError(f"{operation} {path}: there is no such file")
        return StorePermissionError(f"{operation} {path}: {error.strerror}")
    if not os.access(path, os.R_OK):
        return StorePermissionError(
            f"{operation} {path}: this process may not read it (mode {mode & 0o777:o});"
            " change its permissions, or run as its owner"
        )
    return BackendError(f"{operation} {path}: the system does not open it, or not its -wal and -shm files")


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

    def __init__(self, place: Place, *, durable: bool) -> None:
        self.place = place
        self.path = place.database
        self._pid_file = place.folder / "writer.pid"
        self._durable = durable
        self._idle: list[apsw.Connection] = []
        self._lock = Lock()  # a signal handler may close the store while its thread holds it
        self._turn: dict[object, int] = {}
        self._writer: apsw.Connection | None = None
        self._log_left = 0
        self._closed = False
        self.left_to_parent = False
        self.read_only = not place.writable
        self._contents = place.contents() if self.read_only else None
        FORKS.opened(self)
        self._use("open", self._open)

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
        return self._use("read", lambda: self._read(work, anew=anew))

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run ``work(connection)`` in the only write transaction, commit or roll back, and return the result.

        Raises:
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If there is no space left.
            StoreReadOnlyError: If this process can only read the store.
            StoreMovedError: If the folder was deleted, renamed or replaced.
        """
        return self._take_turn("write", lambda ends: self._write(work, ends))

    def rewrite(self) -> None:
        """Rewrite the whole file without deleted content, and empty the log.

        Raises:
            StoreBusyError: If others read or write for more than 5 s.
            StoreFullError: If there is not enough space for the new file.
        """
        self._take_turn("rewrite", self._rewrite)

    def run_alone(self, work: Callable[[], T], *, wait: bool) -> T | None:
        """Do some work alone among all processes, or return None if another does and ``wait`` is False."""
        return run_exclusively(self.place.folder / "snapshot.lock", work, wait=wait)

    def _use(self, operation: str, work: Callable[[], T]) -> T:
        """Do something with connections, while no fork can happen.

        A signal handler may raise anywhere in here. Each step has then either not begun, or the ``finally``
        block undoes it. That block is a call into C, which a signal cannot interrupt before it takes effect,
        while it could interrupt a context manager written in Python.
        """
        use = object()
        try:
            FORKS.enter(use, self)
            with convert_sqlite_errors(operation, self.path, self._describe_holder):
                return work()
        finally:
            FORKS.under_way.pop(use, None)

    def _take_turn(self, operation: str, work: Callable[[float], T]) -> T:
        """Do something with the writer's connection. ``work`` gets the time at which it gives up."""
        ends, turn = time.monotonic() + BUSY_SECONDS, object()
        self._check_usable(write=True)
        try:
            self._wait_for_turn(turn, ends)
            return self._use(operation, lambda: work(ends))
        finally:
            self._turn.pop(turn, None)
            if self._closed:
                self._close_writer()

    def _read(self, work: Callable[[apsw.Connection], T], *, anew: bool) -> T:
        connection = self._connect() if anew else self._checkout()
        try:
            connection.execute("BEGIN")
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            self._close_connection(connection)
            raise
        self._give_back(connection)
        if self._contents is not None and self.place.contents() != self._contents:
            raise StoreBusyError(f"{self.path} was written by another process while it was read; try again")
        return result

    def _write(self, work: Callable[[apsw.Connection], T], ends: float) -> T:
        writer, pid = self._open_writer(), os.getpid()
        try:
            if writer.in_transaction:  # an earlier rollback failed for lack of memory
                writer.execute("ROLLBACK")
            writer.set_busy_handler(make_busy_handler(ends))
            writer.execute("BEGIN IMMEDIATE")
            self._write_pid()
            result = work(writer)
            writer.execute("COMMIT")
            self._shorten_log(writer)
            return result
        finally:
            if writer.in_transaction and pid == os.getpid():
                writer.execute("ROLLBACK")

    def _rewrite(self, ends: float) -> None:
        writer = self._open_writer()
        writer.set_busy_handler(make_busy_handler(ends))
        writer.pragma("secure_delete", 1)
        writer.pragma("auto_vacuum", 2)  # for stores made without it; takes effect with VACUUM
        writer.execute("VACUUM")
        writer.set_busy_handler(make_busy_handler())
        writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self.place.sync()  # a power cut does not bring back what was erased, here or in files before

    def _shorten_log(self, writer: apsw.Connection) -> None:
        """Empty the log if it is large and no reader stays that uses it. The change is committed already.

        Readers may overlap and keep the log in use: the larger it is, the longer this waits for them, and
        it is not tried again before the log has grown as much once more.
        """
        size = self.place.beside("-wal")
        self._log_left = min(self._log_left, max(size, 0))  # another process may have emptied it
        least = min(LOG_BYTES, max(LEAST_LOG_BYTES, LOG_SHARE * self.place.beside("")))
        if size <= self._log_left + least:
            return
        waits = _PATIENCE_SECONDS * max(1.0, size / LOG_BYTES)
        try:
            writer.set_busy_handler(make_busy_handler(time.monotonic() + min(waits, BUSY_SECONDS / 5)))
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._log_left = 0
        except apsw.BusyError:
            self._log_left = size
        except apsw.Error as error:
            _LOG.warning("the log of %s could not be folded in, and will be later: %s", self.path, error)

    def _check_usable(self, *, write: bool = False) -> None:
        """Check where a transaction begins that the store is open, at its place, and perhaps writable."""
        if self._closed:
            raise self._make_closed_error()
        self.place.check()
        if write and self.read_only:
            raise StoreReadOnlyError(
                f"{self.path} lies where nothing can be written; it can be searched, but not changed"
            )

    def _wait_for_turn(self, turn: object, ends: float) -> None:
        """Wait until no other thread of this process writes. The turn ends when it is discarded.

        Raises:
            StoreBusyError: If ``ends`` passes, or at once if it is this thread that writes.
        """
        while True:
            with self._lock:
                if not self._turn:
                    self._turn[turn] = threading.get_ident()
                    return
                if self._is_writing_here():
                    raise StoreBusyError(
                        f"{self.path}: a write of this thread is under way, so another cannot wait for its"
                        " end; a signal handler may close the store, but not write to it"
                    )
            if time.monotonic() > ends:
                raise StoreBusyError(self._describe_holder())
            time.sleep(0.001)

    def close(self) -> None:
        """Close all connections. The last process to close the store checkpoints the write-ahead log.

        A write of this thread that a signal handler interrupted closes the writer's connection at its end.
        """
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._use("close", partial(self._close_connection, connection))
        self._close_writer()

    def close_inherited(self) -> None:
        """Close all connections without touching the files, in a forked child, between transactions."""
        for connection in (*self._idle, self._writer):
            if connection is not None:
                with contextlib.suppress(apsw.ConnectionClosedError):  # by a close that was interrupted
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                    connection.close(True)
        self._idle, self._writer, self.left_to_parent = [], None, True

    def _close_writer(self) -> None:
        """Close the writer's connection, or leave that to an interrupted write of this thread."""
        turn = object()
        try:
            if not self._is_writing_here():
                self._wait_for_turn(turn, math.inf)
                writer, self._writer = self._writer, None
                if writer is not None:
                    self._use("close", partial(self._close_connection, writer))
        finally:
            self._turn.pop(turn, None)

    def _is_writing_here(self) -> bool:
        return threading.get_ident() in tuple(self._turn.values())

    def _open(self) -> None:
        """Open the first connection, and create or migrate the database if necessary."""
        if self.read_only:
            connection = open_read_only(self.place)
            self._idle.append(connection)
            check_format(connection, str(self.path))
        else:
            self._writer = self._create()

    def _create(self) -> apsw.Connection:
        """Open the writer's connection, and create or migrate the database if necessary.

        If several processes create a database at the same time, all but one must wait. This method tries
        again by itself, because SQLite does not call the busy handler while the journal mode changes.
        """
        ends = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection = open_writable(self.place, create=True, ends=ends)
            except apsw.BusyError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.01)
                continue
            try:
                create_or_migrate(connection, str(self.path))  # always synced, as by default
                self._set_durability(connection)
            except BaseException as error:
                connection.close()
                if not isinstance(error, apsw.BusyError) or time.monotonic() > ends:
                    raise
                time.sleep(0.01)
            else:
                return connection

    def _connect(self) -> apsw.Connection:
        if self.read_only:
            return open_read_only(self.place)
        connection = open_writable(self.place)
        self._set_durability(connection)
        return connection

    def _set_durability(self, connection: apsw.Connection) -> None:
        # NORMAL syncs before each checkpoint: a power cut may lose the last writes, never the store.
        connection.pragma("synchronous", "FULL" if self._durable else "NORMAL")

    def _checkout(self) -> apsw.Connection:
        """Return an idle connection, or a new one. Drop those opened before the file was last written."""
        if self._contents is not None:  # the store is read without locks
            found = self.place.contents()
            with self._lock:
                idle: list[apsw.Connection] = []
                if found != self._contents:
                    self._contents, idle, self._idle = found, self._idle, []
            for connection in idle:
                connection.close()
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return self._connect()

    @property
    def interrupted(self) -> bool:
        """Whether this thread is in the middle of a use, as in a signal handler that interrupted one."""
        return (threading.get_ident(), self) in tuple(FORKS.under_way.values())

    def _open_writer(self) -> apsw.Connection:
        """Return the writer's connection, for the thread whose turn it is."""
        writer = self._writer
        if writer is None:
            raise self._make_closed_error()
        return writer

    def _make_closed_error(self) -> StoreClosedError:
        return StoreClosedError(f"the store at {self.path.parent} is closed; open it again")

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        self._close_connection(connection)

    def _close_connection(self, connection: apsw.Connection) -> None:
        """Close a connection. If the store moved, do not touch the files that are now at its path."""
        if self.place.moved:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _write_pid(self) -> None:
        """Write to a file which process this is, for the error message of a writer that waits in vain."""
        with contextlib.suppress(OSError):
            self._pid_file.write_text(str(os.getpid()), encoding="ascii")

    def _describe_holder(self) -> str:
        holder = "another process"
        with contextlib.suppress(OSError, ValueError):
            holder = f"process {int(self._pid_file.read_text(encoding='ascii'))}"
        return (
            f"{self.path} has been locked by {holder} for more than {BUSY_SECONDS:.0f} s; wait until its"
            " write is done, or end it, and try again"
        )

"""SQLite connections: how they are opened, what their errors mean, and their write-ahead log.

One SQLite connection: how it is opened and configured, and how SQLite's errors become linkstore's.

The write-ahead log of a store: kept short, and folded into the database between the writer's changes.

SQLite would do that in the commit that makes the log long enough: the writer would copy all pages and wait
for the disk once more. Here a thread does both while the writer prepares its next change. Nothing depends on
when that is: a checkpoint copies data that are safe already.
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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import apsw

from linkstore.engines.embedded.location import Place
from linkstore.errors import (
    BackendError,
    StoreBusyError,
    StoreFormatError,
    StoreFullError,
    StoreMovedError,
    StoreNotFoundError,
    StorePermissionError,
    StoreReadOnlyError,
)

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
    if has_moved(connection):
        raise StoreMovedError(f"{place.database} was replaced while it was being opened; open it again")


def has_moved(connection: apsw.Connection) -> bool:
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


LOG_BYTES: Final = 64 << 20
"""If the write-ahead log is larger than this, a writer waits for readers so that it can empty the log."""
LOG_SHARE: Final = 0.5
"""A log larger than this share of the database is emptied if no reader stays that uses it."""
LEAST_LOG_BYTES: Final = 1 << 20
"""A log up to this size is not emptied, however small the database is."""
_PATIENCE_SECONDS: Final = 0.05
_TRIES: Final = 25
_LOG: Final = logging.getLogger("linkstore")
Between = Callable[[], contextlib.AbstractContextManager[apsw.Connection]]


class WriteAheadLog:
    """Keeps the log of one database short, for the process that writes.

    Args:
        place: Where the store lies.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._limit = LOG_BYTES
        self._left = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked = False

    def after_commit(self, writer: apsw.Connection, between: Between) -> None:
        """Checkpoint the log if due: in a thread, unless the log is so large that the writer must wait.

        If the log exceeds ``LOG_BYTES``, this waits for readers, which may overlap and keep it in use; the
        larger the log, the longer the wait. Committed data are safe in any case.

        Args:
            writer: Outside a transaction; no other thread uses it.
            between: Gives another thread the same connection once this write has ended.
        """
        size = self._place.beside("-wal")
        if size > self._limit:
            waits = min(_PATIENCE_SECONDS * size / LOG_BYTES, BUSY_SECONDS / 5)
            emptied = self._empty(writer, make_busy_handler(time.monotonic() + waits))
            self._limit = LOG_BYTES if emptied else size + LOG_BYTES // 4
        elif self._is_large(size) or _count_log_pages(writer) >= CHECKPOINT_PAGES:
            self._begin(between)
        elif size < self._left:  # another process has emptied it
            self._left = 0

    def _is_large(self, size: int) -> bool:
        return size > self._left + max(LEAST_LOG_BYTES, LOG_SHARE * self._place.beside(""))

    def _begin(self, between: Between) -> None:
        """Have the thread checkpoint the log, with all that was committed since its last checkpoint began."""
        with self._lock:
            self._asked = True
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._work, args=(between,), name="linkstore-log")
        try:
            self._thread.start()
        except RuntimeError:  # Python is ending, or the system has no thread left: closing does it
            self._thread = None

    def _work(self, between: Between) -> None:
        try:
            while self._is_asked():
                with between() as connection:
                    self._fold(connection)
        except BackendError as error:  # the store was closed or moved, which its users get as an error anyway
            _LOG.debug("the log of %s was left as it is: %s", self._place.database, error)

    def _is_asked(self) -> bool:
        with self._lock:
            asked, self._asked = self._asked, False
            if not asked:
                self._thread = None
            return asked

    def _fold(self, connection: apsw.Connection) -> None:
        """Checkpoint the log, and then truncate it if it is large and no reader uses it.

        Other processes write during the first step, which may take long, and wait during the second.
        """
        size = self._place.beside("-wal")
        if self._checkpoint(connection, apsw.SQLITE_CHECKPOINT_PASSIVE) and self._is_large(size):
            self._left = 0 if self._empty(connection, _again) else size

    def _empty(self, connection: apsw.Connection, busy: Callable[[int], bool]) -> bool:
        """Checkpoint the log, truncate it, and return whether readers allowed that."""
        connection.set_busy_handler(busy)
        return self._checkpoint(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _checkpoint(self, connection: apsw.Connection, mode: int) -> bool:
        try:
            connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            _LOG.warning(
                "the log of %s could not be folded in, and will be later: %s", self._place.database, error
            )
            return False
        return True


def _again(tries: int) -> bool:
    """Handle a busy lock for a moment, counted in tries: on a busy machine even a short read takes long."""
    time.sleep(_PATIENCE_SECONDS / _TRIES)
    return tries < _TRIES


def _count_log_pages(connection: apsw.Connection) -> int:
    """Return how many pages of the log are in use, or 0 if unknown, as during another's checkpoint."""
    try:
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
    except apsw.Error:  # the change is committed, so it must not seem to have failed
        return 0

"""One SQLite connection: how it is opened and configured, and how SQLite's errors become linkstore's."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import random
import shutil
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

"""SQLite connections: a pool of readers, one writer at a time, and errors with a name."""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from linkstore.backends.embedded.schema import create_or_migrate
from linkstore.errors import (
    BackendError,
    StoreBusyError,
    StoreClosedError,
    StoreFormatError,
    StoreFullError,
    StoreNotFoundError,
)

T = TypeVar("T")
FILE_NAME: Final = "linkstore.db"
BUSY_SECONDS: Final = 5.0
"""How long a writer waits for another before it gives up."""
# Temporary tables stay in memory up to the size of the cache; those of a check of millions do not.
_PRAGMAS: Final = """
PRAGMA journal_mode = WAL;
PRAGMA cache_size = -65536;
PRAGMA mmap_size = 1073741824;
PRAGMA temp_store = FILE;
PRAGMA wal_autocheckpoint = 16000;
"""


def rows_of(connection: apsw.Connection, query: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """All rows of a query: tuples, as untyped as SQLite."""
    return connection.execute(query, tuple(bindings)).fetchall()


def settings_of(connection: apsw.Connection) -> dict[str, Any]:
    """The table of settings."""
    return dict(rows_of(connection, "SELECT name, value FROM setting"))


class Database:
    """The SQLite file of one store, for use by the process that made this object.

    Args:
        folder: Where the store lies.
        durable: Whether an acknowledged write outlives a power cut (it always outlives a crash).
    """

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.path = folder / FILE_NAME
        self._pid_file = folder / "writer.pid"
        self._durable = durable
        self._idle: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._turn: set[object] = set()
        self._writer: apsw.Connection | None = None
        self._closed = False
        with self._translated("open"):
            self._writer = self._open()

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """What ``work`` makes of a connection in a read transaction, which sees one state of the store."""
        with self._translated("read"):
            connection = self._checkout()
            try:
                connection.execute("BEGIN")
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return result

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """What ``work`` makes of a connection in the one write transaction; committed, or rolled back.

        A signal may raise anywhere in here. It finds each step either not begun or covered by the
        ``finally``, whose calls are into C and so not interrupted before they have taken effect; a context
        manager written in Python would be.

        Raises:
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If there is no space left.
        """
        ends, turn, writer = time.monotonic() + BUSY_SECONDS, object(), None
        try:
            self._wait_for_turn(turn, ends)
            writer = self._writer
            if writer is None:
                raise StoreClosedError(f"the store at {self.path.parent} is closed; open it again")
            with self._translated("write"):
                if writer.in_transaction:  # an earlier rollback failed for want of memory
                    writer.execute("ROLLBACK")
                writer.set_busy_handler(_patience(ends))
                writer.execute("BEGIN IMMEDIATE")
                self._announce()
                result = work(writer)
                writer.execute("COMMIT")
            return result
        finally:
            try:
                if writer is not None and writer.in_transaction:
                    writer.execute("ROLLBACK")
            finally:
                self._turn.discard(turn)

    def _wait_for_turn(self, turn: object, ends: float) -> None:
        """Become the one writer of this process; the turn ends when it is discarded."""
        while True:
            with self._lock:
                if not self._turn:
                    self._turn.add(turn)
                    return
            if time.monotonic() > ends:
                raise StoreBusyError(self._busy_message())
            time.sleep(0.001)

    def close(self) -> None:
        """Close all connections; the last one out folds the write-ahead log into the file."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        turn = object()
        try:
            self._wait_for_turn(turn, math.inf)
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        finally:
            self._turn.discard(turn)

    def _open(self) -> apsw.Connection:
        """The first connection; makes the database if need be.

        Of several processes that make one at the same moment, all but one wait: SQLite does not ask
        the busy handler while the journal mode changes.
        """
        ends = time.monotonic() + BUSY_SECONDS
        while True:
            connection = apsw.Connection(str(self.path))
            try:
                self._set_up(connection, ends)
                create_or_migrate(connection, str(self.path))
            except BaseException as error:
                connection.close()
                if not isinstance(error, apsw.BusyError) or time.monotonic() > ends:
                    raise
                time.sleep(0.01)
            else:
                return connection

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path))
        self._set_up(connection)
        return connection

    def _set_up(self, connection: apsw.Connection, ends: float | None = None) -> None:
        connection.set_busy_handler(_patience(ends))
        connection.execute(_PRAGMAS)
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")

    def _checkout(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise StoreClosedError(f"the store at {self.path.parent} is closed; open it again")
            if self._idle:
                return self._idle.pop()
        with self._translated("open"):
            return self._connect()

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _announce(self) -> None:
        """Leave our pid where a writer that waits in vain can read it."""
        with contextlib.suppress(OSError):
            self._pid_file.write_text(str(os.getpid()), encoding="ascii")

    def _busy_message(self) -> str:
        try:
            holder = f"process {int(self._pid_file.read_text(encoding='ascii'))}"
        except (OSError, ValueError):
            holder = "another process"
        return (
            f"{self.path} has been locked by {holder} for more than {BUSY_SECONDS:.0f} s;"
            " wait until its write is done, or end it, and try again"
        )

    @contextlib.contextmanager
    def _translated(self, operation: str) -> Iterator[None]:
        """Turn SQLite's errors into ours, naming the file and the operation."""
        try:
            yield
        except apsw.BusyError as error:
            raise StoreBusyError(self._busy_message()) from error
        except apsw.FullError as error:
            raise StoreFullError(
                f"{operation} {self.path}: no space left; nothing was written and what was stored"
                " before is intact: free some space and try again"
            ) from error
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise StoreFormatError(
                f"{operation} {self.path}: {error}; the database is damaged: restore it from a copy"
            ) from error
        except apsw.CantOpenError as error:
            raise StoreNotFoundError(f"{operation} {self.path}: {error}") from error
        except apsw.Error as error:
            raise _other(error, operation, self.path) from error


def _other(error: apsw.Error, operation: str, path: Path) -> BackendError:
    """The error for what SQLite reports as input or output failure: often a full disk."""
    if isinstance(error, apsw.IOError) and shutil.disk_usage(path.parent).free < 1 << 20:
        return StoreFullError(
            f"{operation} {path}: no space left ({error}); what was stored before is intact:"
            " free some space and try again"
        )
    return BackendError(f"{operation} {path}: {error}")


def _patience(ends: float | None = None) -> Callable[[int], bool]:
    """A busy handler that tries again every few ms; SQLite's own sleeps too long to be fair.

    Args:
        ends: When it gives up, by the monotonic clock; None: 5 s after the first try.
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

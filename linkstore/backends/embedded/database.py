"""The SQLite file of a store in one process: a pool of readers, and one writer at a time."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import apsw

from linkstore.backends.embedded.connecting import (
    BUSY_SECONDS,
    open_read_only,
    open_writable,
    patience,
    translated,
)
from linkstore.backends.embedded.forks import FORKS
from linkstore.backends.embedded.place import Place
from linkstore.backends.embedded.schema import check_format, create_or_migrate
from linkstore.errors import StoreBusyError, StoreClosedError, StoreFormatError, StoreReadOnlyError

T = TypeVar("T")
LOG_BYTES: Final = 64 << 20
"""When the write-ahead log is larger, a writer waits for readers so that it can be emptied."""
LOG_SHARE: Final = 0.5
"""A log larger than this share of the database is emptied if no reader is in the way."""
LEAST_LOG_BYTES: Final = 1 << 20
"""A log of this size is left alone, however small the database is."""
_LOG_PATIENCE_SECONDS: Final = 0.05
_LOG: Final = logging.getLogger("linkstore")


def rows_of(connection: apsw.Connection, query: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """All rows of a query: tuples, as untyped as SQLite.

    Raises:
        StoreFormatError: If a text is not valid UTF-8.
    """
    try:
        return connection.execute(query, tuple(bindings)).fetchall()
    except UnicodeDecodeError as error:
        raise StoreFormatError(
            f"{connection.filename}: a text is not valid UTF-8 ({error}); run verify, or restore the"
            " store from a copy"
        ) from error


class Database:
    """The SQLite file of one store, for use by the process that made this object.

    Args:
        place: Where the store lies; the file is made if it is not there.
        durable: Whether an acknowledged write outlives a power cut (it always outlives a crash).

    Attributes:
        read_only: Whether the store lies where this process cannot write.
        left_to_parent: Whether this is a forked child that closed what it inherited.
    """

    def __init__(self, place: Place, *, durable: bool) -> None:
        self.place = place
        self.path = place.database
        self._pid_file = place.folder / "writer.pid"
        self._durable = durable
        self._idle: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._turn: set[object] = set()
        self._writer: apsw.Connection | None = None
        self._log_limit = LOG_BYTES
        self._log_left = 0
        self._closed = False
        self.left_to_parent = False
        self.read_only = not place.writable
        self._contents = place.contents() if self.read_only else None
        FORKS.opened(self)
        with self._use(), self._translated("open"):
            self._open()

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        """What ``work`` makes of a connection in a read transaction, which sees one state of the store.

        Raises:
            StoreMovedError: If the folder was deleted, renamed or replaced.
            StoreBusyError: If a store that can only be read here was written meanwhile.
        """
        use = object()
        try:
            FORKS.enter(use, self)
            with self._translated("read"):
                connection = self._checkout()
                try:
                    self.place.check()
                    connection.execute("BEGIN")
                    result = work(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    self._close_connection(connection)
                    raise
                self._give_back(connection)
        finally:
            FORKS.under_way.pop(use, None)
        self._check_contents()
        return result

    def inspect(self, work: Callable[[apsw.Connection], T]) -> T:
        """As :meth:`read`, by a connection of its own.

        SQLite checks the tables of FTS5 against what the connection remembers of them, which is older
        than the state it reads if the connection has searched before another one wrote.
        """
        self._check_open()
        self.place.check()
        with self._use(), self._translated("read"):
            connection = self._connect()
            try:
                connection.execute("BEGIN")
                result = work(connection)
            finally:
                self._close_connection(connection)
        self._check_contents()
        return result

    def write(self, work: Callable[[apsw.Connection], T]) -> T:
        """What ``work`` makes of a connection in the one write transaction; committed, or rolled back.

        A signal may raise anywhere in here. It finds each step either not begun or covered by the
        ``finally``, whose calls are into C and so not interrupted before they have taken effect; a context
        manager written in Python would be.

        Raises:
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If there is no space left.
            StoreReadOnlyError: If the store can only be read here.
            StoreMovedError: If the folder was deleted, renamed or replaced.
        """
        ends, turn, writer, pid = time.monotonic() + BUSY_SECONDS, object(), None, os.getpid()
        self._check_writable()
        try:
            self._wait_for_turn(turn, ends)
            FORKS.enter(turn, self)
            writer = self._writer
            if writer is None:
                raise StoreClosedError(f"the store at {self.path.parent} is closed; open it again")
            with self._translated("write"):
                if writer.in_transaction:  # an earlier rollback failed for want of memory
                    writer.execute("ROLLBACK")
                writer.set_busy_handler(patience(ends))
                writer.execute("BEGIN IMMEDIATE")
                self._announce()
                result = work(writer)
                self.place.check()
                writer.execute("COMMIT")
                self._bound_log(writer)
            return result
        finally:
            try:
                if writer is not None and writer.in_transaction and pid == os.getpid():
                    writer.execute("ROLLBACK")
            finally:
                try:
                    self._turn.discard(turn)
                finally:
                    FORKS.under_way.pop(turn, None)

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Keep a fork from happening meanwhile."""
        use = object()
        try:
            FORKS.enter(use, self)
            yield
        finally:
            FORKS.under_way.pop(use, None)

    def rewrite(self) -> None:
        """Write the whole file anew, without what was deleted, and empty the log.

        Raises:
            StoreBusyError: If others read or write for more than 5 s.
            StoreFullError: If there is no space for it.
        """
        ends, turn = time.monotonic() + BUSY_SECONDS, object()
        self._check_writable()
        try:
            self._wait_for_turn(turn, ends)
            writer = self._writer
            if writer is None:
                raise StoreClosedError(f"the store at {self.path.parent} is closed; open it again")
            with self._translated("rewrite"):
                writer.set_busy_handler(patience(ends))
                writer.pragma("secure_delete", 1)
                writer.pragma("auto_vacuum", 2)  # takes effect with VACUUM, for stores made without
                writer.execute("VACUUM")
                writer.set_busy_handler(patience())
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self._turn.discard(turn)

    def _check_writable(self) -> None:
        self._check_open()
        self.place.check()
        if self.read_only:
            raise StoreReadOnlyError(
                f"{self.path} lies where nothing can be written; it can be searched, but not changed"
            )

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
        with self._use():
            for connection in idle:
                self._close_connection(connection)
            self._close_writer()

    def close_inherited(self) -> None:
        """In a forked child, between transactions: close all without touching the files."""
        for connection in (*self._idle, self._writer):
            if connection is not None:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close(True)
        self._idle, self._writer, self.left_to_parent = [], None, True

    def _close_writer(self) -> None:
        turn = object()
        try:
            self._wait_for_turn(turn, math.inf)
            if self._writer is not None:
                self._close_connection(self._writer)
                self._writer = None
        finally:
            self._turn.discard(turn)

    def _open(self) -> None:
        """The first connection; makes the database, or brings it forward, if need be."""
        if self.read_only:
            connection = open_read_only(self.place)
            self._idle.append(connection)
            check_format(connection, str(self.path))
        else:
            self._writer = self._create()

    def _create(self) -> apsw.Connection:
        """The writer's connection, to a database that is made, or brought forward, if need be.

        Of several processes that make a database at the same moment, all but one wait: SQLite does not
        ask the busy handler while the journal mode changes.
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
        # NORMAL syncs before it folds the log in: a power cut may take the last writes, never the store.
        connection.pragma("synchronous", "FULL" if self._durable else "NORMAL")

    def _checkout(self) -> apsw.Connection:
        self._check_open()
        self._drop_stale()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        with self._translated("open"):
            self.place.check()
            return self._connect()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"the store at {self.path.parent} is closed; open it again")

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        self._close_connection(connection)

    def _close_connection(self, connection: apsw.Connection) -> None:
        """Close it; of a store that moved, without touching the files that are at its path now."""
        if self.place.moved:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _drop_stale(self) -> None:
        """Where nothing can be locked: forget connections to a file that was written since."""
        if self._contents is None:
            return
        self.place.check()
        found = self.place.contents()
        with self._lock:
            if found == self._contents:
                return
            self._contents, idle, self._idle = found, self._idle, []
        for connection in idle:
            connection.close()

    def _check_contents(self) -> None:
        if self._contents is not None and self.place.contents() != self._contents:
            raise StoreBusyError(f"{self.path} was written by another process while it was read; try again")

    def _bound_log(self, writer: apsw.Connection) -> None:
        """Empty the log when it is large, which a commit by itself never does.

        A log that is large beside the database is emptied if that needs no waiting. One beyond
        ``LOG_BYTES`` is waited for, the longer the larger it is: readers that overlap may keep it in use.
        What was committed is safe however this ends.
        """
        size = self.place.beside("-wal")
        if size > self._log_limit:
            waits = min(_LOG_PATIENCE_SECONDS * size / LOG_BYTES, BUSY_SECONDS / 5)
            emptied = self._empty_log(writer, patience(time.monotonic() + waits))
            self._log_limit = LOG_BYTES if emptied else size + LOG_BYTES // 4
        elif size > self._log_left + max(LEAST_LOG_BYTES, LOG_SHARE * self.place.beside("")):
            self._log_left = 0 if self._empty_log(writer, None) else size
        elif size < self._log_left:  # another process has emptied it
            self._log_left = 0

    def _empty_log(self, writer: apsw.Connection, busy: Callable[[int], bool] | None) -> bool:
        """Fold the log into the database and cut it off; whether nobody was in the way."""
        writer.set_busy_handler(busy)
        try:
            writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            _LOG.warning("the log of %s could not be folded in, and will be later: %s", self.path, error)
            return False
        return True

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

    def _translated(self, operation: str) -> contextlib.AbstractContextManager[None]:
        return translated(operation, self.path, self._busy_message)

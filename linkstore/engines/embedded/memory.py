"""The database of a store in memory: SQLite's, gone with the process whatever ends it.

Those who read and the one who writes a database in memory would wait for each other. So a write that finds
somebody reading is made in a copy, which later readers get. A forked child has the content of that moment for
itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import apsw

from linkstore.core.calls import Lock
from linkstore.engines.embedded.database import Database, make_busy_handler
from linkstore.engines.embedded.location import Place
from linkstore.engines.embedded.schema import create_or_migrate
from linkstore.errors import StoreBusyError

T = TypeVar("T")
MEMORY: Final = ":memory:"
_FLAGS: Final = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_NUMBERS: Final = itertools.count()
_MOST_BYTES: Final = 1 << 40
"""SQLite would allow a database in memory 1 GiB."""


class MemoryPlace(Place):
    """The place of a store in memory, which is no folder."""

    def __init__(self) -> None:
        self.folder = self.database = Path(MEMORY)

    def check(self) -> None:
        """Do nothing: what is in memory stays where it is."""

    @property
    def writable(self) -> bool:
        """True."""
        return True


class _Copy:
    """A database in memory, which exists until its last connection is closed."""

    def __init__(self) -> None:
        self._name = f"file:/linkstore-{next(_NUMBERS)}?vfs=memdb"
        self.idle: list[apsw.Connection] = []
        self.writer = self.connect()
        limit = ctypes.c_int64(_MOST_BYTES)
        self.writer.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, ctypes.addressof(limit))

    def connect(self) -> apsw.Connection:
        """Open another connection, which reads once nobody writes."""
        connection = apsw.Connection(self._name, flags=_FLAGS)
        connection.set_busy_handler(make_busy_handler(math.inf))
        return connection

    def duplicate(self) -> _Copy:
        """Return another database with the same content."""
        made = _Copy()
        with made.writer.backup("main", self.writer, "main") as backup:
            backup.step()
        return made


class MemoryDatabase(Database):
    """The database of a store in memory, for use by any number of threads."""

    def __init__(self) -> None:
        self._alone: dict[None, object] = {}
        self._copy: _Copy | None = None
        super().__init__(MemoryPlace(), durable=False)

    def _open(self) -> None:
        copy = _Copy()
        create_or_migrate(copy.writer, MEMORY)
        self._copy = copy

    def _get_copy(self) -> _Copy:
        copy = self._copy
        if copy is None:
            raise self._make_closed_error()
        return copy

    def _read(self, work: Callable[[apsw.Connection], T], *, anew: bool) -> T:
        if self._is_writing_here():
            raise StoreBusyError("a write of this thread is under way, so it cannot read the store in memory")
        copy, connection = self._get_copy(), None
        if not anew:
            with contextlib.suppress(IndexError):
                connection = copy.idle.pop()
        connection = connection or copy.connect()
        try:
            connection.execute("BEGIN")
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        copy.idle.append(connection)
        return result

    def _write(self, work: Callable[[apsw.Connection], T], ends: float) -> T:
        copy, pid = self._get_copy(), os.getpid()
        try:
            if copy.writer.in_transaction:  # an earlier rollback failed for lack of memory
                copy.writer.execute("ROLLBACK")
            copy.writer.set_busy_handler(None)
            try:
                copy.writer.execute("BEGIN EXCLUSIVE")
            except apsw.BusyError:
                copy = copy.duplicate()
                copy.writer.execute("BEGIN EXCLUSIVE")
            result = work(copy.writer)
            copy.writer.execute("COMMIT")
            self._copy = None if self._closed else copy
            return result
        finally:
            if copy.writer.in_transaction and pid == os.getpid():
                copy.writer.execute("ROLLBACK")

    def _rewrite(self, ends: float) -> None:
        """Do nothing: no file has deleted content."""

    def run_alone(self, work: Callable[[], T], *, wait: bool) -> T | None:
        """Do some work alone among all threads, or return None if another does and ``wait`` is False."""
        token = object()
        try:
            while self._alone.setdefault(None, token) is not token:
                if not wait:
                    return None
                time.sleep(0.005)
            return work()
        finally:
            if self._alone.get(None) is token:
                self._alone.pop(None)

    def close(self) -> None:
        """Forget the content, once nobody reads or writes it any more."""
        self._closed, self._copy = True, None

    def close_inherited(self) -> None:
        """Make the content that of a forked child, between transactions."""
        self._lock, self._turn, self._alone = Lock(), {}, {}
        self.left_to_parent = True

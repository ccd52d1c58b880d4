"""The database of a store in memory: SQLite's, gone with the process whatever ends it.

Those who read and the one who writes a database in memory would wait for each other. So a write that finds
somebody reading is made in a copy, which later readers get. A forked child has the content of that moment for
itself.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from linkstore.core.processes import Lock
from linkstore.engines.embedded.database import Database, Pool, make_busy_handler
from linkstore.engines.embedded.location import StoreFolder
from linkstore.engines.embedded.schema import create_tables
from linkstore.errors import StoreBusyError

T = TypeVar("T")
MEMORY: Final = ":memory:"
_FLAGS: Final = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_NUMBERS: Final = itertools.count()
_MOST_BYTES: Final = 1 << 40
"""SQLite would allow a database in memory 1 GiB."""


class MemoryPlace(StoreFolder):
    """The place of a store in memory, which is not in a folder."""

    def __init__(self) -> None:
        self.folder = self.database = Path(MEMORY)

    def check(self) -> None:
        """Do nothing: what is in memory stays where it is."""

    @property
    def writable(self) -> bool:
        """True."""
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Copy(Pool):
    """A database in memory, which exists until its last connection is closed.

    Args:
        writer: The connection that writes. It does not wait for those that read.
    """

    writer: apsw.Connection = field(kw_only=True)

    @classmethod
    def make(cls) -> _Copy:
        """Make an empty database."""
        name = f"file:/linkstore-{next(_NUMBERS)}?vfs=memdb"
        writer, limit = apsw.Connection(name, flags=_FLAGS), ctypes.c_int64(_MOST_BYTES)
        writer.file_control("main", apsw.SQLITE_FCNTL_SIZE_LIMIT, ctypes.addressof(limit))
        return cls(partial(_connect, name), writer=writer)

    def duplicate(self) -> _Copy:
        """Return another database with the same content."""
        made = _Copy.make()
        with made.writer.backup("main", self.writer, "main") as backup:
            backup.step()
        return made


def _connect(name: str) -> apsw.Connection:
    """Open a connection, which reads once nobody writes."""
    connection = apsw.Connection(name, flags=_FLAGS)
    connection.set_busy_handler(make_busy_handler(math.inf))
    return connection


class MemoryDatabase(Database):
    """The database of a store in memory, for use by any number of threads."""

    def __init__(self) -> None:
        self._writing = Lock()
        self._alone: dict[None, object] = {}
        super().__init__(MemoryPlace(), durable=False)

    def _open(self) -> _Copy:
        copy = _Copy.make()
        create_tables(copy.writer, MEMORY)
        return copy

    def _read(self, work: Callable[[apsw.Connection], T], *, anew: bool) -> T:
        if self._is_writing_here():
            raise StoreBusyError("a write of this thread is under way, so it cannot read the store in memory")
        return super()._read(work, anew=anew)

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        with self._writing:
            copy, before, pid = self._pool, self._pool, os.getpid()
            if not isinstance(copy, _Copy):
                raise self._make_closed_error()
            try:
                if copy.writer.in_transaction:  # an earlier rollback failed for lack of memory
                    copy.writer.execute("ROLLBACK")
                try:
                    copy.writer.execute("BEGIN EXCLUSIVE")
                except apsw.BusyError:
                    copy = copy.duplicate()
                    copy.writer.execute("BEGIN EXCLUSIVE")
                result = work(copy.writer)
                copy.writer.execute("COMMIT")
            finally:
                if copy.writer.in_transaction and pid == os.getpid():
                    copy.writer.execute("ROLLBACK")
            with self._lock:
                self._pool = copy if self._pool is before else None
            return result

    def rewrite(self) -> None:
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

    def close_inherited(self) -> None:
        """Make the content that of a forked child, between transactions."""
        self._lock, self._writing, self._alone = Lock(), Lock(), {}
        self.left_to_parent = True

"""Where a store is, and who has it open: its folder, the lock of its derived files, and forks.

SQLite records in memory which locks the process holds on each file. A forked child inherits these records but
not the locks. So SQLite in the child believes that it holds locks which it does not hold, and the child's
writes can be lost when the parent closes (https://sqlite.org/howtocorrupt.html, section 2.6). The records
disappear once every inherited connection is closed, which is safe only between transactions. So a fork waits
for transactions, and the child closes the connections that it inherits.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from linkstore.core.arguments import as_path
from linkstore.core.processes import Lock
from linkstore.core.text import is_unicode
from linkstore.engines.embedded.files import DERIVED_FILES, sync_path
from linkstore.errors import (
    BackendError,
    StoreBusyError,
    StoreFormatError,
    StoreMovedError,
    StoreNotFoundError,
    StorePermissionError,
    StoreReadOnlyError,
)

if TYPE_CHECKING:
    from linkstore.engines.embedded.database import Database

T = TypeVar("T")
DATABASE_NAME: Final = "linkstore.db"
_REMAINS: Final = ("writer.pid", DERIVED_FILES)
"""Files that a store creates after its database; if they exist without it, the database was lost."""
PATIENCE_SECONDS: Final = 5.0
"""How long a fork waits for transactions of other threads."""


class StoreFolder:
    """The folder of a store and its database file.

    The path is made absolute and its symbolic links are followed once. So an open store stays in the same
    folder if the working directory or a link changes. The database file is identified by its device and
    inode, which are recorded when it is first opened.

    Args:
        path: The folder, as the user names it.

    Raises:
        ArgumentError: If this is not a path.
        StoreFormatError: If the path cannot name a folder.
        StoreNotFoundError: If the path is relative and the working directory no longer exists.
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = _resolve_folder(as_path("path", path))
        self.database = self.folder / DATABASE_NAME
        self._pinned: tuple[int, int] | None = None

    def prepare(self, *, create: bool) -> None:
        """Check the folder, and create it if a store is to be created.

        Raises:
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If the path is a file, or the database is empty or missing beside its files.
            StorePermissionError: If this process may not read the folder.
            StoreReadOnlyError: If the store cannot be created because the folder is read-only.
        """
        try:
            remains = self._find_remains()  # first: another process may be creating the store
            size = self.get_size("")
        except OSError as error:
            refused = StorePermissionError if isinstance(error, PermissionError) else BackendError
            raise refused(f"{self.folder} cannot be read: {error.strerror}") from error
        if size > 0 and not os.access(self.database, os.R_OK):
            raise StorePermissionError(
                f"{self.database}: this process may not read it; change its permissions, or run as its owner"
            )
        if size <= 0 and remains:
            state = "is missing" if size < 0 else "is empty"
            raise StoreFormatError(
                f"{self.database} {state}, but {remains[0]} shows that there was a store: restore the"
                " database from a copy, or delete the folder to start anew"
            )
        if size == 0 and not create:
            raise StoreFormatError(
                f"{self.database} is empty: making the store was interrupted; open it with create=True"
            )
        if size < 0 and not create:
            raise StoreNotFoundError(
                f"there is no linkstore at {self.folder}; create one by adding documents"
            )
        if size <= 0:
            self._make_folder()

    def check(self) -> None:
        """Compare the file at the path with the one that was opened first.

        Raises:
            StoreMovedError: If the file is gone or is a different one.
        """
        try:
            state = self.database.stat()
        except OSError as error:
            raise StoreMovedError(
                f"{self.database} was deleted or moved while the store was open ({error.strerror});"
                " open the store again where it is now"
            ) from error
        identity = state.st_dev, state.st_ino
        if self._pinned not in (None, identity):
            raise StoreMovedError(
                f"{self.database} was replaced by another file while the store was open;"
                " open the store again to use the new one"
            )
        self._pinned = identity

    @property
    def moved(self) -> bool:
        """Whether the file at the path is no longer the file that was opened."""
        try:
            self.check()
        except StoreMovedError:
            return True
        return False

    @property
    def writable(self) -> bool:
        """Whether the system allows this process to write the database and to make files beside it."""
        if not os.access(self.folder, os.W_OK):
            return False
        return not self.database.exists() or os.access(self.database, os.W_OK)

    def sync(self) -> None:
        """Make the emptied log and the removal of files durable, if the system supports it."""
        with contextlib.suppress(FileNotFoundError):
            sync_path(Path(f"{self.database}-wal"))
        sync_path(self.folder)

    def get_size(self, suffix: str) -> int:
        """Return the size of the database or of one of SQLite's files beside it, -1 if there is none.

        Args:
            suffix: Of the file's name, such as ``-wal``; empty for the database.
        """
        try:
            return Path(f"{self.database}{suffix}").stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return -1

    def fingerprint(self) -> tuple[int, int, int, int]:
        """Return a value that changes at every write to the database, for readers unable to take locks."""
        state = self.database.stat()
        return state.st_ino, state.st_mtime_ns, state.st_size, self.get_size("-wal")

    def _find_remains(self) -> list[str]:
        if not self.folder.exists():
            return []
        if not self.folder.is_dir():
            raise StoreFormatError(f"{self.folder} is a file; a linkstore is a folder")
        return [path.name for pattern in _REMAINS for path in self.folder.glob(pattern)]

    def _make_folder(self) -> None:
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for folder in missing:
                sync_path(folder.parent)
        except NotADirectoryError as error:
            raise StoreFormatError(f"{self.folder} cannot be a folder: {error}") from error
        except OSError as error:
            raise StoreReadOnlyError(f"no linkstore can be made at {self.folder}: {error}") from error
        if not self.writable:
            raise StoreReadOnlyError(f"no linkstore can be made at {self.folder}: it can only be read")


def _resolve_folder(path: Path) -> Path:
    if re.match(r"[a-z]{2,}:/", str(path)):  # pathlib makes one slash of two
        raise StoreFormatError(
            f"{str(path)!r} is a URL and not a folder; for a store in Cassandra use LinkStore.cassandra()"
        )
    try:
        folder = path.expanduser().resolve()
    except FileNotFoundError as error:
        raise StoreNotFoundError(f"{path} is relative, and the working directory is gone") from error
    except (OSError, RuntimeError, ValueError) as error:  # such as a loop of links, or a NUL
        raise StoreFormatError(f"{str(path)!r} is not a path that a store can have: {error}") from error
    if not is_unicode(str(folder)):
        raise StoreFormatError(f"{str(folder)!r} is not a path that a store can have: it is not valid UTF-8")
    return folder


_HAS_FLOCK: Final = find_spec("fcntl") is not None
"""Windows has locks of bytes of a file instead."""


def run_exclusively(path: Path, work: Callable[[], T], *, wait: bool) -> T | None:
    """Do some work while holding a lock, or return None if another holds it and ``wait`` is False.

    The lock is the system's lock on an open file, which ends with the file or the process. It is no
    lock of SQLite's: a fork may come at any moment of a long work, and SQLite's mutexes and records of locks
    would then be left held in the child.

    Args:
        path: A file for the lock; created if missing.
        work: What to do.
        wait: Whether to wait until the lock is free.

    Raises:
        StoreBusyError: If a signal handler would wait for the thread that it interrupted.
    """
    own = threading.get_ident(), path
    with path.open("ab", buffering=0) as file:
        try:
            held = own in tuple(FORKS.locks.values())
            FORKS.locks[file] = own
            while not _set_lock(file, locked=True):
                if held and wait:
                    raise StoreBusyError(f"{path.parent}: this signal handler interrupted work on its files")
                if not wait:
                    return None
                time.sleep(0.005)
            return work()
        finally:
            FORKS.locks.pop(file, None)
            if not file.closed:  # as a child leaves it
                _set_lock(file, locked=False)  # a child forked before the file was in ``locks`` has it open


def _set_lock(file: FileIO, *, locked: bool) -> bool:
    """Take or release the lock on an open file, and return False if another holds it."""
    try:
        if _HAS_FLOCK:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if locked else fcntl.LOCK_UN)
        elif locked:  # it is released where the file is closed
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        return False
    return True


class Forks:
    """The current uses of connections in this process, and the databases that a child must close.

    Attributes:
        lock: Held while a use begins; new in each child.
        opening: Held while a child opens a store; new in each child.
        forking: The threads that are about to fork. A parent clears it after a fork by a call into C,
            because a signal that came during the fork raises in the first function written in Python.
        under_way: The thread, the database and the operation of each use, by token. A use ends with
            ``under_way.pop(token, None)``. That is a call into C, which a signal cannot interrupt halfway;
            it could interrupt a method written in Python.
        locks: The thread and the path of each lock that is held or awaited, by its open file. A child closes
            the files, because the locks would otherwise last as long as the child.
        databases: All that are open.
    """

    def __init__(self) -> None:
        self.locks: dict[FileIO, tuple[int, Path]] = {}
        self.lock, self.opening = Lock(), Lock()  # close() in a signal handler may need one of its thread
        self.forking: set[int] = set()
        self.under_way: dict[object, tuple[int, Database, str]] = {}
        self.databases: weakref.WeakSet[Database] = weakref.WeakSet()

    def enter(self, token: object, database: Database, operation: str) -> None:
        """Begin a use of connections, after waiting for a fork that is about to happen in another thread."""
        own = threading.get_ident()
        while True:
            with self.lock:
                if self.forking <= {own}:  # a signal handler may interrupt the fork of its own thread
                    self.under_way[token] = own, database, operation
                    return
            time.sleep(0.001)

    def before(self) -> None:
        """Block new uses of other threads, and wait until their uses end."""
        ends, own = time.monotonic() + PATIENCE_SECONDS, threading.get_ident()
        while time.monotonic() < ends:
            with self.lock:
                self.forking.add(own)  # again and again: another thread's fork clears it
                if all(thread == own for thread, *_ in tuple(self.under_way.values())):
                    return
            time.sleep(0.001)

    def leave(self) -> None:
        """Close inherited locks and connections in a child, except those of databases in a transaction."""
        self.lock, self.opening = Lock(), Lock()
        self.forking.clear()
        busy = {id(database) for _, database, _ in self.under_way.values()}
        inherited, self.databases = list(self.databases), weakref.WeakSet()
        self.under_way.clear()
        with contextlib.ExitStack() as each:  # the error of one must not leave the others open
            while self.locks:
                each.callback(self.locks.popitem()[0].close)
            for database in inherited:
                if id(database) not in busy:
                    each.callback(database.close_inherited)


FORKS: Final = Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORKS.before, after_in_parent=FORKS.forking.clear, after_in_child=FORKS.leave)

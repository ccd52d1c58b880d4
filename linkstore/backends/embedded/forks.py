"""Safe forks: a fork waits for transactions, and the child closes the connections that it inherits.

SQLite records in memory which locks the process holds on each file. A forked child inherits these records but
not the locks. So SQLite in the child believes that it holds locks which it does not hold, and the child's
writes can be lost when the parent closes (https://sqlite.org/howtocorrupt.html, section 2.6). The records
disappear once every inherited connection is closed, which is safe only between transactions.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from typing import Final, Protocol

PATIENCE_SECONDS: Final = 5.0
"""How long a fork waits for transactions of other threads."""


class Forkable(Protocol):
    """An object that has open connections."""

    def close_inherited(self) -> None:
        """Close all connections without touching files, in a child, between transactions."""
        ...


class Forks:
    """The current uses of connections in this process, and the databases that a child must close.

    Attributes:
        under_way: The thread and the database of each use, by token. A use ends with
            ``under_way.pop(token, None)``. That is a call into C, which a signal cannot interrupt halfway;
            it could interrupt a method written in Python.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # close() in a signal handler may need it in the same thread
        self._forking = 0
        self.under_way: dict[object, tuple[int, Forkable]] = {}
        self._open: weakref.WeakSet[Forkable] = weakref.WeakSet()

    def opened(self, database: Forkable) -> None:
        """Register a database that a child will have to close."""
        with self._lock:
            self._open.add(database)

    def enter(self, token: object, database: Forkable) -> None:
        """Begin a use of connections, after waiting for a fork that is about to happen."""
        while True:
            with self._lock:
                if not self._forking:
                    self.under_way[token] = threading.get_ident(), database
                    return
            time.sleep(0.001)

    def before(self) -> None:
        """Block new uses, and wait until the uses of other threads end."""
        with self._lock:
            self._forking += 1
        ends, own = time.monotonic() + PATIENCE_SECONDS, threading.get_ident()
        while time.monotonic() < ends:
            if all(thread == own for thread, _ in tuple(self.under_way.values())):
                return
            time.sleep(0.001)

    def in_parent(self) -> None:
        """Allow new uses again."""
        with self._lock:
            self._forking -= 1

    def in_child(self) -> None:
        """Close the inherited connections, except those of databases that were in a transaction."""
        self._lock = threading.RLock()
        self._forking = 0
        busy = {id(database) for _, database in self.under_way.values()}
        inherited, self._open = list(self._open), weakref.WeakSet()
        self.under_way.clear()
        with contextlib.ExitStack() as each:  # the error of one must not leave the others open
            for database in inherited:
                if id(database) not in busy:
                    each.callback(database.close_inherited)


FORKS: Final = Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORKS.before, after_in_parent=FORKS.in_parent, after_in_child=FORKS.in_child)

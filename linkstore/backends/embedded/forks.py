"""Forks wait for what is under way, and a child closes the connections it inherits.

SQLite notes for each file which locks the process holds on it. A forked child inherits the notes and not
the locks: what it then opens is believed to be locked and is not, so that its writes can be lost when the
parent closes (https://sqlite.org/howtocorrupt.html, section 2.6). The notes go when every inherited
connection is closed, which is safe between transactions only.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Final, Protocol

PATIENCE_SECONDS: Final = 5.0
"""How long a fork waits for transactions of other threads."""


class Forkable(Protocol):
    """What has connections open."""

    def close_inherited(self) -> None:
        """Close everything without touching files; called in a child, between transactions."""
        ...


class Forks:
    """What is under way in this process, and what a child must close.

    Attributes:
        under_way: By token the thread and the database of each use. A use ends by ``under_way.pop(token,
            None)``: a call into C, which a signal cannot interrupt halfway, as it could a method here.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forking = 0
        self.under_way: dict[object, tuple[int, Forkable]] = {}
        self._open: weakref.WeakSet[Forkable] = weakref.WeakSet()

    def opened(self, database: Forkable) -> None:
        """Note what a child will have to close."""
        with self._lock:
            self._open.add(database)

    def enter(self, token: object, database: Forkable) -> None:
        """Begin a use of connections, after any fork that is about to happen."""
        while True:
            with self._lock:
                if not self._forking:
                    self.under_way[token] = threading.get_ident(), database
                    return
            time.sleep(0.001)

    def before(self) -> None:
        """Hold new uses back and wait for those of other threads."""
        with self._lock:
            self._forking += 1
        ends, own = time.monotonic() + PATIENCE_SECONDS, threading.get_ident()
        while time.monotonic() < ends:
            if all(thread == own for thread, _ in tuple(self.under_way.values())):
                return
            time.sleep(0.001)

    def in_parent(self) -> None:
        """Go on."""
        with self._lock:
            self._forking -= 1

    def in_child(self) -> None:
        """Close what was inherited, but for databases that were in a transaction."""
        self._lock = threading.Lock()
        self._forking = 0
        busy = {id(database) for _, database in self.under_way.values()}
        inherited, self._open = list(self._open), weakref.WeakSet()
        self.under_way.clear()
        for database in inherited:
            if id(database) not in busy:
                database.close_inherited()


FORKS: Final = Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORKS.before, after_in_parent=FORKS.in_parent, after_in_child=FORKS.in_child)

"""The resources that a store has open in one process, and how a forked child replaces them."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from linkstore.backends.embedded.database import Database
from linkstore.backends.embedded.indexer import Indexer
from linkstore.backends.embedded.place import Place
from linkstore.backends.embedded.sharing import Shared
from linkstore.backends.embedded.snapshot import Builder, SnapshotFiles
from linkstore.backends.embedded.upkeep import Upkeep
from linkstore.backends.embedded.vocabulary import KnownFields
from linkstore.backends.embedded.writing import GroupKeys
from linkstore.errors import BackendError


@dataclass(frozen=True, slots=True)
class Opened:
    """Everything that a forked child must not use: connections, locks, memory that threads may be changing.

    Args:
        database: The SQLite file.
        upkeep: Maintains everything that is derived from it.
        groups: Cached keys of link groups.
        fields: Cached names of metadata fields.
    """

    database: Database
    upkeep: Upkeep
    groups: GroupKeys = field(default_factory=GroupKeys)
    fields: KnownFields = field(default_factory=KnownFields)

    @classmethod
    def at(
        cls,
        place: Place,
        *,
        durable: bool,
        exact_below: int,
        grow_share: float,
        told: Callable[[int], None] | None = None,
    ) -> Opened:
        """Open a store.

        Args:
            place: Where it lies.
            durable: As in ``EmbeddedSettings``, like the next two.
            exact_below: See there.
            grow_share: See there.
            told: See :class:`~linkstore.backends.embedded.ann.LiveIndex`; given in a process that only builds
                the index.
        """
        database = Database(place, durable=durable, indexes=told is not None)
        files = SnapshotFiles(place.folder)
        builder = Builder(files, told)
        shared = Shared(files, builder.live)
        settings = {"durable": durable, "exact_below": exact_below, "grow_share": grow_share}
        indexer = Indexer(place.folder, settings)
        return cls(database, Upkeep(database, files, builder, shared, indexer, exact_below, grow_share))


class PerProcess:
    """The open resources of each process that uses a store; a forked child opens its own at first use.

    Args:
        open: Opens the store.
    """

    def __init__(self, open: Callable[[], Opened]) -> None:
        self._open = open
        self._state = os.getpid(), open()  # one tuple, so that it is replaced atomically

    @property
    def is_ours(self) -> bool:
        """Whether this process has opened the store."""
        return self._state[0] == os.getpid()

    def get(self) -> Opened:
        """Return the open resources of this process."""
        pid, opened = self._state
        return opened if pid == os.getpid() else self._open_in_child()

    def _open_in_child(self) -> Opened:
        with _CHILD.lock:
            if not self.is_ours:
                inherited = self._state[1]
                if not inherited.database.left_to_parent:
                    raise BackendError(
                        f"{inherited.database.path}: this process was forked while a transaction was under"
                        " way; fork between uses of a store, or start processes by spawn or forkserver"
                    )
                # The child must not free the rest: a thread of the parent may have been changing it.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
                self._state = os.getpid(), self._open()
            return self._state[1]


class _Child:
    """The lock under which the threads of a child open stores; new in each child."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Make a new lock: a thread that held the old one at the fork does not exist here to release it."""
        self.lock = threading.Lock()


_CHILD = _Child()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CHILD.renew)

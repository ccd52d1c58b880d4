"""The write-ahead log of a store: kept short, and folded into the database between the writer's changes.

SQLite would do that in the commit that makes the log long enough: the writer would copy all pages and wait
for the disk once more. Here a thread does both while the writer prepares its next change. Nothing depends on
when that is: a checkpoint copies data that are safe already.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

import apsw

from linkstore.backends.embedded import connecting
from linkstore.backends.embedded.connecting import BUSY_SECONDS, patience
from linkstore.backends.embedded.place import Place
from linkstore.errors import BackendError

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
            emptied = self._empty(writer, patience(time.monotonic() + waits))
            self._limit = LOG_BYTES if emptied else size + LOG_BYTES // 4
        elif self._is_large(size) or _pages(writer) >= connecting.CHECKPOINT_PAGES:
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


def _pages(connection: apsw.Connection) -> int:
    """Return how many pages of the log are in use, or 0 if unknown, as during another's checkpoint."""
    try:
        return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]
    except apsw.Error:  # the change is committed, so it must not seem to have failed
        return 0

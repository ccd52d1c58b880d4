"""Writing in the background, one write after another, with reads that wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Carries out writes in one thread, in order, and knows those that are not done.

    A write that failed raises its error where it is waited for: by the next read of the same owner, by
    ``flush`` or by ``close``, once.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[str, list[Future[Any]]] = {}
        self._lock = threading.Lock()

    def submit(self, owner: str, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            kept = [one for one in self._pending.get(owner, ()) if not _succeeded(one)]
            self._pending[owner] = [*kept, future]
        return future

    def pending(self, owner: str | None = None) -> tuple[Future[Any], ...]:
        """The writes that are not known to have succeeded, of one owner or of all."""
        with self._lock:
            owners = list(self._pending) if owner is None else [owner]
            return tuple(future for one in owners for future in self._pending.get(one, ()))

    def settle(self, waited_for: Collection[Future[Any]]) -> None:
        """Drop writes that are done and whose result was seen."""
        with self._lock:
            for owner, futures in list(self._pending.items()):
                kept = [one for one in futures if one not in waited_for or not one.done()]
                if kept:
                    self._pending[owner] = kept
                else:
                    del self._pending[owner]

    def close(self) -> None:
        """Wait for all writes, and end the thread.

        Raises:
            Exception: The first that a write raised, if no read has raised it.
        """
        pending = self.pending()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
        self.settle(pending)
        for future in pending:
            future.result()


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None

"""Writing in the background, one write after another, with reads that wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import takewhile
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
        """Return the writes that are not known to have succeeded, of one owner or of all."""
        with self._lock:
            owners = list(self._pending) if owner is None else [owner]
            return tuple(future for one in owners for future in self._pending.get(one, ()))

    def settle(self, waited_for: Sequence[Future[Any]]) -> None:
        """Drop the writes whose result a waiter has seen: those up to the first that failed.

        Args:
            waited_for: In the order in which they were waited for.
        """
        seen = waited_for[: sum(1 for _ in takewhile(_succeeded, waited_for)) + 1]
        with self._lock:
            for owner, futures in list(self._pending.items()):
                kept = [one for one in futures if one not in seen or not one.done()]
                if kept:
                    self._pending[owner] = kept
                else:
                    del self._pending[owner]

    def close(self) -> None:
        """Wait for all writes, and end the thread.

        Raises:
            Exception: The first that a write raised, if no read has raised it; the others are its notes.
        """
        pending = self.pending()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
        with self._lock:
            self._pending.clear()
        errors = [error for one in pending if (error := _error_of(one)) is not None]
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"another write failed: {other}")
            raise errors[0]


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _error_of(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()

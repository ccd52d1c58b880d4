"""Writes in the background: one thread carries them out in order, and readers wait for those they need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import takewhile
from typing import Any, TypeVar

from linkstore.core.calls import Call, Lock

T = TypeVar("T")


class BackgroundWriter:
    """Carries out writes in one thread, in order, and knows those that are not done.

    A write that failed raises its error where it is waited for: by the next read of the same owner, by
    ``flush`` or by ``close``, once.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: list[tuple[str, Future[Any]]] = []
        self._lock = Lock()

    def submit(self, owner: str, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            kept = [pair for pair in self._pending if not _has_succeeded(pair[1])]
            self._pending = [*kept, (owner, future)]
        return future

    def pending(self, owner: str | None = None) -> tuple[Future[Any], ...]:
        """Return the writes that are not known to have succeeded, of one owner or of all."""
        return tuple(future for whose, future in self._pending if owner in {None, whose})

    def settle(self, waited_for: Sequence[Future[Any]]) -> None:
        """Drop the writes whose result a waiter has seen: those up to the first that failed.

        Args:
            waited_for: In the order in which they were waited for.
        """
        seen = waited_for[: sum(1 for _ in takewhile(_has_succeeded, waited_for)) + 1]
        with self._lock:
            self._pending = [pair for pair in self._pending if pair[1] not in seen or not pair[1].done()]

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
            self._pending = []
        errors = [CancelledError() if one.cancelled() else one.exception() for one in pending]
        failed = [error for error in errors if error is not None]
        if failed:
            for other in failed[1:]:
                failed[0].add_note(f"another write failed: {other}")
            raise failed[0]


def _has_succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def request_writes(futures: Sequence[Future[Any]]) -> Call:
    """Request a wait for writes in the background, which raises what one of them raised."""
    return Call(_wait_for_writes, _await_writes, (futures,))


def _wait_for_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    return [future.result() for future in futures]


async def _await_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return [await asyncio.shield(asyncio.wrap_future(future)) for future in futures]

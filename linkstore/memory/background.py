"""Writes in the background: one thread carries them out in order, and whoever reads waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from linkstore.core.calls import Call
from linkstore.core.plans import Operation
from linkstore.core.processes import Lock

T = TypeVar("T")


class BackgroundWriter:
    """Carries out writes in one thread, in order, and knows those that are not done or have failed."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Future[Any], None] = {}
        self._lock = Lock()

    def submit(self, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            self._pending[future] = None
        future.add_done_callback(self._drop_succeeded)
        return future

    def _drop_succeeded(self, future: Future[Any]) -> None:
        if future.cancelled() or future.exception() is None:
            self._pending.pop(future, None)

    def wait(self) -> Operation[None]:
        """Wait for all writes. One that failed raises its error, once; another call goes on after it."""
        for future in list(self._pending):
            try:
                yield Call(future.result, partial(_await_write, future))
            finally:
                if future.done():
                    self._pending.pop(future, None)

    def close(self) -> None:
        """Carry out all writes, and end the thread."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)


async def _await_write(future: Future[T]) -> T:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return await asyncio.shield(asyncio.wrap_future(future))

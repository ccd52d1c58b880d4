"""Python's cyclic garbage collector, held off while many objects are made that live on."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """How many pauses each thread has in force, and whether the collector was on before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_thread: Counter[int] = Counter()
        self._was_on = False

    def begin(self, thread: int) -> None:
        """Turn the collector off; the first pause remembers whether it was on."""
        with self._lock:
            if not self._of_thread:
                self._was_on = gc.isenabled()
            self._of_thread[thread] += 1
            gc.disable()

    def end(self, thread: int) -> None:
        """Turn the collector on again if this was the last pause and it was on before the first."""
        with self._lock:
            self._of_thread[thread] -= 1
            if self._of_thread[thread] <= 0:
                del self._of_thread[thread]
            self._resume()

    def forked(self) -> None:
        """In a child: the pauses of other threads are over, since those threads are not there."""
        self._lock = threading.Lock()
        own = threading.get_ident()
        paused = bool(self._of_thread)
        self._of_thread = Counter({own: self._of_thread[own]} if self._of_thread[own] else {})
        if paused:
            self._resume()

    def _resume(self) -> None:
        if self._was_on and not self._of_thread:
            gc.enable()


_PAUSES = _Pauses()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PAUSES.forked)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Hold the collector off for the length of a block that waits for nobody.

    Reading 10,000 documents makes 100,000 links and no cycle; the collector would look at all of
    them, and at everything else in the process, again and again: a third of the time of a bulk load.
    """
    thread = threading.get_ident()
    _PAUSES.begin(thread)
    try:
        yield
    finally:
        _PAUSES.end(thread)

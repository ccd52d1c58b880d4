"""What a process may use: its cores, locks, and how often the garbage collector runs."""

from __future__ import annotations

import gc
import os
import sys
from _thread import RLock
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_RARE_THRESHOLD: Final = 20_000
"""Surplus of created over freed objects at which a collection begins; Python's default is 700."""


def count_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if sys.version_info < (3, 14):
    Lock = RLock
else:

    class Lock(RLock):  # type: ignore[misc]
        """A reentrant lock that no interrupt leaves held.

        Python looks for signals after ``__enter__`` of a lock has run and before the block that would release
        it, from 3.14 on; so an interrupt there leaves a lock of ``threading`` held. It does not when a
        function returns.
        """

        def __enter__(self) -> bool:  # type: ignore[override]
            try:
                return self.acquire()
            except BaseException:
                with suppress(RuntimeError):  # interrupted while it waited
                    self.release()
                raise


_USES: Final[set[object]] = set()
_ORDINARY: Final[list[int]] = []
"""The thresholds of the collector before the first of these uses."""


@contextmanager
def infrequent_gc() -> Iterator[None]:
    """Run the collector less often, in all threads, while a command or work on many objects is under way.

    A command imports some 600 modules, of which nothing is garbage. With Python's thresholds the collector
    would look through all of them, for a sixth of the time of a query. Work on documents makes many objects
    that live until they are stored, and hardly a cycle. It waits for no lock, so an interrupt, a fork, or two
    threads at the same moment can at worst leave the collector fast, or slow until the next use ends.
    """
    use = object()
    try:
        _USES.add(use)
        first, *others = before = gc.get_threshold()
        if 0 < first < _RARE_THRESHOLD:
            _ORDINARY[:] = before
            gc.set_threshold(_RARE_THRESHOLD, *others)
        yield
    finally:
        _USES.discard(use)
        if not _USES and _ORDINARY and gc.get_threshold()[0] == _RARE_THRESHOLD:
            gc.set_threshold(*_ORDINARY)

"""What a process may use: its cores, and pauses of the garbage collector.

The collector is paused, or made rare, while many long-lived objects are created.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias, TypeVar

from linkstore.core.calls import Lock

T = TypeVar("T")
_Token: TypeAlias = tuple[int, object]
_Call: TypeAlias = Callable[[], object]
_RARE_THRESHOLD: Final = 20_000
"""Surplus of created over freed objects at which a collection begins; Python's default is 700."""


def count_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _CollectorChange:
    """Counts the uses of a change to the collector, by thread: the first makes it, the last to end undoes it.

    An interrupt between any two steps leaves the collector as it was, or changed until the next use ends.

    Args:
        plan: Gives the calls that make the change and undo it, None if it is made already, or its owner has
            done more.
    """

    def __init__(self, plan: Callable[[], tuple[_Call, _Call] | None]) -> None:
        self._plan = plan
        self._undo: _Call | None = None
        self._lock = Lock()
        self.tokens: set[_Token] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset_after_fork)

    def begin(self, token: _Token) -> None:
        """Change the collector if it is not changed yet."""
        with self._lock:
            self.tokens.add(token)
            if (planned := self._plan()) is not None:
                change, self._undo = planned
                change()

    def resume(self) -> None:
        """Undo the change if no use is left."""
        with self._lock:
            if not self.tokens and self._undo is not None:
                self._undo()
                self._undo = None

    def _reset_after_fork(self) -> None:
        """End the uses of other threads in a forked child, because these threads do not exist there."""
        self._lock = Lock()
        own = threading.get_ident()
        self.tokens = {token for token in self.tokens if token[0] == own}
        self.resume()


def _plan_pause() -> tuple[_Call, _Call] | None:
    return (gc.disable, gc.enable) if gc.isenabled() else None


def _plan_rarity() -> tuple[_Call, _Call] | None:
    first, *others = before = gc.get_threshold()
    if not 0 < first < _RARE_THRESHOLD:
        return None
    return partial(gc.set_threshold, _RARE_THRESHOLD, *others), partial(gc.set_threshold, *before)


_COLLECTOR_PAUSE = _CollectorChange(_plan_pause)
_COLLECTOR_THRESHOLD = _CollectorChange(_plan_rarity)


def run_without_collector(work: Callable[[], T]) -> T:
    """Do some work that waits for nothing, with the collector paused, and return its result.

    Reading 10,000 documents makes 100,000 links and no cycle. The collector would look at all of
    them, and at everything else in the process, again and again: a third of the time of a bulk load.

    Args:
        work: What to do.
    """
    token = (threading.get_ident(), object())
    try:
        _COLLECTOR_PAUSE.begin(token)
        return work()
    finally:
        _COLLECTOR_PAUSE.tokens.discard(token)  # a call into C, which no signal can precede
        _COLLECTOR_PAUSE.resume()


@contextmanager
def slow_collector() -> Iterator[None]:
    """Run the collector less often, in all threads, while a command or a long run is under way.

    A command imports some 600 modules, of which nothing is garbage. With Python's thresholds the collector
    would look through all of them, for a sixth of the time of a query. A run that indexes pages makes many
    objects that live until they are stored, and hardly a cycle.
    """
    token = (threading.get_ident(), object())
    try:
        _COLLECTOR_THRESHOLD.begin(token)
        yield
    finally:
        _COLLECTOR_THRESHOLD.tokens.discard(token)
        _COLLECTOR_THRESHOLD.resume()

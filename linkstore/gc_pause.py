"""Pauses Python's cyclic garbage collector, or makes it rare, while many long-lived objects are created."""

from __future__ import annotations

import gc
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_Token: TypeAlias = tuple[int, object]
_RARE: Final = 20_000
"""Surplus of created over freed objects at which a collection begins; Python's default is 700."""


class _InForce(ABC):
    """Counts the uses of a change to the collector, by thread: the first makes it, the last to end undoes it.

    An interrupt between any two steps leaves the collector as it was, or changed until the next use ends.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.tokens: set[_Token] = set()

    def begin(self, token: _Token) -> None:
        """Change the collector if it is not changed yet."""
        with self._lock:
            self.tokens.add(token)
            self._change()

    def resume(self) -> None:
        """Undo the change if no use is left."""
        with self._lock:
            if not self.tokens:
                self._undo()

    def forked(self) -> None:
        """End the uses of other threads in a forked child, because these threads do not exist there."""
        self._lock = threading.RLock()
        own = threading.get_ident()
        self.tokens = {token for token in self.tokens if token[0] == own}
        self.resume()

    @abstractmethod
    def _change(self) -> None:
        """Change the collector, unless that is done already or its owner has done more."""

    @abstractmethod
    def _undo(self) -> None:
        """Set the collector as it was before, if :meth:`_change` changed it."""


class _Pauses(_InForce):
    """The collector is off."""

    def __init__(self) -> None:
        super().__init__()
        self._turned_off = False

    def _change(self) -> None:
        if gc.isenabled():
            self._turned_off = True
            gc.disable()

    def _undo(self) -> None:
        if self._turned_off:
            gc.enable()
            self._turned_off = False


class _Rarity(_InForce):
    """The collector runs seldom."""

    def __init__(self) -> None:
        super().__init__()
        self._before: tuple[int, int, int] | None = None

    def _change(self) -> None:
        before = gc.get_threshold()
        if 0 < before[0] < _RARE:
            self._before = before
            gc.set_threshold(_RARE, *before[1:])

    def _undo(self) -> None:
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None


_PAUSES = _Pauses()
_RARITY = _Rarity()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PAUSES.forked)
    os.register_at_fork(after_in_child=_RARITY.forked)


def collection_paused(work: Callable[[], T]) -> T:
    """Do some work that waits for nothing, with the collector paused, and return its result.

    Reading 10,000 documents makes 100,000 links and no cycle. The collector would look at all of
    them, and at everything else in the process, again and again: a third of the time of a bulk load.

    Args:
        work: What to do.
    """
    token = (threading.get_ident(), object())
    try:
        _PAUSES.begin(token)
        return work()
    finally:
        _PAUSES.tokens.discard(token)  # a call into C, which no signal can precede
        _PAUSES.resume()


@contextmanager
def collections_rare() -> Iterator[None]:
    """Run the collector less often, in all threads, while a command or a long run is under way.

    A command imports some 600 modules, of which nothing is garbage. With Python's thresholds the collector
    would look through all of them, for a sixth of the time of a query. A run that indexes pages makes many
    objects that live until they are stored, and hardly a cycle.
    """
    token = (threading.get_ident(), object())
    try:
        _RARITY.begin(token)
        yield
    finally:
        _RARITY.tokens.discard(token)
        _RARITY.resume()

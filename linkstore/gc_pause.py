"""Pauses Python's cyclic garbage collector while many long-lived objects are created."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
_Token: TypeAlias = tuple[int, object]
_RARE: Final = 20_000
"""Surplus of created over freed objects at which a collection begins; Python's default is 700."""


class _Pauses:
    """The pauses in force, by thread, and whether it is they that turned the collector off.

    An interrupt between any two steps leaves the collector on, or off until the next pause ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turned_off = False
        self.tokens: set[_Token] = set()

    def begin(self, token: _Token) -> None:
        """Turn the collector off."""
        with self._lock:
            self.tokens.add(token)
            if gc.isenabled():
                self._turned_off = True
                gc.disable()

    def resume(self) -> None:
        """Turn the collector on if no pause is left, unless it was off before the first."""
        with self._lock:
            if self._turned_off and not self.tokens:
                gc.enable()
                self._turned_off = False

    def forked(self) -> None:
        """End the pauses of other threads in a forked child, because these threads do not exist there."""
        self._lock = threading.Lock()
        own = threading.get_ident()
        self.tokens = {token for token in self.tokens if token[0] == own}
        self.resume()


_PAUSES = _Pauses()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PAUSES.forked)


def collection_paused(work: Callable[[], T]) -> T:
    """Do some work that waits for nobody, with the collector held off.

    Reading 10,000 documents makes 100,000 links and no cycle; the collector would look at all of
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
    """Run the collector less often while a command runs.

    A command imports some 600 modules, of which nothing is garbage; with Python's thresholds the collector
    would look through all of them, for a sixth of the time of a query.
    """
    before = gc.get_threshold()
    gc.set_threshold(_RARE, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)

"""The timestamps of writes."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

_STEP: Final = 4
_SPREAD: Final = 1 << 14
"""Steps, 65 ms in all, over which clients spread that have to be later than one and the same timestamp."""


class Clock:
    """Microseconds since 1970, each given once: of two writes of a process the later has the higher one.

    No two clients should write one document in the same microsecond: of such writes each column is of one or
    the other, and ``verify`` finds what does not fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self, after: int = 0) -> int:
        """The timestamp of one write.

        Args:
            after: It is later than what was read, whoever's clock was ahead when that was written. Between
                the two is room for a relink of what was read. How much later is random, for else all who read
                the same would write at the same microsecond.
        """
        with self._lock:
            time_of_day = time.time_ns() // 1000
            if after >= time_of_day:
                after += _STEP * secrets.randbelow(_SPREAD)
            self._last = max(self._last + _STEP, after + _STEP, time_of_day)
            return self._last

    def past(self, moment: int) -> int:
        """A timestamp later than a moment that may lie ahead; those that come next are not moved there."""
        return moment + _STEP * (1 + secrets.randbelow(_SPREAD))

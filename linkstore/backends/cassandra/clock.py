"""The timestamps of writes."""

from __future__ import annotations

import threading
import time
from typing import Final

_STEP: Final = 4


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
                the two is room for a relink of what was read.
        """
        with self._lock:
            self._last = max(self._last + _STEP, after + _STEP, time.time_ns() // 1000)
            return self._last

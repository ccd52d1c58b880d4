"""The timestamps of writes."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

_STEP: Final = 4
_SPREAD: Final = 1 << 14
"""Clients that must write later than the same timestamp spread over this many steps, 65 ms in all."""


class Clock:
    """Unique timestamps in microseconds since 1970; a later write of a process has a higher timestamp.

    Two clients should not write the same document in the same microsecond. If they do, each column comes from
    one write or the other, and ``verify`` finds rows that do not fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self, after: int = 0) -> int:
        """The timestamp of one write.

        Args:
            after: A timestamp that was read. The result is later, even if the clock of its writer was ahead,
                and leaves room for a relink in between. How much later is random; otherwise all clients that
                read the same timestamp would write in the same microsecond.
        """
        with self._lock:
            time_of_day = time.time_ns() // 1000
            if after >= time_of_day:
                after += _STEP * secrets.randbelow(_SPREAD)
            self._last = max(self._last + _STEP, after + _STEP, time_of_day)
            return self._last

    def past(self, moment: int) -> int:
        """A timestamp later than ``moment``, which may be in the future; does not affect later timestamps."""
        return moment + _STEP * (1 + secrets.randbelow(_SPREAD))

"""The timestamps of writes."""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

_ROOM: Final = 100
"""Microseconds left after a timestamp that was read, for links that are replaced in that version."""
_SPREAD: Final = 1_000
"""Clients that must write later than the same timestamp spread over so many microseconds."""


class Clock:
    """Timestamps in microseconds since 1970: the time of day, or directly after what a write replaces.

    So timestamps do not run ahead of the fastest clock of a client: each change of a document adds at most a
    millisecond to what it replaces, and takes longer than that. Two clients should not write the same
    document in the same microsecond. If they do, each column comes from one write or the other, and
    ``verify`` finds rows that do not fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self, after: int = 0) -> int:
        """Return the timestamp of one write, later than all that this clock took from the time of day.

        Args:
            after: The latest timestamp of what the write replaces. The result is later, even if the clock of
                its writer was ahead. How much later is random. Otherwise all clients that read the same
                timestamp would write in the same microsecond.
        """
        with self._lock:
            self._last = max(self._last + 1, self.time_of_day())
            now = self._last
        return now if now > after + _ROOM else after + _ROOM + secrets.randbelow(_SPREAD)

    def time_of_day(self) -> int:
        """Return the time on the clock of this machine, in microseconds since 1970."""
        return time.time_ns() // 1000

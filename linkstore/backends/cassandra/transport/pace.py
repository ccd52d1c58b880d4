"""The number of concurrent statements, and the time between attempts."""

from __future__ import annotations

import random
from typing import Final

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY: Final = 60.0


class Pace:
    """The maximum number of concurrent statements: halved by overload, recovers within a minute.

    The operations of a store share it, so an overload slows down later operations too. Threads may call it
    without a lock. At worst, one of two simultaneous halvings is lost.

    Args:
        top: The maximum without overload.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._eased = (float(top), 0.0)

    def limit(self, now: float) -> int:
        """Return the maximum number of concurrent statements at time ``now`` in seconds, at least 1."""
        level, since = self._eased
        return max(1, min(self._top, int(level + self._top * (now - since) / _RECOVERY)))

    def ease(self, started: float, now: float) -> None:
        """Halve the maximum after an overload, unless the statement started before the last halving."""
        if started >= self._eased[1]:
            self._eased = (max(1.0, self.limit(now) / 2), now)


def wait_before(tries: int) -> float:
    """Return the seconds to wait after ``tries`` failures: 0.05 doubled each time up to 2, half of it random.

    The random part keeps clients that failed together from coming back together (M. Brooker,
    Exponential Backoff And Jitter, AWS Architecture Blog, 2015: "equal jitter").
    """
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

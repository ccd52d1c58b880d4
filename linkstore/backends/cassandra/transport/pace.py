"""How many statements at once, and how long to wait before the next try."""

from __future__ import annotations

import random
from typing import Final

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY: Final = 60.0


class Pace:
    """The number of statements under way at once: halved by overload, back to the top within a minute.

    Shared by the operations of a store, so that what one of them learnt of the server serves the next.
    Threads may call it without a lock: at worst, one of two halvings at the same moment is lost.

    Args:
        top: The number while all goes well.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._eased = (float(top), 0.0)

    def limit(self, now: float) -> int:
        """How many statements may be under way at ``now``, a time in seconds; at least 1."""
        level, since = self._eased
        return max(1, min(self._top, int(level + self._top * (now - since) / _RECOVERY)))

    def ease(self, started: float, now: float) -> None:
        """Halve it for a statement that met overload; those started before the last halving don't count."""
        if started >= self._eased[1]:
            self._eased = (max(1.0, self.limit(now) / 2), now)


def wait_before(tries: int) -> float:
    """Seconds to wait after ``tries`` failures: 0.05 doubled each time up to 2, half of it random.

    The random part keeps clients that failed together from coming back together (M. Brooker,
    Exponential Backoff And Jitter, AWS Architecture Blog, 2015: "equal jitter").
    """
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

"""Repeats a change while a store is busy, or no server answers: changes name ids, so they can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from time import monotonic, sleep
from typing import Final, TypeVar

from linkstore.errors import StoreBusyError, StoreUnavailableError

T = TypeVar("T")
PATIENCE: Final = 300.0
"""Seconds for which those that write at the same time wait for each other, or for a server."""
_LONGEST_PAUSE: Final = 10.0


def retry(attempt: Callable[[], T], patience: float = PATIENCE) -> T:
    """Return what an attempt returns, which is repeated for so many seconds.

    Raises:
        StoreBusyError: If others write for longer.
        StoreUnavailableError: If no server answers for longer.
    """
    end, pause = monotonic() + patience, 0.1
    while True:
        try:
            return attempt()
        except (StoreBusyError, StoreUnavailableError):
            if monotonic() + pause > end:
                raise
        sleep(uniform(0.5, 1) * pause)  # noqa: S311 - so that not all come back at once
        pause = min(2 * pause, _LONGEST_PAUSE)

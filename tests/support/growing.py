"""Whether work grows with its length, on machines that are busy with something else too."""

from __future__ import annotations

import time
from collections.abc import Callable

ROUNDS = 5


def grows_with_length(work: Callable[[int], object], short: int, times: int = 16) -> bool:
    """Whether so many times the length takes about as many times as long, rather than its square.

    One good round is enough: another process slows some of them, quadratic work is slow in every one.

    Args:
        work: Does what is measured, for a length.
        short: The length it is compared with.
        times: How much longer the long one is.
    """

    def seconds(length: int) -> float:
        started = time.process_time()
        work(length)
        return time.process_time() - started

    seconds(short)  # what only the first time takes
    return any(seconds(short * times) < 4 * times * max(seconds(short), 1e-3) for _ in range(ROUNDS))

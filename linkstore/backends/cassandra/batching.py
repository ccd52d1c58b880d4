"""Groups rows into batches of a few sizes (each needs a prepared statement), small enough for the server.

A batch of several partitions may have ten of them and 5 KiB; one of a single partition is one write to the
server, and may have any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, TypeVar

BATCH_BYTES: Final = 4_500
"""A batch of more than 5 KiB makes the server warn."""
ROW_BYTES: Final = 60
"""What the server counts for a row beyond its values."""
Row = TypeVar("Row", bound=tuple[Any, ...])


def batches(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[Sequence[Row]]:
    """Rows in batches of any partitions: so many, or so many bytes.

    Args:
        rows: In any order, which is kept. A tuple among the values of a row is a row of its own.
        sizes: Of batches, descending to 1.
    """
    ends = list(accumulate(map(_bytes, rows), initial=0))
    start = 0
    while start < len(rows):
        fitting = (
            count
            for count in sizes
            if start + count < len(ends) and ends[start + count] - ends[start] <= BATCH_BYTES
        )
        count = next(fitting, 1)
        yield rows[start : start + count]
        start += count


def _bytes(row: tuple[Any, ...]) -> int:
    return sum(map(_value_bytes, row)) + ROW_BYTES


def _value_bytes(value: object) -> int:
    if isinstance(value, tuple):
        return _bytes(value)
    return len(value) if isinstance(value, str | bytes) else 8

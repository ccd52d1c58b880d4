"""Groups rows into batches that the server accepts.

The number of rows is one of a few sizes, because each size needs a prepared statement. The server warns about
a batch with more than ten partitions or 5 KiB. A batch within one partition is a single write, and may have
any number of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final, TypeVar

from linkstore.backends.cassandra.transport.requests import Statement

BATCH_BYTES: Final = 4_500
"""The server warns about batches of more than 5 KiB."""
ROW_BYTES: Final = 60
"""Bytes that the server counts for a row in addition to its values."""
_LONG: Final = struct.Struct(">q")
_TEXTS: Final = (str, bytes)
Row = TypeVar("Row", bound=tuple[Any, ...])


def batches(rows: Sequence[Row], sizes: Sequence[int]) -> Iterator[Sequence[Row]]:
    """Split rows into batches, limited by number of rows and by bytes.

    Args:
        rows: The rows, whose order is kept. A tuple among the values of a row counts as another row.
        sizes: Numbers of rows that a batch may have, descending to 1.
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


def packed_batch(
    text: str, at: int, rows: Iterable[Iterable[bytes | None]], routing: bytes | None
) -> Statement:
    """Return the statement of a batch whose values are packed.

    Args:
        text: A batch with one timestamp.
        at: The timestamp.
        rows: The values of each row.
        routing: The routing key.
    """
    values = [_LONG.pack(at), *chain.from_iterable(rows)]
    return Statement(cql=text, values=values, packed=True, level="write", routing=routing)


def _bytes(row: tuple[Any, ...]) -> int:
    return ROW_BYTES + sum(
        [len(value) if isinstance(value, _TEXTS) else _other_bytes(value) for value in row]  # called often
    )


def _other_bytes(value: object) -> int:
    return _bytes(value) if isinstance(value, tuple) else 8

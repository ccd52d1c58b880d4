"""Vectors in a file, row by row, for scoring without reading SQLite.

A file only grows, so new rows do not affect a reader that has mapped the first ones. The database has a
hash of each block of rows; the last block may be short.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.files import raise_if_short, sync
from linkstore.vectors import Floats

BLOCK_ROWS: Final = 4096


def write_rows(path: Path, rows: Callable[[int, int], Floats], start: int, stop: int) -> list[str]:
    """Write rows ``start`` to ``stop`` durably, and return the hashes of blocks from ``start``'s block on.

    Args:
        path: The file; created anew if ``start`` is 0.
        rows: Returns the rows between two numbers; called for each block from that of ``start`` on.
        start: How many rows the file already has.
        stop: How many rows the file has afterwards.
    """
    size = path.stat().st_size if start else 0
    try:
        digests = _write(path, rows, start, stop)
    except BaseException:
        with contextlib.suppress(OSError):  # the space may be needed for documents
            os.truncate(path, size)
        raise
    if not start:
        sync(path.parent)
    return digests


def _write(path: Path, rows: Callable[[int, int], Floats], start: int, stop: int) -> list[str]:
    digests = []
    with path.open("r+b" if start else "w+b") as file:
        for first in range(start // BLOCK_ROWS * BLOCK_ROWS, stop, BLOCK_ROWS):
            block = np.ascontiguousarray(rows(first, min(first + BLOCK_ROWS, stop)))
            digests.append(_digest(block))
            fresh = block[max(start - first, 0) :]
            file.seek((first + len(block) - len(fresh)) * block.shape[1] * block.itemsize)
            file.write(fresh.data)
        file.flush()
        os.fsync(file.fileno())
    return digests


def map_rows(path: Path, rows: int, dimension: int, digests: Sequence[str]) -> Floats | None:
    """Return the first rows as a read-only memory map, or None if the file does not match the hashes."""
    try:
        if not rows or path.stat().st_size < rows * dimension * 4:
            return None
        matrix = np.memmap(path, np.float32, "r", 0, (rows, dimension)).view(np.ndarray)
    except OSError as error:
        raise_if_short(error)
        return None
    starts = range(0, rows, BLOCK_ROWS)
    sound = len(starts) == len(digests) and all(
        _digest(matrix[s : s + BLOCK_ROWS]) == d for s, d in zip(starts, digests, strict=True)
    )
    return matrix if sound else None


def _digest(block: Array) -> str:
    return xxhash.xxh3_64_hexdigest(np.ascontiguousarray(block).data)

"""All vectors in one file, row by document key, for scoring without reading SQLite.

The file only grows: a reader that mapped its first rows is not disturbed by new ones. It is sealed
in blocks; each full block has a hash in the database. Rows past the last sealed block are taken
from SQLite.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.files import sync_folder
from linkstore.vectors import Floats

BLOCK_ROWS: Final = 4096


def sealed_rows(rows: int) -> int:
    """How many of ``rows`` rows lie in full blocks."""
    return rows // BLOCK_ROWS * BLOCK_ROWS


def append_blocks(path: Path, first_row: int, rows: Floats) -> list[str]:
    """Write full blocks from ``first_row`` on, durably; returns their hashes.

    Args:
        path: The file; made if missing, cut to ``first_row`` rows if longer.
        first_row: A multiple of the block size: how many rows lie in the file already.
        rows: (m, d) with m a multiple of the block size.
    """
    stride = rows.shape[1] * rows.itemsize
    created = not path.exists()
    with path.open("r+b" if not created else "w+b") as file:
        file.seek(first_row * stride)
        file.write(np.ascontiguousarray(rows).data)
        file.flush()
        os.fsync(file.fileno())
    if created:
        sync_folder(path.parent)
    return [_digest(rows[start : start + BLOCK_ROWS]) for start in range(0, len(rows), BLOCK_ROWS)]


def map_sealed(path: Path, dimension: int, digests: Sequence[str]) -> Floats | None:
    """The sealed rows as a read-only map; None when the file does not match the hashes."""
    rows = len(digests) * BLOCK_ROWS
    try:
        if not rows or path.stat().st_size < rows * dimension * 4:
            return None
        matrix = np.memmap(path, np.float32, "r", 0, (rows, dimension)).view(np.ndarray)
    except OSError:
        return None
    starts = range(0, rows, BLOCK_ROWS)
    sound = all(_digest(matrix[s : s + BLOCK_ROWS]) == d for s, d in zip(starts, digests, strict=True))
    return matrix if sound else None


def _digest(block: Array) -> str:
    return xxhash.xxh3_64_hexdigest(np.ascontiguousarray(block).data)

"""Vectors less their mean, as the approximate index holds them, and that mean in the index's file.

Vectors of texts have a part in common, whatever the texts are about. A graph of neighbours then leads into
the largest subject of a store, and past documents of a small one, even for questions that these answer.
Without that part, subjects lie in different directions. ``benchmarks/among.py`` shows what is found.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from linkstore.vectors import Floats

ASKED_SHARE: Final = 0.3
"""How much of the mean is subtracted from a question. With all of it, the order differs too much from that by
similarity; in 100,000 pieces of text, 0.3 found the most, and 0.5 nearly as much."""
_MAGIC: Final = b"centre01"


def centred(vectors: Floats, centre: Floats) -> Floats:
    """Vectors less ``centre``, scaled to unit length; a vector that equals it becomes zero.

    Args:
        vectors: One unit vector or several.
        centre: Of the same dimension.
    """
    moved = vectors - centre
    lengths = np.sqrt(np.vecdot(moved, moved))[..., None]
    units: Floats = np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 0)
    return units


def append_centre(path: Path, centre: Floats) -> None:
    """Write the mean behind an index that usearch saved; usearch does not read what follows its data."""
    with path.open("ab") as file:
        file.write(centre.astype("<f4").tobytes() + _MAGIC)


def read_centre(path: Path, dimension: int) -> Floats | None:
    """The mean behind an index; None if there is none."""
    tail = tail_bytes(dimension)
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - tail))
        found = file.read()
    if len(found) != tail or not found.endswith(_MAGIC):
        return None
    centre: Floats = np.frombuffer(found, "<f4", dimension).astype(np.float32)
    return centre


def tail_bytes(dimension: int) -> int:
    """How many bytes :func:`append_centre` writes."""
    return 4 * dimension + len(_MAGIC)

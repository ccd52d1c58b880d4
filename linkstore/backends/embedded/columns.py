"""Growing columns: an immutable base, mostly memory-mapped, and a tail in memory.

Columns only grow. A reader that knows how many rows it may see can use one while another thread
appends to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstore.vectors import Ints

Array = npt.NDArray[Any]


class Column:
    """A numpy column of rows of one shape and type.

    Args:
        base: (n, …) its first rows; may be a memory map.
    """

    def __init__(self, base: Array) -> None:
        tail: Array = np.empty((0, *base.shape[1:]), dtype=base.dtype)
        self._state = base, tail, 0  # one tuple, so that a reader never sees half an exchange

    def __len__(self) -> int:
        base, _, size = self._state
        return len(base) + size

    def append(self, rows: Array) -> None:
        """Add rows at the end; amortised cost of the rows alone."""
        base, tail, size = self._state
        needed = size + len(rows)
        if needed > len(tail):
            grown = np.empty((max(needed, 2 * len(tail), 64), *rows.shape[1:]), base.dtype)
            grown[:size] = tail[:size]
            tail = grown
        tail[size:needed] = rows
        self._state = base, tail, needed

    def take(self, at: Ints) -> Array:
        """The rows at the given positions, as a copy."""
        base, tail, _ = self._state
        if not len(at):
            return np.empty((0, *base.shape[1:]), base.dtype)
        if not len(base):
            return tail[at]
        if not len(tail) or at.max() < len(base):
            return base[at]
        rows = np.empty((len(at), *base.shape[1:]), dtype=base.dtype)
        early = at < len(base)
        rows[early] = base[at[early]]
        rows[~early] = tail[at[~early] - len(base)]
        return rows

    def parts(self, start: int, stop: int) -> list[Array]:
        """Rows ``start`` to ``stop``, as one or two views."""
        base, tail, _ = self._state
        split = len(base)
        views = [
            base[start : min(stop, split)],
            tail[max(start - split, 0) : max(stop - split, 0)],
        ]
        return [view for view in views if len(view)]

    def rows(self, start: int, stop: int) -> Array:
        """Rows ``start`` to ``stop``."""
        views = self.parts(start, stop)
        if len(views) == 1:
            return views[0]
        return np.concatenate(views) if views else self._state[0][:0]

    def put(self, at: Ints, values: Ints | int) -> None:
        """Set rows in place, to one value or one each; the base must be in memory."""
        base, tail, _ = self._state
        early = at < len(base)
        given = np.broadcast_to(values, at.shape)
        base[at[early]] = given[early]
        tail[at[~early] - len(base)] = given[~early]

    def rebase(self, base: Array) -> None:
        """Replace the first ``len(base)`` rows by an equal array, freeing the memory of the old."""
        kept = np.array(self.rows(len(base), len(self)))
        self._state = base, kept, len(kept)


class Names:
    """A column of strings, packed as UTF-8.

    Args:
        offsets: (n + 1,) where each string starts in ``blob``.
        blob: Their bytes, one after another.
    """

    def __init__(self, offsets: Array, blob: Array) -> None:
        self._offsets = offsets
        self._blob = blob
        self._tail: list[str] = []

    def __len__(self) -> int:
        return len(self._offsets) - 1 + len(self._tail)

    def append(self, names: Sequence[str]) -> None:
        """Add strings at the end."""
        self._tail.extend(names)

    def take(self, at: Ints) -> list[str]:
        """The strings at the given positions."""
        split = len(self._offsets) - 1
        if not split:
            return [self._tail[i] for i in at.tolist()]
        if not len(at):
            return []
        early = np.minimum(at, split - 1)
        starts, stops = self._offsets[early].tolist(), self._offsets[early + 1].tolist()
        blob = self._blob.data
        return [
            str(blob[start:stop], "utf-8") if i < split else self._tail[i - split]
            for i, start, stop in zip(at.tolist(), starts, stops, strict=True)
        ]

    def packed(self, count: int) -> tuple[Array, Array]:
        """The first ``count`` strings, at least those of the base, as offsets and blob."""
        tail = [name.encode() for name in self._tail[: count - len(self._offsets) + 1]]
        lengths = np.fromiter(map(len, tail), dtype=np.int64, count=len(tail))
        offsets = np.concatenate((self._offsets, self._offsets[-1] + np.cumsum(lengths)))
        return offsets, np.concatenate((self._blob, np.frombuffer(b"".join(tail), dtype=np.uint8)))

    def rebase(self, offsets: Array, blob: Array) -> None:
        """Replace the first strings by an equal packed form, freeing the memory of the old."""
        covered = len(offsets) - len(self._offsets)
        self._offsets, self._blob, self._tail = offsets, blob, self._tail[covered:]

"""Growing columns: an immutable base, usually memory-mapped, and a tail in memory.

A column is a value: adding rows returns a new column. Both columns share the tail. The new rows lie past the
end of the old column, so its readers do not see them. An interrupted addition leaves only rows that no column
includes, and the next addition overwrites them. Rows may be added only to the newest of such columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstore.vectors import Bools, Ints

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A numpy column of rows of one shape and type.

    Args:
        base: (n, …) the first rows; may be a memory map.
        tail: (m, …) memory for further rows; the first ``size`` belong to the column.
        size: How many rows of ``tail`` belong to the column.
    """

    base: Array
    tail: Array
    size: int

    @classmethod
    def of(cls, base: Array) -> Column:
        """Make a column of these rows."""
        return cls(base, np.empty((0, *base.shape[1:]), dtype=base.dtype), 0)

    def __len__(self) -> int:
        return len(self.base) + self.size

    def extended(self, rows: Array) -> Column:
        """Return a column with rows added at the end. The amortised cost depends on these rows alone."""
        tail, needed = self.tail, self.size + len(rows)
        if needed > len(tail):
            grown = np.empty((max(needed, 2 * len(tail), 64), *rows.shape[1:]), self.base.dtype)
            grown[: self.size] = tail[: self.size]
            tail = grown
        tail[self.size : needed] = rows
        return Column(self.base, tail, needed)

    def take(self, at: Ints) -> Array:
        """Return the rows at the given positions, as a copy."""
        base, tail = self.base, self.tail
        if not len(at):
            return np.empty((0, *base.shape[1:]), base.dtype)
        if not len(base):
            return tail[at]
        if not self.size or at.max() < len(base):
            return base[at]
        rows = np.empty((len(at), *base.shape[1:]), dtype=base.dtype)
        early = at < len(base)
        rows[early] = base[at[early]]
        rows[~early] = tail[at[~early] - len(base)]
        return rows

    def parts(self, start: int, stop: int) -> list[Array]:
        """Return rows ``start`` to ``stop``, as one or two views."""
        split = len(self.base)
        views = [
            self.base[start : min(stop, split)],
            self.tail[max(start - split, 0) : max(stop - split, 0)],
        ]
        return [view for view in views if len(view)]

    def rows(self, start: int, stop: int) -> Array:
        """Return rows ``start`` to ``stop``."""
        views = self.parts(start, stop)
        if len(views) == 1:
            return views[0]
        return np.concatenate(views) if views else self.base[:0]

    def put(self, at: Ints, values: Array | int) -> None:
        """Set rows in place, to one value for all or to one value each. The base must be in memory.

        This changes all columns that share the rows.
        """
        early = at < len(self.base)
        given = np.broadcast_to(values, at.shape)
        self.base[at[early]] = given[early]
        self.tail[at[~early] - len(self.base)] = given[~early]

    def count_up_to(self, value: int) -> int:
        """Count the rows of an ascending column that are at most ``value``."""
        base, tail = self.base, self.tail[: self.size]
        if self.size and value >= tail[0]:
            return len(base) + int(np.searchsorted(tail, value, "right"))
        return int(np.searchsorted(base, value, "right"))

    def find(self, values: Ints) -> tuple[Ints, Bools]:
        """Return the position of each value in an ascending column, and whether the column contains it."""
        if not len(self):
            return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
        at = np.searchsorted(self.base, values)
        if self.size:
            late = at == len(self.base)
            at[late] += np.searchsorted(self.tail[: self.size], values[late])
        at = np.minimum(at, len(self) - 1)
        found: Bools = self.take(at) == values
        return at, found


@dataclass(frozen=True, slots=True)
class Strings:
    """A column of strings; the first ones are packed as UTF-8.

    Args:
        offsets: (n + 1,) where each packed string starts in ``blob``.
        blob: The bytes of the packed strings, one after another.
        tail: Further strings; the first ``size`` belong to the column.
        size: How many strings of ``tail`` belong to the column.
    """

    offsets: Array
    blob: Array
    tail: list[str]
    size: int

    @classmethod
    def of(cls, offsets: Array, blob: Array) -> Strings:
        """Make a column of these packed strings."""
        return cls(offsets, blob, [], 0)

    def __len__(self) -> int:
        return len(self.offsets) - 1 + self.size

    def extended(self, strings: Sequence[str]) -> Strings:
        """Return a column with strings added at the end."""
        self.tail[self.size :] = strings
        return Strings(self.offsets, self.blob, self.tail, self.size + len(strings))

    def take(self, at: Ints) -> list[str]:
        """Return the strings at the given positions."""
        split = len(self.offsets) - 1
        if not split:
            return [self.tail[i] for i in at.tolist()]
        if not len(at):
            return []
        early = np.minimum(at, split - 1)
        starts, stops = self.offsets[early].tolist(), self.offsets[early + 1].tolist()
        blob = self.blob.data
        return [
            str(blob[start:stop], "utf-8") if i < split else self.tail[i - split]
            for i, start, stop in zip(at.tolist(), starts, stops, strict=True)
        ]

    def packed(self, at: Ints) -> tuple[Array, Array]:
        """Return the strings at the given ascending positions, as offsets and blob."""
        split = len(self.offsets) - 1
        early = at[at < split]
        later = [self.tail[i - split].encode() for i in at[len(early) :].tolist()]
        lengths = np.concatenate(
            (
                self.offsets[early + 1] - self.offsets[early],
                np.fromiter(map(len, later), np.int64, len(later)),
            )
        )
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        kept = np.zeros(split, np.bool_)
        kept[early] = True
        blob = self.blob[np.repeat(kept, np.diff(self.offsets))]
        return offsets, np.concatenate((blob, np.frombuffer(b"".join(later), dtype=np.uint8)))

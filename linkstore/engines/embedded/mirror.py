"""The mirror: keys, vectors and links as columns, which queries read instead of the tables.

A mirror is a value: the store after some change. :mod:`~linkstore.engines.embedded.refresh` makes the next
mirror from it. The holder of the current mirror replaces it by a single assignment; so even after an
interrupt, no reader sees one column more advanced than another. A removed document keeps its row, marked
with the change that removed it, until the mirror is packed. Rows are numbered in the order in which documents
came into the mirror, and a reader returns row numbers as refs.

The columns of both mirrors share their memory: new rows lie past the end of the old column, so its readers do
not see them. An interrupted addition leaves only rows that no column includes, and the next addition
overwrites them. Rows may be added only to the newest of such columns.

The members of link groups are runs of entries sorted by group. New entries form a new run. The last run is
merged into the one before it while it is more than half as large (a log-structured merge, O'Neil et al.
1996). So there are few runs, and the cost of adding an entry stays logarithmic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arrays import Bools, Ints, expand_ranges
from linkstore.core.plans import Side

Array = npt.NDArray[Any]
NEVER_REMOVED: Final = np.iinfo(np.int64).max
SIDES: Final[tuple[Side, Side]] = ("out", "in")
_COLUMNS: Final = (
    "keys", "vectors", "words", "links_at", "link_group", "link_document", "group_keys", "group_kind"
)  # fmt: skip


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

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return int(self.base.nbytes + self.tail[: self.size].nbytes)

    @property
    def last(self) -> int:
        """The last row of a column of numbers, 0 if it has none."""
        return int(self.rows(len(self) - 1, len(self))[0]) if len(self) else 0

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
        """Count the rows of an ascending column of whole numbers that are at most ``value``."""
        return int(self._count_below(np.array([value + 1]))[0])

    def find(self, values: Ints) -> tuple[Ints, Bools]:
        """Return the position of each value in an ascending column, and whether the column contains it."""
        if not len(self):
            return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
        at = np.minimum(self._count_below(values), len(self) - 1)
        found: Bools = self.take(at) == values
        return at, found

    def _count_below(self, values: Ints) -> Ints:
        count = np.searchsorted(self.base, values)
        if self.size:
            late = count == len(self.base)
            count[late] += np.searchsorted(self.tail[: self.size], values[late])
        return count


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Entries sorted by group; those of one group are in the order in which they were added.

    Args:
        groups: (g,) the distinct groups, ascending.
        starts: (g + 1,) where the entries of each group begin, and the end of the last.
        entries: (n,) entries.
    """

    groups: Array
    starts: Array
    entries: Array

    @classmethod
    def of(cls, groups: Array, entries: Array) -> SortedRun:
        """Sort entries by their groups (n,)."""
        order = np.argsort(groups, kind="stable")
        distinct, counts = np.unique(groups, return_counts=True)
        return cls(distinct, compute_offsets(counts), entries[order])

    def __len__(self) -> int:
        return len(self.entries)

    def spans(self, groups: Ints) -> tuple[Ints, Ints]:
        """Return where the entries of each group start, and how many entries it has."""
        if not len(self.groups):
            return np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
        at = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
        starts = self.starts[at].astype(np.int64)
        counts = np.where(self.groups[at] == groups, self.starts[at + 1] - starts, 0)
        return starts, counts.astype(np.int64)

    def merged(self, later: SortedRun) -> SortedRun:
        """Make one run of the entries of both."""
        groups = np.concatenate(
            (np.repeat(self.groups, np.diff(self.starts)), np.repeat(later.groups, np.diff(later.starts)))
        )
        return SortedRun.of(groups, np.concatenate((self.entries, later.entries)))


@dataclass(frozen=True, slots=True)
class SortedRuns:
    """The runs of one side of all link groups.

    Args:
        parts: The runs, oldest first; the first may be memory-mapped.
    """

    parts: tuple[SortedRun, ...] = ()

    def extended(self, groups: Array, entries: Array) -> SortedRuns:
        """Return these runs with further entries (n,) of groups (n,)."""
        if not len(entries):
            return self
        runs = [*self.parts, SortedRun.of(groups, entries)]
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            later = runs.pop()
            runs[-1] = runs[-1].merged(later)
        return SortedRuns(tuple(runs))

    def counts(self, groups: Ints) -> Ints:
        """Count the entries of each group (g,)."""
        total = np.zeros(len(groups), dtype=np.int64)
        for run in self.parts:
            total += run.spans(groups)[1]
        return total

    def gather(self, groups: Ints, most: int | None = None) -> tuple[Ints, Ints]:
        """Return at most ``most`` entries per group and run: positions in ``groups``, and the entries."""
        owners, entries = [], []
        for run in self.parts:
            starts, counts = run.spans(groups)
            if most is not None:
                counts = np.minimum(counts, most)
            owners.append(np.repeat(np.arange(len(groups)), counts))
            entries.append(run.entries[expand_ranges(starts, counts)])
        if not owners:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if len(owners) == 1:
            return owners[0], entries[0].astype(np.int64)
        return np.concatenate(owners), np.concatenate(entries).astype(np.int64)


def compute_offsets(counts: Array) -> Array:
    """Return where each of the parts with these lengths begins, and the end of the last."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One side of all links.

    Args:
        weight: The highest weight of the links of each entry that are on this side, or -1 if none is.
        runs: The entries that are on this side, by link group.
    """

    weight: Column
    runs: SortedRuns

    def extended(self, weight: Array, group: Array) -> LinkSide:
        """Return this side with further entries (n,), of groups (n,)."""
        added = np.flatnonzero(weight >= 0)
        entries = (len(self.weight) + added).astype(np.int32)
        return LinkSide(self.weight.extended(weight), self.runs.extended(group[added], entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Columns over rows of documents, link entries and rows of link groups.

    Args:
        change: The last change that the mirror includes.
        dead: How many of its documents have been removed.
        keys: Document keys, ascending.
        vectors: Document vectors.
        words: How many words each document has.
        removed_at: The change that removed each document.
        links_at: Where the link entries of each document begin, and the end of the last.
        link_group: Rows of link groups, by entry.
        link_document: Rows of documents, by entry.
        group_keys: Link group keys, ascending.
        group_kind: Positions in ``kinds``, by link group.
        kinds: The kinds that occur.
        sides: Weights by entry, and entries by link group, for each side.
    """

    change: int
    dead: int
    keys: Column
    vectors: Column
    words: Column
    removed_at: Column
    links_at: Column
    link_group: Column
    link_document: Column
    group_keys: Column
    group_kind: Column
    kinds: tuple[str, ...]
    sides: Mapping[Side, LinkSide]

    @classmethod
    def of(cls, arrays: Mapping[str, Array], change: int) -> Mirror:
        """Make a mirror in the state after a change of the columns that :func:`make_empty_columns` names."""
        kinds = arrays["kinds"]
        return cls(
            change=change,
            dead=0,
            removed_at=Column.of(np.full(len(arrays["keys"]), NEVER_REMOVED)),
            kinds=tuple(str(kinds.tobytes(), "utf-8").split("\0")) if kinds.size else (),
            sides={side: LinkSide(Column.of(arrays[side]), _make_runs(arrays, side)) for side in SIDES},
            **{name: Column.of(arrays[name]) for name in _COLUMNS},
        )

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self.vectors.base.shape[1])

    @property
    def living(self) -> int:
        """The number of documents that have not been removed."""
        return len(self.keys) - self.dead

    def visible(self, rows: Ints) -> Bools | None:
        """Say which documents have not been removed. Return None if none of all documents has."""
        if not self.dead:
            return None
        there: Bools = self.removed_at.take(rows) > self.change
        return there

    def all_visible(self, start: int = 0) -> Ints:
        """Return the rows, from ``start`` on, of the documents that have not been removed."""
        if not self.dead:
            return np.arange(start, len(self.keys))
        return start + np.flatnonzero(self.removed_at.rows(start, len(self.keys)) > self.change)

    def links_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the link entries of documents, and for each the position of its document in ``rows``."""
        starts, ends = self.links_at.take(rows), self.links_at.take(rows + 1)
        counts = ends - starts
        return np.repeat(np.arange(len(rows)), counts), expand_ranges(starts, counts)


def make_empty_columns(dimension: int) -> dict[str, Array]:
    """Make a snapshot's columns of an empty store."""
    empty32, empty64, one = np.empty(0, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64)
    arrays: dict[str, Array] = {
        "keys": empty64,
        "vectors": np.empty((0, dimension), np.float32),
        "words": empty32,
        "links_at": one,
        "link_group": empty32,
        "link_document": empty32,
        "group_keys": empty64,
        "group_kind": empty32,
        "kinds": np.empty(0, np.uint8),
    }
    for side in SIDES:
        arrays[side] = np.empty(0, np.float32)
        arrays |= {f"{side}_groups": empty32, f"{side}_starts": one, f"{side}_entries": empty32}
    return arrays


def make_empty_mirror(dimension: int) -> Mirror:
    """Make the mirror of a store before its first change."""
    return Mirror.of(make_empty_columns(dimension), 0)


def _make_runs(arrays: Mapping[str, Array], side: Side) -> SortedRuns:
    run = SortedRun(*(arrays[f"{side}_{part}"] for part in ("groups", "starts", "entries")))
    return SortedRuns((run,) if len(run) else ())

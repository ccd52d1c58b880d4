"""An index from link groups to their members: sorted runs that merge as they grow.

A run has entries sorted by group. New entries form a new run. The last run is merged into the one before it
while it is more than half as large (a log-structured merge, O'Neil et al. 1996). So there are few runs,
and the cost of adding an entry stays logarithmic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.arrays import ranges
from linkstore.backends.embedded.columns import Array
from linkstore.vectors import Ints


@dataclass(frozen=True, slots=True)
class Run:
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
    def of(cls, groups: Array, entries: Array) -> Run:
        """Sort entries by their groups (n,)."""
        order = np.argsort(groups, kind="stable")
        distinct, counts = np.unique(groups, return_counts=True)
        return cls(distinct, _offsets(counts), entries[order])

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

    def merged(self, later: Run) -> Run:
        """Make one run of the entries of both."""
        groups = np.concatenate(
            (np.repeat(self.groups, np.diff(self.starts)), np.repeat(later.groups, np.diff(later.starts)))
        )
        return Run.of(groups, np.concatenate((self.entries, later.entries)))


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one side of all link groups.

    Args:
        parts: The runs, oldest first; the first may be memory-mapped.
    """

    parts: tuple[Run, ...] = ()

    def extended(self, groups: Array, entries: Array) -> Runs:
        """Return these runs with further entries (n,) of groups (n,)."""
        if not len(entries):
            return self
        runs = [*self.parts, Run.of(groups, entries)]
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            later = runs.pop()
            runs[-1] = runs[-1].merged(later)
        return Runs(tuple(runs))

    def flat(self) -> tuple[Array, Array]:
        """Return all entries, run by run: their groups (n,), and the entries (n,)."""
        groups = [np.repeat(run.groups, np.diff(run.starts)) for run in self.parts]
        entries = [run.entries for run in self.parts]
        if not entries:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        return np.concatenate(groups), np.concatenate(entries)

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
            entries.append(run.entries[ranges(starts, counts)])
        if not owners:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if len(owners) == 1:
            return owners[0], entries[0].astype(np.int64)
        return np.concatenate(owners), np.concatenate(entries).astype(np.int64)


def _offsets(counts: Array) -> Array:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets

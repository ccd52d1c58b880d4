"""Paths of links, each document on at most one, scored by the mean of their documents."""

from __future__ import annotations

import numpy as np

from linkstore.plans import Plan
from linkstore.strategies.arrivals import Arrival, arrivals_at, settled, ways_to
from linkstore.strategies.trail import Edges, Trail
from linkstore.vectors import Bools, Floats, Ints


class Chains:
    """The paths of one search: for each position of the trail the path that leads to it, if any."""

    def __init__(self) -> None:
        self.arrivals: dict[int, Arrival] = {}
        self._total: Floats = np.empty(0, dtype=np.float32)
        self._length: Ints = np.empty(0, dtype=np.int64)

    @property
    def held(self) -> Bools:
        """(n,) whether a path leads there; positions beyond have none."""
        return self._length > 0

    def means(self, positions: Ints) -> Floats:
        """Scores of the paths to positions that have one."""
        means: Floats = (self._total[positions] / self._length[positions]).astype(np.float32)
        return means

    def start(self, trail: Trail, positions: Ints, own: Floats) -> Plan[None]:
        """Begin a path at each of the positions.

        Args:
            trail: Of the search.
            positions: Of its first layer.
            own: (n,) scores of the trail's documents alone.
        """
        self._grow(len(trail))
        self._total[positions] = own[positions]
        self._length[positions] = 1
        self.arrivals.update((yield from arrivals_at(trail, positions)))

    def prolong(self, trail: Trail, edges: tuple[Edges, ...], own: Floats) -> Plan[Ints]:
        """Lead paths on by links to documents that lie on none; returns their positions.

        Of several paths to a document the one with the highest mean is taken, then by id, kind and tag.
        A link's weight damps what the document it leads to adds.
        """
        self._grow(len(trail))
        ways = ways_to(trail, np.flatnonzero(~self.held), edges)
        added = own[ways.position] * ways.weight
        mean = (self._total[ways.source] + added) / (self._length[ways.source] + 1)
        order = np.lexsort((-mean, ways.position))
        first = order[np.searchsorted(ways.position[order], ways.position[order])]
        best = order[mean[order] == mean[first]]
        self.arrivals.update((yield from settled(ways.take(best), trail)))
        reached, at = np.unique(ways.position[best], return_index=True)
        source = np.array([self.arrivals[position].source for position in reached.tolist()], dtype=np.int64)
        self._total[reached] = self._total[source] + added[best[at]]
        self._length[reached] = self._length[source] + 1
        return reached

    def _grow(self, count: int) -> None:
        more = count - len(self._total)
        self._total = np.concatenate((self._total, np.zeros(more, dtype=np.float32)))
        self._length = np.concatenate((self._length, np.zeros(more, dtype=np.int64)))

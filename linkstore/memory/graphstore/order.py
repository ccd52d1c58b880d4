"""The order in which items were first put, as the weights of their links tell it.

A list of items begins with the oldest. To sort them, all items of a namespace would have to be read. So the
weights of an item's links tell its age, and only the items of the page are read. The weight of its links
:data:`~linkstore.memory.graphstore.places.ITEM_OF` falls with each tick of about a second, and that of its
links :data:`~linkstore.memory.graphstore.places.TEXT_OF` falls within the tick. Both are numbers that float32
holds exactly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from linkstore.vectors import Floats, Ints

_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TICK: Final = 1 << 20
"""Microseconds."""
_ONE: Final = 0x3F800000
"""The bits of 1 as float32. Of positive floats, the one with the next smaller bits is the next smaller."""
_TICKS: Final = 1_000_000_000
"""Number of ticks, which last until 2058. Items put later, or before the first tick, tie."""
CROWDED: Final = 64
"""The order within a tick is looked up if the tick has more items; else they are read."""


def age_weights(created: datetime) -> tuple[float, float]:
    """The weights that tell when an item was put: of the tick, and within the tick."""
    micros = min(max((created - _EPOCH) // _MICROSECOND, 0), _TICKS * _TICK - 1)
    tick, within = divmod(micros, _TICK)
    (weight,) = struct.unpack("<f", struct.pack("<I", _ONE - 1 - tick))
    return weight, 1 - within / _TICK


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Items of a namespace, oldest first, except that items of one run are in no particular order.

    Args:
        ids: Of the items.
        ends: Where each run ends, ascending.
        passed: How many older items were left out.
    """

    ids: list[str]
    ends: Ints
    passed: int

    def portions(self, first: int) -> Iterator[list[str]]:
        """The ids in portions of whole runs: the first has at least ``first``, later ones have more."""
        start, size = 0, first
        while start < len(self.ids):
            at = int(np.searchsorted(self.ends, min(start + size, len(self.ids))))
            end = int(self.ends[at])
            yield self.ids[start:end]
            start, size = end, 4 * size


def crowded(ticks: Floats) -> bool:
    """Whether a tick has many items; ``ticks`` are the weights of items."""
    return len(ticks) > CROWDED and int(np.unique(ticks, return_counts=True)[1].max()) > CROWDED


def in_runs(ticks: Floats, within: Floats) -> tuple[Ints, Ints]:
    """The positions of items from the oldest on, and where each run of items of one age ends.

    Args:
        ticks: (n,) weights of the tick.
        within: (n,) weights within the tick, 0 where it is unknown: the tick is then one run.
    """
    within = np.where(np.isin(ticks, ticks[within == 0]), 0, within)
    order = np.lexsort((-within, -ticks))
    ticks, within = ticks[order], within[order]
    differs = (ticks[1:] != ticks[:-1]) | (within[1:] != within[:-1])
    return order, np.append(np.flatnonzero(differs) + 1, len(order))

"""Counts link groups, the pairs of documents that they join, and the documents without links."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkstore.backends.base import Backend
from linkstore.evaluation.memberships import Part, group_key, parts, records
from linkstore.evaluation.profiles import HUB_CAP, SIZE_BOUNDS, LinkGroup
from linkstore.strategies.pages import SECTIONS
from linkstore.vectors import Bools, Ints

_LARGEST: Final = 5


@dataclass(slots=True)
class Counts:
    """The counts of the parts of a store.

    Args:
        sizes: Link groups by class of size: see :class:`~linkstore.evaluation.Profile`.
        groups: Link groups by kind.
        hubs: Link groups with a side that is a hub, by kind.
        edges: Pairs of documents of which the one leads to the other, by kind.
        joined: (n,) whether a link other than ``section`` joins each document to another one.
        reached: (n,) whether another document leads to each by such a link.
        largest: (documents on the larger side, number of the group, out, in) of the largest groups.
    """

    sizes: Ints = field(default_factory=lambda: np.zeros(len(SIZE_BOUNDS) + 1, dtype=np.int64))
    groups: Counter[str] = field(default_factory=Counter)
    hubs: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    joined: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    reached: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    largest: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Count a part."""
        self.joined, self.reached = (_of_length(part.documents, one) for one in (self.joined, self.reached))
        if not len(part.group):
            return
        starts = np.flatnonzero(np.concatenate(([True], part.group[1:] != part.group[:-1])))
        both = part.leaves & part.arrives
        out, in_, alike = (
            np.add.reduceat(one.astype(np.int64), starts) for one in (part.leaves, part.arrives, both)
        )
        self._tally(part, starts, np.maximum(out, in_), np.where(in_ <= HUB_CAP, out * in_ - alike, 0))
        self._keep_largest(part.group[starts], out, in_)
        members = np.diff(np.append(starts, len(part.group)))
        self._mark(part, np.repeat(out, members), np.repeat(in_, members))

    def _tally(self, part: Part, starts: Ints, larger: Ints, edges: Ints) -> None:
        self.sizes += np.bincount(np.searchsorted(SIZE_BOUNDS, larger), minlength=len(self.sizes))
        kinds = part.kind[starts]
        for code, kind in enumerate(part.kinds):
            own = kinds == code
            self.groups[kind] += int(own.sum())
            self.hubs[kind] += int((larger[own] > HUB_CAP).sum())
            self.edges[kind] += int(edges[own].sum())

    def _keep_largest(self, group: Ints, out: Ints, in_: Ints) -> None:
        top = np.lexsort((group, np.maximum(out, in_)))[-_LARGEST:]
        found = zip(*(one[top].tolist() for one in (np.maximum(out, in_), group, out, in_)), strict=True)
        self.largest = heapq.nlargest(_LARGEST, [*self.largest, *found])

    def _mark(self, part: Part, out: Ints, in_: Ints) -> None:
        """Mark who has a partner across a link group, whose sizes are ``out`` and ``in_``, (m,).

        Links between the sections of one page say nothing about how pages are linked, and do not count.
        """
        leads = part.leaves & (in_ > part.arrives)
        led_to = part.arrives & (out > part.leaves)
        kinds = [code for code, kind in enumerate(part.kinds) if kind not in SECTIONS]
        between = np.isin(part.kind, kinds)
        self.reached[part.document[between & led_to & (in_ <= HUB_CAP)]] = True
        self.joined[part.document[between & (leads | led_to) & (np.minimum(in_, out) <= HUB_CAP)]] = True


def counted(backend: Backend, links: int) -> Counts:
    """Count the link groups, edges and documents of a store with about this number of links."""
    counts = Counts()
    for part in parts(backend, links):
        counts.add(part)
    return counts


def largest_groups(backend: Backend, counts: Counts) -> tuple[LinkGroup, ...]:
    """Return the largest link groups by name, largest first, reading the store until all tags were seen."""
    wanted = {group for _, group, _, _ in counts.largest}
    names: dict[int, tuple[str, str]] = {}
    for record in records(backend) if wanted else ():
        names |= {key: (one.kind, one.tag) for one in record.links if (key := group_key(one)) in wanted}
        if len(names) == len(wanted):
            break
    return tuple(
        LinkGroup(kind=names[group][0], tag=names[group][1], out=out, in_=in_)
        for _, group, out, in_ in counts.largest
        if group in names
    )


def _of_length(length: int, marks: Bools) -> Bools:
    """Return marks for this many documents, since a concurrent writer may add more."""
    longer = np.zeros(max(length, len(marks)), dtype=np.bool_)
    longer[: len(marks)] = marks
    return longer

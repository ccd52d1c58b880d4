"""The members of link groups that one fetch may take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from linkstore.backends.cassandra import codes
from linkstore.backends.cassandra.reading import Documents, MemberRow
from linkstore.filters import Condition
from linkstore.plans import Members
from linkstore.vectors import Bools, Ints, contained

_NO_FLOATS: Final = np.empty(0, np.float32)


class Pool:
    """The members of link groups that may be taken: one entry for each group and document.

    Args:
        known: Gives refs.
        rows: For each group, its members; a group with more than the cap is a hub and is left out.
        fetch: What was asked.
    """

    def __init__(self, known: Documents, rows: Sequence[Sequence[MemberRow]], fetch: Members) -> None:
        self._known = known
        self._fetch = fetch
        open_groups = [(at, members) for at, members in enumerate(rows) if 0 < len(members) <= fetch.cap]
        owner = np.array([at for at, members in open_groups for _ in members], dtype=np.int64)
        refs = np.array(
            [known.ref(name) for _, members in open_groups for name, _ in members], dtype=np.int64
        )
        wanted = ~contained(refs, fetch.exclude)
        self.owner, self.refs = owner[wanted], refs[wanted]
        self.filtered = 0
        packed = [code for _, members in open_groups for _, code in members]
        estimated, loss = codes.estimate(packed, fetch.vector) if packed else (_NO_FLOATS, _NO_FLOATS)
        self._estimated, self._loss = estimated[wanted], loss[wanted]

    def filter(self, passing: Callable[[Condition, Ints], Bools]) -> None:
        """Leave out documents that exist and do not pass; all of the pool were read."""
        passes = passing(self._fetch.filter, self.refs)
        there = np.array([self._known.rows[ref] is not None for ref in self.refs.tolist()], dtype=np.bool_)
        self.filtered = len(np.unique(self.refs[there & ~passes]))
        self._keep(passes)

    def chosen(self) -> Ints:
        """Entries that may be among the first ``take`` of their group, by the bounds of the estimates."""
        order = np.argsort(self.owner, kind="stable")
        starts = np.flatnonzero(np.diff(self.owner[order], prepend=-1))
        parts = [self._contenders(part) for part in np.split(order, starts[1:])] if len(order) else []
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _contenders(self, entries: Ints) -> Ints:
        take = self._fetch.take
        if len(entries) <= take:
            return entries
        least = self._estimated[entries] - self._loss[entries]
        floor = np.partition(least, len(entries) - take)[len(entries) - take] if take else np.inf
        return entries[self._estimated[entries] + self._loss[entries] >= floor]

    def drop_strays(self, chosen: Ints, tags: Sequence[tuple[str, str]], sizes: Ints) -> bool:
        """Leave out documents that no longer lie on the group: members may be late."""
        stray = [at for at in chosen.tolist() if not self._lies(at, tags)]
        if stray:
            np.subtract.at(sizes, self.owner[stray], 1)
            kept = np.ones(len(self.refs), np.bool_)
            kept[stray] = False
            self._keep(kept)
        return bool(stray)

    def _lies(self, at: int, tags: Sequence[tuple[str, str]]) -> bool:
        row = self._known.rows[int(self.refs[at])]
        return row is not None and tags[int(self.owner[at])] in row.weights(self._fetch.side)

    def _keep(self, kept: Bools) -> None:
        self.owner, self.refs = self.owner[kept], self.refs[kept]
        self._estimated, self._loss = self._estimated[kept], self._loss[kept]

"""A reader within a scope: it sees only the documents that pass a filter, as if there were no others.

:mod:`.verdicts` caches which documents pass. This module caches totals over all of them, for the scopes that
were used last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import apsw
import numpy as np

from linkstore.backends.embedded.columns import Column
from linkstore.backends.embedded.words import lengths
from linkstore.filters import Condition
from linkstore.vectors import Bools, Ints

REMEMBERED_BYTES: Final = 1 << 26
"""How much memory the cached scopes may take; the least recently used is dropped first."""
_OVERHEAD: Final = 1024
_FIRST: Final = 8
"""Multiple of the cap that is read first of a large link group; each further read is this factor larger."""


class Inside:
    """The documents of one state that pass a scope.

    Args:
        rows: (n,) rows of documents, ascending.
    """

    def __init__(self, rows: Ints) -> None:
        self.rows = rows
        self._words: int | None = None

    def average(self, lengths: Callable[[Ints], Ints]) -> float:
        """Return how many words a document has on average. ``lengths`` returns the number for each."""
        if self._words is None:
            self._words = int(lengths(self.rows).sum())
        return self._words / max(1, len(self.rows))


class Scopes:
    """The documents of recent scopes, shared by the readers of one process."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, Inside]] = OrderedDict()
        self._lock = threading.Lock()
        self.lengths = Lengths()

    def inside(self, scope: Condition, change: int, find: Callable[[], Ints]) -> Inside:
        """Return the documents of a scope at a change. ``find`` returns their rows if they are not cached."""
        with self._lock:
            known = self._known.get(scope.key)
            if known is not None and known[0] == change:
                self._known.move_to_end(scope.key)
                return known[1]
        found = Inside(find())
        with self._lock:
            self._known[scope.key] = change, found
            self._known.move_to_end(scope.key)
            self._trim()
        return found

    def _trim(self) -> None:
        size = sum(inside.rows.nbytes + _OVERHEAD for _, inside in self._known.values())
        while size > REMEMBERED_BYTES and len(self._known) > 1:
            _, (_, dropped) = self._known.popitem(last=False)
            size -= dropped.rows.nbytes + _OVERHEAD


class Lengths:
    """A cache of how many words documents have; the text of a row of a mirror never changes."""

    def __init__(self) -> None:
        self._column = Column.of(np.zeros(0, np.int32))
        self._lock = threading.Lock()

    def of(self, rows: Ints, keys: Column, connection: apsw.Connection) -> Ints:
        """Return how many words each document has (n,), and read the numbers that are not cached.

        Args:
            rows: (n,) rows of documents.
            keys: Document keys, by row.
            connection: In the reader's transaction.
        """
        if not len(rows):
            return rows
        column = self._get_covering(int(rows.max()))
        found = column.take(rows)
        unknown = keys.take(rows[found < 0])
        if len(unknown):
            read, counts = lengths(connection, int(unknown.min()), int(unknown.max()))
            at, known = keys.find(read)
            known &= at < len(column)
            column.put(at[known], counts[known])
            found = np.maximum(column.take(rows), 0)
        return found.astype(np.int64)

    def _get_covering(self, last_row: int) -> Column:
        with self._lock:
            missing = last_row + 1 - len(self._column)
            if missing > 0:
                self._column = self._column.extended(np.full(missing, -1, np.int32))
            return self._column


def surely_large(
    gather: Callable[[Ints, int], tuple[Ints, Ints]],
    sizes: Ints,
    cap: int,
) -> Bools:
    """Say which link groups (g,) have more than ``cap`` members in a scope.

    Large groups are read a part at a time, until enough members in the scope are found.

    Args:
        gather: Takes positions of groups and a number; reads at least that many members of each group, if
            it has them, and returns those in the scope as positions in its first argument and documents.
        sizes: (g,) upper bounds of the sizes of the groups, with all documents counted.
        cap: See above.
    """
    large = np.zeros(len(sizes), np.bool_)
    open_, most = np.flatnonzero(sizes > cap), _FIRST * (cap + 1)
    while len(open_):
        owner, _ = gather(open_, most)
        counted = np.bincount(owner, minlength=len(open_))
        large[open_[counted > cap]] = True
        open_ = open_[(counted <= cap) & (sizes[open_] > most)]
        most *= _FIRST
    return large

"""A cache of results for recent filters, as columns; the least recently used is dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

import numpy as np

from linkstore.backends.embedded.columns import Array, Column

K = TypeVar("K", bound=Hashable)
BUDGET_BYTES: Final = 64 << 20
"""The most memory that all columns take together."""
FEWEST: Final = 4
"""This many columns are kept, however large they are."""


class Remembered(Generic[K]):
    """A column for each filter, shared by the readers of one process.

    Args:
        unknown: (1,) the value that stands for an unknown result.
        columns: Columns of known results.
    """

    def __init__(self, unknown: Array, columns: Mapping[K, Column] | None = None) -> None:
        self._unknown = unknown
        self._columns: OrderedDict[K, Column] = OrderedDict(columns or {})
        self._lock = threading.Lock()

    def column(self, key: K, last: int) -> Column:
        """Return the column of a filter, with at least ``last + 1`` rows."""
        with self._lock:
            column = self._columns.get(key) or Column.of(self._unknown[:0])
            if len(column) <= last:
                column = column.extended(np.repeat(self._unknown, last + 1 - len(column)))
            self._columns[key] = column
            self._columns.move_to_end(key)
            self._forget()
            return column

    def columns(self) -> dict[K, Column]:
        """Return all columns."""
        with self._lock:
            return dict(self._columns)

    def _forget(self) -> None:
        row = self._unknown.itemsize
        taken = row * sum(map(len, self._columns.values()))
        while taken > BUDGET_BYTES and len(self._columns) > FEWEST:
            taken -= row * len(self._columns.popitem(last=False)[1])

"""Which documents pass a filter, remembered.

A row of a mirror never changes its metadata (an update makes a new row), so a verdict holds for good.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.backends.embedded.columns import Column
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import decoding, read_metadata
from linkstore.filters import Condition
from linkstore.links import LINKS_KEY
from linkstore.vectors import Bools, Ints

BUDGET_BYTES: Final = 64 << 20
"""How much memory verdicts take, a byte for each document and filter; the least recently used go first."""
FEWEST: Final = 4
"""So many filters are remembered however large the store is."""
_UNKNOWN, _NO, _YES = 0, 1, 2


class Verdicts:
    """The verdicts of recent filters, shared by the readers of one process.

    Args:
        columns: Verdicts by row, for each filter.
    """

    def __init__(self, columns: Mapping[str, Column] | None = None) -> None:
        self._columns: OrderedDict[str, Column] = OrderedDict(columns or {})
        self._lock = threading.Lock()

    def of(self, condition: Condition, rows: Ints, keys: Column, connection: apsw.Connection) -> Bools:
        """Whether each document passes; documents not judged before are read.

        Args:
            condition: The filter.
            rows: Of the documents.
            keys: Their keys, by row.
            connection: In the reader's transaction.
        """
        if condition.always or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        column = self._column(condition, int(rows.max()))
        verdicts = column.take(rows)
        unknown = np.unique(rows[verdicts == _UNKNOWN])
        if len(unknown):
            column.put(unknown, _judge(condition, keys.take(unknown), connection))
            verdicts = column.take(rows)
        passing: Bools = verdicts == _YES
        return passing

    def carried(self, old: Column, new: Column) -> Verdicts:
        """The same verdicts for other rows of the same documents.

        Args:
            old: Document keys by the rows of these verdicts.
            new: Document keys by the other rows.
        """
        rows, found = old.find(new.rows(0, len(new)))
        with self._lock:
            columns = dict(self._columns)
        return Verdicts({key: _moved(column, rows, found) for key, column in columns.items()})

    def _column(self, condition: Condition, last_row: int) -> Column:
        with self._lock:
            column = self._columns.get(condition.key) or Column.of(np.zeros(0, np.uint8))
            if len(column) <= last_row:
                column = column.extended(np.zeros(last_row + 1 - len(column), np.uint8))
            self._columns[condition.key] = column
            self._columns.move_to_end(condition.key)
            self._forget()
            return column

    def _forget(self) -> None:
        taken = sum(map(len, self._columns.values()))
        while taken > BUDGET_BYTES and len(self._columns) > FEWEST:
            taken -= len(self._columns.popitem(last=False)[1])


def _moved(column: Column, rows: Ints, found: Bools) -> Column:
    known = found & (rows < len(column))
    moved = np.full(len(rows), _UNKNOWN, np.uint8)
    moved[known] = column.take(rows[known])
    return Column.of(moved)


def _judge(condition: Condition, keys: Ints, connection: apsw.Connection) -> Ints:
    """The verdict on each of the sorted keys; a document that is gone does not pass."""
    verdicts = np.full(len(keys), _NO, dtype=np.int64)
    with_links = LINKS_KEY in condition.key
    columns = "key, metadata, links" if with_links else "key, metadata, NULL"
    rows = rows_of(
        connection,
        f"SELECT {columns} FROM document WHERE key IN (SELECT value FROM json_each(?))",
        (orjson.dumps(keys.tolist()).decode(),),
    )
    position = dict(zip(keys.tolist(), range(len(keys)), strict=True))
    for key, metadata, links in rows:
        with decoding("documents"):
            fields = read_metadata(metadata, links)
        if condition.matches(fields):
            verdicts[position[key]] = _YES
    return verdicts

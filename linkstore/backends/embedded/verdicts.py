"""A cache of the documents that pass a filter.

The metadata of a mirror's row never change (an update makes a new row), so a verdict stays valid.
"""

from __future__ import annotations

from collections.abc import Mapping

import apsw
import numpy as np
import orjson

from linkstore.backends.embedded.columns import Column
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import decoding, read_metadata
from linkstore.backends.embedded.remembering import Remembered
from linkstore.filters import Condition
from linkstore.links import LINKS_KEY
from linkstore.vectors import Bools, Ints

_UNKNOWN, _NO, _YES = 0, 1, 2


class Verdicts:
    """The verdicts of recent filters, shared by the readers of one process.

    Args:
        columns: Verdicts by row, for each filter.
    """

    def __init__(self, columns: Mapping[str, Column] | None = None) -> None:
        self._columns = Remembered(np.array([_UNKNOWN], np.uint8), columns)

    def of(self, condition: Condition, rows: Ints, keys: Column, connection: apsw.Connection) -> Bools:
        """Say whether each document passes (n,), and read documents without a cached verdict.

        Args:
            condition: The filter.
            rows: (n,) rows of documents.
            keys: Document keys, by row.
            connection: In the reader's transaction.
        """
        if condition.always or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        column = self._columns.column(condition.key, int(rows.max()))
        verdicts = column.take(rows)
        unknown = np.unique(rows[verdicts == _UNKNOWN])
        if len(unknown):
            column.put(unknown, _judge(condition, keys.take(unknown), connection))
            verdicts = column.take(rows)
        passing: Bools = verdicts == _YES
        return passing

    def carried(self, old: Column, new: Column) -> Verdicts:
        """Return the same verdicts for a mirror with other row numbers.

        Args:
            old: Document keys by the rows of these verdicts.
            new: Document keys by the rows of the other mirror.
        """
        rows, found = old.find(new.rows(0, len(new)))
        known = self._columns.columns()
        return Verdicts({key: _moved(column, rows, found) for key, column in known.items()})


def _moved(column: Column, rows: Ints, found: Bools) -> Column:
    known = found & (rows < len(column))
    moved = np.full(len(rows), _UNKNOWN, np.uint8)
    moved[known] = column.take(rows[known])
    return Column.of(moved)


def _judge(condition: Condition, keys: Ints, connection: apsw.Connection) -> Ints:
    """Return the verdict on each of the keys. A document that was removed does not pass."""
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

"""Which documents pass a filter, remembered.

A document key never changes its metadata (an update makes a new key), so a verdict holds for good.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.backends.embedded.columns import Column
from linkstore.filters import Condition
from linkstore.links import LINKS_KEY
from linkstore.vectors import Bools, Ints

REMEMBERED: Final = 16
"""How many filters' verdicts are kept, the least recently used dropped first."""
_UNKNOWN, _NO, _YES = 0, 1, 2


class Verdicts:
    """The verdicts of recent filters, shared by the readers of one process."""

    def __init__(self) -> None:
        self._columns: OrderedDict[str, Column] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, condition: Condition, keys: Ints, connection: apsw.Connection) -> Bools:
        """Whether each document passes; documents not judged before are read."""
        if condition.always or not len(keys):
            return np.ones(len(keys), dtype=np.bool_)
        column = self._column(condition, int(keys.max()))
        verdicts = column.take(keys)
        unknown = np.unique(keys[verdicts == _UNKNOWN])
        if len(unknown):
            judged = _judge(condition, unknown, connection)
            with self._lock:
                column.put(unknown, judged)
            verdicts = column.take(keys)
        passing: Bools = verdicts == _YES
        return passing

    def _column(self, condition: Condition, last_key: int) -> Column:
        with self._lock:
            column = self._columns.get(condition.key)
            if column is None:
                column = self._columns[condition.key] = Column(np.zeros(0, np.uint8))
                while len(self._columns) > REMEMBERED:
                    self._columns.popitem(last=False)
            self._columns.move_to_end(condition.key)
            if len(column) <= last_key:
                column.append(np.zeros(last_key + 1 - len(column), np.uint8))
            return column


def _judge(condition: Condition, keys: Ints, connection: apsw.Connection) -> Ints:
    """The verdict on each of the sorted keys; a document that is gone does not pass."""
    verdicts = np.full(len(keys), _NO, dtype=np.int64)
    with_links = LINKS_KEY in condition.key
    columns = "key, metadata, links" if with_links else "key, metadata, NULL"
    rows = connection.execute(
        f"SELECT {columns} FROM document WHERE key IN (SELECT value FROM json_each(?))",
        (orjson.dumps(keys.tolist()).decode(),),
    )
    position = dict(zip(keys.tolist(), range(len(keys)), strict=True))
    for key, metadata, links in rows:
        fields = orjson.loads(metadata)
        if links is not None:
            fields[LINKS_KEY] = orjson.loads(links)
        if condition.matches(fields):
            verdicts[position[key]] = _YES
    return verdicts

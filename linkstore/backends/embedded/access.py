"""Access times of documents, in a separate table, so that recording one rewrites nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import apsw
import orjson

from linkstore.backends.embedded.database import rows_of

_TOUCH: Final = (
    "INSERT INTO access SELECT document.id, ? FROM document WHERE document.id = ?"
    " ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
)
_ACCESSED: Final = "SELECT id, at FROM access WHERE id IN (SELECT value FROM json_each(?))"
FORGET: Final = "DELETE FROM access WHERE id = ?"
"""Forgets when a document was accessed; values: its id."""


def touch(connection: apsw.Connection, times: Mapping[str, int]) -> int:
    """Record access times, keep the latest of each document, and return how many documents are stored."""
    before = connection.total_changes()
    connection.executemany(_TOUCH, [(at, id) for id, at in times.items()])
    return connection.total_changes() - before


def accessed(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the access times of the given documents, without documents that have none."""
    return dict(rows_of(connection, _ACCESSED, (orjson.dumps(list(ids)).decode(),)))

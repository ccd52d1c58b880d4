"""Deletion of rows that no document needs: old records of removals, and link groups without links."""

from __future__ import annotations

from typing import Any, Final

import apsw
import numpy as np

from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.reader import View
from linkstore.backends.embedded.recorded import settings_of
from linkstore.backends.embedded.sharing import FLOOR
from linkstore.vectors import Ints

UNLISTED: Final = "unlisted"
"""The setting that counts the removals that are no longer listed."""
EPOCH: Final = "epoch"
_LEAST: Final = 1000
"""Even the smallest store keeps up to this many listed removals, and link groups without links."""
_FREE_PAGES: Final = 256


def due(settings: dict[str, Any]) -> bool:
    """Say whether the listed removals outnumber the documents (or 2,000, if more): then cleaning is cheap."""
    documents: int = settings["documents"]
    return _listed(settings) > 2 * max(_LEAST, documents // 2)


def clean(connection: apsw.Connection, view: View, *, everything: bool = False) -> None:
    """Delete unneeded rows, in an open write transaction.

    A mirror that has not seen a removal that is no longer listed must be loaded again. A link group that is
    deleted and later used again gets a new key.

    Args:
        connection: In the write transaction.
        view: A view of the state that the transaction began with.
        everything: Whether to delete also what is cheaper to keep.
    """
    settings = settings_of(connection)
    kept = 0 if everything else max(_LEAST, settings["documents"] // 2)
    rows = rows_of(connection, "SELECT change FROM departed ORDER BY change DESC LIMIT 1 OFFSET ?", (kept,))
    if rows:
        connection.execute("DELETE FROM departed WHERE change <= ?", rows[0])
        _set(connection, FLOOR, rows[0][0])
    listed = connection.execute("SELECT count(*) FROM departed").get
    _set(connection, UNLISTED, settings["last_key"] - settings["documents"] - listed)
    orphans, living = _orphans(view)
    if len(orphans) > (0 if everything else max(_LEAST, living)):
        connection.executemany("DELETE FROM link_group WHERE key = ?", [(key,) for key in orphans.tolist()])
        begin_epoch(connection)


def begin_epoch(connection: apsw.Connection) -> None:
    """Make every process forget the keys of link groups, in an open write transaction."""
    _set(connection, EPOCH, settings_of(connection).get(EPOCH, 0) + 1)


def give_back(connection: apsw.Connection) -> None:
    """Return free pages to the file system if there are many, in an open write transaction."""
    free, pages = connection.pragma("freelist_count"), connection.pragma("page_count")
    if free > max(_FREE_PAGES, pages // 2):
        connection.execute("PRAGMA incremental_vacuum").fetchall()


def _listed(settings: dict[str, Any]) -> int:
    gone: int = settings["last_key"] - settings["documents"]
    return gone - int(settings.get(UNLISTED) or 0)


def _set(connection: apsw.Connection, name: str, value: int) -> None:
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))


def _orphans(view: View) -> tuple[Ints, int]:
    """Return the keys of the link groups without members, and how many link groups have members."""
    mirror, stamp = view.mirror, view.stamp
    end = int(mirror.links_at.take(np.array([mirror.rows_seen(stamp)]))[0])
    documents = mirror.link_document.rows(0, end).astype(np.int64)
    groups = mirror.link_group.rows(0, end)
    there = mirror.visible(documents, stamp)
    used = np.zeros(len(mirror.group_keys), np.bool_)
    used[groups if there is None else groups[there]] = True
    known = mirror.group_keys.count_up_to(stamp.last_group)
    return mirror.group_keys.take(np.flatnonzero(~used[:known])), int(np.count_nonzero(used))

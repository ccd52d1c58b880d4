"""The small tables beside the documents: notes, indexed pages and access times; and the links, read whole.

Access times have a table of their own, so that recording one rewrites nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Ints
from linkstore.engines.contract import PageEntry, StoredLinks
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.schema import convert_row_errors
from linkstore.errors import StoreFormatError

_GET_NOTES: Final = (
    "SELECT name, text FROM note WHERE ?1 IS NULL OR name IN (SELECT value FROM json_each(?1))"
)
_ENTRIES: Final = "SELECT source, url, digest, ids FROM page"
_OF_SOURCE: Final = f"{_ENTRIES} WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
_OF_SOURCE_NAMED: Final = (
    f"{_ENTRIES} WHERE source = ?1 AND url IN (SELECT value FROM json_each(?2)) ORDER BY source, url"
)
# Enumerates the sources by jumps through the table's primary key, so that the entries are not all scanned.
_NAMED: Final = f"""
WITH RECURSIVE of(name) AS (
  SELECT min(source) FROM page
  UNION ALL
  SELECT (SELECT min(source) FROM page WHERE source > name) FROM of WHERE name IS NOT NULL
)
{_ENTRIES} WHERE source IN (SELECT name FROM of WHERE name IS NOT NULL)
  AND url IN (SELECT value FROM json_each(?1)) ORDER BY source, url
"""
_TOUCH: Final = (
    "INSERT INTO access SELECT document.id, ? FROM document WHERE document.id = ?"
    " ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
)
_ACCESSED: Final = "SELECT id, at FROM access WHERE id IN (SELECT value FROM json_each(?))"
_LINKS: Final = (
    "SELECT document, link_group, CASE direction WHEN 'out' THEN 1 WHEN 'in' THEN 2 ELSE 3 END FROM link"
)


def read_notes(connection: apsw.Connection, names: Sequence[str] | None) -> dict[str, str]:
    """Return the notes with these names (None: all).

    Raises:
        StoreFormatError: If a note is not a text.
    """
    notes = dict(fetch_rows(connection, _GET_NOTES, (None if names is None else _to_json(names),)))
    for name, value in notes.items():
        if not isinstance(value, str):
            raise StoreFormatError(f"{connection.filename}: the note {name!r} is {value!r}, not a text")
    return notes


def exchange_note(
    connection: apsw.Connection, name: str, value: str | None, expected: str | None
) -> str | None:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards."""
    found = read_notes(connection, [name]).get(name)
    if found != expected or found == value:
        return found
    if value is None:
        connection.execute("DELETE FROM note WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, value))
    return value


def read_links(connection: apsw.Connection) -> StoredLinks:
    """Return the links of all documents."""
    documents = fetch_rows(connection, "SELECT key, id FROM document ORDER BY key")
    groups = fetch_rows(connection, "SELECT key, kind, tag FROM link_group ORDER BY key")
    with convert_row_errors("links"):
        rows = np.fromiter(chain.from_iterable(connection.execute(_LINKS)), np.int64).reshape(-1, 3)
    document, known = _find_positions(documents, rows[:, 0])
    group, found = _find_positions(groups, rows[:, 1])
    kept = known & found  # in a damaged store, links may lack either
    return StoredLinks(
        ids=[id for _, id in documents],
        groups=[(kind, tag) for _, kind, tag in groups],
        document=document[kept],
        group=group[kept],
        leads_out=(rows[kept, 2] & 1) != 0,
        leads_in=(rows[kept, 2] & 2) != 0,
    )


def _find_positions(rows: Sequence[tuple[Any, ...]], keys: Ints) -> tuple[Ints, Bools]:
    """Return the position of each key among rows that ascend by key, and whether there is a row."""
    if not rows:
        return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
    known = np.array([row[0] for row in rows], np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found: Bools = known[at] == keys
    return at, found


def read_page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = fetch_rows(connection, _OF_SOURCE, (source,))
    elif source is None:
        rows = fetch_rows(connection, _NAMED, (_to_json(urls),))
    else:
        rows = fetch_rows(connection, _OF_SOURCE_NAMED, (source, _to_json(urls)))
    with convert_row_errors("pages"):
        return [
            PageEntry(source=of, url=url, digest=digest, ids=tuple(orjson.loads(ids)))
            for of, url, digest, ids in rows
        ]


def _to_json(values: Sequence[str]) -> str:
    return orjson.dumps(list(values)).decode()


def record_accesses(connection: apsw.Connection, times: Mapping[str, int]) -> int:
    """Record access times, keep the latest of each document, and return how many documents are stored."""
    before = connection.total_changes()
    connection.executemany(_TOUCH, [(at, id) for id, at in times.items()])
    return connection.total_changes() - before


def read_accesses(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the access times of the given documents, without documents that have none."""
    return dict(fetch_rows(connection, _ACCESSED, (_to_json(ids),)))

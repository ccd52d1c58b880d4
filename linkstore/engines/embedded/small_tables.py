"""The small tables of a store: notes, indexed pages, and times of access.

Short texts that users of a store keep in its table of settings.

Reads the table of indexed pages.

Access times of documents, in a separate table, so that recording one rewrites nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import apsw
import orjson

from linkstore.engines.contract import PageEntry
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.schema import convert_row_errors
from linkstore.errors import StoreFormatError

_NOTE_PREFIX: Final = "note "
_SELECT_NOTE: Final = "SELECT value FROM setting WHERE name = ?"


def read_note(connection: apsw.Connection, name: str) -> str | None:
    """Return the note of this name, or None if there is none.

    Raises:
        StoreFormatError: If the note is not a text.
    """
    rows = fetch_rows(connection, _SELECT_NOTE, (_NOTE_PREFIX + name,))
    if not rows:
        return None
    ((value,),) = rows
    if not isinstance(value, str):
        raise StoreFormatError(
            f"{connection.filename}: the setting {_NOTE_PREFIX + name!r} is {value!r}, not a text"
        )
    return value


def exchange_note(
    connection: apsw.Connection, name: str, value: str | None, expected: str | None
) -> str | None:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards."""
    noted = read_note(connection, name)
    if noted != expected or noted == value:
        return noted
    if value is None:
        connection.execute("DELETE FROM setting WHERE name = ?", (_NOTE_PREFIX + name,))
    else:
        connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (_NOTE_PREFIX + name, value))
    return value


_ENTRIES: Final = "SELECT source, url, digest, ids FROM page"
_OF_SOURCE: Final = f"{_ENTRIES} WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
_OF_SOURCE_NAMED: Final = (
    f"{_ENTRIES} WHERE source = ?1 AND url IN (SELECT value FROM json_each(?2)) ORDER BY source, url"
)
_DIGESTS: Final = "SELECT url, digest FROM page WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
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


def read_page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = fetch_rows(connection, _OF_SOURCE, (source,))
    elif source is None:
        rows = fetch_rows(connection, _NAMED, (_urls_to_json(urls),))
    else:
        rows = fetch_rows(connection, _OF_SOURCE_NAMED, (source, _urls_to_json(urls)))
    with convert_row_errors("pages"):
        return [
            PageEntry(source=of, url=url, digest=digest, ids=tuple(orjson.loads(ids)))
            for of, url, digest, ids in rows
        ]


def read_page_digests(connection: apsw.Connection, source: str | None) -> dict[str, str]:
    """Return the digests of a source's pages (None: all sources), by url, without reading their ids."""
    with convert_row_errors("pages"):
        return dict(connection.execute(_DIGESTS, (source,)))


def _urls_to_json(urls: Sequence[str]) -> str:
    return orjson.dumps(list(urls)).decode()


_TOUCH: Final = (
    "INSERT INTO access SELECT document.id, ? FROM document WHERE document.id = ?"
    " ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
)
_ACCESSED: Final = "SELECT id, at FROM access WHERE id IN (SELECT value FROM json_each(?))"
DELETE_ACCESS: Final = "DELETE FROM access WHERE id = ?"
"""Forgets when a document was accessed; values: its id."""


def record_accesses(connection: apsw.Connection, times: Mapping[str, int]) -> int:
    """Record access times, keep the latest of each document, and return how many documents are stored."""
    before = connection.total_changes()
    connection.executemany(_TOUCH, [(at, id) for id, at in times.items()])
    return connection.total_changes() - before


def read_accesses(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the access times of the given documents, without documents that have none."""
    return dict(fetch_rows(connection, _ACCESSED, (orjson.dumps(list(ids)).decode(),)))

"""The small tables beside the documents: notes, indexed pages and access times; and the links, read whole.

Access times have a table of their own, so that recording one rewrites nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.engines.contract import PageEntry, StoredLinks
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.mirror import IN, OUT
from linkstore.engines.embedded.reader import StoreView
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
_DIGESTS: Final = "SELECT source, url, digest FROM page WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
_MERGED: Final = (
    "SELECT document, link_group, count(*) FROM link GROUP BY document, link_group HAVING count(*) > 1"
)


def read_notes(connection: apsw.Connection, names: Sequence[str] | None) -> dict[str, str]:
    """Return the notes with these names (None: all).

    Raises:
        StoreFormatError: If a note is not a text.
    """
    notes = dict(fetch_rows(connection, _GET_NOTES, (None if names is None else _to_json(names),)))
    for name, value in notes.items():
        if not isinstance(name, str) or not isinstance(value, str):
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


def read_links(view: StoreView) -> StoredLinks:
    """Return the links of all documents, from the mirror: from the table it takes ten times as long.

    The mirror merges links of a document with one tag where it can. How many they are stands in the table.
    """
    mirror, rows, end = view.mirror, view.mirror.all_visible(), len(view.mirror.link_group)
    position = np.full(len(mirror.keys), -1)
    position[rows] = np.arange(len(rows))
    document = position[mirror.link_document.rows(0, end)]
    kept = document >= 0
    document, group = document[kept], mirror.link_group.rows(0, end)[kept].astype(np.int64)
    bits, groups = mirror.link_bits.rows(0, end)[kept], len(mirror.group_keys)
    pairs, count = document * groups + group, np.ones(len(document), np.int64)  # pairs ascend
    merged = np.array(fetch_rows(view.connection, _MERGED), np.int64).reshape(-1, 3)
    (of, known), (at, found) = mirror.keys.find(merged[:, 0]), mirror.group_keys.find(merged[:, 1])
    known &= found  # all of them, unless the store is damaged
    wanted = position[of[known]] * groups + at[known]
    first = np.searchsorted(pairs, wanted)
    count[first] += merged[known, 2] - (np.searchsorted(pairs, wanted, "right") - first)
    kinds, tags = mirror.group_kind.rows(0, groups).tolist(), mirror.tags.take(np.arange(groups))
    return StoredLinks(
        ids=mirror.ids.take(rows),
        groups=[(mirror.kinds[kind], tag) for kind, tag in zip(kinds, tags, strict=True)],
        document=document,
        group=group,
        leads_out=(bits & OUT) != 0,
        leads_in=(bits & IN) != 0,
        count=count,
    )


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


def read_page_digests(connection: apsw.Connection, source: str | None) -> dict[tuple[str, str], str]:
    """Return the digests of a source's pages (None: all sources), without their ids, which take longest."""
    with convert_row_errors("pages"):
        return {(of, url): digest for of, url, digest in connection.execute(_DIGESTS, (source,))}


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

"""Reads the table of indexed pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw
import orjson

from linkstore.backends.base import PageEntry
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import decoding

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


def page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = rows_of(connection, _OF_SOURCE, (source,))
    elif source is None:
        rows = rows_of(connection, _NAMED, (_as_json(urls),))
    else:
        rows = rows_of(connection, _OF_SOURCE_NAMED, (source, _as_json(urls)))
    with decoding("pages"):
        return [
            PageEntry(source=of, url=url, digest=digest, ids=tuple(orjson.loads(ids)))
            for of, url, digest, ids in rows
        ]


def page_digests(connection: apsw.Connection, source: str | None) -> dict[str, str]:
    """Return the digests of a source's pages (None: all sources), by url, without reading their ids."""
    with decoding("pages"):
        return dict(connection.execute(_DIGESTS, (source,)))


def _as_json(urls: Sequence[str]) -> str:
    return orjson.dumps(list(urls)).decode()

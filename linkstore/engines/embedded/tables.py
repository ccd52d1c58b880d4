"""What is read from the tables as it is: records, indexed pages and access times; and all links.

Access times have a table of their own, so that recording one rewrites nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.core.links import parse_links
from linkstore.engines.contract import PageEntry, Record, StoredLinks
from linkstore.engines.embedded.mirror import SIDES
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.schema import check_texts, convert_row_errors, fetch_rows, read_metadata

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


def read_links(view: StoreView) -> StoredLinks:
    """Return the links of all documents, from the mirror: from the table it takes ten times as long.

    The mirror merges links of a document with one tag. How many they are stands in the table. It may have
    link groups without links that are gone from the table.
    """
    mirror, rows, end = view.mirror, view.mirror.all_visible(), len(view.mirror.link_group)
    position = np.full(len(mirror.keys), -1)
    position[rows] = np.arange(len(rows))
    document = position[mirror.link_document.rows(0, end)]
    kept = document >= 0
    document, group = document[kept], mirror.link_group.rows(0, end)[kept].astype(np.int64)
    out, into = (mirror.sides[side].weight.rows(0, end)[kept] >= 0 for side in SIDES)
    groups = len(mirror.group_keys)
    pairs, count = document * groups + group, np.ones(len(document), np.int64)  # pairs ascend
    with convert_row_errors("links, documents and link groups"):
        merged = np.array(fetch_rows(view.connection, _MERGED), np.int64).reshape(-1, 3)
        (of, known), (at, found) = mirror.keys.find(merged[:, 0]), mirror.group_keys.find(merged[:, 1])
        known &= found  # all of them, unless the store is damaged
        wanted = position[of[known]] * groups + at[known]
        count[np.searchsorted(pairs, wanted)] = merged[known, 2]
        ids = dict(fetch_rows(view.connection, "SELECT key, id FROM document"))
        named = fetch_rows(view.connection, "SELECT key, kind, tag FROM link_group")
        tags = {key: (kind, tag) for key, kind, tag in named}
        check_texts(chain(ids.values(), chain.from_iterable(tags.values())))
        found_ids = [ids[key] for key in mirror.keys.take(rows).tolist()]
    return StoredLinks(
        ids=found_ids,
        groups=[tags.get(key, ("", "")) for key in mirror.group_keys.rows(0, groups).tolist()],
        document=document,
        group=group,
        leads_out=out,
        leads_in=into,
        count=count,
    )


def read_page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = fetch_rows(connection, _OF_SOURCE, (source,))
    elif source is None:
        rows = fetch_rows(connection, _NAMED, (list(urls),))
    else:
        rows = fetch_rows(connection, _OF_SOURCE_NAMED, (source, list(urls)))
    with convert_row_errors("pages"):
        return [
            PageEntry(source=of, url=url, digest=digest, ids=tuple(orjson.loads(ids)))
            for of, url, digest, ids in rows
        ]


def read_page_digests(connection: apsw.Connection, source: str | None) -> dict[tuple[str, str], str]:
    """Return the digests of a source's pages (None: all sources), without their ids, which take longest."""
    with convert_row_errors("pages"):
        return {(of, url): digest for of, url, digest in connection.execute(_DIGESTS, (source,))}


def record_accesses(connection: apsw.Connection, times: Mapping[str, int]) -> int:
    """Record access times, keep the latest of each document, and return how many documents are stored."""
    before = connection.total_changes()
    connection.executemany(_TOUCH, [(at, id) for id, at in times.items()])
    return connection.total_changes() - before


def read_accesses(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the access times of the given documents, without documents that have none."""
    return dict(fetch_rows(connection, _ACCESSED, (list(ids),)))


def read_records(connection: apsw.Connection, after: str | None, limit: int) -> list[Record]:
    """Return up to ``limit`` records with ids greater than ``after``, ordered by id."""
    rows = connection.execute(
        "SELECT id, text, metadata, links, embedding FROM document JOIN vector USING (key)"
        " WHERE id > ? ORDER BY id LIMIT ?",
        (after or "", limit),
    )
    with convert_row_errors("documents"):
        return [_make_record(*row) for row in rows]


def _make_record(id: str, text: str, metadata: str, links: str | None, embedding: bytes) -> Record:
    fields = read_metadata(metadata, links)
    vector = np.frombuffer(embedding, dtype="<f4")
    return Record(id=id, text=text, metadata=fields, vector=vector, links=parse_links(fields, id))

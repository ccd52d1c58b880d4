"""The tables of a store, readable in any SQLite browser: limits, settings, and what is read as it is.

A change that exceeds a limit is refused before any of it is written. Settings and metadata are checked where
they are read, because another program may have changed the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Ints
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import list_name_notes
from linkstore.engines.contract import PageEntry, Record
from linkstore.engines.embedded import lexical
from linkstore.errors import DocumentError, LinkStoreError, StoreFormatError, StoreLimitError

MOST_KEYS: Final = 2**31 - 2
"""The most document versions ever written, and link groups ever made: both have 32-bit numbers."""
MOST_TEXT_BYTES: Final = 16 << 20
"""The largest text of a document, and the largest metadata and links as JSON, in bytes of UTF-8."""
MOST_WORDS_BYTES: Final = 2 * MOST_TEXT_BYTES
"""The most bytes of one document's words: case folding turns a few characters into up to eighteen."""
_GET_NOTES: Final = (
    "SELECT name, text FROM note WHERE ?1 IS NULL OR name IN (SELECT value FROM json_each(?1))"
)
FORGET_NAMES: Final = "DELETE FROM note WHERE substr(name, 1, 5) <> 'note '"
ADD_NOTE: Final = "INSERT OR IGNORE INTO note VALUES (?, '')"
_ENTRIES: Final = "SELECT source, url, digest, ids FROM page"
_OF_SOURCE: Final = f"{_ENTRIES} WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
# Enumerates the sources by jumps through the table's primary key, so that the entries are not all scanned.
_NAMED: Final = f"""
WITH RECURSIVE of(name) AS (
  SELECT ifnull(?1, (SELECT min(source) FROM page))
  UNION ALL
  SELECT (SELECT min(source) FROM page WHERE source > name) FROM of WHERE name IS NOT NULL AND ?1 IS NULL
)
{_ENTRIES} WHERE source IN (SELECT name FROM of WHERE name IS NOT NULL)
  AND url IN (SELECT value FROM json_each(?2)) ORDER BY source, url
"""
_FIND_GROUPS: Final = (
    "SELECT json_group_array(key) FROM (SELECT ifnull(link_group.key, -1) AS key"
    " FROM json_each(?) LEFT JOIN link_group ON kind = value ->> 0 AND tag = value ->> 1)"
)
_TOUCH: Final = (
    "INSERT INTO access SELECT document.id, ? FROM document WHERE document.id = ?"
    " ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
)
_ACCESSED: Final = "SELECT id, at FROM access WHERE id IN (SELECT value FROM json_each(?))"
_DIGESTS: Final = "SELECT source, url, digest FROM page WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
DATA_FIELD: Final = '"data":'
"""The JSON of links contains this string if one of them has data."""
APPLICATION_ID: Final = 0x6C6E6B73
"""``lnks`` in the file header identifies a linkstore database."""
FORMAT_VERSION: Final = 1

TABLES: Final = """
CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value
) WITHOUT ROWID;
CREATE TABLE document (
  key INTEGER PRIMARY KEY,        -- never used again, so what is derived can be told by key
  id TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  metadata TEXT NOT NULL,         -- JSON, without links
  links TEXT,                     -- JSON, as the author wrote them; NULL: the metadata has none
  hash BLOB NOT NULL              -- of everything above and the vector
);
CREATE TABLE vector (
  key INTEGER PRIMARY KEY,        -- of the document
  embedding BLOB NOT NULL         -- float32, little-endian, unit length
);
CREATE TABLE link_group (
  key INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  tag TEXT NOT NULL,
  UNIQUE (kind, tag)
);
CREATE TABLE link (
  document INTEGER NOT NULL,
  link_group INTEGER NOT NULL,
  direction TEXT NOT NULL,        -- in, out, bidir
  label TEXT,
  weight REAL NOT NULL,
  PRIMARY KEY (document, link_group, direction)
) WITHOUT ROWID;
CREATE TABLE departed (
  key INTEGER PRIMARY KEY,        -- a document key that is gone
  change INTEGER NOT NULL         -- the change that removed it
);
CREATE INDEX departed_change ON departed (change);
CREATE TABLE page (
  source TEXT NOT NULL,
  url TEXT NOT NULL,
  digest TEXT NOT NULL,
  ids TEXT NOT NULL,              -- JSON list of document ids
  PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE TABLE access (
  id TEXT PRIMARY KEY,            -- of the document; it outlives updates, which change the key
  at INTEGER NOT NULL             -- microseconds since 1970, UTC
) WITHOUT ROWID;
CREATE TABLE note (
  name TEXT PRIMARY KEY,          -- with a prefix that tells a note from the name of a kind or a field
  text TEXT NOT NULL              -- empty for a name
) WITHOUT ROWID;
-- word: the words of each document, for lexical search
INSERT INTO setting VALUES ('change', 0), ('last_key', 0), ('last_group', 0), ('documents', 0);
"""
SNAPSHOT: Final = "snapshot"
"""The setting with the record of the last snapshot."""
FLOOR: Final = "floor"
"""The setting with the last change whose removals are no longer listed."""
UNLISTED: Final = "unlisted"
"""The setting that counts the removals that are no longer listed."""
COUNTERS: Final = {
    "change": "SELECT max(change) FROM departed",
    "last_key": (
        "SELECT max(key) FROM (SELECT max(key) AS key FROM document UNION ALL SELECT max(key) FROM vector"
        " UNION ALL SELECT max(key) FROM departed)"
    ),
    "last_group": "SELECT max(key) FROM link_group",
    "documents": "SELECT count(*) FROM document",
}
"""The counters that every store has, and the queries for their least values, or that of ``documents``."""
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "change": (0, 2**62),
    "last_key": (0, MOST_KEYS),
    "last_group": (0, MOST_KEYS),
    "documents": (0, 2**62),
    FLOOR: (0, 2**62),
    UNLISTED: (0, 2**62),
    "dimension": (1, 2**20 - 1),
}


def check_sizes(id: str, **sizes: int) -> None:
    """Refuse a document that is too large.

    Args:
        id: The document's id.
        sizes: Bytes of UTF-8 of each part of the document, by the part's name.

    Raises:
        DocumentError: If a part is too large; the message names the document and the limit.
    """
    for part, size in sizes.items():
        most = MOST_WORDS_BYTES if part == "words" else MOST_TEXT_BYTES
        if size > most:
            raise DocumentError(
                f"document {id!r} cannot be stored: of {part} it has {size:,} bytes, and at most"
                f" {most:,} are allowed; split it into chunks"
            )


def check_keys(what: str, last: int) -> None:
    """Refuse a change that would need keys beyond the limit.

    Args:
        what: What the keys number, in words.
        last: The last key that the change would assign.

    Raises:
        StoreLimitError: If ``last`` exceeds the limit, which the message names.
    """
    if last > MOST_KEYS:
        raise StoreLimitError(
            f"the store would have numbered {last:,} {what} since it was made, and at most {MOST_KEYS:,}"
            " can be: copy its documents into a new store"
        )


def fetch_rows(connection: apsw.Connection, query: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a query, as tuples. The types of their values are not checked.

    Args:
        connection: The connection.
        query: The statement.
        bindings: Its values. A list is given as JSON, for ``json_each``. SQLite takes the tables of a ``CROSS
            JOIN`` as they stand, so ``json_each(?) CROSS JOIN …`` finds rows in the order of the list.
    """
    values = list(bindings)
    for at, value in enumerate(bindings):
        if isinstance(value, list):
            values[at] = orjson.dumps(value).decode()
    return connection.execute(query, values).fetchall()


def create_tables(connection: apsw.Connection, path: str) -> None:
    """Create the tables if the database is empty, in one transaction.

    If this raises, close the connection, which rolls back.

    Raises:
        StoreFormatError: If the file is not a linkstore database, or has another format.
    """
    if not _is_empty(connection):
        check_format(connection, path)
        return
    connection.execute("BEGIN IMMEDIATE")
    if _is_empty(connection):  # another process may have created them meanwhile
        connection.execute(TABLES + lexical.WORD_TABLE)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", FORMAT_VERSION)
    connection.execute("COMMIT")
    check_format(connection, path)


def check_format(connection: apsw.Connection, path: str) -> None:
    """Refuse a database that this version does not read.

    Raises:
        StoreFormatError: If the file is not a linkstore database, or has another format.
    """
    if int(connection.pragma("application_id")) != APPLICATION_ID:
        raise StoreFormatError(f"{path} is an SQLite database, but not one of linkstore's")
    version = int(connection.pragma("user_version"))
    if version != FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {version}, and this linkstore reads format {FORMAT_VERSION}: open it with"
            " the version that wrote it, or index its sources again, into a new folder"
        )


def _is_empty(connection: apsw.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def read_settings(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings and check it.

    Raises:
        StoreFormatError: If a counter is missing or invalid; ``repair`` restores it.
    """
    settings = read_raw_settings(connection)
    if wrong := list(find_setting_problems(settings).values()):
        raise StoreFormatError(
            f"{connection.filename}: {wrong[0]}; run repair, or restore the store from a copy"
        )
    return settings


def read_raw_settings(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings, without checks."""
    rows: list[Any] = connection.execute("SELECT name, value FROM setting").fetchall()
    return dict(rows)


def write_settings(connection: apsw.Connection, settings: Mapping[str, Any]) -> None:
    """Set some settings (None: delete them), in an open write transaction."""
    rows = list(settings.items())
    connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", rows)
    connection.executemany("DELETE FROM setting WHERE name = ? AND ? IS NULL", rows)


def find_setting_problems(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems of the settings by themselves, by the name of the setting."""
    problems: dict[str, str] = {}
    for name, (least, most) in _RANGES.items():
        value = settings.get(name)
        if value is None and name not in COUNTERS:
            continue
        if not isinstance(value, int) or not least <= value <= most:
            problems[name] = f"the setting {name!r} is {value!r}"
    return problems


def find_counter_problems(connection: apsw.Connection) -> list[str]:
    """Return the problems of the settings, by themselves and compared with the tables."""
    settings = read_raw_settings(connection)
    return list(find_setting_problems(settings).values()) or [
        f"the setting {name!r} is {settings[name]}, and the tables have {table}"
        for name, table in _count_tables(connection).items()
        if settings[name] < table or (name == "documents" and settings[name] > table)
    ]


def restore_counters(connection: apsw.Connection) -> None:
    """Restore the settings from the tables, in an open write transaction. No number is assigned twice."""
    settings = read_raw_settings(connection)
    restored: dict[str, Any] = dict.fromkeys(find_setting_problems(settings))
    for name, table in _count_tables(connection).items():
        recorded = 0 if name in restored or name == "documents" else settings[name]
        restored[name] = max(recorded, table)
    if "dimension" in restored:
        query = "SELECT length(embedding) FROM vector GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
        size = connection.execute(query).get or 0
        restored["dimension"] = size // 4 if size % 4 == 0 else None
    write_settings(connection, restored)


def _count_tables(connection: apsw.Connection) -> dict[str, int]:
    counts = {name: connection.execute(query).get for name, query in COUNTERS.items()}
    return {name: value if isinstance(value, int) else 0 for name, value in counts.items()}


def read_metadata(metadata: str, links: str | None) -> dict[str, Any]:
    """Return a document's metadata as its author gave it, with its links.

    Raises:
        ValueError: If a text is not valid JSON.
        TypeError: If the metadata is not a JSON object.
    """
    fields: Any = orjson.loads(metadata) if metadata != "{}" else {}
    if not isinstance(fields, dict):
        raise TypeError(f"metadata {metadata!r} is not a JSON object")
    if links is not None:
        fields[LINKS_KEY] = orjson.loads(links)
    return fields


def read_notes(connection: apsw.Connection, names: Sequence[str] | None) -> dict[str, str]:
    """Return the notes with these names (None: all).

    Raises:
        StoreFormatError: If a note is not a text.
    """
    notes = dict(fetch_rows(connection, _GET_NOTES, (None if names is None else list(names),)))
    with convert_row_errors("notes"):
        check_texts(chain.from_iterable(notes.items()))
    return notes


def exchange_note(
    connection: apsw.Connection, name: str, value: str | None, expected: str | None
) -> str | None:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards."""
    stored = read_notes(connection, [name]).get(name)
    if stored != expected or stored == value:
        return stored
    if value is None:
        connection.execute("DELETE FROM note WHERE name = ?", (name,))
    else:
        connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, value))
    return value


def find_groups(connection: apsw.Connection, groups: Sequence[tuple[str, str]]) -> list[int]:
    """Return the keys of link groups by kind and tag, -1 for one that does not exist."""
    keys: list[int] = orjson.loads(fetch_rows(connection, _FIND_GROUPS, (list(groups),))[0][0])
    return keys


def read_ids(connection: apsw.Connection, keys: Ints) -> list[str]:
    """Return the ids of documents (n,) that exist."""
    return [id for (id,) in _read_texts(connection, "document.id", "document", keys)]


def read_kinds(connection: apsw.Connection, keys: Ints) -> list[str]:
    """Return the kinds of link groups (n,) that exist."""
    return [kind for (kind,) in _read_texts(connection, "kind", "link_group", keys)]


def read_tags(connection: apsw.Connection, keys: Ints) -> list[tuple[str, str]]:
    """Return the kinds and tags of link groups (n,) that exist."""
    return _read_texts(connection, "kind, tag", "link_group", keys)


def _read_texts(connection: apsw.Connection, columns: str, table: str, keys: Ints) -> list[Any]:
    query = f"SELECT {columns} FROM json_each(?) CROSS JOIN {table} ON {table}.key = value"
    rows = fetch_rows(connection, query, (keys.tolist(),))
    with convert_row_errors("documents and link groups"):
        if len(rows) != len(keys):
            raise KeyError(f"of {len(keys)} keys, {len(rows)} are there")
        check_texts(chain.from_iterable(rows))
    return rows


def check_texts(values: Iterable[object]) -> None:
    """Check that values from a row are texts.

    Raises:
        TypeError: If one is not.
    """
    listed = list(values)
    if not {str}.issuperset(map(type, listed)):
        wrong = next(value for value in listed if type(value) is not str)
        raise TypeError(f"{wrong!r} is not a text")


def record_names(connection: apsw.Connection, names: Vocabulary) -> None:
    """Record the names of kinds and fields, in an open write transaction."""
    connection.executemany(ADD_NOTE, [(name,) for name in list_name_notes(names)])


def collect_names(connection: apsw.Connection) -> Vocabulary:
    """Return the names that documents use, except for unreadable documents."""
    fields, link_fields = set[str](), set[str]()
    texts = connection.execute("SELECT DISTINCT kind FROM link_group WHERE typeof(kind) = 'text'")
    kinds = frozenset(row[0] for row in texts)
    for metadata, links in connection.execute("SELECT metadata, links FROM document"):
        with contextlib.suppress(ValueError, TypeError, AttributeError):  # verify reports such documents
            fields.update(orjson.loads(metadata))
            if links is not None:
                fields.add(LINKS_KEY)
            if links is not None and DATA_FIELD in links:
                for link in parse_links(read_metadata("{}", links)):
                    link_fields.update(link.data or ())
    return Vocabulary(kinds=kinds, fields=frozenset(fields), link_fields=frozenset(link_fields)).checkable


@contextlib.contextmanager
def convert_row_errors(what: str) -> Iterator[None]:
    """Convert the errors that invalid rows cause to StoreFormatError.

    Args:
        what: What is being read, such as ``"documents"``.
    """
    try:
        yield
    except LinkStoreError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise StoreFormatError(
            f"{what} in the database: there is a value that linkstore does not write ({error}); run verify"
            " and repair, or restore the store from a copy"
        ) from error


def read_page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = fetch_rows(connection, _OF_SOURCE, (source,))
    else:
        rows = fetch_rows(connection, _NAMED, (source, list(urls)))
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
        return [make_record(*row) for row in rows]


def make_record(id: str, text: str, metadata: str, links: str | None, embedding: bytes) -> Record:
    """Make a record of what the tables have of a document."""
    fields = read_metadata(metadata, links)
    vector = np.frombuffer(embedding, dtype="<f4")
    return Record(id=id, text=text, metadata=fields, vector=vector, links=parse_links(fields, id))

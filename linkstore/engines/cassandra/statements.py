"""Statements: their form, and the CQL of all of them.

A store in Cassandra has seven tables. ``$documents`` contains the documents by id, but for long texts, which
``$texts`` contains, so that a search does not read them. Members and words can be rebuilt from these two.
``$members`` has a partition for each side of each link group, with one row for each document on that side and
a compressed copy of its vector, so following a link group reads one partition. ``$words`` contains the
documents of each word. Stores without lexical search do not have it. ``$accesses`` contains the time of the
last access to each document, ``$pages`` the indexed pages, ``$settings`` what the store records of itself.
The executor of a store replaces these by the names of its tables, see :meth:`Tables.name_in`.

Every write is a batch with one timestamp. A write to members or words adds states to rows, or replaces the
earlier states. What is written has a lifetime in seconds, 0 for ever. This module does not import the driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, Final, Literal

from linkstore.core.plans import EngineOperation
from linkstore.engines.cassandra.limits import LostTime
from linkstore.errors import BackendError

Level = Literal["read", "write", "one", "schema", "prepare"]
"""Determines the consistency level: reads and writes use those of the settings; ``one`` is LOCAL_ONE, which
nearest-neighbour search requires. ``schema`` statements are not prepared and have a separate timeout, and
``prepare`` is the preparation of a text."""
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An idempotent CQL statement.

    Args:
        cql: Its text, with ``?`` for values, prepared once per session. ``schema`` statements have no values.
        values: One for each ``?``.
        packed: Whether the values are bytes in the format of the native protocol. Saves time for statements
            with hundreds of values, which the driver is slow to serialise.
        level: Determines the consistency level.
        routing: The routing key of a replica to send it to, for statements with partition keys in an IN.
            None: the driver derives it from the values.
        limit: Maximum number of rows of the answer, if it is known. A few rows are read without pages: with a
            size of pages, a server reads the partitions of an IN one by one, which takes twice as long.
    """

    cql: str
    values: Sequence[Any] = ()
    packed: bool = False
    level: Level = "read"
    routing: bytes | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Statements to run concurrently, answered by a list with the list of rows of each.

    Args:
        statements: Any number of statements. The number of concurrent ones is bounded.
        what: The operation, as in "could not read link groups".
        wait: Seconds to wait before that.
        take: Called with the rows of each page, in the thread that waits. Then the answer has no rows.
        lost: Counts the time that the operation loses to failures. None: these requests are one on their own.
    """

    statements: tuple[Statement, ...]
    what: str
    wait: float = 0.0
    take: Callable[[list[Row]], None] | None = None
    lost: LostTime | None = None


def send(requests: Requests) -> EngineOperation[list[list[Row]]]:
    """Run statements, and return the rows of each."""
    answers: list[list[Row]] = yield requests
    return answers


def run_writes(what: str, statements: Iterable[Statement]) -> EngineOperation[None]:
    """Run write statements, with ``what`` as in :class:`Requests`."""
    yield from send(Requests(statements=tuple(statements), what=what))


def run_each(what: str, cql: str, rows: Iterable[Sequence[Any]]) -> EngineOperation[None]:
    """Run a write statement once for each row of values, with ``what`` as in :class:`Requests`."""
    yield from run_writes(what, (Statement(cql=cql, values=row, level="write") for row in rows))


def ask(
    what: str, cql: str, *values: Any, level: Level = "read", limit: int | None = None
) -> EngineOperation[list[Row]]:
    """Run one statement and return its rows, with ``what`` as in :class:`Requests`."""
    statement = Statement(cql=cql, values=values, level=level, limit=limit)
    (rows,) = yield from send(Requests(statements=(statement,), what=what))
    return list(rows)


_TABLE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,37}")
_TABLE_SUFFIXES: Final = ("_settings", "_pages", "_accesses", "_texts", "_members", "_words")
"""Ends of the names of a store's other tables.

No store's own name ends so, and none of these ends with another. So no two stores share a table.
"""


def quote_identifier(name: str) -> str:
    """Return the name of a keyspace, table or column as CQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one store.

    Args:
        keyspace: The keyspace, spelled as in the schema.
        name: Name of the table of documents, with which the names of the other tables start.

    Raises:
        BackendError: If the name is not valid for tables.
    """

    keyspace: str
    name: str

    def __post_init__(self) -> None:
        if _TABLE_NAME.fullmatch(self.name) is None or self.name.endswith(_TABLE_SUFFIXES):
            raise BackendError(
                f"{self.name!r} cannot name tables in Cassandra: take a letter and up to 37 letters,"
                " digits and underscores that do not end with "
                f"{', '.join(_TABLE_SUFFIXES)}, as its other tables do"
            )

    @property
    def all_names(self) -> set[str]:
        """All tables, spelled as in the schema."""
        return {self.name, *(self.name + suffix for suffix in _TABLE_SUFFIXES)}

    def name_in(self, text: str) -> str:
        """Return a statement of this module with the names of these tables in it.

        ``$documents``, ``$members`` and the others stand for the quoted names, ``$store`` for the bare name.
        """
        keyspace = quote_identifier(self.keyspace)
        names = {end[1:]: f'{keyspace}."{self.name}{end}"' for end in _TABLE_SUFFIXES}
        return Template(text).substitute(names, documents=f'{keyspace}."{self.name}"', store=self.name)


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table whose rows are derived from documents: members, or words.

    Args:
        name: Its name, as in statements.
        partition: The columns of the key of a partition.
        clustering: The other columns of the key of a row; the last is the document's id.
    """

    name: str
    partition: tuple[str, ...]
    clustering: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the key of a row."""
        return self.partition + self.clustering

    @property
    def where(self) -> str:
        """The condition that selects one row."""
        return f"WHERE {' AND '.join(f'{column} = ?' for column in self.key)}"


MEMBER_ROWS: Final = DerivedTable("$members", ("kind", "tag", "side", "bucket"), ("id",))
"""The members on each side of link groups."""
WORD_ROWS: Final = DerivedTable("$words", ("shard", "bucket"), ("word", "hash", "id"))
"""The documents that contain each word."""
_DERIVED_OPTIONS: Final = (
    "WITH gc_grace_seconds = 60 AND compaction = {'class': 'LeveledCompactionStrategy',"
    " 'tombstone_threshold': '0.1', 'tombstone_compaction_interval': '3600',"
    " 'unchecked_tombstone_compaction': 'true'}"
)
"""Options of the tables derived from documents.

Readers ignore a deleted row that reappears, so tombstones are kept only long enough for a node to recover
from a short outage. Rows are overwritten often; leveled compaction keeps each row in few files.
"""
_EXPIRING_OPTIONS: Final = (
    " WITH gc_grace_seconds = 10800 AND compaction = {'class': 'SizeTieredCompactionStrategy',"
    " 'tombstone_threshold': '0.1', 'tombstone_compaction_interval': '3600',"
    " 'unchecked_tombstone_compaction': 'true'}"
)
"""Options of the other tables of a store whose documents expire.

What has expired need not be kept, because it expires on every replica. Deletions are kept as long as hints
are. A replica that misses one for longer may bring a document back until it expires, unless it is repaired.
"""


def create_small_tables(*, expiring: bool) -> tuple[str, ...]:
    """Create the tables that do not depend on the embedding. Every store has the first one.

    The pages of a source are in several partitions. The sources themselves are in a partition of their own,
    see :data:`READ_SOURCES`. The table of access times is separate from the documents because a write to a
    document's row also goes to the vector index. :func:`.tables.make_access_key` describes its ``id``,
    :data:`WRITE_ACCESS` the timestamps.
    """
    options = _EXPIRING_OPTIONS if expiring else ""
    return (
        "CREATE TABLE IF NOT EXISTS $settings (name text PRIMARY KEY, value text)",
        "CREATE TABLE IF NOT EXISTS $pages (source text, shard int, url text, digest text,"
        f" ids frozen<list<text>>, PRIMARY KEY ((source, shard), url)){options}",
        f"CREATE TABLE IF NOT EXISTS $accesses (id text PRIMARY KEY, at bigint){options}",
    )


def create_document_tables(dimension: int, *, expiring: bool) -> tuple[str, ...]:
    """Create the tables of documents and of long texts, with two SAI indexes (Astra allows ten).

    ``links`` are those in ``written_links``, parsed (:func:`.codec.dump_links`). ``size`` is the number of
    bytes of a text that is in the table of texts, otherwise 0. ``relinked`` has the
    links that were replaced since the document was written, by kind (:func:`.codec.merge_replaced_links`).
    ``born`` is when the document was added: its first timestamp, which updates keep.
    """
    options = _EXPIRING_OPTIONS if expiring else ""
    return (
        "CREATE TABLE IF NOT EXISTS $documents (id text PRIMARY KEY, body text, attributes text,"
        " searchable set<text>, digest blob, links text, written_links text,"
        f" vector vector<float, {dimension}>, size int, relinked map<text, text>, born bigint){options}",
        f"CREATE TABLE IF NOT EXISTS $texts (id text PRIMARY KEY, body text){options}",
        'CREATE CUSTOM INDEX IF NOT EXISTS "${store}_by_vector" ON $documents (vector)'
        " USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'DOT_PRODUCT'}",
        'CREATE CUSTOM INDEX IF NOT EXISTS "${store}_by_entry" ON $documents'
        " (searchable) USING 'StorageAttachedIndex'",
    )


CREATE_MEMBER_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS $members (kind text, tag text, side text, bucket int, id text,"
    f" states set<blob>, PRIMARY KEY ((kind, tag, side, bucket), id)) {_DERIVED_OPTIONS}"
)
"""Create the table of members. :mod:`.derived` describes ``states``."""
CREATE_WORD_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS $words (shard int, bucket int, word text, hash blob, id text,"
    f" states set<blob>, PRIMARY KEY ((shard, bucket), word, hash, id)) {_DERIVED_OPTIONS}"
)
"""Create the table of words. A partition has many words, so that a document writes to few partitions.

:mod:`.derived` describes ``hash`` and ``states``.
"""
READ_TABLE_NAMES: Final = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?"
"""Names of the tables in a keyspace; values: the keyspace."""
READ_KEYSPACE: Final = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?"
"""The keyspace of a name, if there is one; values: the name."""
READ_CLOCK: Final = "SELECT toTimestamp(now()), rpc_address FROM system.local"
"""Clock time and address of the node that answers."""
READ_SETTINGS: Final = "SELECT name, value FROM $settings"
"""Select all settings as (name, value)."""
READ_NAMED_SETTINGS: Final = f"{READ_SETTINGS} WHERE name IN ?"
"""Select some settings as (name, value). Values: list of names."""


def write_settings(count: int) -> str:
    """Insert ``count`` settings without a value. Values: their names."""
    insert = "INSERT INTO $settings (name, value) VALUES (?, '')"
    return f"BEGIN UNLOGGED BATCH {'; '.join([insert] * count)}; APPLY BATCH"


EXCHANGE_SETTING: Final = "UPDATE $settings SET value = ? WHERE name = ? IF value = ?"
"""Set a setting (null: remove it) if it has the old value (null: none), returning (applied, …).

Values: new value, name, old value.
"""
INSERT_SETTING: Final = "INSERT INTO $settings (name, value) VALUES (?, ?) IF NOT EXISTS"
"""Insert a setting if none has that name, returning (applied, and if not, name, value).

Values: name, value.
"""
DOCUMENT: Final = "id, body, attributes, links, written_links, digest, vector, relinked, size"
"""What is read of a document to search. What it must have comes first: see :func:`.codec.is_whole`."""
VERSION: Final = (
    f"{DOCUMENT}, TTL(digest), born,"
    " WRITETIME(body), WRITETIME(attributes), WRITETIME(digest), WRITETIME(vector), WRITETIME(links)"
)
"""What must be known of a document to write it: also the remaining seconds of its lifetime, when it was
added, and write times."""
READ_TEXTS: Final = "SELECT id, body FROM $texts WHERE id IN ?"
"""Select long texts. Values: list of ids."""
READ_DOCUMENTS: Final = f"SELECT {DOCUMENT} FROM $documents WHERE id IN ?"
"""Select documents. Values: list of ids."""
READ_VERSIONS: Final = f"SELECT {VERSION} FROM $documents WHERE id IN ?"
"""Select what must be known of documents to write them. Values: list of ids."""
READ_ATTRIBUTES: Final = "SELECT id, attributes FROM $documents WHERE id IN ?"
"""Select what filters ask for. Values: list of ids."""
READ_PRESENCE: Final = "SELECT id, digest, born FROM $documents WHERE id IN ?"
"""Select when documents were added. One without a digest was removed. Values: list of ids."""


def select_nearest(equalities: int, *, whole: bool) -> str:
    """Select the documents nearest to a vector, or only their ids.

    Values: the entry of each equality, the vector, the limit.
    """
    where = " AND ".join(["searchable CONTAINS ?"] * equalities)
    return (
        f"SELECT {DOCUMENT if whole else 'id'} FROM $documents{' WHERE ' + where if where else ''}"
        " ORDER BY vector ANN OF ? LIMIT ?"
    )


def read_equal(equalities: int) -> str:
    """Select the ids and metadata of documents with these field values.

    Values: the entry of each, the limit.
    """
    where = " AND ".join(["searchable CONTAINS ?"] * equalities)
    return f"SELECT id, attributes FROM $documents WHERE {where} LIMIT ?"


_OF_TOKENS: Final = "FROM $documents WHERE token(id) > ? AND token(id) <= ? LIMIT ?"
READ_ALL_VERSIONS: Final = f"SELECT {VERSION}, token(id) {_OF_TOKENS}"
"""Select what must be known of the next documents in token order, and their tokens.

Values: the token before the range, the last token of the range, the limit.
"""
READ_ALL_LINKS: Final = (
    "SELECT id, WRITETIME(body), WRITETIME(attributes), links, written_links, digest, WRITETIME(vector),"
    f" relinked, token(id) {_OF_TOKENS}"
)
"""Select the links of the next documents in token order: (id, write times of body and attributes, links,
links as written, digest, write time of the vector, replaced links, token).

Values: those of :data:`READ_ALL_VERSIONS`.
"""


_WRITE_DOCUMENT: Final = (
    "INSERT INTO $documents (id, body, attributes, searchable, links, written_links, digest, vector, size,"
    " born, relinked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null) USING TTL ?"
)


def write_documents(count: int) -> str:
    """Write ``count`` documents with one timestamp, and forget links that were replaced before.

    Values: timestamp, and for each: id, body, attributes, searchable, links, links as written, digest,
    vector, size, when it was added, lifetime.
    """
    return repeat_in_batch(_WRITE_DOCUMENT, count)


WRITE_WITH_TEXT: Final = (
    f"BEGIN UNLOGGED BATCH USING TIMESTAMP ? {_WRITE_DOCUMENT};"
    " INSERT INTO $texts (id, body) VALUES (?, ?) USING TTL ?; APPLY BATCH"
)
"""Write a document with a long text. Both rows have the same key, so for the server it is a single write.

Values: those of :func:`write_documents` for one document, then id, text, lifetime.
"""
WRITE_WITHOUT_TEXT: Final = (
    f"BEGIN UNLOGGED BATCH USING TIMESTAMP ? {_WRITE_DOCUMENT}; DELETE FROM $texts WHERE id = ?; APPLY BATCH"
)
"""Write a document in place of one with a long text. Values: those of :func:`write_documents`, then id."""


def repeat_in_batch(one: str, count: int) -> str:
    """Repeat a statement in an unlogged batch, which saves requests and has no other guarantees."""
    return f"BEGIN UNLOGGED BATCH USING TIMESTAMP ? {'; '.join([one] * count)}; APPLY BATCH"


_USING: Final = "USING TIMESTAMP ? AND TTL ?"
WRITE_LINKS: Final = f"UPDATE $documents {_USING} SET relinked = relinked + ? WHERE id = ?"
"""Replace the links of some kinds of one document. Values: timestamp, lifetime, links by kind, id."""
DELETE_DOCUMENTS: Final = (
    "BEGIN UNLOGGED BATCH USING TIMESTAMP ? DELETE FROM $documents WHERE id IN ?;"
    " DELETE FROM $texts WHERE id IN ?; APPLY BATCH"
)
"""Delete documents and their texts. Values: timestamp, list of ids, the same list."""
WRITE_ACCESS: Final = f"INSERT INTO $accesses (id, at) VALUES (?, ?) {_USING}"
"""Record an access. Values: key, time of the access, the same time as timestamp, lifetime.

The latest access is kept, regardless of the order of the writes.
"""
READ_ACCESSES: Final = "SELECT id, at FROM $accesses WHERE id IN ?"
"""Select access times of documents: (key, time). Values: list of keys."""
DELETE_ACCESSES: Final = "DELETE FROM $accesses USING TIMESTAMP ? WHERE id IN ?"
"""Delete access times. Values: timestamp, list of keys."""
READ_PAGES: Final = "SELECT source, url, digest, ids FROM $pages WHERE source = ? AND shard = ?"
"""Select page entries of a shard of a source: (source, url, digest, ids). Values: source, shard."""
READ_NAMED_PAGES: Final = f"{READ_PAGES} AND url IN ?"
"""Select page entries. Values: source, shard, list of urls."""
READ_SOURCES: Final = "SELECT url FROM $pages WHERE source = '' AND shard = -1"
"""Select the sources that have, or had, pages: (source,)."""
WRITE_SOURCE: Final = (
    "INSERT INTO $pages (source, shard, url, digest) VALUES ('', -1, ?, '') USING TIMESTAMP ? AND TTL 0"
)
"""Record a source. Values: source, timestamp."""
READ_PAGE_TIMES: Final = (
    "SELECT source, url, WRITETIME(digest) FROM $pages WHERE source = ? AND shard = ? AND url IN ?"
)
"""Select write times of page entries: (source, url, microseconds since 1970).

Values: source, shard, list of urls.
"""
WRITE_PAGE: Final = f"INSERT INTO $pages (source, shard, url, digest, ids) VALUES (?, ?, ?, ?, ?) {_USING}"
"""Write one page entry. Values: source, shard, url, digest, ids, timestamp, lifetime."""
DELETE_PAGE: Final = "DELETE FROM $pages USING TIMESTAMP ? WHERE source = ? AND shard = ? AND url = ?"
"""Delete a page entry. Values: timestamp, source, shard, url."""
_OF_GROUPS: Final = "WHERE kind = ? AND tag IN ? AND side = ? AND bucket IN ? PER PARTITION LIMIT ?"
READ_MEMBERS: Final = f"SELECT tag, id, states FROM $members {_OF_GROUPS}"
"""Select members. Values: kind, tags, side, buckets, limit per partition."""
READ_FURTHER_MEMBERS: Final = f"{READ_MEMBERS} LIMIT ?"
"""Select members of one group. Values: those of :data:`READ_MEMBERS`, and the limit of all."""
READ_LIST: Final = (
    "SELECT bucket, id, states FROM $members"
    " WHERE kind = ? AND tag = ? AND side = ? AND bucket IN ? PER PARTITION LIMIT ?"
)
"""Select rows of the list of documents. Values: kind, tag, side, buckets, limit per partition."""
READ_MEMBER_TAGS: Final = (
    "SELECT tag FROM $members"
    " WHERE kind = ? AND tag IN ? AND side = ? AND bucket IN ? AND id > '' PER PARTITION LIMIT ?"
)
"""Select the tags of members, as many as there are members. Values: those of :data:`READ_MEMBERS`."""
COUNT_MEMBERS: Final = "SELECT COUNT(*) FROM $members WHERE kind = ? AND tag = ? AND side = ? AND bucket = 0"
"""Count the rows of the first partition of a side of a link group. Values: kind, tag, side."""
READ_MORE_MEMBERS: Final = (
    "SELECT tag, id, states FROM $members"
    " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id > ? LIMIT ?"
)
"""Select the next members of a partition. Values: kind, tag, side, bucket, last id, limit."""
READ_POSTINGS: Final = (
    "SELECT hash, id, states FROM $words"
    " WHERE shard = ? AND bucket = ? AND word = ? AND (hash, id) > (?, ?) LIMIT ?"
)
"""Select the next postings of a word: (hash, id, states).

Values: shard, bucket, word, hash and id of the last one (empty: none), limit.
"""


def read_row_range(table: DerivedTable) -> str:
    """Select the members or words in a range of tokens: the columns of their key, states, write times.

    Values: the token before the range, the last token of the range.
    """
    token = f"token({', '.join(table.partition)})"
    return (
        f"SELECT {', '.join(table.key)}, states, WRITETIME(states) FROM {table.name}"
        f" WHERE {token} > ? AND {token} <= ?"
    )


def write_rows(table: DerivedTable, count: int, *, replace: bool) -> str:
    """Write members or words. Values: timestamp, and for each: lifetime, states, the columns of its key.

    Args:
        table: The table.
        count: Number of rows.
        replace: Whether earlier states are removed.
    """
    states = "?" if replace else "states + ?"
    return repeat_in_batch(f"UPDATE {table.name} USING TTL ? SET states = {states} {table.where}", count)


def delete_rows(table: DerivedTable, count: int) -> str:
    """Delete members or words. Values: timestamp, and for each the columns of its key."""
    return repeat_in_batch(f"DELETE FROM {table.name} {table.where}", count)

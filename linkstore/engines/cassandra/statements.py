"""Statements: their form, and the CQL of all of them as functions of the names of tables.

A store in Cassandra has six tables. ``T`` contains the documents by id. Members and words can be rebuilt from
it. ``T_members`` has a partition for each side of each link group, with one row for each document on that
side and a compressed copy of its vector, so following a link group reads one partition. ``T_words`` contains
the documents of each word. Stores without lexical search do not have it. ``T_accesses`` contains the time of
the last access to each document. ``T_pages`` and ``T_settings`` are small.

Every write is a batch with one timestamp. A write to members or words adds states to rows, or replaces the
earlier states. What is written has a lifetime in seconds, 0 for ever. This module does not import the driver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from linkstore.core.plans import Operation
from linkstore.errors import BackendError

Level = Literal["read", "write", "one", "schema"]
"""Determines the consistency level: reads and writes use those of the settings; ``one`` is LOCAL_ONE, which
nearest-neighbour search requires. ``schema`` statements are not prepared and have a separate timeout."""
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
    """

    statements: tuple[Statement, ...]
    what: str
    wait: float = 0.0
    take: Callable[[list[Row]], None] | None = None


def run_writes(what: str, statements: Iterable[Statement]) -> Operation[None]:
    """Run statements that write, if there are any, with ``what`` as in :class:`Requests`."""
    all_of_them = tuple(statements)
    if all_of_them:
        yield Requests(statements=all_of_them, what=what)


def run_each(what: str, cql: str, rows: Iterable[Sequence[Any]]) -> Operation[None]:
    """Run a statement that writes once for each row of values, with ``what`` as in :class:`Requests`."""
    yield from run_writes(what, (Statement(cql=cql, values=row, level="write") for row in rows))


def ask(
    what: str, cql: str, *values: Any, level: Level = "read", limit: int | None = None
) -> Operation[list[Row]]:
    """Run one statement and return its rows, with ``what`` as in :class:`Requests`."""
    statement = Statement(cql=cql, values=values, level=level, limit=limit)
    (rows,) = yield Requests(statements=(statement,), what=what)
    return list(rows)


_TABLE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,37}")
_TABLE_SUFFIXES: Final = ("_settings", "_pages", "_accesses", "_members", "_words")
"""Ends of the names of a store's other tables.

No store's own name ends so, and none of these ends with another. So no two stores share a table.
"""


def can_name_tables(name: str) -> bool:
    """Say whether the tables of a store can have this name."""
    return _TABLE_NAME.fullmatch(name) is not None and not name.endswith(_TABLE_SUFFIXES)


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
        if not can_name_tables(self.name):
            raise BackendError(
                f"{self.name!r} cannot name tables in Cassandra: take a letter and up to 37 letters,"
                " digits and underscores that do not end with "
                f"{', '.join(_TABLE_SUFFIXES)}, as its other tables do"
            )

    @property
    def all_names(self) -> set[str]:
        """All tables, spelled as in the schema."""
        return {self.name, *(self.name + suffix for suffix in _TABLE_SUFFIXES)}

    @property
    def documents(self) -> str:
        """The table of documents, quoted."""
        return self._quote("")

    @property
    def members(self) -> str:
        """The table of the members on each side of link groups, quoted."""
        return self._quote("_members")

    @property
    def words(self) -> str:
        """The table of the documents that contain each word, quoted."""
        return self._quote("_words")

    @property
    def pages(self) -> str:
        """The table of indexed pages, quoted."""
        return self._quote("_pages")

    @property
    def settings(self) -> str:
        """The table of settings, quoted."""
        return self._quote("_settings")

    @property
    def accesses(self) -> str:
        """The table of access times, quoted."""
        return self._quote("_accesses")

    @property
    def member_rows(self) -> DerivedTable:
        """The rows of members."""
        return DerivedTable(self.members, ("kind", "tag", "side", "bucket"), ("id",))

    @property
    def word_rows(self) -> DerivedTable:
        """The rows of words."""
        return DerivedTable(self.words, ("shard", "bucket"), ("word", "hash", "id"))

    def _quote(self, suffix: str) -> str:
        keyspace = self.keyspace.replace('"', '""')
        return f'"{keyspace}"."{self.name}{suffix}"'


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A table whose rows are derived from documents: members, or words.

    Args:
        name: Its name, quoted.
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


_DERIVED_OPTIONS: Final = (
    "WITH gc_grace_seconds = 60 AND compaction = {'class': 'LeveledCompactionStrategy',"
    " 'tombstone_threshold': '0.1', 'tombstone_compaction_interval': '3600',"
    " 'unchecked_tombstone_compaction': 'true'}"
)
"""Options of the tables derived from documents.

Readers ignore a deleted row that reappears, so tombstones are kept only long enough for a node to recover
from a short outage. Rows are overwritten often; leveled compaction keeps each row in few files.
"""


def create_small_tables(tables: Tables) -> tuple[str, ...]:
    """Create the tables that do not depend on the embedding. Every store has the first one.

    That of access times is separate from the documents because a write to a document's row also goes to the
    vector index. :func:`.tables.make_access_key` describes its ``id``, :func:`write_access` the timestamps.
    """
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.settings} (name text PRIMARY KEY, value text)",
        f"CREATE TABLE IF NOT EXISTS {tables.pages}"
        " (source text, url text, digest text, ids frozen<list<text>>, PRIMARY KEY ((source), url))",
        f"CREATE TABLE IF NOT EXISTS {tables.accesses} (id text PRIMARY KEY, at bigint)",
    )


def create_tables(tables: Tables, dimension: int) -> tuple[str, ...]:
    """Create the tables of documents and members, with two SAI indexes (Astra allows ten).

    ``relinked`` has the links that were replaced since the document was written, by kind
    (:func:`.codec.merge_replaced_links`). ``born`` is when the document was added: its first timestamp, which
    updates keep.
    """
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.documents} (id text PRIMARY KEY, body text, attributes text,"
        " searchable map<text, text>, digest blob,"
        " links frozen<tuple<text, set<tuple<text, text, text, float>>>>,"
        f" vector vector<float, {dimension}>, relinked map<text, text>, born bigint)",
        f"CREATE TABLE IF NOT EXISTS {tables.members} (kind text, tag text, side text, bucket int, id text,"
        f" states set<blob>, PRIMARY KEY ((kind, tag, side, bucket), id)) {_DERIVED_OPTIONS}",
        f'CREATE CUSTOM INDEX IF NOT EXISTS "{tables.name}_by_vector" ON {tables.documents} (vector)'
        " USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'DOT_PRODUCT'}",
        f'CREATE CUSTOM INDEX IF NOT EXISTS "{tables.name}_by_entry" ON {tables.documents}'
        " (entries(searchable)) USING 'StorageAttachedIndex'",
    )


def create_word_table(tables: Tables) -> str:
    """Create the table of words. A partition has many words, so that a document writes to few partitions.

    :mod:`.derived` describes ``hash`` and ``states``.
    """
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.words} (shard int, bucket int, word text, hash blob, id text,"
        f" states set<blob>, PRIMARY KEY ((shard, bucket), word, hash, id)) {_DERIVED_OPTIONS}"
    )


READ_TABLE_NAMES: Final = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?"
"""Names of the tables in a keyspace; values: the keyspace."""


READ_KEYSPACE: Final = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?"
"""The keyspace of a name, if there is one; values: the name."""


READ_CLOCK: Final = "SELECT toTimestamp(now()), rpc_address FROM system.local"
"""Clock time and address of the node that answers."""


def read_settings(tables: Tables) -> str:
    """Select all settings as (name, value)."""
    return f"SELECT name, value FROM {tables.settings}"


def read_named_settings(tables: Tables) -> str:
    """Select some settings as (name, value). Values: list of names."""
    return f"{read_settings(tables)} WHERE name IN ?"


def write_settings(tables: Tables, count: int) -> str:
    """Insert ``count`` settings without a value. Values: their names."""
    one = f"INSERT INTO {tables.settings} (name, value) VALUES (?, '')"
    return f"BEGIN UNLOGGED BATCH {'; '.join([one] * count)}; APPLY BATCH"


def exchange_setting(tables: Tables) -> str:
    """Set a setting if it has the old value, returning (applied, …). Values: new value, name, old value."""
    return f"UPDATE {tables.settings} SET value = ? WHERE name = ? IF value = ?"


def remove_setting(tables: Tables) -> str:
    """Remove a setting if it has the old value, returning (applied, …). Values: name, old value."""
    return f"DELETE FROM {tables.settings} WHERE name = ? IF value = ?"


def insert_setting(tables: Tables) -> str:
    """Insert a setting if none has that name, returning (applied, and if not, name, value).

    Values: name, value.
    """
    return f"INSERT INTO {tables.settings} (name, value) VALUES (?, ?) IF NOT EXISTS"


DOCUMENT: Final = "id, body, attributes, links, digest, vector, relinked"
"""What is read of a document to search. What it must have comes first: see :func:`.codec.is_whole`."""
VERSION: Final = (
    f"{DOCUMENT}, TTL(digest), born,"
    " WRITETIME(body), WRITETIME(attributes), WRITETIME(digest), WRITETIME(vector), WRITETIME(links)"
)
"""What must be known of a document to write it: also the remaining seconds of its lifetime, when it was
added, and write times."""
ATTRIBUTES: Final = "id, attributes"
"""What filters ask for."""
PRESENCE: Final = "id, digest, born"
"""Whether a document exists, and when it was added. One without a digest was removed."""


def read_documents(tables: Tables, columns: str = DOCUMENT) -> str:
    """Select documents by id; other columns to write, to filter, or to look whether they exist.

    Values: list of ids.
    """
    return f"SELECT {columns} FROM {tables.documents} WHERE id IN ?"


def select_nearest(tables: Tables, equalities: int, *, whole: bool) -> str:
    """Select the documents nearest to a vector, or only their ids.

    Values: field and value of each equality, the vector, the limit.
    """
    where = " AND ".join(["searchable[?] = ?"] * equalities)
    return (
        f"SELECT {DOCUMENT if whole else 'id'} FROM "
        f"{tables.documents}{' WHERE ' + where if where else ''}"
        " ORDER BY vector ANN OF ? LIMIT ?"
    )


def read_equal(tables: Tables, equalities: int) -> str:
    """Select the ids and metadata of documents with these field values.

    Values: field and value of each, the limit.
    """
    where = " AND ".join(["searchable[?] = ?"] * equalities)
    return f"SELECT {ATTRIBUTES} FROM {tables.documents} WHERE {where} LIMIT ?"


def scan_versions(tables: Tables, *, after: bool) -> str:
    """Select what must be known of the next documents in token order.

    Values: id of the last one (if ``after``), the limit.
    """
    where = " WHERE token(id) > token(?)" if after else ""
    return f"SELECT {VERSION} FROM {tables.documents}{where} LIMIT ?"


def read_all_links(tables: Tables) -> str:
    """Select the links of all documents.

    (id, write times of body and attributes, links, digest, write time of the vector, replaced links).
    """
    return (
        "SELECT id, WRITETIME(body), WRITETIME(attributes), links, digest, WRITETIME(vector), relinked"
        f" FROM {tables.documents}"
    )


def write_documents(tables: Tables, count: int) -> str:
    """Write ``count`` documents with one timestamp, and forget links that were replaced before.

    Values: timestamp, and for each: id, body, attributes, searchable, links, digest, vector, when it was
    added, lifetime.
    """
    one = (
        f"INSERT INTO {tables.documents}"
        " (id, body, attributes, searchable, links, digest, vector, born, relinked)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, null) USING TTL ?"
    )
    return repeat_in_batch(one, count)


_USING: Final = "USING TIMESTAMP ? AND TTL ?"


def repeat_in_batch(one: str, count: int) -> str:
    """Repeat a statement in an unlogged batch, which saves requests and has no other guarantees."""
    return f"BEGIN UNLOGGED BATCH USING TIMESTAMP ? {'; '.join([one] * count)}; APPLY BATCH"


def write_links(tables: Tables) -> str:
    """Replace the links of some kinds of one document. Values: timestamp, lifetime, links by kind, id."""
    return f"UPDATE {tables.documents} {_USING} SET relinked = relinked + ? WHERE id = ?"


def delete_documents(tables: Tables) -> str:
    """Delete documents. Values: timestamp, list of ids."""
    return f"DELETE FROM {tables.documents} USING TIMESTAMP ? WHERE id IN ?"


def write_access(tables: Tables) -> str:
    """Record an access. Values: key, time of the access, the same time as timestamp, lifetime.

    The latest access is kept, regardless of the order of the writes.
    """
    return f"INSERT INTO {tables.accesses} (id, at) VALUES (?, ?) {_USING}"


def read_accesses(tables: Tables) -> str:
    """Select access times of documents: (key, time). Values: list of keys."""
    return f"SELECT id, at FROM {tables.accesses} WHERE id IN ?"


def delete_accesses(tables: Tables) -> str:
    """Delete access times. Values: timestamp, list of keys."""
    return f"DELETE FROM {tables.accesses} USING TIMESTAMP ? WHERE id IN ?"


def read_all_pages(tables: Tables) -> str:
    """Select all page entries: (source, url, digest, ids)."""
    return f"SELECT source, url, digest, ids FROM {tables.pages}"


def read_pages(tables: Tables) -> str:
    """Select page entries of a source. Values: the source."""
    return f"{read_all_pages(tables)} WHERE source = ?"


def read_named_pages(tables: Tables) -> str:
    """Select page entries. Values: the source, list of urls."""
    return f"{read_pages(tables)} AND url IN ?"


def read_sources(tables: Tables) -> str:
    """Select the sources that have pages: (source,)."""
    return f"SELECT DISTINCT source FROM {tables.pages}"


def read_page_times(tables: Tables) -> str:
    """Select write times of page entries: (source, url, microseconds since 1970).

    Values: the source, list of urls.
    """
    return f"SELECT source, url, WRITETIME(digest) FROM {tables.pages} WHERE source = ? AND url IN ?"


def write_page(tables: Tables) -> str:
    """Write one page entry. Values: source, url, digest, ids, timestamp, lifetime."""
    return f"INSERT INTO {tables.pages} (source, url, digest, ids) VALUES (?, ?, ?, ?) {_USING}"


def delete_page(tables: Tables) -> str:
    """Delete a page entry. Values: timestamp, source, url."""
    return f"DELETE FROM {tables.pages} USING TIMESTAMP ? WHERE source = ? AND url = ?"


MEMBER: Final = "tag, id, states"
"""What is read of a member."""


def read_members(tables: Tables, columns: str = MEMBER) -> str:
    """Select columns of members, the tag first. Values: kind, tags, side, buckets, limit per partition."""
    return (
        f"SELECT {columns} FROM {tables.members}"
        " WHERE kind = ? AND tag IN ? AND side = ? AND bucket IN ? PER PARTITION LIMIT ?"
    )


def read_more_members(tables: Tables) -> str:
    """Select the next members of a partition.

    Values: kind, tag, side, bucket, last id, limit.
    """
    return (
        f"SELECT {MEMBER} FROM {tables.members}"
        " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id > ? LIMIT ?"
    )


def read_postings(tables: Tables) -> str:
    """Select the next postings of a word: (hash, id, states).

    Values: shard, bucket, word, hash and id of the last one (empty: none), limit.
    """
    return (
        f"SELECT hash, id, states FROM {tables.words}"
        " WHERE shard = ? AND bucket = ? AND word = ? AND (hash, id) > (?, ?) LIMIT ?"
    )


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

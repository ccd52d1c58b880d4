"""All CQL: functions of the tables' names that give texts, and nothing else.

A store in Cassandra has five tables. ``T`` holds documents by id and is the truth. ``T_members`` holds, for
each side of each link group, who lies there, with a small copy of the vector: a partition for each, so that
a link group is followed by reading one partition. ``T_words`` holds, for each word, who has it; it is left
out of stores without lexical search. ``T_pages`` and ``T_settings`` are small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from linkstore.errors import BackendError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,37}")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one store.

    Args:
        keyspace: As it is named in the schema.
        name: Of the table of documents; the others' names begin with it.

    Raises:
        BackendError: If the name is no name for tables.
    """

    keyspace: str
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BackendError(
                f"{self.name!r} cannot name tables in Cassandra: take a letter and up to 37 letters,"
                " digits and underscores"
            )

    @property
    def documents(self) -> str:
        """The table of documents, quoted."""
        return self._quoted("")

    @property
    def members(self) -> str:
        """The table of who lies on a side of a link group, quoted."""
        return self._quoted("_members")

    @property
    def words(self) -> str:
        """The table of who has a word, quoted."""
        return self._quoted("_words")

    @property
    def pages(self) -> str:
        """The table of indexed pages, quoted."""
        return self._quoted("_pages")

    @property
    def settings(self) -> str:
        """The table of what the store records of itself, quoted."""
        return self._quoted("_settings")

    @property
    def members_name(self) -> str:
        """The table of members as the schema names it."""
        return f"{self.name}_members"

    @property
    def words_name(self) -> str:
        """The table of words as the schema names it."""
        return f"{self.name}_words"

    @property
    def settings_name(self) -> str:
        """The table of settings as the schema names it."""
        return f"{self.name}_settings"

    def _quoted(self, suffix: str) -> str:
        keyspace = self.keyspace.replace('"', '""')
        return f'"{keyspace}"."{self.name}{suffix}"'


def create_small_tables(tables: Tables) -> tuple[str, ...]:
    """The tables that need no embedding to be known."""
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.settings} (name text PRIMARY KEY, value text)",
        f"CREATE TABLE IF NOT EXISTS {tables.pages}"
        " (source text, url text, digest text, ids frozen<list<text>>, PRIMARY KEY ((source), url))",
    )


def create_tables(tables: Tables, dimension: int) -> tuple[str, ...]:
    """The tables of documents and members. SAI indexes: two, where Astra allows ten."""
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.documents} (id text PRIMARY KEY, body text, attributes text,"
        " searchable map<text, text>, digest blob,"
        " links frozen<tuple<text, set<tuple<text, text, text, float>>>>,"
        f", vector vector<float, {dimension}>)",
        f"CREATE TABLE IF NOT EXISTS {tables.members} (kind text, tag text, side text, bucket int, id text,"
        " weight float, code blob, PRIMARY KEY ((kind, tag, side, bucket), id))",
        f'CREATE CUSTOM INDEX IF NOT EXISTS "{tables.name}_by_vector" ON {tables.documents} (vector)'
        " USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'DOT_PRODUCT'}",
        f'CREATE CUSTOM INDEX IF NOT EXISTS "{tables.name}_by_entry" ON {tables.documents}'
        " (entries(searchable)) USING 'StorageAttachedIndex'",
    )


def create_words(tables: Tables) -> str:
    """The table of words: many words in a partition, so that few partitions are written for a document.

    A row has no other columns than its key; what ``head`` holds says :mod:`.postings`.
    """
    return (
        f"CREATE TABLE IF NOT EXISTS {tables.words} (shard int, bucket int, word text, head blob, id text,"
        " PRIMARY KEY ((shard, bucket), word, head, id))"
    )


TABLES_THERE: Final = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?"
"""Which tables a keyspace has; values: the keyspace."""


def read_settings(tables: Tables) -> str:
    """All settings: (name, value)."""
    return f"SELECT name, value FROM {tables.settings}"


def write_setting(tables: Tables) -> str:
    """One setting; values: name, value, timestamp."""
    return f"INSERT INTO {tables.settings} (name, value) VALUES (?, ?) USING TIMESTAMP ?"


_DOCUMENT: Final = "id, body, attributes, links, vector"


def nearest(tables: Tables, equalities: int, *, whole: bool) -> str:
    """Documents nearest to a vector, or only their ids.

    Values: field and value of each equality, the vector, the limit.
    """
    where = " AND ".join(["searchable[?] = ?"] * equalities)
    return (
        f"SELECT {_DOCUMENT if whole else 'id'} FROM {tables.documents}{' WHERE ' + where if where else ''}"
        " ORDER BY vector ANN OF ? LIMIT ?"
    )


def read_documents(tables: Tables) -> str:
    """Documents by id; values: list of ids."""
    return f"SELECT {_DOCUMENT} FROM {tables.documents} WHERE id IN ?"


def read_attributes(tables: Tables) -> str:
    """What filters ask for: (id, attributes); values: list of ids."""
    return f"SELECT id, attributes FROM {tables.documents} WHERE id IN ?"


def read_equal(tables: Tables, equalities: int) -> str:
    """Documents with these fields: (id, attributes); values: field and value of each equality, the limit."""
    where = " AND ".join(["searchable[?] = ?"] * equalities)
    return f"SELECT id, attributes FROM {tables.documents} WHERE {where} LIMIT ?"


def scan_first(tables: Tables) -> str:
    """The first documents in the order of the ring; values: the limit."""
    return f"SELECT {_DOCUMENT} FROM {tables.documents} LIMIT ?"


def scan_after(tables: Tables) -> str:
    """The next documents in the order of the ring; values: id of the last one, the limit."""
    return f"SELECT {_DOCUMENT} FROM {tables.documents} WHERE token(id) > token(?) LIMIT ?"


def read_states(tables: Tables) -> str:
    """What a writer must know of stored documents; values: list of ids.

    (id, digest, links, vector, when the document was written, when its links were, seconds left of its
    lifetime).
    """
    return (
        "SELECT id, digest, links, vector, WRITETIME(digest), WRITETIME(links), TTL(digest)"
        f" FROM {tables.documents} WHERE id IN ?"
    )


def read_all_links(tables: Tables) -> str:
    """(id, links, digest) of all documents."""
    return f"SELECT id, links, digest FROM {tables.documents}"


def write_document(tables: Tables, *, lifetime: bool) -> str:
    """One document; values: id, body, attributes, searchable, links, digest, vector, timestamp, lifetime."""
    return (
        f"INSERT INTO {tables.documents} (id, body, attributes, searchable, links, digest, vector)"
        f" VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?{_lifetime(lifetime)}"
    )


def write_links(tables: Tables, *, lifetime: bool) -> str:
    """The links of one document; values: timestamp, lifetime, links, id."""
    using = f"USING TIMESTAMP ?{_lifetime(lifetime)}"
    return f"UPDATE {tables.documents} {using} SET links = ? WHERE id = ?"


def delete_document(tables: Tables) -> str:
    """Values: timestamp, id."""
    return f"DELETE FROM {tables.documents} USING TIMESTAMP ? WHERE id = ?"


_OF_GROUPS: Final = "WHERE kind = ? AND tag IN ? AND side = ? AND bucket IN ? PER PARTITION LIMIT ?"


def read_members(tables: Tables) -> str:
    """Members of link groups: (tag, id, weight, code); values: kind, tags, side, buckets, limit of each."""
    return f"SELECT tag, id, weight, code FROM {tables.members} {_OF_GROUPS}"


def count_members(tables: Tables) -> str:
    """A row of (tag) for each member of link groups; values as for :func:`read_members`."""
    return f"SELECT tag FROM {tables.members} {_OF_GROUPS}"


def read_more_members(tables: Tables) -> str:
    """The next of a partition: (tag, id, weight, code); values: kind, tag, side, bucket, last id, limit."""
    return (
        f"SELECT tag, id, weight, code FROM {tables.members}"
        " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id > ? LIMIT ?"
    )


def read_all_members(tables: Tables) -> str:
    """All members: (kind, tag, side, bucket, id, weight)."""
    return f"SELECT kind, tag, side, bucket, id, weight FROM {tables.members}"


def write_members(tables: Tables, count: int, *, lifetime: bool) -> str:
    """Members; values, for each: kind, tag, side, bucket, id, weight, code, timestamp, lifetime.

    Several go in one unlogged batch, which saves requests and promises nothing more.
    """
    one = (
        f"INSERT INTO {tables.members} (kind, tag, side, bucket, id, weight, code)"
        f" VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?{_lifetime(lifetime)}"
    )
    return one if count == 1 else f"BEGIN UNLOGGED BATCH {'; '.join([one] * count)}; APPLY BATCH"


def delete_member(tables: Tables) -> str:
    """Values: timestamp, kind, tag, side, bucket, id."""
    return (
        f"DELETE FROM {tables.members} USING TIMESTAMP ?"
        " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id = ?"
    )


def read_texts(tables: Tables) -> str:
    """What the words of documents follow from: (id, body, attributes); values: list of ids."""
    return f"SELECT id, body, attributes FROM {tables.documents} WHERE id IN ?"


_OF_WORD: Final = "WHERE shard = ? AND bucket = ? AND word = ?"


def read_first_postings(tables: Tables) -> str:
    """The first who have a word: (head, id); values: shard, bucket, word, limit."""
    return f"SELECT head, id FROM {tables.words} {_OF_WORD} LIMIT ?"


def read_more_postings(tables: Tables) -> str:
    """All others: (head, id); values: shard, bucket, word, head and id of the last one."""
    return f"SELECT head, id FROM {tables.words} {_OF_WORD} AND (head, id) > (?, ?)"


def read_next_postings(tables: Tables) -> str:
    """Some of the others; values as for :func:`read_more_postings`, and the limit."""
    return f"{read_more_postings(tables)} LIMIT ?"


def read_partitions_of_words(tables: Tables) -> str:
    """(shard, bucket) of all partitions that there are."""
    return f"SELECT DISTINCT shard, bucket FROM {tables.words}"


def read_partition_of_words(tables: Tables) -> str:
    """All of a partition: (word, head, id); values: shard, bucket."""
    return f"SELECT word, head, id FROM {tables.words} WHERE shard = ? AND bucket = ?"


def write_postings(tables: Tables, count: int, *, lifetime: bool) -> str:
    """Postings; values: timestamp, and for each shard, bucket, word, head, id, lifetime."""
    one = (
        f"INSERT INTO {tables.words} (shard, bucket, word, head, id) VALUES (?, ?, ?, ?, ?)"
        f"{' USING TTL ?' if lifetime else ''}"
    )
    return _stamped_batch(one, count)


def delete_postings(tables: Tables, count: int) -> str:
    """Values: timestamp, and for each shard, bucket, word, head, id."""
    return _stamped_batch(f"DELETE FROM {tables.words} {_OF_WORD} AND head = ? AND id = ?", count)


def _stamped_batch(one: str, count: int) -> str:
    """Statements as one, unlogged: it saves requests and promises nothing more."""
    return f"BEGIN UNLOGGED BATCH USING TIMESTAMP ? {'; '.join([one] * count)}; APPLY BATCH"


def read_pages(tables: Tables) -> str:
    """Page entries of a source: (source, url, digest, ids); values: the source."""
    return f"SELECT source, url, digest, ids FROM {tables.pages} WHERE source = ?"


def read_named_pages(tables: Tables) -> str:
    """Page entries: (source, url, digest, ids); values: the source, list of urls."""
    return f"{read_pages(tables)} AND url IN ?"


def read_sources(tables: Tables) -> str:
    """The sources that have pages: (source,)."""
    return f"SELECT DISTINCT source FROM {tables.pages}"


def read_all_pages(tables: Tables) -> str:
    """All page entries: (source, url, digest, ids)."""
    return f"SELECT source, url, digest, ids FROM {tables.pages}"


def write_page(tables: Tables, *, lifetime: bool) -> str:
    """One page entry; values: source, url, digest, ids, timestamp, lifetime."""
    return (
        f"INSERT INTO {tables.pages} (source, url, digest, ids) VALUES (?, ?, ?, ?)"
        f" USING TIMESTAMP ?{_lifetime(lifetime)}"
    )


def delete_page(tables: Tables) -> str:
    """Values: timestamp, source, url."""
    return f"DELETE FROM {tables.pages} USING TIMESTAMP ? WHERE source = ? AND url = ?"


def _lifetime(lifetime: bool) -> str:
    return " AND TTL ?" if lifetime else ""

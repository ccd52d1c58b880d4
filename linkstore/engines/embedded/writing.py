"""Writes the differences of a change to the tables, and replaces links of documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

import apsw
import orjson
import xxhash

from linkstore.core.documents import replace_kinds
from linkstore.core.lexical import extract_document_terms
from linkstore.core.links import Link
from linkstore.engines.bookkeeping import collect_record_names, serialize_record
from linkstore.engines.contract import PageEntry, Record, WriteBatch, WriteCounts
from linkstore.engines.embedded import lexical
from linkstore.engines.embedded.schema import (
    COUNTERS,
    check_keys,
    check_sizes,
    fetch_rows,
    find_groups,
    make_record,
    read_metadata,
    read_settings,
    record_names,
    write_settings,
)

_INSERT_DOCUMENT: Final = "INSERT INTO document VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_VECTOR: Final = "INSERT INTO vector VALUES (?, ?)"
_INSERT_GROUP: Final = "INSERT INTO link_group VALUES (?, ?, ?)"
_INSERT_LINKS: Final = "INSERT INTO link VALUES (?, ?, ?, ?, ?)"
_DELETE_ACCESS: Final = "DELETE FROM access WHERE id = ?"
_SELECT_LINKS: Final = "SELECT d.id, links FROM json_each(?) CROSS JOIN document AS d ON d.id = value"
_SELECT_DOCUMENT: Final = (
    "SELECT document.id, text, metadata, embedding FROM json_each(?) CROSS JOIN document"
    " ON document.id = value JOIN vector ON vector.key = document.key"
)
_KIND, _TAG, _DIRECTION, _LABEL, _WEIGHT = map(attrgetter, ("kind", "tag", "direction", "label", "weight"))
_ABSENT: Final = (0, b"")
_LINKS_AT_ONCE: Final = 64
"""Rows in one statement. Most are links, which take two thirds of the time of single statements."""


class PreparedRecord(NamedTuple):
    """A record as it is written to the tables, made before the store is locked.

    Attributes:
        record: The record as given.
        metadata: The metadata without links, as JSON.
        links: The links as JSON; None if the metadata has none.
        digest: Hash of text, metadata, links and vector, which shows whether it changed.
        words: The words of text and metadata, joined as :mod:`~linkstore.engines.embedded.lexical` expects;
            empty if they were not found yet: see :func:`add_words`.
    """

    record: Record
    metadata: str
    links: str | None
    digest: bytes
    words: str = ""


def prepare_records(records: Iterable[Record]) -> list[PreparedRecord]:
    """Serialise records before the store is locked, and of several with the same id only the last.

    Raises:
        DocumentError: If metadata is not JSON, or a part is too large; the message names the document.
    """
    last = {record.id: record for record in records}
    return [_prepare_record(record) for record in last.values()]


def add_words(connection: apsw.Connection, prepared: Sequence[PreparedRecord]) -> list[PreparedRecord]:
    """Add the words of new and changed records, before the store is locked."""
    present = _find_present(connection, [item.record.id for item in prepared])
    return [
        item
        if present.get(item.record.id, _ABSENT)[1] == item.digest
        else item._replace(words=_find_words(item.record))
        for item in prepared
    ]


def _find_words(record: Record) -> str:
    words = " ".join(extract_document_terms(record.text, record.metadata, record.id))
    check_sizes(record.id, words=len(words))
    return words


def _find_present(connection: apsw.Connection, ids: list[str]) -> dict[str, tuple[int, bytes]]:
    """Return the key and hash of each document that is already stored, by id."""
    rows = fetch_rows(
        connection, "SELECT id, key, hash FROM document WHERE id IN (SELECT value FROM json_each(?))", (ids,)
    )
    return {id: (key, digest) for id, key, digest in rows}


def _prepare_record(record: Record) -> PreparedRecord:
    text, body, links = serialize_record(record)
    check_sizes(record.id, text=len(text), metadata=len(body), links=len(links))
    hashed = b"".join((text, b"\0%d\0" % len(text), body, b"\0", links, record.vector.data))
    digest = xxhash.xxh3_128_digest(hashed)
    return PreparedRecord(record, body.decode(), links.decode() or None, digest)


class EmbeddedWriter:
    """Applies one change inside an open write transaction.

    Args:
        connection: In a write transaction.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        settings = read_settings(connection)
        self._counters: dict[str, int] = {name: settings[name] for name in COUNTERS}
        self._counters["change"] += 1

    def apply(self, change: WriteBatch, prepared: Sequence[PreparedRecord]) -> WriteCounts:
        """Write the change, which the caller commits.

        Args:
            change: What to remove, and the pages.
            prepared: What to put.
        """
        ids = [*(p.record.id for p in prepared), *change.remove]
        present = _find_present(self._connection, ids) if self._counters["documents"] and ids else {}
        put_ids = {p.record.id for p in prepared}
        removed = [id for id in dict.fromkeys(change.remove) if id in present and id not in put_ids]
        changed = [p for p in prepared if present.get(p.record.id, _ABSENT)[1] != p.digest]
        replaced = [p.record.id for p in changed if p.record.id in present]
        self._remove([present[id][0] for id in (*removed, *replaced)])
        self._connection.executemany(_DELETE_ACCESS, [(id,) for id in removed])
        self._put(changed)
        record_names(self._connection, collect_record_names(item.record for item in changed))
        self._pages(change.put_pages, change.remove_pages)
        added = len(changed) - len(replaced)
        self._counters["documents"] += added - len(removed)
        if changed or removed:
            self.save_settings()
        return WriteCounts(
            added=added, updated=len(replaced), unchanged=len(prepared) - len(changed), removed=len(removed)
        )

    def _remove(self, keys: list[int]) -> None:
        key_rows = [(key,) for key in keys]
        for statement in (
            "DELETE FROM document WHERE key = ?",
            "DELETE FROM vector WHERE key = ?",
            "DELETE FROM link WHERE document = ?",
            lexical.DELETE_WORDS,
        ):
            self._connection.executemany(statement, key_rows)
        rows = [(key, self._counters["change"]) for key in keys]
        self._connection.executemany("INSERT INTO departed VALUES (?, ?)", rows)

    def _put(self, changed: list[PreparedRecord]) -> None:
        keys = self._number("last_key", "versions of documents", len(changed))
        records = [item.record for item in changed]
        executemany = self._connection.executemany
        executemany(_INSERT_DOCUMENT, map(_make_document_row, keys, changed))
        executemany(
            lexical.INSERT_WORDS,
            zip(keys, [item.words or _find_words(item.record) for item in changed], strict=True),
        )
        executemany(_INSERT_VECTOR, zip(keys, [record.vector.data for record in records], strict=True))
        self.put_links(keys, [record.links for record in records])

    def _number(self, counter: str, what: str, count: int) -> range:
        """Return the next keys that a counter numbers."""
        last = self._counters[counter]
        check_keys(what, last + count)
        self._counters[counter] += count
        return range(last + 1, last + count + 1)

    def put_links(self, keys: Sequence[int], linked: Sequence[tuple[Link, ...]]) -> None:
        """Insert the links of documents with these keys, which have none in the table."""
        links = list(chain.from_iterable(linked))
        documents = chain.from_iterable(map(repeat, keys, map(len, linked)))
        groups = self._group_keys(list(zip(map(_KIND, links), map(_TAG, links), strict=True)))
        others = (map(field, links) for field in (_DIRECTION, _LABEL, _WEIGHT))
        values = chain.from_iterable(zip(documents, groups, *others, strict=True))
        whole, rest = divmod(len(links), _LINKS_AT_ONCE)
        self._insert_links(values, _LINKS_AT_ONCE, whole)
        self._insert_links(values, 1, rest)

    def _insert_links(self, values: Iterator[Any], rows: int, times: int) -> None:
        """Insert links from the values of their columns, ``rows`` of them in each of ``times`` statements."""
        statement = _INSERT_LINKS + ", (?, ?, ?, ?, ?)" * (rows - 1)
        self._connection.executemany(statement, (tuple(islice(values, 5 * rows)) for _ in range(times)))

    def _group_keys(self, wanted: Sequence[tuple[str, str]]) -> list[int]:
        """Return the key of each link group, given by kind and tag, and insert new link groups."""
        distinct = list(dict.fromkeys(wanted))
        keys = dict(zip(distinct, find_groups(self._connection, distinct), strict=True))
        new = [pair for pair, key in keys.items() if key < 0]
        made = dict(zip(new, self._number("last_group", "link groups", len(new)), strict=True))
        self._connection.executemany(_INSERT_GROUP, [(key, *pair) for pair, key in made.items()])
        keys |= made
        return [keys[pair] for pair in wanted]

    def _pages(self, put: Sequence[PageEntry], remove: Sequence[tuple[str, str]]) -> None:
        self._connection.executemany("DELETE FROM page WHERE source = ? AND url = ?", list(remove))
        self._connection.executemany(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)",
            [(page.source, page.url, page.digest, orjson.dumps(page.ids).decode()) for page in put],
        )

    def save_settings(self) -> None:
        """Record the counters as a new change."""
        write_settings(self._connection, self._counters)


def _make_document_row(key: int, item: PreparedRecord) -> tuple[int, str, str, str, str | None, bytes]:
    return key, item.record.id, item.record.text, item.metadata, item.links, item.digest


def prepare_relinked(
    connection: apsw.Connection, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
) -> tuple[list[PreparedRecord], int]:
    """Prepare to write the documents whose links change, and count the others.

    Text, metadata and vector are the stored ones. If a document keeps its links, only the links are read.

    Args:
        connection: In the write transaction.
        kinds: Links of these kinds are removed.
        links: The links that replace them, by document id.
    """
    link_rows = fetch_rows(connection, _SELECT_LINKS, (list(links),))
    changed = {
        id: orjson.dumps(written).decode()
        for id, stored in link_rows
        if (written := replace_kinds(read_metadata("{}", stored), kinds, links[id])) is not None
    }
    rows = fetch_rows(connection, _SELECT_DOCUMENT, (list(changed),))
    records = [make_record(id, text, data, changed[id], vector) for id, text, data, vector in rows]
    return prepare_records(records), len(link_rows) - len(changed)

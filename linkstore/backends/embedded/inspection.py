"""Operations on the whole store: reading all records, checking and repairing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import numpy as np
import orjson

from linkstore.backends.base import Change, Finding, Record
from linkstore.backends.embedded import words
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import (
    counter_problems,
    decoding,
    raw_settings,
    read_metadata,
    restore_counters,
)
from linkstore.backends.embedded.snapshot import snapshot_problem
from linkstore.backends.embedded.writing import ChangeWriter, GroupKeys, prepare
from linkstore.links import Link, links_in

_EXAMPLES = 5
_CHECKS = {
    "documents without a vector": "SELECT id FROM document WHERE key NOT IN (SELECT key FROM vector)",
    "vectors without a document": "SELECT key FROM vector WHERE key NOT IN (SELECT key FROM document)",
    "vectors of the wrong length": (
        "SELECT id FROM document JOIN vector USING (key) WHERE typeof(embedding) != 'blob' OR"
        " length(embedding) != 4 * (SELECT value FROM setting WHERE name = 'dimension')"
    ),
    "documents whose values have the wrong type: add them again": (
        "SELECT CAST(id AS BLOB) FROM document WHERE typeof(id) != 'text'"
        " OR typeof(text) != 'text' OR typeof(metadata) != 'text'"
        " OR typeof(links) NOT IN ('text', 'null') OR typeof(hash) != 'blob'"
    ),
    "link groups whose values have the wrong type": (
        "SELECT key FROM link_group WHERE typeof(kind) != 'text' OR typeof(tag) != 'text'"
    ),
    "documents whose metadata is not JSON: add them again": (
        "SELECT id FROM document WHERE NOT json_valid(metadata)"
    ),
    "links of documents that are gone": (
        "SELECT DISTINCT document FROM link WHERE document NOT IN (SELECT key FROM document)"
    ),
    "accesses to documents that are gone": (
        "SELECT CAST(id AS BLOB) FROM access WHERE typeof(id) != 'text' OR typeof(at) != 'integer'"
        " OR id NOT IN (SELECT id FROM document)"
    ),
    "links in link groups that are gone": (
        "SELECT id FROM document WHERE key IN"
        " (SELECT document FROM link WHERE link_group NOT IN (SELECT key FROM link_group))"
    ),
}


def records(connection: apsw.Connection, after: str | None, limit: int) -> list[Record]:
    """Return up to ``limit`` records with ids greater than ``after``, ordered by id."""
    rows = connection.execute(
        "SELECT id, text, metadata, links, embedding FROM document JOIN vector USING (key)"
        " WHERE id > ? ORDER BY id LIMIT ?",
        (after or "", limit),
    )
    with decoding("documents"):
        return [_record(*row) for row in rows]


def _record(id: str, text: str, metadata: str, links: str | None, embedding: bytes) -> Record:
    fields = read_metadata(metadata, links)
    vector = np.frombuffer(embedding, dtype="<f4")
    return Record(id=id, text=text, metadata=fields, vector=vector, links=links_in(fields, id))


def findings(connection: apsw.Connection, damaged: list[str]) -> Iterator[Finding]:
    """Yield the problems of the store."""
    state = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    if state != ["ok"]:
        yield Finding(problem="SQLite finds the database damaged", count=len(state), examples=tuple(state))
        return  # the tables may not be readable
    if damaged:
        yield Finding(problem="derived files that are damaged", count=len(damaged), examples=tuple(damaged))
    yield from _finding("counters that do not fit the tables", counter_problems(connection))
    broken = snapshot_problem(raw_settings(connection))
    yield from _finding("the record of derived files cannot be read", [broken] if broken else [])
    for problem, query in _CHECKS.items():
        yield from _finding(problem, _ids(connection, query))
    yield from _finding("documents whose words are not indexed", _ids(connection, words.UNINDEXED))
    yield from _finding("documents whose links differ from their metadata", _unlike(connection))
    counted = connection.execute("SELECT count(*) FROM document").get
    noted = connection.execute("SELECT value FROM setting WHERE name = 'documents'").get
    if counted != noted:
        yield Finding(problem=f"{counted} documents, but {noted} noted", count=abs(counted - noted))


def _ids(connection: apsw.Connection, query: str) -> list[str]:
    return [_shown(row[0]) for row in rows_of(connection, query)]


def _shown(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _finding(problem: str, places: list[str]) -> Iterator[Finding]:
    if places:
        yield Finding(problem=problem, count=len(places), examples=tuple(places[:_EXAMPLES]))


def _unlike(connection: apsw.Connection) -> list[str]:
    """Return the ids of documents whose rows in the table of links differ from their metadata's links."""
    unlike = []
    for key, id, links in rows_of(connection, "SELECT key, id, links FROM document ORDER BY key"):
        own = _links_of(id, links)
        if own is None or {_row(link) for link in own} != _link_rows(connection, key):
            unlike.append(id)
    return unlike


def _links_of(id: str, links: str | None) -> tuple[Link, ...] | None:
    """Return the links as the document's author wrote them, or None if they cannot be read."""
    try:
        return links_in(read_metadata("{}", links), id)
    except ValueError:  # invalid JSON, or invalid links: LinkError is a ValueError
        return None


def _row(link: Link) -> tuple[str, str, str, str | None, float]:
    return link.kind, link.tag, link.direction, link.label, link.weight


def _link_rows(connection: apsw.Connection, key: int) -> set[tuple[Any, ...]]:
    return set(
        connection.execute(
            "SELECT kind, tag, direction, label, weight FROM link"
            " LEFT JOIN link_group ON link_group.key = link_group WHERE document = ?",
            (key,),
        ).fetchall()
    )


def mend(connection: apsw.Connection) -> None:
    """Make all derived rows agree with the documents, in an open write transaction.

    A document whose links differ is written again under a new key, because data that other processes
    derived from the old key may be wrong. A document without a vector, or with one of the wrong length, is
    removed: no embedding is available here, and adding the document again embeds it. Metadata that cannot
    be read stays as it is.
    """
    restore_counters(connection)
    for query in (
        "DELETE FROM link_group WHERE typeof(kind) != 'text' OR typeof(tag) != 'text'",
        "DELETE FROM vector WHERE key NOT IN (SELECT key FROM document)",
        "DELETE FROM access WHERE typeof(at) != 'integer' OR id NOT IN (SELECT id FROM document)",
        "DELETE FROM link WHERE document NOT IN (SELECT key FROM document)",
        "UPDATE document SET hash = x'' WHERE NOT json_valid(metadata)",  # adding it again is a change
    ):
        connection.execute(query)
    _restore_links(connection)
    nothing = GroupKeys()  # a link group that this process knows may have been deleted
    lost = [
        row[0]
        for check in ("documents without a vector", "vectors of the wrong length")
        for row in connection.execute(_CHECKS[check])
    ]
    ChangeWriter(connection, nothing).apply(Change(remove=lost), [])
    anew = [record for id in _unlike(connection) for record in _one(connection, id)]
    ChangeWriter(connection, nothing).apply(Change(remove=[record.id for record in anew]), [])
    ChangeWriter(connection, nothing).apply(Change(), prepare(anew))
    if _ids(connection, words.UNINDEXED):
        words.index_all(connection)


def _restore_links(connection: apsw.Connection) -> None:
    """Restore from the table of links the links whose JSON, as the author wrote it, cannot be read."""
    for key, id, links in rows_of(connection, "SELECT key, id, links FROM document"):
        if _links_of(id, links) is None:
            rows = [row for row in _link_rows(connection, key) if row[0] is not None]
            found = sorted(
                Link(kind=kind, tag=tag, direction=direction, label=label, weight=weight)
                for kind, tag, direction, label, weight in rows
            )
            text = orjson.dumps([link.to_dict() for link in found]).decode()
            connection.execute("UPDATE document SET links = ? WHERE key = ?", (text, key))


def _one(connection: apsw.Connection, id: str) -> list[Record]:
    rows = connection.execute(
        "SELECT id, text, metadata, links, embedding FROM document JOIN vector USING (key) WHERE id = ?"
        " AND json_valid(metadata)",
        (id,),
    )
    return [_record(*row) for row in rows]

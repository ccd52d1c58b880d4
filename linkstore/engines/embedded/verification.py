"""Reading all records, comparing derived data with the tables, and repairing it.

Operations on the whole store: reading all records, checking and repairing.

Comparison of derived data (mirror, snapshot and index) with the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Ints
from linkstore.core.links import Link, parse_links
from linkstore.engines.contract import Change, Finding, Record
from linkstore.engines.embedded import lexical
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.mirror import Array, Mirror, Stamp
from linkstore.engines.embedded.nodes import get_codes
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.recall import estimate_recall
from linkstore.engines.embedded.refresh import advance_mirror, load_documents, load_groups, load_links
from linkstore.engines.embedded.schema import (
    convert_row_errors,
    find_counter_problems,
    read_metadata,
    read_raw_settings,
    read_settings,
    restore_counters,
)
from linkstore.engines.embedded.shared import FLOOR
from linkstore.engines.embedded.snapshot import Snapshot, SnapshotFiles, find_snapshot_problem
from linkstore.engines.embedded.vectors import LEAST_RECALL, LiveIndex, SavedIndex
from linkstore.engines.embedded.writing import ChangeWriter, GroupKeyCache, prepare_records

_EXAMPLES: Final = 5
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


def inspect_tables(connection: apsw.Connection, damaged: list[str]) -> Iterator[Finding]:
    """Yield the problems of the store."""
    state = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    if state != ["ok"]:
        yield Finding(problem="SQLite finds the database damaged", count=len(state), examples=tuple(state))
        return  # the tables may not be readable
    if damaged:
        yield Finding(problem="derived files that are damaged", count=len(damaged), examples=tuple(damaged))
    yield from _make_finding("counters that do not fit the tables", find_counter_problems(connection))
    broken = find_snapshot_problem(read_raw_settings(connection))
    yield from _make_finding("the record of derived files cannot be read", [broken] if broken else [])
    for problem, query in _CHECKS.items():
        yield from _make_finding(problem, _read_ids(connection, query))
    yield from _make_finding(
        "documents whose words are not indexed", _read_ids(connection, lexical.SELECT_UNINDEXED)
    )
    yield from _make_finding(
        "documents whose links differ from their metadata", _find_inconsistent_links(connection)
    )
    counted = connection.execute("SELECT count(*) FROM document").get
    noted = connection.execute("SELECT value FROM setting WHERE name = 'documents'").get
    if counted != noted:
        yield Finding(problem=f"{counted} documents, but {noted} noted", count=abs(counted - noted))


def _read_ids(connection: apsw.Connection, query: str) -> list[str]:
    return [_format_value(row[0]) for row in fetch_rows(connection, query)]


def _format_value(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _make_finding(problem: str, places: list[str]) -> Iterator[Finding]:
    if places:
        yield Finding(problem=problem, count=len(places), examples=tuple(places[:_EXAMPLES]))


def _find_inconsistent_links(connection: apsw.Connection) -> list[str]:
    """Return the ids of documents whose rows in the table of links differ from their metadata's links."""
    unlike = []
    for key, id, links in fetch_rows(connection, "SELECT key, id, links FROM document ORDER BY key"):
        own = _parse_links(id, links)
        if own is None or {_make_link_row(link) for link in own} != _read_link_rows(connection, key):
            unlike.append(id)
    return unlike


def _parse_links(id: str, links: str | None) -> tuple[Link, ...] | None:
    """Return the links as the document's author wrote them, or None if they cannot be read."""
    try:
        return parse_links(read_metadata("{}", links), id)
    except ValueError:  # invalid JSON, or invalid links: LinkError is a ValueError
        return None


def _make_link_row(link: Link) -> tuple[str, str, str, str | None, float]:
    return link.kind, link.tag, link.direction, link.label, link.weight


def _read_link_rows(connection: apsw.Connection, key: int) -> set[tuple[Any, ...]]:
    return set(
        connection.execute(
            "SELECT kind, tag, direction, label, weight FROM link"
            " LEFT JOIN link_group ON link_group.key = link_group WHERE document = ?",
            (key,),
        ).fetchall()
    )


def repair_tables(connection: apsw.Connection) -> None:
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
    nothing = GroupKeyCache()  # a link group that this process knows may have been deleted
    lost = [
        row[0]
        for check in ("documents without a vector", "vectors of the wrong length")
        for row in connection.execute(_CHECKS[check])
    ]
    ChangeWriter(connection, nothing).apply(Change(remove=lost), [])
    anew = [
        record
        for id in _find_inconsistent_links(connection)
        for record in _read_records_by_id(connection, id)
    ]
    ChangeWriter(connection, nothing).apply(Change(remove=[record.id for record in anew]), [])
    ChangeWriter(connection, nothing).apply(Change(), prepare_records(anew))
    if _read_ids(connection, lexical.SELECT_UNINDEXED):
        lexical.rebuild_word_index(connection)


def _restore_links(connection: apsw.Connection) -> None:
    """Restore from the table of links the links whose JSON, as the author wrote it, cannot be read."""
    for key, id, links in fetch_rows(connection, "SELECT key, id, links FROM document"):
        if _parse_links(id, links) is None:
            rows = [row for row in _read_link_rows(connection, key) if row[0] is not None]
            found = sorted(
                Link(kind=kind, tag=tag, direction=direction, label=label, weight=weight)
                for kind, tag, direction, label, weight in rows
            )
            text = orjson.dumps([link.to_dict() for link in found]).decode()
            connection.execute("UPDATE document SET links = ? WHERE key = ?", (text, key))


def _read_records_by_id(connection: apsw.Connection, id: str) -> list[Record]:
    rows = connection.execute(
        "SELECT id, text, metadata, links, embedding FROM document JOIN vector USING (key) WHERE id = ?"
        " AND json_valid(metadata)",
        (id,),
    )
    return [_make_record(*row) for row in rows]


_KEYS_AT_ONCE: Final = 20_000
"""How many document keys are read at once."""


def inspect_derived(
    view: StoreView, files: SnapshotFiles, recorded: Snapshot | None, live: LiveIndex
) -> Iterator[Finding]:
    """Yield the differences between derived data and the tables.

    Args:
        view: A view of the store.
        files: The files of its snapshots.
        recorded: The snapshot that the database records; its files have the recorded hashes.
        live: The index in memory.
    """
    yield from _compare_mirror(view, view.mirror, "in memory")
    floor = read_settings(view.connection).get(FLOOR) or 0
    mirror = files.load_mirror(recorded) if recorded and recorded.change >= floor else None
    if mirror is not None:  # an older mirror cannot be brought up to date, and is never used
        yield from _compare_mirror(
            view, advance_mirror(mirror, view.connection, view.stamp), "in the snapshot"
        )
    saved = files.map_ann(recorded) if recorded else None
    if saved is not None:
        yield from _compare_index(view, saved, "in the snapshot")
    yield from live.used(lambda index: list(_compare_index(view, index, "in memory"))) or ()


def _compare_mirror(view: StoreView, mirror: Mirror, place: str) -> Iterator[Finding]:
    wrong: list[str] = []
    for after in range(0, view.stamp.last_key, _KEYS_AT_ONCE):
        wrong += _find_differing_documents(
            view, mirror, after, min(after + _KEYS_AT_ONCE, view.stamp.last_key)
        )
    yield from _make_finding(f"documents that differ {place}", wrong)
    rows = mirror.all_visible(view.stamp)
    surplus = len(rows) - view.connection.execute("SELECT count(*) FROM document").get
    if surplus > 0:
        yield Finding(problem=f"documents that are only {place}", count=surplus)
    yield from _make_finding(f"link groups that differ {place}", _find_differing_groups(view, mirror))
    if not all(_has_right_members(mirror, view.stamp, bit) for bit in mirror.sides):
        yield Finding(problem=f"members of link groups that differ {place}", count=1)


def _find_differing_documents(view: StoreView, mirror: Mirror, after: int, last: int) -> list[str]:
    """Return the ids of the documents in a range of keys that the mirror lacks or has with other values."""
    documents = load_documents(view.connection, after, last, mirror.dimension)
    rows, found = mirror.keys.find(documents.keys)
    visible = mirror.visible(rows, view.stamp)
    if visible is not None:
        found &= visible
    wrong = ~found
    if len(mirror.keys):
        wrong |= np.array([a != b for a, b in zip(mirror.ids.take(rows), documents.ids, strict=True)], bool)
        wrong |= (mirror.vectors.take(rows) != documents.vectors).any(axis=1)
    links = load_links(view.connection, after, last)
    of, entries = mirror.links_of(rows[~wrong])
    theirs = (
        documents.keys[~wrong][of],
        mirror.group_keys.take(mirror.link_group.take(entries).astype(np.int64)),
        mirror.link_bits.take(entries),
        mirror.link_weight.take(entries),
    )
    kept = np.isin(links.document, documents.keys[~wrong])
    ours = (links.document[kept], links.group[kept], links.bits[kept], links.weight[kept])
    wrong |= np.isin(documents.keys, _find_differing_links(ours, theirs))
    return [documents.ids[at] for at in np.flatnonzero(wrong).tolist()]


def _find_differing_links(ours: tuple[Array, ...], theirs: tuple[Array, ...]) -> Ints:
    """Return the keys of documents whose link entries differ: an entry that is equal in both occurs twice.

    ``numpy.unique`` is not used here: it compares rows by Python code, and raises TypeError if interrupted.
    """
    both = [np.concatenate(pair).astype(np.float64) for pair in zip(ours, theirs, strict=True)]
    rows = np.column_stack(both)
    rows = rows[np.lexsort(rows.T)]
    starts = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
    counts = np.diff(starts, append=len(rows))
    unlike: Ints = rows[starts[counts != 2], 0].astype(np.int64)
    return unlike


def _find_differing_groups(view: StoreView, mirror: Mirror) -> list[str]:
    """Return the tags of link groups in the table that the mirror lacks or has with other values."""
    groups = load_groups(view.connection, 0, view.stamp.last_group)
    rows, found = mirror.group_keys.find(groups.keys)
    if not len(mirror.group_keys):
        return groups.tags
    kinds = [mirror.kinds[code] for code in mirror.group_kind.take(rows).tolist()]
    named = zip(kinds, mirror.tags.take(rows), groups.codes.tolist(), groups.tags, strict=True)
    same = [kind == groups.kinds[code] and tag == other for kind, tag, code, other in named]
    return [tag for tag, good in zip(groups.tags, np.array(same, bool) & found, strict=True) if not good]


def _has_right_members(mirror: Mirror, stamp: Stamp, bit: int) -> bool:
    """Check that the runs of a side have every entry of every existing document under its link group."""
    groups, entries = mirror.sides[bit].flat()
    if len(entries) and (entries.max() >= len(mirror.link_group) or entries.min() < 0):
        return False
    if (mirror.link_group.take(entries) != groups).any():
        return False
    total = len(mirror.link_group)
    there = mirror.visible(mirror.link_document.rows(0, total).astype(np.int64), stamp)
    wanted = (mirror.link_bits.rows(0, total) & bit) != 0
    if there is not None:
        wanted &= there
    counts = np.bincount(entries, minlength=total)
    return bool((counts[wanted] == 1).all() and (counts <= 1).all())


def _compare_index(view: StoreView, index: SavedIndex, place: str) -> Iterator[Finding]:
    """Compare the keys and vectors of an index with the documents that it covers."""
    mirror, stamp = view.mirror, view.stamp
    if index.change > stamp.change:
        return  # it may lack documents that were removed after this view's state
    keys = np.sort(np.concatenate((np.asarray(index.index.keys, dtype=np.int64), index.twins.keys)))
    rows = mirror.all_visible(stamp)
    rows = rows[: np.searchsorted(mirror.keys.take(rows), index.covered, "right")]
    wanted = mirror.keys.take(rows)
    wrong = ~np.isin(wanted, keys)
    for start in range(0, len(wanted), _KEYS_AT_ONCE):
        part = np.arange(start, min(start + _KEYS_AT_ONCE, len(wanted)))
        part = part[~wrong[part]]
        if len(part):
            held = get_codes(index.index, index.twins.nodes_of(wanted[part]))
            wrong[part] = (held != index.codes(mirror.vectors.take(rows[part]))).any(axis=1)
    yield from _make_finding(
        f"documents that the index {place} lacks or differs in", mirror.ids.take(rows[wrong])
    )
    if len(keys) != len(np.unique(keys)) or (len(keys) and keys[-1] > index.covered):
        yield Finding(problem=f"entries of the index {place} without documents", count=1)
    if not wrong.any() and index.recall >= LEAST_RECALL:  # of one that is not used, nothing is promised
        recall = estimate_recall(index, mirror, stamp)
        if recall < LEAST_RECALL:
            problem = f"the index {place} finds {recall:.0%} of the ten nearest documents of a sample"
            yield Finding(problem=problem, count=1)

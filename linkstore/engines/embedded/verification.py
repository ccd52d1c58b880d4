"""Derives again what is derived from the documents, compares, and rebuilds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.links import Link, parse_links
from linkstore.engines.contract import Finding, WriteBatch, make_findings
from linkstore.engines.embedded import lexical, schema
from linkstore.engines.embedded.derived import DerivedData, Snapshot, forget_snapshot, parse_snapshot
from linkstore.engines.embedded.filters import StoreView
from linkstore.engines.embedded.maintenance import OpenStore
from linkstore.engines.embedded.mirror import Mirror, advance_mirror, collect_columns, make_empty_mirror
from linkstore.engines.embedded.vectors import LEAST_RECALL, AnnIndex, estimate_recall, get_codes
from linkstore.engines.embedded.writing import EmbeddedWriter

_ROWS_AT_ONCE: Final = 20_000
_LINK_FIELDS: Final = ("kind", "tag", "direction", "label", "weight")
_get_link_row = attrgetter(*_LINK_FIELDS)
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
    "documents whose words are not indexed": lexical.SELECT_UNINDEXED,
    "notes that are not texts": (
        "SELECT CAST(name AS BLOB) FROM note WHERE typeof(name) != 'text' OR typeof(text) != 'text'"
    ),
}


def inspect_store(store: OpenStore) -> list[Finding]:
    """Compare links, vectors, counts, files and memory with the documents, without changing anything."""

    def read_tables(connection: apsw.Connection) -> list[Finding]:
        damaged = store.find_damaged()
        with schema.convert_row_errors("tables"):
            return list(_inspect_tables(connection, damaged))

    def compare(view: StoreView) -> list[Finding]:
        recorded = parse_snapshot(schema.read_settings(view.connection))
        return list(_inspect_derived(view, store.derived, recorded))

    # If the tables are damaged, the derived data differ in any case.
    return store.database.read(read_tables, anew=True) or store.read_view(compare, anew=True)


def rebuild_store(store: OpenStore) -> None:
    """Rebuild all that is derived from documents."""

    def rebuild(connection: apsw.Connection) -> None:
        with schema.convert_row_errors("tables"):
            _rebuild_tables(connection)
        forget_snapshot(connection)  # its files may have the recorded hashes and still be wrong

    store.database.write(rebuild)
    store.derived.forget()
    store.flush()


def _inspect_tables(connection: apsw.Connection, damaged: str | None) -> Iterator[Finding]:
    """Yield the problems of the tables; ``damaged`` names the derived file, if that is damaged."""
    state = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
    if state != ["ok"]:
        yield Finding(problem="SQLite finds the database damaged", count=len(state), examples=tuple(state))
        return  # the tables may not be readable
    if damaged:
        yield from make_findings("derived files that are damaged", [damaged])
    yield from make_findings("counters that do not fit the tables", schema.find_counter_problems(connection))
    settings = schema.read_raw_settings(connection)
    if settings.get(schema.SNAPSHOT) is not None and parse_snapshot(settings) is None:
        yield Finding(problem="the record of derived files cannot be read", count=1)
    for problem, query in _CHECKS.items():
        yield from make_findings(problem, _read_ids(connection, query))
    yield from make_findings(
        "documents whose links differ from their metadata", _find_inconsistent_links(connection)
    )


def _read_ids(connection: apsw.Connection, query: str) -> list[str]:
    values = (row[0] for row in schema.fetch_rows(connection, query))
    return [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values]


def _find_inconsistent_links(connection: apsw.Connection) -> list[str]:
    """Return the ids of documents whose rows in the table of links differ from their metadata's links."""
    unlike = []
    for key, id, links in schema.fetch_rows(connection, "SELECT key, id, links FROM document ORDER BY key"):
        own = _parse_links(id, links)
        if own is None or set(map(_get_link_row, own)) != _read_link_rows(connection, key):
            unlike.append(id)
    return unlike


def _parse_links(id: str, links: str | None) -> tuple[Link, ...] | None:
    """Return the links as the document's author wrote them, or None if they cannot be read."""
    try:
        return parse_links(schema.read_metadata("{}", links), id)
    except ValueError:  # invalid JSON, or invalid links: LinkError is a ValueError
        return None


def _read_link_rows(connection: apsw.Connection, key: int) -> set[tuple[Any, ...]]:
    return set(
        connection.execute(
            f"SELECT {', '.join(_LINK_FIELDS)} FROM link"
            " LEFT JOIN link_group ON link_group.key = link_group WHERE document = ?",
            (key,),
        ).fetchall()
    )


def _rebuild_tables(connection: apsw.Connection) -> None:
    """Derive all rows that are derived from documents anew, in an open write transaction.

    A document without a vector, or with one of the wrong length, is removed: no embedding is available here,
    and adding the document again embeds it. Metadata that cannot be read stays as it is. Every process loads
    all derived data anew afterwards, because the removals are no longer listed.
    """
    schema.restore_counters(connection)
    _restore_links(connection)
    for query in (
        "DELETE FROM vector WHERE key NOT IN (SELECT key FROM document)",
        "DELETE FROM note WHERE typeof(name) != 'text' OR typeof(text) != 'text'",
        "DELETE FROM access WHERE typeof(at) != 'integer' OR id NOT IN (SELECT id FROM document)",
        "UPDATE document SET hash = x'' WHERE NOT json_valid(metadata)",  # adding it again is a change
        "DELETE FROM link",
        "DELETE FROM link_group",
    ):
        connection.execute(query)
    lost = [
        *_read_ids(connection, _CHECKS["documents without a vector"]),
        *_read_ids(connection, _CHECKS["vectors of the wrong length"]),
    ]
    writer = EmbeddedWriter(connection)
    writer.apply(WriteBatch(remove=lost), [])
    rows: Iterator[Any] = iter(
        schema.fetch_rows(connection, "SELECT key, id, links FROM document ORDER BY key")
    )
    while part := list(islice(rows, _ROWS_AT_ONCE)):
        keys = [key for key, _, _ in part]
        writer.put_links(keys, [_parse_links(id, links) or () for _, id, links in part])
    writer.save_settings()
    lexical.rebuild_word_index(connection)
    connection.execute("DELETE FROM departed")
    settings = schema.read_settings(connection)
    gone = settings["last_key"] - settings["documents"]
    schema.write_settings(connection, {schema.FLOOR: settings["change"], schema.UNLISTED: gone})


def _restore_links(connection: apsw.Connection) -> None:
    """Restore from the table of links the links whose JSON, as the author wrote it, cannot be read."""
    for key, id, links in schema.fetch_rows(connection, "SELECT key, id, links FROM document"):
        if _parse_links(id, links) is None:
            rows = [row for row in _read_link_rows(connection, key) if row[0] is not None]
            restored = sorted(Link(**dict(zip(_LINK_FIELDS, row, strict=True))) for row in rows)
            text = orjson.dumps([link.to_dict() for link in restored]).decode()
            connection.execute("UPDATE document SET links = ? WHERE key = ?", (text, key))


def _inspect_derived(view: StoreView, derived: DerivedData, recorded: Snapshot | None) -> Iterator[Finding]:
    """Derive everything again, and yield the differences from what is in memory and in the snapshot.

    Args:
        view: A view of the store.
        derived: What this process has derived.
        recorded: The snapshot that the database records; its files have the recorded hashes.
    """
    settings = schema.read_settings(view.connection)
    change, floor = settings["change"], settings.get(schema.FLOOR) or 0
    fresh = advance_mirror(make_empty_mirror(view.mirror.dimension), view.connection, change)
    yield from _compare_mirrors(fresh, view.mirror, "in memory")
    loaded = derived.load(recorded) if recorded else None
    if recorded is None or loaded is None:
        return
    mirror, index = loaded
    if mirror is not None and recorded.change >= floor:  # an older one cannot be brought up to date
        mirror = advance_mirror(mirror, view.connection, change)
        yield from _compare_mirrors(fresh, mirror, "in the snapshot")
    yield from _compare_index(fresh, index, view.connection, used=recorded.recall >= LEAST_RECALL)


def _compare_mirrors(fresh: Mirror, mirror: Mirror, place: str) -> Iterator[Finding]:
    ours, theirs = collect_columns(fresh), collect_columns(mirror)
    wrong = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    if "keys" not in wrong:
        rows, others = fresh.find_living(), mirror.find_living()
        starts = range(0, len(rows), _ROWS_AT_ONCE)
        parts = [slice(start, start + _ROWS_AT_ONCE) for start in starts]
        if not all(
            np.array_equal(fresh.vectors.take(rows[part]), mirror.vectors.take(others[part]), equal_nan=True)
            for part in parts
        ):
            wrong.append("vectors")
    yield from make_findings(f"columns that differ from the tables {place}", wrong)


def _compare_index(
    fresh: Mirror, index: AnnIndex, connection: apsw.Connection, *, used: bool
) -> Iterator[Finding]:
    """Compare the keys and vectors of an index with the documents that it covers, and measure it."""
    keys = np.sort(np.concatenate((np.asarray(index.index.keys, dtype=np.int64), index.twins.keys)))
    rows = fresh.find_living()
    wanted = fresh.keys.take(rows)
    wanted = wanted[wanted <= index.covered]
    wrong = ~np.isin(wanted, keys)
    for start in range(0, len(wanted), _ROWS_AT_ONCE):
        part = np.flatnonzero(~wrong[start : start + _ROWS_AT_ONCE]) + start
        held = get_codes(index.index, index.twins.nodes_of(wanted[part]))
        wrong[part] = (held != index.codes(fresh.vectors.take(rows[part]))).any(axis=1)
    lacking = schema.read_ids(connection, wanted[wrong])
    yield from make_findings("documents that the index lacks or differs in", lacking)
    if len(keys) != len(np.unique(keys)) or (len(keys) and keys[-1] > index.covered):
        yield Finding(problem="entries of the index without documents", count=1)
    if used and not wrong.any():
        recall = estimate_recall(index, fresh)
        if recall < LEAST_RECALL:
            problem = f"the index finds {recall:.0%} of the ten nearest documents of a sample"
            yield Finding(problem=problem, count=1)

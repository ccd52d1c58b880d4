"""Accesses are recorded beside everything else: nothing that is derived from documents notices."""

from __future__ import annotations

import apsw
import pytest
from internals import WriteBatch
from stores import SNAPSHOTS, backend, put, sql

NOON = 1_700_000_000_000_000
COUNTED = ("document", "vector", "link", "link_group", "departed", "word", "page")


def state(folder) -> dict[str, object]:
    """How many rows each table has, the counters, and the derived files."""
    connection = apsw.Connection(str(folder / "linkstore.db"))
    try:
        rows = {table: connection.execute(f"SELECT count(*) FROM {table}").get for table in COUNTED}
        settings = dict(connection.execute("SELECT name, value FROM setting").fetchall())
    finally:
        connection.close()
    files = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.suffix == ".bin"}
    return {**rows, **settings, **files}


def pages(folder) -> int:
    """How many pages the database has."""
    connection = apsw.Connection(str(folder / "linkstore.db"))
    try:
        return connection.pragma("page_count")
    finally:
        connection.close()


def test_ten_thousand_accesses_write_no_document_vector_or_index(tmp_path):
    store = backend(tmp_path / "kb")
    put(store, 0, 300)
    store.run(store.flush())
    before = state(tmp_path / "kb")
    size = pages(tmp_path / "kb")
    for turn in range(100):
        ids = [f"d{(100 * turn + n) % 300}" for n in range(100)]
        assert store.run(store.touch(dict.fromkeys(ids, NOON + turn))) == 100
    store.run(store.flush())
    assert state(tmp_path / "kb") == before
    times = store.run(store.accessed([f"d{n}" for n in range(300)]))
    assert len(times) == 300
    assert max(times.values()) == NOON + 99
    store.close()
    assert state(tmp_path / "kb") == before
    assert pages(tmp_path / "kb") <= size + 10


def test_other_processes_and_later_ones_see_them(tmp_path):
    one, other = backend(tmp_path / "kb"), backend(tmp_path / "kb")
    put(one, 0, 3)
    one.run(one.touch({"d0": NOON}))
    other.run(other.touch({"d0": NOON - 1, "d1": NOON - 1}))
    for store in (one, other):
        assert store.run(store.accessed(["d0", "d1", "d2"])) == {"d0": NOON, "d1": NOON - 1}
        store.close()
    again = backend(tmp_path / "kb")
    assert again.run(again.accessed(["d0", "d1", "d2"])) == {"d0": NOON, "d1": NOON - 1}
    again.close()


def test_a_removed_document_leaves_no_trace_of_its_accesses(tmp_path):
    store = backend(tmp_path / "kb")
    put(store, 0, 3)
    store.run(store.touch({"d0": NOON, "d1": NOON}))
    store.run(store.write(WriteBatch(remove=["d0"])))
    store.run(store.compact())
    store.close()
    assert b"d0" not in (tmp_path / "kb" / "linkstore.db").read_bytes().replace(b"d0\x00", b"")
    connection = apsw.Connection(str(tmp_path / "kb" / "linkstore.db"))
    assert connection.execute("SELECT id FROM access").fetchall() == [("d1",)]
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO access VALUES ('gone', 1)",
        "UPDATE access SET at = 'noon' WHERE id = 'd0'",
        "INSERT INTO access VALUES (x'ff', 1)",
    ],
)
def test_accesses_that_make_no_sense_are_found_and_removed(tmp_path, damage):
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 3)
    store.run(store.touch({"d0": NOON, "d1": NOON}))
    sql(tmp_path / "kb", damage)
    (finding,) = store.run(store.verify()).findings
    assert (finding.problem, finding.count) == ("accesses to documents that are gone", 1)
    store.run(store.repair())
    assert store.run(store.verify()).sound
    assert store.run(store.accessed(["d1"])) == {"d1": NOON}
    store.close()

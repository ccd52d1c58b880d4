"""A reader sees one state of the store, whatever is written, removed or saved meanwhile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from internals import (
    Candidates,
    Column,
    DerivedData,
    Documents,
    Find,
    Ids,
    Members,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    Snapshot,
    StaleStateError,
    StoredDocument,
    WriteBatch,
)
from stores import (
    SNAPSHOTS,
    Child,
    backend,
    exact,
    meanwhile,
    nearest,
    put,
    record,
    times,
    vectors,
)

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, files

ASKED = vectors([10_000])[0]
ALL = tuple(f"d{n}" for n in range(400))


def everything(meanwhile=lambda: None) -> Plan[tuple[list[str], list[str], list[str], list[str]]]:
    """All ids by similarity, by id, by a link group, and as stored, with something done in between."""
    near: Candidates = yield Nearest(vector=ASKED, k=10_000)
    by_similarity: list[str] = yield Ids(refs=near.refs)
    meanwhile()
    found: Candidates = yield Find(ids=ALL)
    by_id: list[str] = yield Ids(refs=found.refs)
    groups = yield Resolve(tags=(("keyword", "k3"),))
    reached: ReachedMembers = yield Members(
        groups=groups, side="in", vector=ASKED, take=500, cap=500, exclude=np.empty(0, np.int64)
    )
    members: list[str] = yield Ids(refs=reached.refs)
    stored: list[StoredDocument] = yield Documents(refs=found.refs)
    return sorted(by_similarity), sorted(by_id), sorted(members), sorted(one.id for one in stored)


def expected(numbers: range) -> tuple[list[str], list[str], list[str], list[str]]:
    names = sorted(f"d{n}" for n in numbers)
    return names, names, sorted(f"d{n}" for n in numbers if n % 17 == 3), names


@pytest.mark.parametrize("settings", [SNAPSHOTS, EmbeddedSettings(durable=False)], ids=["indexed", "exact"])
def test_a_plan_does_not_see_what_is_written_while_it_runs(tmp_path, settings) -> None:
    store = backend(tmp_path / "kb", settings)
    put(store, 0, 200)
    store.run(store.flush())

    def meanwhile() -> None:
        store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(100)])))
        put(store, 200, 300)
        store.run(store.flush())

    assert store.run(store.answer(everything(meanwhile))) == expected(range(200))
    assert store.run(store.answer(everything())) == expected(range(100, 300))
    store.close()


def test_readers_in_threads_see_whole_changes(tmp_path) -> None:
    """Each change moves a window by 10 documents; every view is some window."""
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    windows = [expected(range(start, start + 100)) for start in range(0, 300, 10)]

    def read() -> None:
        assert store.run(store.answer(everything())) in windows

    with meanwhile(read, read, read):
        for _ in range(times(1, 20)):
            for start in range(10, 300, 10):
                gone = [f"d{n}" for n in range(start - 10, start)]
                new = [record(n) for n in range(start + 90, start + 100)]
                store.run(store.write(WriteBatch(remove=gone, put=new)))
                if start % 50 == 0:
                    store.run(store.flush())
            back = WriteBatch(remove=list(ALL[100:]), put=[record(n) for n in range(100)])
            store.run(store.write(back))
    store.close()


def test_a_state_that_was_jumped_over_is_not_served(tmp_path) -> None:
    """A document that came and went between two looks of the mirror is missing there."""
    store = backend(tmp_path / "kb")
    put(store, 0, 5)
    nearest(store, ASKED)
    put(store, 5, 6)

    def between(connection) -> None:
        connection.execute("SELECT count(*) FROM document").fetchall()
        store.run(store.write(WriteBatch(remove=["d5"])))
        nearest(store, ASKED)
        with pytest.raises(StaleStateError):
            store._store.derived.view(connection)

    store._database.read(between)
    store.close()


def put_and_remove(told, folder) -> None:
    other = backend(folder)
    put(other, 150, 300)
    other.run(other.write(WriteBatch(remove=[f"d{n}" for n in range(0, 300, 3)])))


def test_a_mirror_catches_up_with_another_process(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 150)
    store.run(store.flush())
    assert nearest(store, ASKED) == exact(range(150), ASKED)
    Child(put_and_remove, tmp_path / "kb").finish()
    left = [n for n in range(300) if n % 3]
    assert nearest(store, ASKED, 300) == exact(left, ASKED, 300)
    assert store.run(store.answer(everything())) == expected([n for n in range(300) if n % 3])
    store.close()


def replace_twenties(told, folder) -> None:
    other = backend(folder)
    for start in (0, 20, 40):
        other.run(other.write(WriteBatch(remove=[f"d{n}" for n in range(start, start + 20)])))
        put(other, 150 + start, 170 + start)
        other.run(other.flush())


def test_a_mirror_older_than_the_list_of_removals_is_loaded_anew(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 150)
    store.run(store.flush())
    nearest(store, ASKED)
    mirror = store._store.derived._held.mirror
    Child(replace_twenties, tmp_path / "kb").finish()
    assert nearest(store, ASKED, 300) == exact(range(60, 210), ASKED, 300)
    assert store._store.derived._held.mirror is not mirror
    store.close()


def test_an_update_in_place_is_seen_by_filters_and_links(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    store.run(store.flush())
    assert len(nearest(store, ASKED, 200, {"v": 0})) == 100
    put(store, 0, 30, version=1)
    assert len(nearest(store, ASKED, 200, {"v": 0})) == 70
    assert len(nearest(store, ASKED, 200, {"v": 1})) == 30
    store.close()


def test_equal_vectors_are_all_found_through_the_index(tmp_path) -> None:
    """An index of many equal vectors falls apart into islands; none of them may hide the others."""
    store = backend(tmp_path / "kb")
    same = vectors([1])[0]
    twins = [record(n) for n in range(1500)]
    for twin in twins:
        object.__setattr__(twin, "vector", same)
    store.run(store.write(WriteBatch(put=twins)))
    store.run(store.flush())
    for k in (10, 100, 900, 1500):
        assert len(nearest(store, same, k)) == k
    store.close()


def test_a_filter_that_leaves_few_finds_them_all(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 2000)
    store.run(store.flush())
    wanted = {"$or": [{"n": 7}, {"n": 1999}, {"n": 1234}]}
    assert nearest(store, ASKED, 10, wanted) == exact([7, 1234, 1999], ASKED)
    half = {"c": {"$in": [0, 1]}}
    assert nearest(store, ASKED, 50, half) == exact([n for n in range(2000) if n % 3 < 2], ASKED, 50)
    store.close()


def test_a_store_opened_in_small_searches_exactly(tmp_path) -> None:
    store = backend(tmp_path / "kb", EmbeddedSettings(durable=False))
    put(store, 0, 500)
    store.run(store.flush())
    assert not list((tmp_path / "kb").glob("index-*"))
    assert nearest(store, ASKED, 500) == exact(range(500), ASKED, 500)
    store.close()


def test_memory_and_time_follow_what_is_stored_not_its_history(tmp_path) -> None:
    """Documents that are updated over and over leave nothing behind once a snapshot is taken."""
    store = backend(tmp_path / "kb")
    for version in range(times(10, 100)):
        put(store, 0, 80, version)
        store.run(store.flush())
    rows = store.run(store.answer(everything()))
    assert rows[0] == sorted(f"d{n}" for n in range(80))
    store.close()
    reopened = EmbeddedBackend(tmp_path / "kb")
    assert reopened.run(reopened.answer(everything())) == rows
    assert reopened.run(reopened.verify()).sound
    reopened.close()


def test_a_column_is_whole_while_another_extends_it() -> None:
    """Rows are read by two threads while a third adds further ones, and gives up half of the time."""
    column, at, whole = (
        Column.of(np.arange(50)).extend(np.arange(50, 100)),
        np.arange(0, 100, 7),
        np.arange(100),
    )

    def read() -> None:
        assert np.array_equal(column.take(at), at)
        assert np.array_equal(column.rows(0, 100), whole)

    with meanwhile(read, read):
        for size in range(100, 3000):
            column.extend(np.array([-1, -2, -3]))  # given up
            column = column.extend(np.array([size]))
    assert np.array_equal(column.rows(0, len(column)), np.arange(3000))


def test_a_snapshot_does_not_disturb_readers(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    right = exact(range(400), ASKED)

    def read() -> None:
        found = [name for name in nearest(store, ASKED, 2000) if int(name[1:]) < 400]
        assert found[:10] == right

    with meanwhile(read, read):
        for start in range(400, 400 + 10 * times(10, 100), 10):
            put(store, start, start + 10)
            store.run(store.flush())
    store.close()


def test_a_reader_overtaken_by_two_snapshots_does_without_files(tmp_path, monkeypatch) -> None:
    """The files of a snapshot are deleted when the second after it is taken, perhaps while one is opened."""
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 300)
    store.run(store.flush())
    reader = backend(tmp_path / "kb", SNAPSHOTS)
    assert nearest(reader, ASKED) == exact(range(300), ASKED)
    put(store, 300, 400)
    store.run(store.flush())
    real, gone = files.map_bytes, []

    def overtaken(path: Path) -> object:
        for n in () if gone else (400, 500):
            gone.append(path)
            put(store, n, n + 100)
            store.run(store.flush())
        return real(path)

    monkeypatch.setattr(files, "map_bytes", overtaken)
    assert set(nearest(reader, ASKED, 400)) <= {f"d{n}" for n in range(600)}
    assert gone
    assert not gone[0].exists()
    assert nearest(reader, ASKED) == exact(range(600), ASKED)
    assert reader.run(reader.verify()).findings == ()
    reader.close()
    store.close()


def test_verify_looks_at_the_snapshot_that_is_recorded_by_then(tmp_path, monkeypatch) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 300)
    store.run(store.flush())
    load, seen, missing = DerivedData.load, [], []

    def overtaken(files: DerivedData, recorded: Snapshot, *, view: bool = True) -> object:
        if not seen:
            seen.append(recorded)
            for n in (300, 400):
                put(store, n, n + 100)
                store.run(store.flush())
        found = load(files, recorded, view=view)
        missing.append(found is None)
        return found

    monkeypatch.setattr(DerivedData, "load", overtaken)
    assert store.run(store.verify()).findings == ()
    assert any(missing)
    assert not missing[-1]
    store.close()


def test_documents_past_the_index_do_not_take_the_place_of_better_ones(tmp_path) -> None:
    """There were enough that passed a filter among them, so nobody asked the index for more."""
    store = backend(tmp_path / "kb")
    put(store, 0, 2000)
    store.run(store.flush())
    put(store, 2000, 2600)  # too few for a snapshot of their own
    nearest(store, vectors([0])[0])
    assert store._store.derived._held.ann.covered == 2000
    there = [n for n in range(2600) if n % 3 == 1 and n % 17 == 2]
    for n in range(2600, 2620):
        asked = vectors([n])[0]
        assert nearest(store, asked, 10, {"n": {"$in": there}}) == exact(there, asked)
    store.close()


def test_removed_documents_of_the_index_do_not_hide_others(tmp_path) -> None:
    """All that the index proposed were gone, and those past it, however far, were enough."""
    store, asked = backend(tmp_path / "kb"), vectors([10_000])[0]
    put(store, 0, 2000)
    store.run(store.flush())
    near = exact(range(2000), asked, 250)
    store.run(store.write(WriteBatch(remove=near)))
    put(store, 2000, 2040)
    there = [n for n in range(2040) if f"d{n}" not in near]
    assert nearest(store, asked) == exact(there, asked)
    assert len(store._store.derived._held.ann.index) == 2000
    store.close()

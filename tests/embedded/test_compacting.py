"""What is deleted leaves no trace once a store is compact, and what it costs follows what it holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest
from internals import (
    Column,
    Record,
    WriteBatch,
    map_bytes,
    parse_links,
    parse_snapshot,
    quantize,
    read_arrays,
    read_settings,
    record_snapshot,
)
from stores import SNAPSHOTS, backend, exact, nearest, put, record, records, vectors

from linkstore.engines.embedded import EmbeddedSettings
from linkstore.errors import StoreBusyError

ASKED = vectors([10_000])[0]
SMALL = EmbeddedSettings(durable=False)


def secret(version: str) -> Record:
    """A document whose parts are all told apart, by version."""
    metadata = {
        "title": f"TITLE-{version}",
        "diagnosis": f"META-{version}",
        f"FIELD-{version}": 1,
        "links": [{"kind": f"KIND-{version}", "tag": f"TAG-{version}", "direction": "bidir"}],
    }
    vector = vectors([int.from_bytes(version.encode(), "big")])[0]
    text = f"the text {version}text of {version}word"
    name = f"PATIENT-{version}"
    return Record(id=name, text=text, metadata=metadata, vector=vector, links=parse_links(metadata, name))


def traces(folder: Path, version: str) -> list[str]:
    """Which parts of a document are in which file, in any of the ways in which they might be written."""
    made = secret(version)
    parts = [made.id, f"{version}text", f"{version}word", f"TITLE-{version}", f"META-{version}"]
    parts += [f"KIND-{version}", f"TAG-{version}", f"FIELD-{version}"]
    needles = {part: spelt for part in parts for spelt in (part.encode(),)}
    needles |= {f"{part} in UTF-16": part.encode("utf-16-le") for part in parts}
    needles |= {f"{part} in lower case": part.lower().encode() for part in parts}
    needles |= {
        f"vector as {kind}": np.asarray(made.vector, kind).tobytes() for kind in ("<f4", "<f2", "<f8")
    }
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return [
        f"{name}: {part}"
        for name, data in files.items()
        for part, sought in needles.items()
        if sought in data
    ]


@pytest.mark.parametrize("settings", [SMALL, SNAPSHOTS], ids=["small", "with snapshots"])
def test_a_compact_store_holds_nothing_of_what_was_deleted(tmp_path, settings) -> None:
    folder = tmp_path / "kb"
    store = backend(folder, settings)
    put(store, 0, 300)
    store.run(store.write(WriteBatch(put=[secret("deleted"), secret("updated"), secret("kept")])))
    store.run(store.flush())
    put(store, 300, 400)
    store.run(store.flush())
    updated = secret("newer")
    updated = Record(
        id=secret("updated").id, text=updated.text, metadata=updated.metadata, vector=updated.vector,
        links=updated.links,
    )  # fmt: skip
    store.run(store.write(WriteBatch(put=[updated], remove=[secret("deleted").id])))
    assert traces(folder, "deleted")
    store.run(store.compact())
    assert not traces(folder, "deleted")
    left = [trace for trace in traces(folder, "updated") if "PATIENT" not in trace and "patient" not in trace]
    assert not left
    assert {trace.split(": ")[1] for trace in traces(folder, "kept")} >= {
        "PATIENT-kept",
        "TAG-kept",
        "vector as <f4",
    }
    assert store.run(store.verify()).sound
    store.close()
    assert not traces(folder, "deleted")
    again = backend(folder, settings)
    assert nearest(again, secret("kept").vector, 1) == ["PATIENT-kept"]
    assert again.run(again.verify()).sound
    again.close()


def test_links_that_were_replaced_leave_no_trace(tmp_path) -> None:
    folder = tmp_path / "kb"
    store = backend(folder)
    put(store, 0, 100)
    store.run(store.write(WriteBatch(put=[secret("relinked")])))
    store.run(store.flush())
    store.run(store.relink({"KIND-relinked"}, {"PATIENT-relinked": ()}))
    store.run(store.compact())
    found = {trace.split(": ")[1] for trace in traces(folder, "relinked")}
    assert "PATIENT-relinked" in found
    assert not {"KIND-relinked", "TAG-relinked"} & found
    store.close()


def test_a_reader_in_the_way_of_compaction_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("linkstore.engines.embedded.database.BUSY_SECONDS", 0.2)
    store = backend(tmp_path / "kb")
    put(store, 0, 50)
    other = apsw.Connection(str(tmp_path / "kb" / "linkstore.db"))
    other.execute("BEGIN; SELECT count(*) FROM document")
    with pytest.raises(StoreBusyError):
        store.run(store.compact())
    other.execute("COMMIT")
    store.run(store.compact())
    assert nearest(store, ASKED) == exact(range(50), ASKED)
    other.close()
    store.close()


def weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("settings", [SMALL, SNAPSHOTS], ids=["small", "with snapshots"])
def test_rows_tables_and_files_follow_what_is_stored_not_its_history(tmp_path, settings) -> None:
    """Every version has tags of its own, so link groups come and go as well."""
    count, versions = 600, 16
    store, fresh = backend(tmp_path / "kb", settings), backend(tmp_path / "fresh", settings)
    for version in range(versions):
        changed = [record(n, version) for n in range(count)]
        for made in changed:
            links = [{"kind": "keyword", "tag": f"{made.id} v{version}", "direction": "bidir"}]
            object.__setattr__(made, "links", parse_links({"links": links}, made.id))
            object.__setattr__(made, "metadata", {"links": links})
        for start in range(0, count, 100):
            store.run(store.write(WriteBatch(put=changed[start : start + 100])))
            nearest(store, ASKED, 1)
    fresh.run(fresh.write(WriteBatch(put=changed)))
    nearest(fresh, ASKED, 1)
    mirror = store._store.derived._held.mirror
    assert mirror is not None
    assert len(mirror.keys) <= 2 * count
    assert len(mirror.link_group) <= 2 * count
    tables = store._database.read(
        lambda db: {
            name: db.execute(f"SELECT count(*) FROM {name}").get for name in ("departed", "link_group")
        }
    )
    assert tables["departed"] <= 4 * count
    assert tables["link_group"] <= 4 * count
    assert nearest(store, ASKED, 50) == nearest(fresh, ASKED, 50)
    for one in (store, fresh):
        assert one.run(one.verify()).sound
        one.close()
    assert weight(tmp_path / "kb") <= 2.5 * weight(tmp_path / "fresh")


@pytest.mark.parametrize("path", ["folder", ":memory:"])
@pytest.mark.parametrize("kept", [True, False], ids=["vectors kept", "vectors changed"])
def test_the_graph_is_made_anew_for_new_vectors_alone(tmp_path, path, kept) -> None:
    """Updates of metadata used to make it anew over and over, at most of the cost of writing."""
    count, sizes = 200, []
    store = backend(path if path == ":memory:" else tmp_path / path)
    for version in range(6):
        changed = records(0, count, version)
        if kept:
            changed = [replace(one, vector=vectors([n])[0]) for n, one in enumerate(changed)]
        store.run(store.write(WriteBatch(put=changed)))
        store.run(store.flush())
        snapshot = store._database.read(lambda connection: parse_snapshot(read_settings(connection)))
        assert snapshot is not None
        _, index = store._store.derived.load(snapshot)
        sizes.append(len(index.index))
        assert snapshot.unused == len(index.index) - count
        assert len(index.twins) == (count if kept and version else 0)
        assert not kept or nearest(store, ASKED, 20) == exact(range(count), ASKED, 20)
        assert store.run(store.verify()).sound
    assert sizes == ([count] * 6 if kept else [count, 2 * count] * 3)
    store.close()


def test_a_store_that_shrinks_gives_its_space_back(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 4000)
    store.run(store.flush())
    large = weight(tmp_path / "kb")
    for start in range(20, 4000, 500):
        store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(start, start + 500)])))
    assert nearest(store, ASKED) == exact(range(20), ASKED)
    assert not list((tmp_path / "kb").glob("index-*"))
    store.close()
    assert weight(tmp_path / "kb") < large / 3.5


def test_what_differs_from_the_tables_is_found_and_mended(tmp_path) -> None:
    """A snapshot with the right hashes and shifted vectors, as an interrupted search once left it."""
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    nearest(store, ASKED)
    held = store._store.derived._held
    assert held is not None
    shifted = Column.of(np.roll(held.mirror.vectors.take(np.arange(200)), 1, axis=0))
    store._store.derived._held = replace(held, mirror=replace(held.mirror, vectors=shifted))
    assert any("in memory" in finding.problem for finding in store.run(store.verify()).findings)
    put(store, 200, 210)
    store.run(store.flush())
    store.close()
    store = backend(tmp_path / "kb")
    assert nearest(store, vectors([7])[0], 1) == ["d8"]
    problems = [finding.problem for finding in store.run(store.verify()).findings]
    assert "columns that differ from the tables in the snapshot" in problems
    store.run(store.repair())
    assert store.run(store.verify()).sound
    assert nearest(store, vectors([7])[0], 1) == ["d7"]
    store.close()
    store = backend(tmp_path / "kb")
    assert nearest(store, vectors([7])[0], 1) == ["d7"]
    store.close()


def test_an_index_that_lacks_documents_is_found_and_mended(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    store.run(store.flush())
    (path,) = (tmp_path / "kb").glob("index-*.bin")
    snapshot = store._database.read(lambda connection: parse_snapshot(read_settings(connection)))
    _, index = store._store.derived.load(snapshot, view=False)
    index.index.remove(np.array([5]))
    index.index.add(np.array([6]) + 1_000_000, quantize(vectors([3])))
    columns = {name: [np.array(array)] for name, array in read_arrays(map_bytes(path)).items()}
    wrong = replace(snapshot, digest=index.save(tmp_path / "kb", columns))
    store._database.write(lambda connection: record_snapshot(connection, wrong))
    assert len(store.run(store.verify()).findings) == 2
    store.run(store.repair())
    assert store.run(store.verify()).sound
    assert sorted(nearest(store, ASKED, 200)) == sorted(f"d{n}" for n in range(200))
    store.close()


def test_a_change_of_one_document_keeps_what_others_answer(tmp_path) -> None:
    """Rows are numbered anew while another handle of the same store goes on."""
    one, two = backend(tmp_path / "kb"), backend(tmp_path / "kb")
    put(one, 0, 700)
    assert nearest(two, ASKED) == exact(range(700), ASKED)
    for _ in range(4):
        one.run(one.write(WriteBatch(put=records(0, 700, 1))))
        one.run(one.write(WriteBatch(put=records(0, 700, 0))))
        assert nearest(one, ASKED, 20, {"c": 1}) == nearest(two, ASKED, 20, {"c": 1})
        assert nearest(two, ASKED) == exact(range(700), ASKED)
    one.run(one.compact())
    put(two, 700, 710)
    assert nearest(one, ASKED) == exact(range(710), ASKED)
    assert two.run(two.verify()).sound
    one.close()
    two.close()

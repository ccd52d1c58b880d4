"""Stores that were written before open, and answer as they did: see ``tests/support/golden.py``."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from golden import NUMBERS, SEARCHES, STORES, find_version, make_record, read_answers
from internals import FORMAT_VERSION, PageEntry, StoreFolder, Vocabulary
from stores import SNAPSHOTS, backend, nearest, put, snapshot_file, sql, vectors

from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import StoreFormatError

WRITTEN = range(1, FORMAT_VERSION + 1)


def unpack(version: int, folder: Path) -> Path:
    with zipfile.ZipFile(STORES / f"format-{version}.zip") as archive:
        archive.extractall(folder)
    return folder / "kb"


@pytest.mark.parametrize("version", WRITTEN)
def test_a_store_that_was_written_before_answers_as_it_did(tmp_path, version) -> None:
    folder = unpack(version, tmp_path)
    recorded = json.loads((STORES / f"format-{version}.json").read_text(encoding="utf-8"))
    assert recorded.keys() == SEARCHES.keys()
    for _ in range(2):
        store = EmbeddedBackend(folder, create=False, settings=SNAPSHOTS)
        for name, hits in read_answers(store).items():
            for hit, before in zip(hits, recorded[name], strict=True):
                assert [hit[0], *hit[2:]] == [before[0], *before[2:]], name
                assert hit[1] == pytest.approx(before[1], abs=2e-6), name
        assert store.run(store.survey()).documents == len(NUMBERS)
        assert store.run(store.pages("s")) == [PageEntry(source="s", url="p1", digest="x", ids=("d1", "d2"))]
        assert store.run(store.verify()).findings == ()
        assert store._database.read(lambda connection: connection.pragma("user_version")) == FORMAT_VERSION
        store.close()
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    put(store, 200, 300)
    store.run(store.flush())
    assert store.run(store.verify()).findings == ()
    assert store.run(store.survey()).documents == len(NUMBERS) + 100
    store.close()


@pytest.mark.parametrize("version", WRITTEN)
def test_everything_of_a_document_is_kept(tmp_path, version) -> None:
    store = EmbeddedBackend(unpack(version, tmp_path), settings=SNAPSHOTS)
    stored = {record.id: record for record in store.run(store.scan(None, 1000))}
    assert stored.keys() == {f"d{n}" for n in NUMBERS}
    for n in NUMBERS:
        record, written = stored[f"d{n}"], make_record(n, find_version(n))
        assert (record.text, record.metadata, record.links) == (written.text, written.metadata, written.links)
        assert record.vector.tobytes() == written.vector.tobytes()
    store.close()


@pytest.mark.parametrize("version", WRITTEN)
def test_notes_names_and_accesses_are_known(tmp_path, version) -> None:
    store = EmbeddedBackend(unpack(version, tmp_path), settings=SNAPSHOTS)
    assert store.run(store.note("floor")) == "0.5"
    assert store.run(store.vocabulary()) == Vocabulary(
        kinds=frozenset({"keyword", "hyperlink"}),
        fields=frozenset({"n", "c", "v", "title", "links"}),
        link_fields=frozenset({"since"}),
    )
    assert store.run(store.accessed(["d1", "d2"])) == {"d1": 5}
    store.close()


def test_a_snapshot_of_this_format_is_used_as_it_is(tmp_path) -> None:
    folder = unpack(FORMAT_VERSION, tmp_path)
    snapshot = snapshot_file(folder)
    written = snapshot.stat().st_mtime_ns
    EmbeddedBackend(folder, settings=SNAPSHOTS).close()
    assert snapshot_file(folder) == snapshot
    assert snapshot.stat().st_mtime_ns == written


def test_every_format_has_an_archive_and_answers() -> None:
    assert {path.name for path in STORES.iterdir()} == {
        f"format-{version}.{end}" for version in WRITTEN for end in ("zip", "json")
    }


def test_files_of_another_snapshot_are_made_anew_and_not_called_damaged(tmp_path, caplog) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    store.run(store.flush())
    question = vectors([10_000])[0]
    answer = nearest(store, question)
    store.close()
    other = {"change": 1, "last_key": 200, "documents": 200, "dimension": 16, "digest": "a",
             "format": 0, "recall": 1.0, "unused": 0}  # fmt: skip
    sql(tmp_path / "kb", f"UPDATE setting SET value = '{json.dumps(other)}' WHERE name = 'snapshot'")
    (tmp_path / "kb" / "index-1.bin").write_bytes(b"other")
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    assert "damaged" not in caplog.text
    derived = {path.name for path in (tmp_path / "kb").iterdir() if "-" in path.stem}
    assert derived - {"linkstore.db-wal", "linkstore.db-shm"} == {snapshot_file(tmp_path / "kb").name}
    assert nearest(store, question) == answer
    assert store.run(store.verify()).findings == ()
    store.close()


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("version", [0, FORMAT_VERSION + 1])
def test_another_format_is_refused_and_left_alone(tmp_path, monkeypatch, version, writable) -> None:
    folder = unpack(FORMAT_VERSION, tmp_path)
    sql(folder, f"PRAGMA user_version = {version}")
    before = (folder / "linkstore.db").read_bytes()
    monkeypatch.setattr(StoreFolder, "writable", property(lambda _: writable))
    with pytest.raises(StoreFormatError, match=rf"has format {version}, .* index its sources again"):
        EmbeddedBackend(folder)
    assert (folder / "linkstore.db").read_bytes() == before

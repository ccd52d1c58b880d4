"""Stores that were written before open, and answer as they did.

Each archive in ``data`` is the folder of a store that the linkstore of that format wrote: 100 documents, a
snapshot, then ten updated and two removed. A new format of the database adds one.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from stores import SNAPSHOTS, backend, put, snapshot_file, sql, vectors

from linkstore.core.arrays import cosine_similarities
from linkstore.core.filters import parse_filter
from linkstore.core.plans import Groups, Ids, Lexical, Members, Nearest, Plan, Tags
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.contract import PageEntry
from linkstore.engines.embedded import EmbeddedBackend, schema
from linkstore.engines.embedded.location import StoreFolder
from linkstore.engines.embedded.schema import FORMAT_VERSION
from linkstore.errors import StoreFormatError

DATA = Path(__file__).with_name("data")
WRITTEN = range(4, FORMAT_VERSION + 1)
ASKED = vectors([10_000])[0]


def unpacked(version: int, folder: Path) -> Path:
    with zipfile.ZipFile(DATA / f"format-{version}.zip") as archive:
        archive.extractall(folder)
    return folder / "kb"


def nearest_and_around(
    filter: dict | None = None,
) -> Plan[tuple[list[str], list[str], list[tuple[str, str]]]]:
    found = yield Nearest(vector=ASKED, k=5, filter=parse_filter(filter))
    ids = yield Ids(refs=found.refs)
    lies = yield Groups(refs=found.refs[:1], side="out")
    tags = yield Tags(groups=lies.group)
    around = yield Members(
        groups=np.unique(lies.group), side="in", vector=ASKED, take=50, cap=200, exclude=found.refs[:0]
    )
    beside = yield Ids(refs=np.unique(around.refs))
    return ids, sorted(beside), sorted(tags)


def by_words(*words: str) -> Plan[list[str]]:
    found = yield Lexical(terms=words, k=5)
    ids: list[str] = yield Ids(refs=found.refs)
    return ids


def versions() -> dict[int, int]:
    return {n: int(n < 10) for n in range(100) if n not in (50, 51)}


def right() -> tuple[list[str], list[str], list[tuple[str, str]]]:
    there = versions()
    scores = {n: float(cosine_similarities(vectors([n], version), ASKED)[0]) for n, version in there.items()}
    best = sorted(there, key=lambda n: (-scores[n], f"d{n}"))[:5]
    first = best[0]
    leads_to = (7 * first + there[first]) % 97
    beside = {n for n in there if n % 17 == first % 17 or n == leads_to}
    tags = sorted([("keyword", f"k{first % 17}"), ("hyperlink", f"u{leads_to}")])
    return [f"d{n}" for n in best], sorted(f"d{n}" for n in beside), tags


@pytest.mark.parametrize("version", WRITTEN)
def test_a_store_that_was_written_before_answers_as_it_did(tmp_path, version) -> None:
    folder = unpacked(version, tmp_path)
    for _ in range(2):  # its derived files are made anew at the first
        store = EmbeddedBackend(folder, create=False, settings=SNAPSHOTS)
        assert store.run(store.answer(nearest_and_around())) == right()
        assert store.run(store.answer(by_words("ünïcode", "55")))[0] == "d55"
        assert store.run(store.answer(by_words("title", "7")))[0] == "d7"
        assert store.run(store.answer(nearest_and_around({"v": 1})))[0] != right()[0]
        assert store.run(store.survey()).documents == 98
        assert store.run(store.pages("s")) == [PageEntry(source="s", url="p1", digest="x", ids=("d1", "d2"))]
        assert store.run(store.verify()).findings == ()
        assert store._database.read(lambda connection: connection.pragma("user_version")) == FORMAT_VERSION
        store.close()
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    put(store, 200, 300)
    store.run(store.flush())
    assert store.run(store.verify()).findings == ()
    assert store.run(store.survey()).documents == 198
    store.close()


@pytest.mark.parametrize("version", WRITTEN)
def test_everything_of_a_document_is_kept(tmp_path, version) -> None:
    store = EmbeddedBackend(unpacked(version, tmp_path), settings=SNAPSHOTS)
    held = {one.id: one for one in store.run(store.scan(None, 1000))}
    assert set(held) == {f"d{n}" for n in versions()}
    for n, changed in versions().items():
        one = held[f"d{n}"]
        assert one.text == f"doc {n} v{changed} ünïcode"
        assert {name: one.metadata[name] for name in ("n", "c", "v", "title")} == {
            "n": n,
            "c": n % 3,
            "v": changed,
            "title": f"Title {n}",
        }
        assert [(link.tag, link.label, link.weight) for link in one.links][2] == (f"u{n}", f"to {n}", 0.5)
        assert one.vector.tobytes() == vectors([n], changed)[0].tobytes()
    store.close()


def test_files_of_an_older_snapshot_are_made_anew_and_not_called_damaged(tmp_path, caplog) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    store.run(store.flush())
    right = store.run(store.answer(nearest_and_around()))
    store.close()
    older = {"generation": 1, "change": 1, "last_key": 200, "documents": 200, "dimension": 16, "digest": "a",
             "format": 5, "recall": 1.0, "unused": 0}  # fmt: skip
    sql(tmp_path / "kb", f"UPDATE setting SET value = '{json.dumps(older)}' WHERE name = 'snapshot'")
    (tmp_path / "kb" / "index-1.bin").write_bytes(b"older")
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    assert "damaged" not in caplog.text
    derived = {path.name for path in (tmp_path / "kb").iterdir() if "-" in path.stem}
    assert derived - {"linkstore.db-wal", "linkstore.db-shm"} == {snapshot_file(tmp_path / "kb").name}
    assert store.run(store.answer(nearest_and_around())) == right
    assert store.run(store.verify()).findings == ()
    store.close()


@pytest.mark.parametrize("version", WRITTEN)
def test_notes_names_and_accesses_are_known(tmp_path, version) -> None:
    store = EmbeddedBackend(unpacked(version, tmp_path), settings=SNAPSHOTS)
    assert store.run(store.note("floor")) == "0.5"
    assert store.run(store.vocabulary()) == Vocabulary(
        kinds=frozenset({"keyword", "hyperlink"}),
        fields=frozenset({"n", "c", "v", "title", "links"}),
        link_fields=frozenset({"since"}),
    )
    assert store.run(store.accessed(["d1", "d2"])) == {"d1": 5}
    store.close()


def test_every_format_has_an_archive() -> None:
    assert {path.name for path in DATA.iterdir()} == {f"format-{version}.zip" for version in WRITTEN}


def test_an_upgrade_is_one_transaction(tmp_path, monkeypatch) -> None:
    """Interrupted, the store is what it was."""
    folder = unpacked(4, tmp_path)
    before = (folder / "linkstore.db").read_bytes()

    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(schema, "record_names", interrupt)
        with pytest.raises(KeyboardInterrupt):
            EmbeddedBackend(folder, settings=SNAPSHOTS)
    assert (folder / "linkstore.db").read_bytes() == before
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    assert store.run(store.answer(nearest_and_around())) == right()
    store.close()


def test_a_store_to_upgrade_is_left_alone_where_nothing_can_be_written(tmp_path, monkeypatch) -> None:
    folder = unpacked(4, tmp_path)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(StoreFolder, "writable", property(lambda _: False))
    with pytest.raises(StoreFormatError, match="has format 4, and cannot be brought to 5"):
        EmbeddedBackend(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("writable", [True, False])
def test_an_earlier_format_is_refused_and_left_alone(tmp_path, monkeypatch, writable) -> None:
    folder = unpacked(4, tmp_path)
    sql(folder, "PRAGMA user_version = 3")
    before = (folder / "linkstore.db").read_bytes()
    monkeypatch.setattr(StoreFolder, "writable", property(lambda _: writable))
    with pytest.raises(StoreFormatError, match=r"has format 3; .* index the documents again"):
        EmbeddedBackend(folder)
    assert (folder / "linkstore.db").read_bytes() == before


def test_derived_files_of_format_4_are_deleted(tmp_path) -> None:
    folder = unpacked(4, tmp_path)
    for name in ("ann-1.usearch", "graph-1.bin", "vectors-1.f32"):
        (folder / name).write_bytes(b"earlier")
    EmbeddedBackend(folder, settings=SNAPSHOTS).close()
    assert {path.name for path in folder.iterdir()} == {
        "linkstore.db", "snapshot.lock", "writer.pid", snapshot_file(folder).name
    }  # fmt: skip

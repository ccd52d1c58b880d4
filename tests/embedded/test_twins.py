"""Equal vectors do not blind the index, and a store can be closed in the middle of its own write."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from internals import (
    AnnIndex,
    Manifest,
    Record,
    WriteBatch,
    cosine_similarities,
    map_file,
    name_file,
    normalize_vectors,
)
from stores import SNAPSHOTS, nearest, put

from linkstore.engines.embedded import EmbeddedBackend, backend, derived

COUNT, DIMENSION = 6_000, 32


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_what_is_beside_many_equal_vectors_is_found(tmp_path, share) -> None:
    """In a graph with a node for each of them, 0 to 0.9 of it is."""
    random = np.random.default_rng(1)
    vectors = random.standard_normal((COUNT, DIMENSION))
    vectors[random.random(COUNT) < share] = vectors[0]
    vectors = normalize_vectors(vectors)
    questions = normalize_vectors(random.standard_normal((50, DIMENSION)))
    near = normalize_vectors(questions - (questions @ vectors[0])[:, None] * vectors[0])
    near = normalize_vectors(0.7 * vectors[0] + 0.7 * near)
    live = AnnIndex.make(DIMENSION).extend(np.arange(COUNT), lambda keys: vectors[keys], COUNT)
    digest = live.save(tmp_path, {})
    again, _ = AnnIndex.load(map_file(tmp_path / name_file(digest), digest), COUNT)
    for question in (*questions, *near):
        scores = cosine_similarities(vectors, question)
        for index in (live, again):
            keys = index.near(question, 128)
            assert np.sort(scores[keys])[-10:].tolist() == np.sort(scores)[-10:].tolist()


def test_a_store_can_be_closed_in_the_middle_of_its_own_write(tmp_path, monkeypatch) -> None:
    """As a signal handler does; it used to wait for the end of the write that it interrupted."""
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    store.run(store.claim(Manifest(embedding="e", dimension=16)))
    put(store, 0, 10)
    apply = backend.EmbeddedWriter.apply

    def interrupted(writer, *given):
        store.close()
        return apply(writer, *given)

    monkeypatch.setattr(backend.EmbeddedWriter, "apply", interrupted)
    writing = threading.Thread(target=lambda: put(store, 10, 20), daemon=True)
    writing.start()
    writing.join(20)
    assert not writing.is_alive()
    monkeypatch.undo()
    again = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    assert again.run(again.survey()).documents == 20
    assert nearest(again, np.eye(1, 16, dtype=np.float32)[0])
    again.close()


def test_a_store_can_be_closed_in_the_middle_of_its_own_snapshot(tmp_path, monkeypatch) -> None:
    """As a signal handler does; it used to wait for the lock that its own thread holds."""
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    store.run(store.claim(Manifest(embedding="e", dimension=16)))
    measure = derived.choose_expansion

    def interrupted(*given):
        store.close()
        return measure(*given)

    monkeypatch.setattr(derived, "choose_expansion", interrupted)
    writing = threading.Thread(target=lambda: put(store, 0, 100), daemon=True)
    writing.start()
    writing.join(20)
    assert not writing.is_alive()
    monkeypatch.undo()
    again = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    assert again.run(again.survey()).documents == 100
    again.close()


@pytest.mark.parametrize(
    ("noise", "wide_from", "expansion", "finds"),
    [(1.0, 0, 256, True), (0.15, COUNT + 1, 256, False), (0.15, 0, 2048, True), (0.01, 0, 2048, False)],
)
def test_an_index_of_many_documents_that_finds_too_little_keeps_more_candidates(
    monkeypatch, noise, wide_from, expansion, finds
) -> None:
    monkeypatch.setattr("linkstore.engines.embedded.vectors.WIDE_FROM", wide_from)
    random = np.random.default_rng(3)
    near = random.standard_normal((60, DIMENSION)).repeat(100, axis=0)
    vectors = normalize_vectors(near + noise * random.standard_normal(near.shape))
    store = EmbeddedBackend(":memory:")
    store.run(store.claim(Manifest(embedding="e", dimension=DIMENSION)))
    records = [
        Record(id=f"d{n}", text="", metadata={}, vector=vector, links=()) for n, vector in enumerate(vectors)
    ]
    store.run(store.write(WriteBatch(put=records)))
    mirror = store._store.read_view(lambda view: view.mirror)
    store.close()
    keys = np.arange(1, COUNT + 1)  # by one thread, so that the graph is the same each time
    index = AnnIndex.make(DIMENSION)
    for start in range(0, COUNT, 200):
        index = index.extend(keys[start : start + 200], lambda some: vectors[some - 1], start + 200)
    chosen, recall = derived.choose_expansion(index, mirror)
    assert (chosen, recall >= derived.LEAST_RECALL) == (expansion, finds)
    assert index.index.expansion_search == expansion


def test_a_snapshot_is_searched_as_it_was_measured(tmp_path) -> None:
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    store.run(store.claim(Manifest(embedding="e", dimension=16)))
    put(store, 0, 100)
    store.run(store.flush())
    settings = store._store.read_view(lambda view: derived.read_settings(view.connection))
    snapshot = derived.parse_snapshot(settings)
    _, index = store._store.derived.load(replace(snapshot, expansion=512))
    store.close()
    assert (snapshot.expansion, index.index.expansion_search) == (256, 512)


@pytest.mark.parametrize(("noise", "used"), [(1.0, True), (0.01, False)])
def test_an_index_that_finds_too_little_is_not_used(tmp_path, noise, used) -> None:
    """A hundred vectors that are nearly equal blind a graph too; then all documents are compared."""
    random = np.random.default_rng(3)
    near = random.standard_normal((60, DIMENSION)).repeat(100, axis=0)
    vectors = normalize_vectors(near + noise * random.standard_normal(near.shape))
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    store.run(store.claim(Manifest(embedding="e", dimension=DIMENSION)))
    records = [
        Record(id=f"d{n:04}", text="", metadata={}, vector=vector, links=())
        for n, vector in enumerate(vectors)
    ]
    store.run(store.write(WriteBatch(put=records)))
    store.run(store.flush())
    index = store._store.read_view(lambda view: view.index)
    assert (index is not None) == used
    for question in normalize_vectors(random.standard_normal((20, DIMENSION))):
        expected = np.argsort(-cosine_similarities(vectors, question), kind="stable")[:3]
        assert nearest(store, question, 3) == [f"d{n:04}" for n in expected]
    assert store.run(store.verify()).sound
    store.close()

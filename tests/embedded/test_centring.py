"""The mean that the approximate index subtracts, and what is found with it."""

from __future__ import annotations

import numpy as np
import pytest
from internals import (
    EVERYTHING,
    AnnIndex,
    Floats,
    Ids,
    Manifest,
    Nearest,
    Plan,
    Record,
    WriteBatch,
    map_file,
    name_file,
    normalize_vectors,
    parse_filter,
    subtract_centre,
)

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings


def test_centred_vectors_have_unit_length_and_lack_the_mean() -> None:
    vectors = normalize_vectors(np.random.default_rng(1).normal(3, 1, (500, 24)))
    moved = subtract_centre(vectors, vectors.mean(axis=0))
    assert np.linalg.norm(vectors.mean(axis=0)) > 0.9
    assert np.linalg.norm(moved.mean(axis=0)) < 0.1
    assert np.allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-6)


def test_a_vector_that_equals_the_mean_becomes_zero() -> None:
    vector = normalize_vectors([[3.0, 4.0]])
    assert subtract_centre(vector, vector[0]).tolist() == [[0.0, 0.0]]


def test_one_vector_and_several_give_the_same() -> None:
    """Verification compares what was computed for one batch with what another gives."""
    vectors = normalize_vectors(np.random.default_rng(2).normal(1, 1, (300, 100)))
    centre = vectors.mean(axis=0)
    assert (
        subtract_centre(vectors, centre) == np.stack([subtract_centre(one, centre) for one in vectors])
    ).all()


def test_a_loaded_index_subtracts_what_the_saved_one_did(tmp_path) -> None:
    vectors = normalize_vectors(np.random.default_rng(3).normal(1, 1, (600, 16)))
    digest = AnnIndex.make(16).extend(np.arange(300), lambda keys: vectors[keys], 299).save(tmp_path, {})
    raw = map_file(tmp_path / name_file(digest), digest)
    again, _ = AnnIndex.load(raw, 299, view=False)
    both = again.extend(np.arange(300, 600), lambda keys: vectors[keys], 599)
    saved, _ = AnnIndex.load(raw, 299)
    assert (both.centre == saved.centre).all()
    assert (np.asarray(both.index.get(np.arange(600), np.int8)) == saved.codes(vectors)).all()


def test_documents_of_a_small_subject_are_found_beside_a_large_one() -> None:
    """Without the mean subtracted, 0.93 of them are."""
    documents, questions = two_subjects(np.random.default_rng(3))
    index = AnnIndex.make(documents.shape[1])
    index = index.extend(np.arange(len(documents)), lambda keys: documents[keys], len(documents))
    found = 0
    for question in questions:
        keys = index.near(question)
        found += len(set(np.argsort(-(documents @ question))[:10].tolist()) & set(keys.tolist()))
    assert found >= 0.97 * 10 * len(questions)


def two_subjects(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """12,000 documents of one subject, 50 of another with questions about it, and a part that all share."""
    dimension = 96
    shared = 3 * random.standard_normal(dimension)

    def subject(count: int, topics: int, direction: np.ndarray) -> np.ndarray:
        centres = shared + direction + random.standard_normal((topics, dimension))
        return centres[random.integers(0, topics, count)] + 2 * random.standard_normal((count, dimension))

    large = subject(12_000, 300, random.standard_normal(dimension))
    small = subject(150, 50, 1.5 * random.standard_normal(dimension))
    asked = small[50:] - 0.7 * shared + 2 * random.standard_normal((100, dimension))
    return normalize_vectors(np.vstack([large, small[:50]])), normalize_vectors(asked)


def test_an_index_of_equal_vectors_proposes_them() -> None:
    alike = np.tile(normalize_vectors([[1.0, 2.0, 3.0]]), (500, 1))
    index = AnnIndex.make(3).extend(np.arange(500), lambda keys: alike[keys], 499)
    keys = index.near(alike[0], 50)
    assert (len(set(keys.tolist())), index.covered) == (500, 499)


@pytest.mark.parametrize("share", [2, 8, 10])
@pytest.mark.parametrize("scoped", [False, True])
def test_a_filter_takes_nothing_from_what_is_found(share: int, scoped: bool) -> None:
    """Where the order by codes differs from that by similarity, 0.93 are found among as many proposals."""
    random = np.random.default_rng(1)
    rows = random.normal(0, 1, (8_100, 12)) @ random.normal(0, 1, (12, 48)) + random.normal(
        2, 0.3, (8_100, 48)
    )
    made = normalize_vectors(rows.astype(np.float32))
    documents, questions = made[:8_000], made[8_000:]
    passing = np.flatnonzero(random.integers(0, share, len(documents)) == 0)
    store = EmbeddedBackend(":memory:", settings=EmbeddedSettings(exact_below=500))
    store.run(store.claim(Manifest(embedding="e", dimension=48)))
    there = set(passing.tolist())
    put = [
        Record(id=str(n), text="", metadata={"in": n in there}, vector=vector, links=())
        for n, vector in enumerate(documents)
    ]
    store.run(store.write(WriteBatch(put=put)))
    store.run(store.flush())
    condition = parse_filter({"in": True})

    def plan(question: Floats) -> Plan[list[str]]:
        found = yield Nearest(vector=question, k=10, filter=EVERYTHING if scoped else condition)
        return (yield Ids(refs=found.refs))

    found = 0
    for question in questions:
        best = passing[np.argsort(-(documents[passing] @ question))[:10]]
        scope = condition if scoped else EVERYTHING
        found += len({str(n) for n in best} & set(store.run(store.answer(plan(question), scope))))
    store.close()
    assert found >= 0.98 * 10 * len(questions)

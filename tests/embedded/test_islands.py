"""An index that several threads build loses nobody."""

from __future__ import annotations

import numpy as np
import pytest
from internals import EXPANSION_SEARCH, AnnIndex, find_lost_keys, normalize_vectors, quantize
from stores import times
from usearch.index import Index

COUNT, DIMENSION = 6_000, 32


@pytest.fixture(scope="module")
def vectors():
    return normalize_vectors(np.random.default_rng(5).standard_normal((COUNT, DIMENSION)))


def lost(index, vectors) -> set[int]:
    """Keys of documents that a search for their own vector does not find."""
    found = np.asarray(index.search(quantize(vectors), 1).keys).reshape(-1)
    return set(np.flatnonzero(found != np.arange(len(vectors))).tolist())


def read(path):
    """The bytes of a file."""
    return np.frombuffer(path.read_bytes(), np.uint8)


def crowded(vectors):
    """An index built by many more threads than there are processors."""
    index = Index(ndim=DIMENSION, metric="ip", dtype="i8", expansion_search=EXPANSION_SEARCH)
    index.add(np.arange(len(vectors)), quantize(vectors), threads=8)
    return index


def test_those_that_no_search_reaches_are_found_and_added_again(vectors, tmp_path) -> None:
    """Counted over several graphs, because which documents a graph loses is up to its threads."""
    missing, unknown, left = 0, 0, 0
    for _ in range(times(3, 6)):
        index = crowded(vectors)
        before = lost(index, vectors)
        index.save(str(tmp_path / "before.usearch"))
        known = set(find_lost_keys(read(tmp_path / "before.usearch")).tolist())
        AnnIndex(index, np.zeros(DIMENSION, np.float32)).mend(read(tmp_path / "before.usearch"))
        index.save(str(tmp_path / "after.usearch"))
        after = Index.restore(str(tmp_path / "after.usearch"))
        after.expansion_search = EXPANSION_SEARCH
        assert len(after) == COUNT
        assert not len(find_lost_keys(read(tmp_path / "after.usearch")))
        missing, unknown = missing + len(before), unknown + len(before - known)
        left += len(lost(after, vectors))
    assert missing, "8 threads are to lose some documents, or there is nothing to test"
    assert unknown <= missing // 4
    assert left <= missing // 4


def test_one_thread_loses_nobody(vectors, tmp_path) -> None:
    index = Index(ndim=DIMENSION, metric="ip", dtype="i8")
    index.add(np.arange(300), quantize(vectors[:300]), threads=1)
    index.save(str(tmp_path / "one.usearch"))
    assert not len(find_lost_keys(read(tmp_path / "one.usearch")))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_tiny_indexes_are_whole(vectors, tmp_path, count) -> None:
    index = Index(ndim=DIMENSION, metric="ip", dtype="i8")
    index.add(np.arange(count), quantize(vectors[:count]))
    index.save(str(tmp_path / "tiny.usearch"))
    assert not len(find_lost_keys(read(tmp_path / "tiny.usearch")))


@pytest.mark.parametrize("data", [bytes(500), b"\1\0\0\0\4\0\0\0abcdusearch" + bytes(200)])
def test_a_file_of_another_layout_names_nobody(data) -> None:
    assert not len(find_lost_keys(np.frombuffer(data, np.uint8)))

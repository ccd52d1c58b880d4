"""Documents with one vector: the index proposes as many as it may, and some of them are gone."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

import numpy as np
from internals import (
    EVERYTHING,
    Candidates,
    CassandraReader,
    DocumentVersion,
    Ids,
    Nearest,
    ReadScope,
    SearchHistory,
    drive,
)

VECTOR = np.array([1, 0, 0, 0], np.float32)


class Fetcher:
    """Reads documents that all have one vector; the first is gone."""

    def documents(self, ids):
        yield from ()
        return [DocumentVersion(id, "", {}, "", "", b"", VECTOR) for id in ids[1:]]


def test_a_search_among_ties_does_not_read_the_store_because_a_candidate_is_gone() -> None:
    """Of several replicas the one asked may propose what was removed."""
    history, asked = SearchHistory(), []
    history.large_until = math.inf
    scope = ReadScope(EVERYTHING, Fetcher(), 100_000, history)  # type: ignore[arg-type]
    reader = CassandraReader(scope, None, None, replicated=True, empty=False)  # type: ignore[arg-type]

    def answer(requests):
        asked.append(requests.what)
        (search,) = requests.statements
        return [[(f"{n:06}",) for n in range(search.limit)]]

    found: Candidates = drive(reader.nearest(Nearest(vector=VECTOR, k=2)), answer)
    assert drive(reader.ids(Ids(refs=found.refs)), answer) == ["000001", "000002"]
    assert set(asked) == {"search for similar documents"}

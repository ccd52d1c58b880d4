"""The embedded backend keeps the contract: searched exactly, and from snapshot, tail and index."""

from __future__ import annotations

import pytest
from conformance import BackendConformance, SmallStoreCases
from conformance.lexical import LexicalCases
from differential import DIMENSION, RandomGraph, assert_congruent
from internals import EngineOperation, Manifest, WriteBatch, WriteCounts
from oracle import OracleBackend
from stores import times

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings

EXACT = EmbeddedSettings(durable=False)
INDEXED = EmbeddedSettings(exact_below=0, durable=False)


class Flushing(EmbeddedBackend):
    """Takes a snapshot after every other write, so that files, index and tail all have their share."""

    writes = 0

    def write(self, change: WriteBatch) -> EngineOperation[WriteCounts]:
        written = yield from super().write(change)
        self.writes += 1
        if self.writes % 2:
            yield from self.flush()
        return written


class TestExact(BackendConformance, SmallStoreCases, LexicalCases):
    @pytest.fixture
    def backend(self, tmp_path):
        backend = EmbeddedBackend(tmp_path / "kb", settings=EXACT)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, backend, tmp_path):
        return lambda: EmbeddedBackend(tmp_path / "kb", create=False)


class TestFromSnapshots(BackendConformance, LexicalCases):
    @pytest.fixture
    def backend(self, tmp_path):
        backend = Flushing(tmp_path / "kb", settings=INDEXED)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, backend, tmp_path):
        return lambda: EmbeddedBackend(tmp_path / "kb", create=False)


def test_the_flushing_backend_uses_an_index(tmp_path) -> None:
    backend = Flushing(tmp_path / "kb", settings=INDEXED)
    backend.run(backend.claim(Manifest(embedding="graph", dimension=DIMENSION)))
    for change in RandomGraph(1).changes():
        backend.run(backend.write(change))
    assert backend.run(backend.verify()).sound
    backend.close()
    assert list((tmp_path / "kb").glob("index-*.bin"))


@pytest.mark.parametrize("kind", [EmbeddedBackend, Flushing])
@pytest.mark.parametrize("seed", range(times(4, 100)))
def test_it_answers_as_the_oracle_on_random_graphs(tmp_path, seed, kind) -> None:
    backend = kind(tmp_path / "kb", settings=EXACT if kind is EmbeddedBackend else INDEXED)
    try:
        assert_congruent(backend, OracleBackend(), seed=seed)
    finally:
        backend.close()

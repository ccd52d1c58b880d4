"""Whatever is done to a store, in whatever order, it answers as the oracle does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from differential import RandomSearch, compare_hits
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from internals import Backend, Manifest, Record, WriteBatch, merge_links, parse_filter
from oracle import OracleBackend
from stores import DIMENSION, times, vectors

from linkstore import Link
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.strategies import Eager, Mmr, Question, Similarity, Strategy

IDS = st.sampled_from([f"d{n}" for n in range(24)])
LINKS = st.lists(
    st.builds(
        Link,
        kind=st.sampled_from(["a", "b"]),
        tag=st.sampled_from(["x", "y", "z", "u", "v"]),
        direction=st.sampled_from(["in", "out", "bidir"]),
        label=st.sampled_from([None, "label"]),
        weight=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=4,
)
FILTERS = st.sampled_from([None, {"c": 1}, {"c": {"$ne": 1}}, {"links": {"$exists": True}}])
STRATEGIES: st.SearchStrategy[Strategy] = st.one_of(
    st.builds(Similarity, k=st.integers(1, 30)),
    st.builds(
        Eager,
        k=st.integers(1, 5),
        start_k=st.integers(0, 5),
        depth=st.integers(0, 3),
        hub_cap=st.sampled_from([2, 200]),
        beam=st.sampled_from([2, 32]),
        direction=st.sampled_from(["forward", "backward", "both"]),
    ),
    st.builds(Mmr, k=st.integers(1, 5), depth=st.integers(0, 2), fetch_k=st.integers(0, 10)),
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    links = merge_links(draw(LINKS))
    metadata = {"c": draw(st.integers(0, 2))}
    if links:
        metadata["links"] = [link.to_dict() for link in links]
    return Record(
        id=draw(IDS),
        text=draw(st.sampled_from(["one", "two"])),
        metadata=metadata,
        vector=vectors([draw(st.integers(0, 7))])[0],  # few, so that scores tie
        links=links,
    )


class Store(RuleBasedStateMachine):
    """Two embedded stores, one that searches exactly and one that has an index, and the oracle."""

    seen = Bundle("seen")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="linkstore-test-"))
        self.oracle = OracleBackend()
        self.exact = self._open("exact")
        self.indexed = self._open("indexed")
        for backend in self._all():
            backend.run(backend.claim(Manifest(embedding="test", dimension=DIMENSION)))

    def _open(self, name: str) -> EmbeddedBackend:
        below = 20_000 if name == "exact" else 0
        return EmbeddedBackend(
            self.folder / name, settings=EmbeddedSettings(exact_below=below, grow_share=8, durable=False)
        )

    def _all(self) -> tuple[Backend, ...]:
        return self.oracle, self.exact, self.indexed

    def _write(self, change: WriteBatch) -> None:
        expected, *written = [backend.run(backend.write(change)) for backend in self._all()]
        assert written == [expected, expected]

    @initialize(first=st.lists(records(), min_size=3, max_size=20))
    def fill(self, first: list[Record]) -> None:
        self._write(WriteBatch(put=first))

    @rule(target=seen, put=st.lists(records(), min_size=1, max_size=5))
    def upsert(self, put: list[Record]):
        self._write(WriteBatch(put=put))
        return multiple(*(record.id for record in put))

    @rule(name=seen, links=LINKS)
    def relink(self, name: str, links: list[Link]) -> None:
        before = self.oracle.run(self.oracle.scan(None, 100))
        for record in before:
            if record.id == name:
                merged = merge_links(links)
                metadata = {**record.metadata, "links": [link.to_dict() for link in merged]}
                self._write(
                    WriteBatch(
                        put=[
                            Record(
                                id=name,
                                text=record.text,
                                metadata=metadata,
                                vector=record.vector,
                                links=merged,
                            )
                        ]
                    )
                )

    @rule(names=st.lists(IDS, max_size=6))
    def delete(self, names: list[str]) -> None:
        self._write(WriteBatch(remove=names))

    @rule()
    def snapshot(self) -> None:
        for backend in self._all():
            backend.run(backend.flush())

    @rule(which=st.sampled_from(["exact", "indexed"]))
    def reopen(self, which: str) -> None:
        getattr(self, which).close()
        setattr(self, which, self._open(which))

    @rule(strategy=STRATEGIES, about=st.integers(0, 7), filter=FILTERS, roots=st.lists(IDS, max_size=2))
    def search(self, strategy: Strategy, about: int, filter: dict | None, roots: list[str]) -> None:
        if isinstance(strategy, Similarity):
            roots = []  # it does not take initial_roots, and says so
        question = Question(
            vector=vectors([about])[0], filtered=filter is not None, roots=tuple(dict.fromkeys(roots))
        )
        search = RandomSearch(strategy=strategy, question=question, scope=parse_filter(filter))
        expected, *found = [search.on(backend) for backend in self._all()]
        for hits in found:
            assert compare_hits(hits, expected) == []

    @invariant()
    def holds_the_same(self) -> None:
        expected, *surveys = [backend.run(backend.survey()) for backend in self._all()]
        assert surveys == [expected, expected]

    def teardown(self) -> None:
        try:
            for backend in self._all():
                assert backend.run(backend.verify()).sound
                backend.close()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


Store.TestCase.settings = settings(max_examples=times(12, 300), stateful_step_count=times(15, 40))
TestStore = pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")(
    Store.TestCase
)

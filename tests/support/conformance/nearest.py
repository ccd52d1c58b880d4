"""N and F: documents by similarity, and by id."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.base import Cases
from conformance.probe import QUERY_VECTOR, Probe, make_record, make_vector
from linkstore.core.arrays import cosine_similarities, normalize_vectors
from linkstore.core.filters import parse_filter
from linkstore.core.plans import Find, Nearest
from linkstore.engines.contract import Manifest, Record


class NearestCases(Cases):
    """The documents most similar to a vector."""

    def test_the_k_most_similar_best_first(self, probe: Probe) -> None:
        """[N-1] Ignore the order of writing."""
        probe.put(*(make_record(f"{cosine}", cosine) for cosine in (0.2, 0.9, -0.5, 0.7, 0.0)))
        assert probe.near(3) == ["0.9", "0.7", "0.2"]

    def test_they_are_nearest_to_the_vector_asked_with(self, probe: Probe) -> None:
        """[N-1] Return another answer for another vector."""
        probe.put(make_record("a", 0.9), make_record("b", -0.9))
        assert probe.near(1, vector=make_vector(-1.0)) == ["b"]

    def test_ties_at_the_cut_go_to_the_smallest_ids(self, probe: Probe) -> None:
        """[N-2] Return the first five by id of twenty equal documents."""
        probe.put(make_record("best", 0.9))
        probe.put(*(make_record(f"{number:02}", 0.5) for number in reversed(range(20))))
        assert probe.near(6) == ["best", "00", "01", "02", "03", "04"]

    def test_a_filter_that_leaves_few_still_gives_k(self, probe: Probe) -> None:
        """[N-3] Return the three that pass, the least similar of two hundred."""
        probe.put(*(make_record(f"{n:03}", 1 - n / 100, rare=n >= 197) for n in range(200)))
        assert probe.near(3, {"rare": True}) == ["197", "198", "199"]
        assert probe.near(2, {"rare": True}) == ["197", "198"]
        assert probe.near(9, {"rare": True}) == ["197", "198", "199"]

    def test_a_filter_that_none_passes_gives_none(self, probe: Probe) -> None:
        """[N-3] Return an empty answer, not an error and not the unfiltered one."""
        probe.put(make_record("a"), make_record("b"))
        assert probe.near(5, {"lang": "en"}) == []

    def test_what_the_filter_left_out_is_counted_or_not_known(self, probe: Probe) -> None:
        """[N-3] Allow 0 for ``filtered`` if the engine does not know."""
        probe.put(make_record("a", lang="en"), make_record("b", lang="de"))
        fetch = Nearest(vector=QUERY_VECTOR, k=5, filter=parse_filter({"lang": "en"}))
        assert probe.ask(fetch).filtered in (0, 1)

    def test_more_than_there_are_gives_all(self, probe: Probe) -> None:
        """[N-4] Return all, and none for a k of 0."""
        probe.put(make_record("a", 0.9), make_record("b", 0.1))
        assert probe.near(1000) == ["a", "b"]
        assert probe.near(0) == []

    def test_an_empty_store_gives_none(self, probe: Probe) -> None:
        """[N-4] Return none before the first document, and after the last is removed."""
        assert probe.near(5) == []
        probe.put(make_record("a"))
        probe.remove("a")
        assert probe.near(5) == []

    def test_a_small_store_answers_exactly(self, probe: Probe) -> None:
        """[N-5] Compare a thousand random documents with a full sort."""
        random = np.random.default_rng(5)
        vectors = normalize_vectors(random.normal(size=(1000, 4)))
        ids = [f"{number:04}" for number in range(1000)]
        probe.put(
            *(
                Record(id=id, text="", metadata={}, vector=vector, links=())
                for id, vector in zip(ids, vectors, strict=True)
            )
        )
        for asked in normalize_vectors(random.normal(size=(5, 4))):
            scores = cosine_similarities(vectors, asked).tolist()
            expected = sorted(zip(ids, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
            assert probe.near_scored(25, vector=asked) == expected[:25]


class SmallStoreCases(Cases):
    """A store of few documents, of an engine that is not told to ask an index about them."""

    @pytest.mark.parametrize("shape", ["opposite", "corners"])
    def test_it_answers_exactly_whatever_its_vectors(self, unclaimed: Probe, shape: str) -> None:
        """[N-4] [N-5] Compare 600 documents, in which a graph of neighbours misses some, with a full sort."""
        random = np.random.default_rng(7)
        if shape == "corners":  # most lie at right angles to most others
            given = np.array([1, 0.5]) @ np.eye(256)[random.integers(256, size=(600, 2))]
        else:
            ends = random.normal(size=256) * np.resize([-1, 1], 600)[:, None]
            given = ends + random.normal(0, 0.01, (600, 256))
        vectors = normalize_vectors(given)
        unclaimed.do(unclaimed.backend.claim(Manifest(embedding="conformance", dimension=256)))
        ids = [f"{number:03}" for number in range(600)]
        unclaimed.put(
            *(
                Record(id=id, text="", metadata={}, vector=vector, links=())
                for id, vector in zip(ids, vectors, strict=True)
            )
        )
        for asked in (*vectors[::30], *normalize_vectors(random.normal(size=(5, 256)))):
            scores = cosine_similarities(vectors, asked).tolist()
            expected = sorted(zip(ids, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
            for k in (1, 4, 1000):
                assert unclaimed.near_scored(k, vector=asked) == expected[:k]


class FindCases(Cases):
    """Documents by id."""

    def test_in_the_order_asked_each_once(self, probe: Probe) -> None:
        """[F-1] Return repeated ids at their first place, with their similarity."""
        probe.put(make_record("a", 0.5), make_record("b", 0.0), make_record("c", 1.0))
        assert probe.found(["c", "a", "c", "b", "a"]) == [("c", 1.0), ("a", 0.5), ("b", 0.0)]

    def test_unknown_ids_are_left_out(self, probe: Probe) -> None:
        """[F-2] Do not count unknown ids."""
        probe.put(make_record("a"), make_record("gone"))
        probe.remove("gone")
        assert probe.found(["?", "a", "gone", "A", ""]) == [("a", 0.5)]
        assert probe.ask(Find(ids=("?", "a", "gone"), vector=QUERY_VECTOR)).filtered == 0

    def test_the_filter_leaves_out_and_is_counted(self, probe: Probe) -> None:
        """[F-3] Count each omitted document once, however often it is requested."""
        probe.put(make_record("a", lang="en"), make_record("b", lang="de"), make_record("c"))
        assert probe.found(["c", "b", "a"], {"lang": "en"}) == [("a", 0.5)]
        fetch = Find(ids=("c", "b", "a", "b", "?"), vector=QUERY_VECTOR, filter=parse_filter({"lang": "en"}))
        assert probe.ask(fetch).filtered == 2

    def test_without_a_vector_nothing_is_scored(self, probe: Probe) -> None:
        """[F-4] Find out which documents are stored without naming a vector."""
        probe.put(make_record("a", 0.5), make_record("b", 0.9))
        answer = probe.ask(Find(ids=("b", "?", "a")))
        assert answer.similarity.tolist() == [0.0, 0.0]
        assert len(set(answer.refs.tolist())) == 2

"""Strategies as plans: their fetches, with answers fed by hand, and their settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.probe import QUERY_VECTOR, link_in, link_out, make_record, make_vector
from internals import (
    DEFAULT_ADJACENT_K,
    DEFAULT_BEAM,
    DEFAULT_HUB_CAP,
    DEFAULT_K,
    DEFAULT_MAX_NODES,
    Candidates,
    Documents,
    Find,
    Groups,
    Hits,
    Ids,
    Members,
    Memberships,
    Nearest,
    ReachedMembers,
    Resolve,
    StoredDocument,
    Tags,
    Vectors,
    parse_filter,
)
from searching import store

from linkstore.errors import StrategyError
from linkstore.strategies import Eager, Mmr, Question, Similarity, Strategy


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


# Plans, fed by hand: the store below has no engine, only answers written out.


def feed(strategy: Strategy, answers: list[tuple[type, Any]], **question: Any) -> tuple[Hits, list[Any]]:
    """Answer a plan's fetches one after the other; each must be of the kind expected."""
    plan = strategy.plan(Question(**{"vector": QUERY_VECTOR, **question}))
    fetches: list[Any] = []
    reply: Any = None
    script = iter(answers)
    try:
        while True:
            fetch = plan.send(reply)
            fetches.append(fetch)
            kind, reply = next(script)
            assert type(fetch) is kind, f"asked {fetch}, expected {kind.__name__}"
    except StopIteration as done:
        assert next(script, None) is None, "answers were left over"
        return done.value, fetches


NEAR = Candidates(refs=ints(40, 7), similarity=floats(0.75, 0.5))
NO_REACHED = ReachedMembers(
    group=ints(), refs=ints(), similarity=floats(), weight=floats(), sizes=ints(), filtered=0
)


def texts(*names: str) -> list[StoredDocument]:
    return [StoredDocument(id=name, text=f"text of {name}", metadata={"url": f"/{name}"}) for name in names]


class TestPlans:
    def test_similarity_asks_twice(self) -> None:
        hits, fetches = feed(Similarity(k=2), [(Nearest, NEAR), (Documents, texts("b", "a"))])
        assert [(hit.document.id, hit.score, hit.depth) for hit in hits] == [("b", 0.75, 0), ("a", 0.5, 0)]
        assert (fetches[0].k, fetches[0].filter.always) == (2, True)
        assert fetches[1].refs.tolist() == [40, 7]

    def test_similarity_filters_seeds_and_results_in_one_fetch(self) -> None:
        _, fetches = feed(
            Similarity(),
            [(Nearest, NEAR), (Documents, texts("b", "a"))],
            seed_filter=parse_filter({"b": 2}),
            result_filter=parse_filter({"c": 3}),
            hop_filter=parse_filter({"d": 4}),
        )
        assert fetches[0].filter.matches({"b": 2, "c": 3})
        for lacking in "bc":
            metadata = {"b": 2, "c": 3}
            del metadata[lacking]
            assert not fetches[0].filter.matches(metadata)

    def test_eager_makes_two_fetches_a_hop_and_asks_texts_last(self) -> None:
        left = Memberships(
            document=ints(0, 1), group=ints(5, 3), kind=ints(0, 0), weight=floats(1, 0.5), kinds=("k",)
        )
        reached = ReachedMembers(
            group=ints(0, 1),
            refs=ints(99, 99),
            similarity=floats(0.25, 0.25),
            weight=floats(1, 1),
            sizes=ints(1, 1),
        )
        hits, fetches = feed(
            Eager(start_k=2, depth=1, adjacent_k=7, hub_cap=9),
            [
                (Nearest, NEAR),
                (Groups, left),
                (Members, reached),
                (Tags, [("k", "five")]),
                (Documents, texts("b", "a", "c")),
            ],
            hop_filter=parse_filter({"b": 2}),
        )
        assert [str(hit.path) for hit in hits] == ["b", "a", "a —[k five]→ c"]
        # Refs in a layer ascend, so 7 ("a", similarity 0.5) is the first of the frontier.
        groups, members = fetches[1], fetches[2]
        assert (groups.refs.tolist(), groups.side, groups.kinds) == ([7, 40], "out", None)
        assert (members.groups.tolist(), members.side) == ([3, 5], "in")
        assert (members.take, members.cap, sorted(members.exclude)) == (7, 9, [7, 40])
        assert members.filter.matches({"b": 2})
        assert not members.filter.matches({"a": 1})

    def test_eager_stops_when_a_hop_reaches_nothing(self) -> None:
        nothing = Memberships(document=ints(), group=ints(), kind=ints(), weight=floats(), kinds=())
        hits, fetches = feed(
            Eager(start_k=2, depth=5),
            [(Nearest, NEAR), (Groups, nothing), (Members, NO_REACHED), (Documents, texts("b", "a"))],
        )
        assert len(hits) == 2
        assert len(fetches) == 4

    def test_eager_asks_ids_only_where_scores_tie(self) -> None:
        tie = Candidates(refs=ints(40, 7), similarity=floats(0.5, 0.5))
        hits, fetches = feed(
            Eager(start_k=2, depth=0), [(Nearest, tie), (Ids, ["z", "a"]), (Documents, texts("a", "z"))]
        )
        assert [hit.document.id for hit in hits] == ["a", "z"]
        assert sorted(fetches[1].refs.tolist()) == [7, 40]
        named = dict(zip(fetches[1].refs.tolist(), ["z", "a"], strict=True))
        assert [named[ref] for ref in fetches[2].refs.tolist()] == ["a", "z"]

    def test_both_directions_are_two_waves(self) -> None:
        nothing = Memberships(document=ints(), group=ints(), kind=ints(), weight=floats(), kinds=())
        wave = [(Groups, nothing), (Members, NO_REACHED)]
        _, fetches = feed(
            Eager(start_k=2, depth=1, direction="both", kinds={"p": 0.5, "q": 0.0}),
            [(Nearest, NEAR), *wave, *wave, (Documents, texts("b", "a"))],
        )
        assert [fetch.side for fetch in fetches[1:5]] == ["out", "in", "in", "out"]
        assert fetches[1].kinds == frozenset({"p"})

    def test_roots_are_found_and_links_resolved_once(self) -> None:
        root = Candidates(refs=ints(8), similarity=floats(0.125), filtered=1)
        linked = ReachedMembers(
            group=ints(0), refs=ints(9), similarity=floats(0.25), weight=floats(1), sizes=ints(1)
        )
        hits, fetches = feed(
            Eager(start_k=0, depth=0),
            [
                (Nearest, Candidates(refs=ints(), similarity=floats())),
                (Find, root),
                (Resolve, ints(2, -1)),
                (Members, linked),
                (Tags, [("k", "x")]),
                (Documents, texts("linked", "root")),
            ],
            roots=("root", "secret", "gone", "root"),
            links=(link_out("x", label="named"), link_out("?")),
        )
        assert [str(hit.path) for hit in hits] == ['—[k x "named"]→ linked', "root"]
        assert fetches[1].ids == ("root", "secret", "gone", "root")
        assert fetches[3].exclude.tolist() == [8]
        assert {(cut.reason, cut.count) for cut in hits.cuts} == {("filter", 1), ("missing", 1)}
        assert sum(cut.reason == "missing" for cut in hits.cuts) == 2

    def test_mmr_asks_for_vectors_and_expands_what_it_picks(self) -> None:
        left = Memberships(document=ints(0), group=ints(5), kind=ints(0), weight=floats(1), kinds=("k",))
        reached = ReachedMembers(
            group=ints(0), refs=ints(99), similarity=floats(0.25), weight=floats(1), sizes=ints(1)
        )
        hits, fetches = feed(
            Mmr(k=2, depth=1, fetch_k=1, lambda_mult=1.0),
            [
                (Nearest, Candidates(refs=ints(40), similarity=floats(0.75))),
                (Vectors, np.stack([make_vector(0.75)])),
                (Groups, left),
                (Members, reached),
                (Vectors, np.stack([make_vector(0.25)])),
                (Tags, [("k", "t")]),
                (Documents, texts("a", "b")),
            ],
        )
        assert [str(hit.path) for hit in hits] == ["a", "a —[k t]→ b"]
        assert fetches[2].refs.tolist() == [40]
        assert fetches[4].refs.tolist() == [99]


BAD: list[tuple[type[Strategy], dict[str, Any], str]] = [
    (Similarity, {"k": 0}, "k must be an integer of at least 1, not 0"),
    (Similarity, {"k": 2.0}, "k must be an integer"),
    (Similarity, {"k": True}, "k must be an integer"),
    (Eager, {"k": -1}, "k must be an integer of at least 1, not -1"),
    (Eager, {"depth": -1}, "depth must be"),
    (Eager, {"depth": "2"}, "depth must be"),
    (Eager, {"start_k": -1}, "start_k must be an integer of at least 0, not -1"),
    (Eager, {"adjacent_k": 0}, "adjacent_k must be"),
    (Eager, {"hub_cap": -1}, "hub_cap must be"),
    (Eager, {"beam": 0}, "beam must be"),
    (Eager, {"max_nodes": 0}, "max_nodes must be"),
    (Eager, {"direction": "up"}, "direction must be one of forward, backward, both, not 'up'"),
    (Eager, {"min_similarity": 1.5}, "min_similarity must be a number from -1 to 1, not 1.5"),
    (Eager, {"min_similarity": float("nan")}, "min_similarity must be"),
    (Eager, {"min_similarity": "0.5"}, "min_similarity must be"),
    (Eager, {"kinds": "hyperlink"}, "not the string 'hyperlink'"),
    (Eager, {"kinds": {"k": 1.5}}, "the weight of kind 'k' must be a number from 0 to 1, not 1.5"),
    (Eager, {"kinds": {"k": float("nan")}}, "the weight of kind 'k'"),
    (Eager, {"kinds": {"k": True}}, "the weight of kind 'k'"),
    (Eager, {"kinds": [""]}, "non-empty string"),
    (Eager, {"kinds": [7]}, "non-empty string"),
    (Eager, {"kinds": 7}, "kinds must be a list or dict"),
    (Mmr, {"k": 0}, "k must be"),
    (Mmr, {"fetch_k": -1}, "fetch_k must be"),
    (Mmr, {"lambda_mult": 1.1}, "lambda_mult must be a number from 0 to 1"),
    (Mmr, {"lambda_mult": None}, "lambda_mult must be"),
    (Mmr, {"score_threshold": float("nan")}, "score_threshold must be"),
    (Mmr, {"beam": 0}, "beam must be"),
]


class TestSettings:
    @pytest.mark.parametrize(("kind", "settings", "words"), BAD, ids=lambda value: str(value)[:40])
    def test_what_cannot_work_is_refused(self, kind, settings, words) -> None:
        with pytest.raises(StrategyError, match=words):
            kind(**settings)

    def test_defaults_are_the_documented_ones(self) -> None:
        assert (DEFAULT_ADJACENT_K, DEFAULT_HUB_CAP, DEFAULT_BEAM) == (10, 200, 32)
        assert (DEFAULT_MAX_NODES, DEFAULT_K) == (1000, 10)
        for strategy in (Eager(), Mmr()):
            assert (strategy.adjacent_k, strategy.hub_cap, strategy.beam) == (10, 200, 32)
            assert (strategy.max_nodes, strategy.min_similarity, strategy.threshold) == (1000, None, -1.0)
            assert (strategy.direction, strategy.kinds) == ("forward", None)
        assert (Eager().k, Eager().start_k) == (10, 4)

    def test_strategies_are_frozen_values(self) -> None:
        assert Eager(start_k=3) == Eager(start_k=3) != Eager(start_k=4)
        assert hash(Eager(kinds={"k": 0.5})) == hash(Eager(kinds={"k": 0.5}))
        assert Eager(kinds=["k"]) == Eager(kinds={"k": 1.0})
        with pytest.raises(AttributeError):
            Eager().k = 5  # type: ignore[misc]
        with pytest.raises(TypeError):
            Eager(3)  # type: ignore[misc]

    def test_returning_changes_what_is_returned_and_nothing_else(self) -> None:
        assert Similarity(k=9).with_k(3) == Similarity(k=3)
        assert Eager(start_k=9, depth=3, kinds=["k"]).with_k(3) == Eager(start_k=9, depth=3, kinds=["k"], k=3)
        assert Mmr(k=9, depth=3).with_k(3) == Mmr(k=3, depth=3)

    def test_a_search_leaves_no_trace_in_its_strategy(self) -> None:
        strategy = Eager(start_k=2, depth=2)
        search = store(make_record("a", 0.9, link_out("b")), make_record("b", 0.5, link_in("b")))
        first = search(strategy)
        assert search(strategy) == first
        assert strategy == Eager(start_k=2, depth=2)

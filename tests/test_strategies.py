"""Strategies: plans fed by hand, and what they mean, on the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from linkstore.backends.base import Change, Manifest
from linkstore.errors import StrategyError
from linkstore.filters import parse_filter
from linkstore.hits import Hits
from linkstore.links import Link
from linkstore.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Members,
    Memberships,
    Names,
    Nearest,
    Reached,
    Resolve,
    Stored,
    Tags,
    Vectors,
)
from linkstore.strategies import Eager, Mmr, Question, Similarity, Strategy
from linkstore.strategies.base import (
    DEFAULT_ADJACENT_K,
    DEFAULT_BEAM,
    DEFAULT_HUB_CAP,
    DEFAULT_LIMIT,
    DEFAULT_MAX_NODES,
)
from linkstore.testing import OracleBackend
from linkstore.testing.conformance.probe import ASKED, DIMENSION, at, on, record, to, toward


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


# Plans, fed by hand: the store below has no engine, only answers written out.


def feed(strategy: Strategy, answers: list[tuple[type, Any]], **question: Any) -> tuple[Hits, list[Any]]:
    """Answer a plan's fetches one after the other; each must be of the kind expected."""
    plan = strategy.plan(Question(**{"vector": ASKED, **question}))
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
NO_REACHED = Reached(
    group=ints(), refs=ints(), similarity=floats(), weight=floats(), sizes=ints(), filtered=0
)


def texts(*ids: str) -> list[Stored]:
    return [Stored(id=name, text=f"text of {name}", metadata={"url": f"/{name}"}) for name in ids]


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
            filter=parse_filter({"a": 1}),
            seed_filter=parse_filter({"b": 2}),
            result_filter=parse_filter({"c": 3}),
            hop_filter=parse_filter({"d": 4}),
        )
        assert fetches[0].filter.matches({"a": 1, "b": 2, "c": 3})
        for lacking in "abc":
            metadata = {"a": 1, "b": 2, "c": 3}
            del metadata[lacking]
            assert not fetches[0].filter.matches(metadata)

    def test_eager_makes_two_fetches_a_hop_and_asks_texts_last(self) -> None:
        left = Memberships(
            document=ints(0, 1), group=ints(5, 3), kind=ints(0, 0), weight=floats(1, 0.5), kinds=("k",)
        )
        reached = Reached(
            group=ints(0, 1),
            refs=ints(99, 99),
            similarity=floats(0.25, 0.25),
            weight=floats(1, 1),
            sizes=ints(1, 1),
        )
        hits, fetches = feed(
            Eager(k=2, depth=1, adjacent_k=7, hub_cap=9),
            [
                (Nearest, NEAR),
                (Groups, left),
                (Members, reached),
                (Tags, [("k", "five")]),
                (Documents, texts("b", "a", "c")),
            ],
            filter=parse_filter({"a": 1}),
            hop_filter=parse_filter({"b": 2}),
        )
        assert [str(hit.path) for hit in hits] == ["b", "a", "a —[k five]→ c"]
        # Refs in a layer ascend, so 7 ("a", similarity 0.5) is the first of the frontier.
        groups, members = fetches[1], fetches[2]
        assert (groups.refs.tolist(), groups.side, groups.kinds) == ([7, 40], "out", None)
        assert (members.groups.tolist(), members.side) == ([3, 5], "in")
        assert (members.take, members.cap, sorted(members.exclude)) == (7, 9, [7, 40])
        assert members.filter.matches({"a": 1, "b": 2})
        assert not members.filter.matches({"a": 1})

    def test_eager_stops_when_a_hop_reaches_nothing(self) -> None:
        nothing = Memberships(document=ints(), group=ints(), kind=ints(), weight=floats(), kinds=())
        hits, fetches = feed(
            Eager(k=2, depth=5),
            [(Nearest, NEAR), (Groups, nothing), (Members, NO_REACHED), (Documents, texts("b", "a"))],
        )
        assert len(hits) == 2
        assert len(fetches) == 4

    def test_eager_asks_ids_only_where_scores_tie(self) -> None:
        tie = Candidates(refs=ints(40, 7), similarity=floats(0.5, 0.5))
        hits, fetches = feed(
            Eager(k=2, depth=0), [(Nearest, tie), (Names, ["z", "a"]), (Documents, texts("a", "z"))]
        )
        assert [hit.document.id for hit in hits] == ["a", "z"]
        assert sorted(fetches[1].refs.tolist()) == [7, 40]
        named = dict(zip(fetches[1].refs.tolist(), ["z", "a"], strict=True))
        assert [named[ref] for ref in fetches[2].refs.tolist()] == ["a", "z"]

    def test_both_directions_are_two_waves(self) -> None:
        nothing = Memberships(document=ints(), group=ints(), kind=ints(), weight=floats(), kinds=())
        wave = [(Groups, nothing), (Members, NO_REACHED)]
        _, fetches = feed(
            Eager(k=2, depth=1, direction="both", kinds={"p": 0.5, "q": 0.0}),
            [(Nearest, NEAR), *wave, *wave, (Documents, texts("b", "a"))],
        )
        assert [fetch.side for fetch in fetches[1:5]] == ["out", "in", "in", "out"]
        assert fetches[1].kinds == frozenset({"p"})

    def test_roots_are_found_and_links_resolved_once(self) -> None:
        root = Candidates(refs=ints(8), similarity=floats(0.125), filtered=1)
        linked = Reached(
            group=ints(0), refs=ints(9), similarity=floats(0.25), weight=floats(1), sizes=ints(1)
        )
        hits, fetches = feed(
            Eager(k=0, depth=0),
            [
                (Nearest, Candidates(refs=ints(), similarity=floats())),
                (Find, root),
                (Resolve, ints(2, -1)),
                (Members, linked),
                (Tags, [("k", "x")]),
                (Documents, texts("linked", "root")),
            ],
            roots=("root", "secret", "gone", "root"),
            links=(to("x", label="named"), to("?")),
        )
        assert [str(hit.path) for hit in hits] == ['—[k x "named"]→ linked', "root"]
        assert fetches[1].ids == ("root", "secret", "gone", "root")
        assert fetches[3].exclude.tolist() == [8]
        assert {(cut.reason, cut.count) for cut in hits.cuts} == {("filter", 1), ("missing", 1)}
        assert sum(cut.reason == "missing" for cut in hits.cuts) == 2

    def test_mmr_asks_for_vectors_and_expands_what_it_picks(self) -> None:
        left = Memberships(document=ints(0), group=ints(5), kind=ints(0), weight=floats(1), kinds=("k",))
        reached = Reached(
            group=ints(0), refs=ints(99), similarity=floats(0.25), weight=floats(1), sizes=ints(1)
        )
        hits, fetches = feed(
            Mmr(k=2, depth=1, fetch_k=1, lambda_mult=1.0),
            [
                (Nearest, Candidates(refs=ints(40), similarity=floats(0.75))),
                (Vectors, np.stack([toward(0.75)])),
                (Groups, left),
                (Members, reached),
                (Vectors, np.stack([toward(0.25)])),
                (Tags, [("k", "t")]),
                (Documents, texts("a", "b")),
            ],
        )
        assert [str(hit.path) for hit in hits] == ["a", "a —[k t]→ b"]
        assert fetches[2].refs.tolist() == [40]
        assert fetches[4].refs.tolist() == [99]


# What strategies mean, on the oracle.


@pytest.fixture
def store() -> Callable[..., Callable[..., Hits]]:
    """Fills an oracle; returns its search."""

    def filled(*records: Any) -> Callable[..., Hits]:
        backend = OracleBackend()
        backend.run(backend.claim(Manifest(embedding="e", dimension=DIMENSION)))
        backend.run(backend.write(Change(put=records)))

        def search(strategy: Strategy, **question: Any) -> Hits:
            plan = strategy.plan(Question(**{"vector": ASKED, **question}))
            return backend.run(backend.answer(plan))

        return search

    return filled


def ids(hits: Hits) -> list[str]:
    return [hit.document.id for hit in hits]


def paths(hits: Hits) -> dict[str, str]:
    return {hit.document.id: str(hit.path) for hit in hits}


def cuts(hits: Hits) -> list[tuple[str, int, int | None]]:
    return [(cut.reason, cut.count, cut.depth) for cut in hits.cuts]


class TestPaths:
    def test_the_shortest_wins_over_a_better_one(self, store) -> None:
        search = store(
            record("seed", 0.9, to("x"), to("far", weight=0.1)),
            record("x", 0.8, at("x"), to("far")),
            record("far", 0.7, at("far")),
        )
        hits = search(Eager(k=1, depth=2))
        assert paths(hits)["far"] == "seed —[k far]→ far"
        assert hits[-1].score == pytest.approx(1.7 * 0.1 - 1, abs=1e-6)

    def test_of_equally_short_ones_the_best_scored_wins(self, store) -> None:
        search = store(
            record("a", 0.9, to("low", weight=0.5)),
            record("b", 0.8, to("high", weight=0.75)),
            record("c", 0.1, at("low"), at("high")),
        )
        hits = search(Eager(k=2, depth=1))
        assert paths(hits)["c"] == "b —[k high]→ c"
        assert hits[-1].score == pytest.approx(1.1 * 0.75 - 1, abs=1e-6)

    def test_then_the_one_whose_last_document_scores_best(self, store) -> None:
        search = store(
            record("a", 0.5, to("x")), record("z", 0.9, to("x")), record("c", 0.1, at("x")), record("m", 0.2)
        )
        assert paths(search(Eager(k=2, depth=1)))["c"] == "z —[k x]→ c"

    def test_then_by_id(self, store) -> None:
        search = store(
            record("z", 0.5, to("a tag")),
            record("b", 0.5, to("z tag")),
            record("c", 0.1, at("a tag"), at("z tag")),
        )
        assert paths(search(Eager(k=2, depth=1)))["c"] == "b —[k z tag]→ c"

    def test_then_by_kind_and_tag(self, store) -> None:
        search = store(
            record("a", 0.5, to("y", kind="b"), to("z", kind="a"), to("x", kind="b")),
            record("c", 0.1, at("x", kind="b"), at("y", kind="b"), at("z", kind="a")),
        )
        assert paths(search(Eager(k=1, depth=1)))["c"] == "a —[a z]→ c"

    def test_a_path_names_each_step(self, store) -> None:
        search = store(
            record("a", 0.9, to("b", label="see b"), url="/a"),
            record("b", 0.5, at("b"), on("w", kind="keyword"), url="/b"),
            record("c", 0.1, on("w", kind="keyword", label="word"), url=7),
        )
        path = search(Eager(k=1, depth=2))[2].path
        assert [step.to_dict() for step in path] == [
            {"id": "a", "url": "/a", "kind": None, "tag": None, "label": None},
            {"id": "b", "url": "/b", "kind": "k", "tag": "b", "label": "see b"},
            {"id": "c", "url": None, "kind": "keyword", "tag": "w", "label": "word"},
        ]

    def test_weights_multiply_along_the_way(self, store) -> None:
        search = store(
            record("a", 0.9, to("b", weight=0.5)),
            record("b", 0.8, at("b", weight=0.5), to("c", kind="half")),
            record("c", 0.5, at("c", kind="half", weight=0.5)),
        )
        hits = search(Eager(k=1, depth=2, kinds={"k": 1.0, "half": 0.5}))
        scores = {hit.document.id: hit.score for hit in hits}
        assert scores == {
            "a": pytest.approx(0.9),
            "b": pytest.approx(1.8 * 0.25 - 1),
            "c": pytest.approx(1.5 * 0.25 * 0.25 - 1),
        }

    def test_a_seed_keeps_its_own_score_however_it_is_linked(self, store) -> None:
        search = store(record("a", 0.9, to("b", weight=0.1)), record("b", 0.8, at("b")))
        hits = search(Eager(k=2, depth=2))
        assert [(hit.document.id, hit.depth) for hit in hits] == [("a", 0), ("b", 0)]
        assert [hit.score for hit in hits] == [hit.similarity for hit in hits]


class TestBounds:
    def chain(self, store) -> Callable[..., Hits]:
        """Six seeds, each leading to a document of its own, the best seed to the worst."""
        seeds = [record(f"s{n}", 0.9 - n / 100, to(f"{n}")) for n in range(6)]
        return store(*seeds, *(record(f"t{n}", 0.1 + n / 100, at(f"{n}")) for n in range(6)))

    def test_beam_carries_the_best(self, store) -> None:
        hits = self.chain(store)(Eager(k=6, depth=1, beam=2))
        assert ids(hits) == ["s0", "s1", "s2", "s3", "s4", "s5", "t1", "t0"]
        assert cuts(hits) == [("beam", 4, 0)]

    def test_max_nodes_keeps_the_best(self, store) -> None:
        search = self.chain(store)
        hits = search(Eager(k=6, depth=1, max_nodes=8))
        assert ids(hits)[6:] == ["t5", "t4"]
        assert cuts(hits) == [("max_nodes", 4, 1)]
        assert cuts(search(Eager(k=6, depth=1, max_nodes=2)))[0] == ("max_nodes", 4, 0)

    def test_limit_returns_the_best(self, store) -> None:
        hits = self.chain(store)(Eager(k=6, depth=1, limit=7))
        assert ids(hits) == ["s0", "s1", "s2", "s3", "s4", "s5", "t5"]
        assert cuts(hits) == [("limit", 5, None)]

    def test_adjacent_k_takes_the_most_similar(self, store) -> None:
        search = store(record("s", 0.9, to("x")), *(record(f"{n}", n / 10, at("x")) for n in range(8)))
        assert ids(search(Eager(k=1, depth=1, adjacent_k=3))) == ["s", "7", "6", "5"]

    def test_the_floor_holds_for_seeds_alone(self, store) -> None:
        search = store(record("s", 0.9, to("x")), record("low", 0.2), record("t", 0.1, at("x")))
        hits = search(Eager(k=3, depth=1, min_similarity=0.5))
        assert ids(hits) == ["s", "t"]
        assert cuts(hits) == [("floor", 2, 0)]

    def test_roots_and_links_are_exempt_from_the_floor(self, store) -> None:
        search = store(record("s", 0.9), record("low", 0.2), record("t", 0.1, at("x")))
        hits = search(Eager(k=1, depth=0, min_similarity=0.5), roots=("low",), links=(to("x"),))
        assert ids(hits) == ["s", "low", "t"]

    def test_hubs_are_counted_before_the_filter(self, store) -> None:
        search = store(
            record("s", 0.9, to("hub"), ok=1), *(record(f"{n}", 0.1, at("hub"), ok=n) for n in range(5))
        )
        hits = search(Eager(k=1, depth=1, hub_cap=4), filter=parse_filter({"ok": 1}))
        assert ids(hits) == ["s"]
        assert cuts(hits) == [("hub", 1, 1)]
        assert ids(search(Eager(k=1, depth=1, hub_cap=5), filter=parse_filter({"ok": 1}))) == ["s", "1"]

    def test_a_hub_passed_by_is_explained(self, store) -> None:
        tags = [f"tag {n}" for n in range(7)]
        search = store(
            record("s", 0.9, *(to(tag) for tag in tags)),
            *(record(f"{n}", 0.1, *(at(tag) for tag in tags)) for n in range(3)),
        )
        text = search(Eager(k=1, depth=1, hub_cap=2)).explain()
        named = ", ".join(f"k {tag}" for tag in tags[:5])
        assert text.endswith(f"hub: 7 at depth 1 — more than hub_cap 2 members: {named} and 2 more")

    def test_every_cut_is_explained(self, store) -> None:
        search = store(
            record("s", 0.9, to("x"), to("hub"), lang="en"),
            record("low", 0.1, lang="en"),
            *(record(f"m{n}", 0.5 - n / 10, at("x"), lang="en") for n in range(3)),
            record("other", 0.3, at("x"), lang="de"),
            *(record(f"h{n}", 0.2, at("hub"), lang="en") for n in range(5)),
        )
        hits = search(
            Eager(k=12, depth=1, min_similarity=0.85, hub_cap=4, limit=2, max_nodes=3),
            filter=parse_filter({"lang": "en"}),
            result_filter=parse_filter({"lang": {"$ne": "fr"}}),
            roots=("gone",),
        )
        text = hits.explain()
        for line in (
            "Eager(",
            "floor: 9 at depth 0 — min_similarity 0.85",
            "missing: 1 at depth 0 — initial_roots that are not in the store",
            "filter: 1 at depth 1 — members of link groups that the filter excludes",
            "hub: 1 at depth 1 — more than hub_cap 4 members: k hub",
            "max_nodes: 1 at depth 1 — max_nodes 3",
            "limit: 1 in the result — ranked below limit 2",
            "  1. s  score 0.9000  similarity 0.9000  depth 0",
            "     s —[k x]→ m0",
        ):
            assert line in text


class TestDirectionsAndKinds:
    def test_kinds_choose_what_is_followed(self, store) -> None:
        search = store(
            record("s", 0.9, to("p", kind="p"), to("q", kind="q")),
            record("p", 0.5, at("p", kind="p")),
            record("q", 0.4, at("q", kind="q")),
        )
        assert ids(search(Eager(k=1, kinds=["p"]))) == ["s", "p"]
        assert ids(search(Eager(k=1, kinds={"p": 0.0, "q": 1.0}))) == ["s", "q"]
        assert ids(search(Eager(k=1, kinds=()))) == ["s"]
        assert ids(search(Eager(k=1, kinds={"p": 0.1, "q": 1.0}))) == ["s", "q", "p"]

    def test_backward_hubs_count_on_the_other_side(self, store) -> None:
        search = store(
            record("s", 0.9, at("s")), *(record(f"{n}", 0.1, to("s")) for n in range(4)), record("x", 0.2)
        )
        assert len(search(Eager(k=1, direction="backward", hub_cap=3))) == 1
        assert len(search(Eager(k=1, direction="backward", hub_cap=4))) == 5
        assert len(search(Eager(k=1, direction="forward", hub_cap=4))) == 1

    def test_both_goes_either_way_at_every_hop(self, store) -> None:
        search = store(
            record("m", 0.9, at("m")), record("a", 0.1, to("m"), to("b")), record("b", 0.2, at("b"))
        )
        hits = search(Eager(k=1, depth=2, direction="both"))
        assert paths(hits)["b"] == "m —[k m]→ a —[k b]→ b"

    def test_a_label_followed_backwards_is_its_authors(self, store) -> None:
        search = store(record("m", 0.9, at("m")), record("a", 0.1, to("m", label="see m")))
        assert paths(search(Eager(k=1, direction="backward")))["a"] == 'm —[k m "see m"]→ a'


class TestStarts:
    def test_links_of_the_query_start_as_a_document_with_them_would_lead(self, store) -> None:
        search = store(
            record("in", 0.5, at("x", weight=0.5), to("next")),
            record("out", 0.4, to("x")),
            record("next", 0.3, at("next")),
        )
        hits = search(Eager(k=0, depth=1), links=(to("x", weight=0.5),))
        assert [(hit.document.id, hit.depth) for hit in hits] == [("in", 0), ("next", 1)]
        assert hits[0].score == pytest.approx(1.5 * 0.25 - 1)
        assert ids(search(Eager(k=0, depth=0), links=(at("x"),))) == []
        assert ids(search(Eager(k=0, depth=0, direction="backward"), links=(at("x"),))) == ["out"]
        assert set(ids(search(Eager(k=0, depth=0, direction="both"), links=(on("x"),)))) == {"in", "out"}

    def test_links_of_kinds_that_are_not_followed_start_nothing(self, store) -> None:
        search = store(record("a", 0.5, at("x")))
        assert ids(search(Eager(k=0, kinds=["other"]), links=(to("x"),))) == []

    def test_a_hub_named_by_the_query_is_a_hub(self, store) -> None:
        search = store(*(record(f"{n}", 0.5, at("hub")) for n in range(4)))
        hits = search(Eager(k=0, hub_cap=3), links=(to("hub"),))
        assert cuts(hits) == [("hub", 1, 0)]
        assert "hub_cap 3" in (hits.reason or "")

    def test_what_the_query_names_in_vain_is_said(self, store) -> None:
        search = store(record("a", 0.5, to("dangling")), record("b", 0.4))
        hits = search(Eager(k=1, depth=0), links=(to("dangling"), to("?")), roots=("b", "gone"))
        assert cuts(hits) == [("missing", 1, 0), ("missing", 2, 0)]
        assert ids(hits) == ["a", "b"]

    def test_a_document_found_twice_is_one(self, store) -> None:
        search = store(record("a", 0.9, at("x")), record("b", 0.5))
        hits = search(Eager(k=2, depth=0), roots=("a", "b", "a"), links=(to("x", weight=0.1),))
        assert [(hit.document.id, str(hit.path)) for hit in hits] == [("a", "a"), ("b", "b")]

    def test_mmr_starts_from_roots_and_links_too(self, store) -> None:
        search = store(record("r", 0.1), record("l", 0.2, at("x")), record("n", 0.9))
        hits = search(Mmr(k=5, fetch_k=0), roots=("r",), links=(to("x"),))
        assert sorted(ids(hits)) == ["l", "r"]


class TestFilters:
    RECORDS = (
        record("seed", 0.9, to("a"), tag="s"),
        record("a", 0.8, at("a"), to("b"), tag="a"),
        record("b", 0.7, at("b"), tag="b"),
        record("far", 0.6, tag="s"),
    )

    @pytest.mark.parametrize(
        "strategy", [Eager(k=1, depth=2), Mmr(k=4, depth=2, fetch_k=1)], ids=["eager", "mmr"]
    )
    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({}, {"seed", "a", "b"}),
            ({"filter": {"tag": {"$ne": "a"}}}, {"seed"}),
            ({"filter": {"tag": {"$ne": "s"}}}, {"a", "b"}),
            ({"seed_filter": {"tag": "b"}}, {"b"}),
            ({"hop_filter": {"tag": {"$ne": "a"}}}, {"seed"}),
            ({"hop_filter": {"tag": {"$ne": "s"}}}, {"seed", "a", "b"}),
            ({"result_filter": {"tag": "b"}}, {"b"}),
            ({"result_filter": {"tag": {"$in": ["s", "b"]}}}, {"seed", "b"}),
            ({"filter": {"tag": {"$ne": "b"}}, "result_filter": {"tag": {"$ne": "s"}}}, {"a"}),
        ],
        ids=str,
    )
    def test_each_stage_has_its_own(self, store, strategy, filters, expected) -> None:
        question = {name: parse_filter(value) for name, value in filters.items()}
        assert set(ids(store(*self.RECORDS)(strategy, **question))) == expected

    @pytest.mark.parametrize(
        "strategy", [Eager(k=1, depth=2), Mmr(k=4, depth=2, fetch_k=1)], ids=["eager", "mmr"]
    )
    def test_what_the_result_filter_excludes_is_counted(self, store, strategy) -> None:
        hits = store(*self.RECORDS)(strategy, result_filter=parse_filter({"tag": "b"}))
        assert cuts(hits) == [("filter", 2, None)]
        assert len(hits[0].path) == 3


class TestMmr:
    def test_depth_counts_links_from_a_seed(self, store) -> None:
        search = store(*(record(f"{n}", 0.9 - n / 10, at(f"{n}"), to(f"{n + 1}")) for n in range(6)))
        for depth in range(4):
            hits = search(Mmr(k=9, depth=depth, fetch_k=1, lambda_mult=1.0))
            assert [(hit.document.id, hit.depth) for hit in hits] == [(f"{n}", n) for n in range(depth + 1)]

    def test_a_shorter_way_found_later_counts(self, store) -> None:
        """Reached by three links first, then by one: its own links are then followed further."""
        search = store(
            record("a", 0.9, to("b")),
            record("b", 0.85, at("b"), to("c")),
            record("c", 0.8, at("c"), to("x")),
            record("s", 0.5, to("x")),
            record("x", 0.2, at("x"), to("y")),
            record("y", 0.1, at("y")),
        )
        hits = search(Mmr(k=9, depth=3, fetch_k=0, lambda_mult=1.0), roots=("a", "s"))
        assert {hit.document.id: hit.depth for hit in hits} == {
            "a": 0,
            "b": 1,
            "c": 2,
            "s": 0,
            "x": 1,
            "y": 2,
        }
        assert paths(hits)["y"] == "s —[k x]→ x —[k y]→ y"
        assert len(hits) == len(set(ids(hits))) == 6

    def test_hits_come_in_the_order_picked_with_their_scores_then(self, store) -> None:
        search = store(record("a", 0.9), record("b", 0.9), record("c", 0.0))
        hits = search(Mmr(k=3, depth=0, lambda_mult=0.3))
        assert ids(hits) == ["a", "c", "b"]
        assert hits[0].score == pytest.approx(0.27)
        likeness = float(toward(0.9) @ toward(0.0))
        assert hits[1].score == pytest.approx(-0.7 * likeness)
        assert hits[2].score == pytest.approx(0.27 - 0.7)
        assert [hit.similarity for hit in hits] == pytest.approx([0.9, 0.0, 0.9])

    def test_it_is_plain_mmr_at_depth_0(self, store) -> None:
        """Against the algorithm of langchain-core."""
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        random = np.random.default_rng(3)
        records = [record(f"{n:02}", cosine) for n, cosine in enumerate(random.uniform(-1, 1, 30))]
        search = store(*records)
        for weight in (0.1, 0.5, 0.9):
            vectors = [r.vector for r in records]
            expected = maximal_marginal_relevance(ASKED, vectors, lambda_mult=weight, k=8)
            hits = search(Mmr(k=8, depth=0, fetch_k=30, lambda_mult=weight))
            assert ids(hits) == [f"{n:02}" for n in expected]

    def test_the_threshold_stops(self, store) -> None:
        search = store(record("a", 0.9), record("b", 0.8), record("c", 0.1))
        hits = search(Mmr(k=9, depth=0, lambda_mult=1.0, score_threshold=0.5))
        assert ids(hits) == ["a", "b"]
        assert cuts(hits) == [("floor", 1, None)]
        none = search(Mmr(k=9, depth=0, lambda_mult=1.0, score_threshold=0.95))
        assert (len(none), "score_threshold" in (none.reason or "")) == (0, True)

    def test_what_beam_cuts_does_not_push_out_what_was_known(self, store) -> None:
        """A document in the pool stays there when the shorter way to it does not fit the beam."""
        search = store(
            record("a", 0.9, to("x"), to("b")),
            record("b", 0.8, at("b"), to("late")),
            record("late", 0.3, at("late"), at("s")),
            record("s", 0.7, to("s")),
            record("better", 0.6, at("s")),
        )
        hits = search(Mmr(k=9, depth=3, fetch_k=0, lambda_mult=1.0, beam=1), roots=("a", "s"))
        assert sorted(ids(hits)) == ["a", "b", "better", "late", "s"]

    def test_k_is_what_is_returned(self, store) -> None:
        search = store(*(record(f"{n}", n / 10, on("x")) for n in range(9)))
        assert len(search(Mmr(k=3, depth=2, fetch_k=2))) == 3
        assert len(search(Mmr(k=3, depth=2, fetch_k=2).limited(5))) == 5


class TestNoHit:
    EMPTY = (Similarity(), Eager(), Mmr())

    @pytest.mark.parametrize("strategy", EMPTY, ids=["similarity", "eager", "mmr"])
    def test_an_empty_store(self, store, strategy) -> None:
        hits = store()(strategy)
        assert (len(hits), hits.reason) == (0, "the store is empty")
        assert "no hit: the store is empty" in hits.explain()

    @pytest.mark.parametrize("strategy", EMPTY, ids=["similarity", "eager", "mmr"])
    def test_a_filter_that_none_passes(self, store, strategy) -> None:
        search = store(record("a", 0.5))
        for name in ("filter", "seed_filter"):
            hits = search(strategy, **{name: parse_filter({"lang": "en"})})
            assert (len(hits), hits.reason) == (0, "no document passes the filter")

    @pytest.mark.parametrize("strategy", [Eager(min_similarity=0.75), Mmr(min_similarity=0.75)], ids=str)
    def test_a_floor_that_none_reaches(self, store, strategy) -> None:
        hits = store(record("a", 0.5), record("b", 0.25))(strategy)
        assert hits.reason == "no document reaches min_similarity 0.75; the best has 0.5000"
        assert cuts(hits) == [("floor", 2, 0)]

    @pytest.mark.parametrize("strategy", [Eager(), Mmr()], ids=["eager", "mmr"])
    def test_a_result_filter_that_none_passes(self, store, strategy) -> None:
        hits = store(record("a", 0.5), record("b", 0.25))(strategy, result_filter=parse_filter({"x": 1}))
        assert len(hits) == 0
        assert "none of the 2 documents reached passes result_filter" in (hits.reason or "")

    @pytest.mark.parametrize("strategy", [Eager(k=0), Mmr(fetch_k=0)], ids=["eager", "mmr"])
    def test_nothing_to_start_from(self, store, strategy) -> None:
        """A store with documents is not called empty because nobody asked for them."""
        search = store(record("a", 0.5))
        for question in ({}, {"roots": ("gone",)}, {"links": (to("?"),)}):
            hits = search(strategy, **question)
            assert len(hits) == 0
            assert "empty" not in (hits.reason or "")
            assert ("not in the store" in (hits.reason or "")) == ("roots" in question)
            assert ("lead to no document" in (hits.reason or "")) == ("links" in question)

    def test_hits_have_no_reason(self, store) -> None:
        assert store(record("a", 0.5))(Eager()).reason is None


BAD: list[tuple[type[Strategy], dict[str, Any], str]] = [
    (Similarity, {"k": 0}, "k must be a whole number of at least 1, not 0"),
    (Similarity, {"k": 2.0}, "k must be a whole number"),
    (Similarity, {"k": True}, "k must be a whole number"),
    (Eager, {"k": -1}, "k must be a whole number of at least 0, not -1"),
    (Eager, {"depth": -1}, "depth must be"),
    (Eager, {"depth": "2"}, "depth must be"),
    (Eager, {"limit": 0}, "limit must be"),
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
        assert (DEFAULT_MAX_NODES, DEFAULT_LIMIT) == (1000, 50)
        for strategy in (Eager(), Mmr()):
            assert (strategy.adjacent_k, strategy.hub_cap, strategy.beam) == (10, 200, 32)
            assert (strategy.max_nodes, strategy.min_similarity) == (1000, -1.0)
            assert (strategy.direction, strategy.kinds) == ("forward", None)
        assert Eager().limit == 50

    def test_strategies_are_frozen_values(self) -> None:
        assert Eager(k=3) == Eager(k=3) != Eager(k=4)
        assert hash(Eager(kinds={"k": 0.5})) == hash(Eager(kinds={"k": 0.5}))
        assert Eager(kinds=["k"]) == Eager(kinds={"k": 1.0})
        with pytest.raises(AttributeError):
            Eager().k = 5  # type: ignore[misc]
        with pytest.raises(TypeError):
            Eager(3)  # type: ignore[misc]

    def test_limited_changes_what_is_returned_and_nothing_else(self) -> None:
        assert Similarity(k=9).limited(3) == Similarity(k=3)
        assert Eager(k=9, depth=3, kinds=["k"]).limited(3) == Eager(k=9, depth=3, kinds=["k"], limit=3)
        assert Mmr(k=9, depth=3).limited(3) == Mmr(k=3, depth=3)

    def test_a_search_leaves_no_trace_in_its_strategy(self, store) -> None:
        strategy = Eager(k=2, depth=2)
        search = store(record("a", 0.9, to("b")), record("b", 0.5, at("b")))
        first = search(strategy)
        assert search(strategy) == first
        assert strategy == Eager(k=2, depth=2)


def test_links_of_the_link_model_meet_as_it_says(store) -> None:
    """A leads to B when A's link leads out and B's leads in, with the same kind and tag."""
    ways = {"in": Link.incoming, "out": Link.outgoing, "bidir": Link.bidir}
    for leaving, leave in ways.items():
        for arriving, arrive in ways.items():
            search = store(
                record("a", 0.9, leave(kind="k", tag="t")), record("b", 0.1, arrive(kind="k", tag="t"))
            )
            meets = leaving != "in" and arriving != "out"
            assert ids(search(Eager(k=1, depth=1))) == (["a", "b"] if meets else ["a"])

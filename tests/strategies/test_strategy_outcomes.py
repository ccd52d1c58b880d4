"""What strategies give: filters at each stage, MMR over links, and results without hits."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.probe import QUERY_VECTOR, link_both, link_in, link_out, make_record, make_vector
from internals import parse_filter
from searching import cuts, ids, paths, store

from linkstore.errors import StrategyError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity, Words


class TestFilters:
    RECORDS = (
        make_record("seed", 0.9, link_out("a"), tag="s"),
        make_record("a", 0.8, link_in("a"), link_out("b"), tag="a"),
        make_record("b", 0.7, link_in("b"), tag="b"),
        make_record("far", 0.6, tag="s"),
    )

    @pytest.mark.parametrize(
        "strategy", [Eager(start_k=1, depth=2), Mmr(k=4, depth=2, fetch_k=1)], ids=["eager", "mmr"]
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
        ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
    )
    def test_each_stage_has_its_own(self, strategy, filters, expected) -> None:
        question = {name: parse_filter(value) for name, value in filters.items()}
        assert set(ids(store(*self.RECORDS)(strategy, **question))) == expected

    @pytest.mark.parametrize(
        "strategy", [Eager(start_k=1, depth=2), Mmr(k=4, depth=2, fetch_k=1)], ids=["eager", "mmr"]
    )
    def test_what_the_result_filter_excludes_is_counted(self, strategy) -> None:
        hits = store(*self.RECORDS)(strategy, result_filter=parse_filter({"tag": "b"}))
        assert cuts(hits) == [("filter", 2, None)]
        assert len(hits[0].path) == 3


class TestMmr:
    def test_depth_counts_links_from_a_seed(self) -> None:
        search = store(
            *(make_record(f"{n}", 0.9 - n / 10, link_in(f"{n}"), link_out(f"{n + 1}")) for n in range(6))
        )
        for depth in range(4):
            hits = search(Mmr(k=9, depth=depth, fetch_k=1, lambda_mult=1.0))
            assert [(hit.document.id, hit.depth) for hit in hits] == [(f"{n}", n) for n in range(depth + 1)]

    def test_a_shorter_way_found_later_counts(self) -> None:
        """Reached by three links first, then by one: its own links are then followed further."""
        search = store(
            make_record("a", 0.9, link_out("b")),
            make_record("b", 0.85, link_in("b"), link_out("c")),
            make_record("c", 0.8, link_in("c"), link_out("x")),
            make_record("s", 0.5, link_out("x")),
            make_record("x", 0.2, link_in("x"), link_out("y")),
            make_record("y", 0.1, link_in("y")),
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

    def test_hits_come_in_the_order_picked_with_their_scores_then(self) -> None:
        search = store(make_record("a", 0.9), make_record("b", 0.9), make_record("c", 0.0))
        hits = search(Mmr(k=3, depth=0, lambda_mult=0.3))
        assert ids(hits) == ["a", "c", "b"]
        assert hits[0].score == pytest.approx(0.27)
        likeness = float(make_vector(0.9) @ make_vector(0.0))
        assert hits[1].score == pytest.approx(-0.7 * likeness)
        assert hits[2].score == pytest.approx(0.27 - 0.7)
        assert [hit.similarity for hit in hits] == pytest.approx([0.9, 0.0, 0.9])

    def test_it_is_plain_mmr_at_depth_0(self) -> None:
        """Against the algorithm of langchain-core."""
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        random = np.random.default_rng(3)
        records = [make_record(f"{n:02}", cosine) for n, cosine in enumerate(random.uniform(-1, 1, 30))]
        search = store(*records)
        for weight in (0.1, 0.5, 0.9):
            vectors = [r.vector for r in records]
            expected = maximal_marginal_relevance(QUERY_VECTOR, vectors, lambda_mult=weight, k=8)
            hits = search(Mmr(k=8, depth=0, fetch_k=30, lambda_mult=weight))
            assert ids(hits) == [f"{n:02}" for n in expected]

    def test_the_threshold_stops(self) -> None:
        search = store(make_record("a", 0.9), make_record("b", 0.8), make_record("c", 0.1))
        hits = search(Mmr(k=9, depth=0, lambda_mult=1.0, score_threshold=0.5))
        assert ids(hits) == ["a", "b"]
        assert cuts(hits) == [("min_similarity", 1, None)]
        none = search(Mmr(k=9, depth=0, lambda_mult=1.0, score_threshold=0.95))
        assert (len(none), "score_threshold" in (none.reason or "")) == (0, True)

    def test_what_beam_cuts_does_not_push_out_what_was_known(self) -> None:
        """A document in the pool stays there when the shorter way to it does not fit the beam."""
        search = store(
            make_record("a", 0.9, link_out("x"), link_out("b")),
            make_record("b", 0.8, link_in("b"), link_out("late")),
            make_record("late", 0.3, link_in("late"), link_in("s")),
            make_record("s", 0.7, link_out("s")),
            make_record("better", 0.6, link_in("s")),
        )
        hits = search(Mmr(k=9, depth=3, fetch_k=0, lambda_mult=1.0, beam=1), roots=("a", "s"))
        assert sorted(ids(hits)) == ["a", "b", "better", "late", "s"]

    def test_k_is_what_is_returned(self) -> None:
        search = store(*(make_record(f"{n}", n / 10, link_both("x")) for n in range(9)))
        assert len(search(Mmr(k=3, depth=2, fetch_k=2))) == 3
        assert len(search(Mmr(k=3, depth=2, fetch_k=2).with_k(5))) == 5

    def test_seeds_that_do_not_fit_are_cut_at_depth_0(self) -> None:
        search = store(*(make_record(f"{n}", n / 10) for n in range(5)))
        hits = search(Mmr(lambda_mult=1.0, max_nodes=3))
        assert (ids(hits), cuts(hits)) == (["4", "3", "2"], [("max_nodes", 2, 0)])

    def test_links_of_the_last_one_are_not_followed(self) -> None:
        search = store(
            make_record("a", 0.9, link_out("x")), *(make_record(n, 0.1, link_in("x")) for n in "bc")
        )
        assert cuts(search(Mmr(k=1, fetch_k=1, hub_cap=1))) == []
        assert cuts(search(Mmr(k=2, fetch_k=1, hub_cap=1))) == [("hub", 1, 1)]


class TestSubject:
    """Questions about something else than the store."""

    SEARCH = staticmethod(
        store(
            *(
                make_record(f"{n}", n / 100, text=f"how the pump of the boiler is cleaned {n}")
                for n in range(5)
            ),
            make_record("pass", 0.0, text="over the Grimsel a road leads to Meiringen"),
        )
    )

    @pytest.mark.parametrize(
        ("text", "lacking", "least"),  # the best has 0.04, and so few documents count as ten
        [
            ("sourdough yeast", ["sourdough", "yeast"], 0.22),
            (
                "sourdough yeast pump boiler",
                ["sourdough", "yeast"],
                0.278,
            ),  # each known one is in 5 documents
            ("sourdough pump boiler", ["sourdough"], 0.31),
            ("sourdough pump boiler cleaned", ["sourdough"], 0.33),
            ("Grimsel sourdough yeast", ["sourdough", "yeast"], 0.272),  # in one document: counts more
            ("pump boiler cleaned", [], 2.0),
            ("sourdough the of a is", [], 2.0),  # one word says little
        ],
    )
    @pytest.mark.parametrize("strategy", [PageRank(), AllPaths()], ids=["pagerank", "all_paths"])
    def test_the_more_of_its_words_the_nearest_have_the_less_similarity_suffices(
        self, strategy, text, lacking, least
    ):
        for added, subject in ((-0.003, []), (0.003, lacking)):
            hits = self.SEARCH(strategy, text=text, least_similarity=min(least + added, 0.9))
            named = (hits.doubt or "").removeprefix("no document has the words ").partition(", and the")[0]
            assert (sorted(named.split(", ")) if named else []) == subject
            assert hits, "the nearest are found all the same"

    @pytest.mark.parametrize(("documents", "least"), [(40, 0.1718), (80, 0.1477)])
    def test_a_larger_store_needs_more_and_words_that_only_distant_documents_have_are_lacking(
        self, documents, least
    ):
        near = [make_record(f"{n}", 0.04, text="the pump is cleaned") for n in range(documents - 1)]
        search = store(*near, make_record("far", -0.5, text="sourdough and yeast"))
        for added in (-0.003, 0.003):
            hits = search(PageRank(named=0), text="sourdough yeast", least_similarity=least + added)
            expected = (
                "the nearest documents lack the words sourdough, yeast, and the most similar one has 0.04"
            )
            assert hits.doubt == (expected if added > 0 else None)

    @pytest.mark.parametrize("text", ["sourdough yeast", "pump"])
    def test_a_similarity_that_the_caller_sets_decides_instead(self, text: str) -> None:
        hits = self.SEARCH(PageRank(min_similarity=0.03), text=text, least_similarity=0.3)
        assert sorted(ids(hits)) == ["3", "4"]

    def test_a_question_whose_slips_the_nearest_spell_right_is_about_the_store(self) -> None:
        assert not self.SEARCH(PageRank(), text="bolier cleened", least_similarity=0.3).doubt
        assert self.SEARCH(PageRank(), text="xoiler xleaned", least_similarity=0.3).doubt

    def test_links_and_roots_name_a_subject(self) -> None:
        for named in ({"roots": ("pass",)}, {"roots": ("gone",)}):
            hits = self.SEARCH(PageRank(), text="sourdough yeast", least_similarity=0.3, **named)
            assert (hits.doubt is None) == ("pass" in named["roots"])


class TestNoHit:
    EMPTY = (Similarity(), Eager(), Mmr())

    @pytest.mark.parametrize("strategy", EMPTY, ids=["similarity", "eager", "mmr"])
    def test_an_empty_store(self, strategy) -> None:
        hits = store()(strategy)
        assert (len(hits), hits.reason) == (0, "the store is empty")
        assert "no hit: the store is empty" in hits.explain()

    @pytest.mark.parametrize("strategy", EMPTY, ids=["similarity", "eager", "mmr"])
    def test_a_filter_that_none_passes(self, strategy) -> None:
        search = store(make_record("a", 0.5))
        for name in ("filter", "seed_filter"):
            hits = search(strategy, **{name: parse_filter({"lang": "en"})})
            assert (len(hits), hits.reason) == (0, "no document passes the filter")

    @pytest.mark.parametrize("strategy", [Eager(min_similarity=0.75), Mmr(min_similarity=0.75)], ids=str)
    def test_a_floor_that_none_reaches(self, strategy) -> None:
        hits = store(make_record("a", 0.5), make_record("b", 0.25))(strategy)
        assert hits.reason == "no document reaches min_similarity 0.75; the best has 0.5000"
        assert cuts(hits) == [("min_similarity", 2, 0)]

    @pytest.mark.parametrize("strategy", [Eager(), Mmr()], ids=["eager", "mmr"])
    def test_a_result_filter_that_none_passes(self, strategy) -> None:
        hits = store(make_record("a", 0.5), make_record("b", 0.25))(
            strategy, result_filter=parse_filter({"x": 1})
        )
        assert len(hits) == 0
        assert "of 2 documents reached, none passes result_filter" in (hits.reason or "")

    @pytest.mark.parametrize("strategy", [Eager(start_k=0), Mmr(fetch_k=0)], ids=["eager", "mmr"])
    def test_nothing_to_start_from(self, strategy) -> None:
        """A store with documents is not called empty because nobody asked for them."""
        search = store(make_record("a", 0.5))
        for question in ({}, {"roots": ("gone",)}, {"links": (link_out("?"),)}):
            hits = search(strategy, **question)
            assert len(hits) == 0
            assert "empty" not in (hits.reason or "")
            assert ("not in the store" in (hits.reason or "")) == ("roots" in question)
            assert ("lead to no document" in (hits.reason or "")) == ("links" in question)

    def test_hits_have_no_reason(self) -> None:
        assert store(make_record("a", 0.5))(Eager()).reason is None

    @pytest.mark.parametrize("strategy", [Similarity(), Words()], ids=["similarity", "words"])
    @pytest.mark.parametrize(
        "starts", [{"roots": ("a",)}, {"links": (link_out("x"),)}], ids=["roots", "links"]
    )
    def test_strategies_that_follow_no_link_refuse_starts(self, strategy, starts) -> None:
        with pytest.raises(StrategyError, match="does not take initial_roots or initial_links"):
            store(make_record("a", 0.5))(strategy, text="word", **starts)

"""How strategies walk: paths, bounds, directions, kinds and starts, on the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conformance.probe import link_both, link_in, link_out, make_record
from internals import Hits, Link, parse_filter
from searching import cuts, ids, paths, store

from linkstore.strategies import Eager, Mmr


class TestPaths:
    def test_the_shortest_wins_over_a_better_one(self) -> None:
        search = store(
            make_record("seed", 0.9, link_out("x"), link_out("far", weight=0.1)),
            make_record("x", 0.8, link_in("x"), link_out("far")),
            make_record("far", 0.7, link_in("far")),
        )
        hits = search(Eager(start_k=1, depth=2))
        assert paths(hits)["far"] == "seed —[k far]→ far"
        assert hits[-1].score == pytest.approx(1.7 * 0.1 - 1, abs=1e-6)

    def test_of_equally_short_ones_the_best_scored_wins(self) -> None:
        search = store(
            make_record("a", 0.9, link_out("low", weight=0.5)),
            make_record("b", 0.8, link_out("high", weight=0.75)),
            make_record("c", 0.1, link_in("low"), link_in("high")),
        )
        hits = search(Eager(start_k=2, depth=1))
        assert paths(hits)["c"] == "b —[k high]→ c"
        assert hits[-1].score == pytest.approx(1.1 * 0.75 - 1, abs=1e-6)

    def test_then_the_one_whose_last_document_scores_best(self) -> None:
        search = store(
            make_record("a", 0.5, link_out("x")),
            make_record("z", 0.9, link_out("x")),
            make_record("c", 0.1, link_in("x")),
            make_record("m", 0.2),
        )
        assert paths(search(Eager(start_k=2, depth=1)))["c"] == "z —[k x]→ c"

    def test_then_by_id(self) -> None:
        search = store(
            make_record("z", 0.5, link_out("a tag")),
            make_record("b", 0.5, link_out("z tag")),
            make_record("c", 0.1, link_in("a tag"), link_in("z tag")),
        )
        assert paths(search(Eager(start_k=2, depth=1)))["c"] == "b —[k z tag]→ c"

    def test_then_by_kind_and_tag(self) -> None:
        search = store(
            make_record("a", 0.5, link_out("y", kind="b"), link_out("z", kind="a"), link_out("x", kind="b")),
            make_record("c", 0.1, link_in("x", kind="b"), link_in("y", kind="b"), link_in("z", kind="a")),
        )
        assert paths(search(Eager(start_k=1, depth=1)))["c"] == "a —[a z]→ c"

    def test_a_path_names_each_step(self) -> None:
        search = store(
            make_record("a", 0.9, link_out("b", label="see b"), url="/a"),
            make_record("b", 0.5, link_in("b"), link_both("w", kind="keyword"), url="/b"),
            make_record("c", 0.1, link_both("w", kind="keyword", label="word"), url=7),
        )
        path = search(Eager(start_k=1, depth=2))[2].path
        assert [step.to_dict() for step in path] == [
            {"id": "a", "url": "/a", "kind": None, "tag": None, "label": None},
            {"id": "b", "url": "/b", "kind": "k", "tag": "b", "label": "see b"},
            {"id": "c", "url": None, "kind": "keyword", "tag": "w", "label": "word"},
        ]

    def test_weights_multiply_along_the_way(self) -> None:
        search = store(
            make_record("a", 0.9, link_out("b", weight=0.5)),
            make_record("b", 0.8, link_in("b", weight=0.5), link_out("c", kind="half")),
            make_record("c", 0.5, link_in("c", kind="half", weight=0.5)),
        )
        hits = search(Eager(start_k=1, depth=2, kinds={"k": 1.0, "half": 0.5}))
        scores = {hit.document.id: hit.score for hit in hits}
        assert scores == {
            "a": pytest.approx(0.9),
            "b": pytest.approx(1.8 * 0.25 - 1),
            "c": pytest.approx(1.5 * 0.25 * 0.25 - 1),
        }

    def test_a_seed_keeps_its_own_score_however_it_is_linked(self) -> None:
        search = store(make_record("a", 0.9, link_out("b", weight=0.1)), make_record("b", 0.8, link_in("b")))
        hits = search(Eager(start_k=2, depth=2))
        assert [(hit.document.id, hit.depth) for hit in hits] == [("a", 0), ("b", 0)]
        assert [hit.score for hit in hits] == [hit.similarity for hit in hits]


class TestBounds:
    def chain(self) -> Callable[..., Hits]:
        """Six seeds, each leading to a document of its own, the best seed to the worst."""
        seeds = [make_record(f"s{n}", 0.9 - n / 100, link_out(f"{n}")) for n in range(6)]
        return store(*seeds, *(make_record(f"t{n}", 0.1 + n / 100, link_in(f"{n}")) for n in range(6)))

    def test_beam_carries_the_best(self) -> None:
        hits = self.chain()(Eager(start_k=6, depth=1, beam=2))
        assert ids(hits) == ["s0", "s1", "s2", "s3", "s4", "s5", "t1", "t0"]
        assert cuts(hits) == [("beam", 4, 0)]

    def test_max_nodes_keeps_the_best(self) -> None:
        search = self.chain()
        hits = search(Eager(start_k=6, depth=1, max_nodes=8))
        assert ids(hits)[6:] == ["t5", "t4"]
        assert cuts(hits) == [("max_nodes", 4, 1)]
        assert cuts(search(Eager(start_k=6, depth=1, max_nodes=2)))[0] == ("max_nodes", 4, 0)

    def test_k_returns_the_best(self) -> None:
        hits = self.chain()(Eager(start_k=6, depth=1, k=7))
        assert ids(hits) == ["s0", "s1", "s2", "s3", "s4", "s5", "t5"]
        assert cuts(hits) == [("k", 5, None)]

    def test_adjacent_k_takes_the_most_similar(self) -> None:
        search = store(
            make_record("s", 0.9, link_out("x")),
            *(make_record(f"{n}", n / 10, link_in("x")) for n in range(8)),
        )
        assert ids(search(Eager(start_k=1, depth=1, adjacent_k=3))) == ["s", "7", "6", "5"]

    def test_the_floor_holds_for_seeds_alone(self) -> None:
        search = store(
            make_record("s", 0.9, link_out("x")), make_record("low", 0.2), make_record("t", 0.1, link_in("x"))
        )
        hits = search(Eager(start_k=3, depth=1, min_similarity=0.5))
        assert ids(hits) == ["s", "t"]
        assert cuts(hits) == [("min_similarity", 2, 0)]

    def test_roots_and_links_are_exempt_from_the_floor(self) -> None:
        search = store(make_record("s", 0.9), make_record("low", 0.2), make_record("t", 0.1, link_in("x")))
        hits = search(Eager(start_k=1, depth=0, min_similarity=0.5), roots=("low",), links=(link_out("x"),))
        assert ids(hits) == ["s", "low", "t"]

    def test_hubs_are_counted_before_the_filter_of_a_stage(self) -> None:
        search = store(
            make_record("s", 0.9, link_out("hub"), ok=1),
            *(make_record(f"{n}", 0.1, link_in("hub"), ok=n) for n in range(5)),
        )
        hits = search(Eager(start_k=1, depth=1, hub_cap=4), hop_filter=parse_filter({"ok": 1}))
        assert ids(hits) == ["s"]
        assert cuts(hits) == [("hub", 1, 1)]
        capped = Eager(start_k=1, depth=1, hub_cap=5)
        assert ids(search(capped, hop_filter=parse_filter({"ok": 1}))) == [
            "s",
            "1",
        ]

    def test_a_hub_passed_by_is_explained(self) -> None:
        tags = [f"tag {n}" for n in range(7)]
        search = store(
            make_record("s", 0.9, *(link_out(tag) for tag in tags)),
            *(make_record(f"{n}", 0.1, *(link_in(tag) for tag in tags)) for n in range(3)),
        )
        text = search(Eager(start_k=1, depth=1, hub_cap=2)).explain()
        named = ", ".join(f"k {tag}" for tag in tags[:5])
        assert text.endswith(f"hub: 7 at depth 1 — more than hub_cap 2 members: {named} and 2 more")

    def test_every_cut_is_explained(self) -> None:
        search = store(
            make_record("s", 0.9, link_out("x"), link_out("hub"), lang="en"),
            make_record("low", 0.1, lang="en"),
            *(make_record(f"m{n}", 0.5 - n / 10, link_in("x"), lang="en") for n in range(3)),
            make_record("other", 0.3, link_in("x"), lang="de"),
            *(make_record(f"h{n}", 0.2, link_in("hub"), lang="en") for n in range(5)),
        )
        hits = search(
            Eager(start_k=12, depth=1, min_similarity=0.85, hub_cap=4, k=2, max_nodes=3),
            seed_filter=parse_filter({"lang": "en"}),
            hop_filter=parse_filter({"lang": "en"}),
            result_filter=parse_filter({"lang": {"$ne": "fr"}}),
            roots=("gone",),
        )
        text = hits.explain()
        for line in (
            "Eager(",
            "min_similarity: 9 at depth 0 — below 0.85",
            "missing: 1 at depth 0 — initial_roots that are not in the store",
            "filter: 1 at depth 1 — members of link groups that hop_filter excludes",
            "hub: 1 at depth 1 — more than hub_cap 4 members: k hub",
            "max_nodes: 1 at depth 1 — max_nodes 3",
            "k: 1 in the result — ranked below the first 2",
            "  1. s  score 0.9000  similarity 0.9000  depth 0",
            "     s —[k x]→ m0",
        ):
            assert line in text


class TestDirectionsAndKinds:
    def test_kinds_choose_what_is_followed(self) -> None:
        search = store(
            make_record("s", 0.9, link_out("p", kind="p"), link_out("q", kind="q")),
            make_record("p", 0.5, link_in("p", kind="p")),
            make_record("q", 0.4, link_in("q", kind="q")),
        )
        assert ids(search(Eager(start_k=1, kinds=["p"]))) == ["s", "p"]
        assert ids(search(Eager(start_k=1, kinds={"p": 0.0, "q": 1.0}))) == ["s", "q"]
        assert ids(search(Eager(start_k=1, kinds=()))) == ["s"]
        assert ids(search(Eager(start_k=1, kinds={"p": 0.1, "q": 1.0}))) == ["s", "q", "p"]

    def test_backward_hubs_count_on_the_other_side(self) -> None:
        search = store(
            make_record("s", 0.9, link_in("s")),
            *(make_record(f"{n}", 0.1, link_out("s")) for n in range(4)),
            make_record("x", 0.2),
        )
        assert len(search(Eager(start_k=1, direction="backward", hub_cap=3))) == 1
        assert len(search(Eager(start_k=1, direction="backward", hub_cap=4))) == 5
        assert len(search(Eager(start_k=1, direction="forward", hub_cap=4))) == 1

    def test_both_goes_either_way_at_every_hop(self) -> None:
        search = store(
            make_record("m", 0.9, link_in("m")),
            make_record("a", 0.1, link_out("m"), link_out("b")),
            make_record("b", 0.2, link_in("b")),
        )
        hits = search(Eager(start_k=1, depth=2, direction="both"))
        assert paths(hits)["b"] == "m —[k m]→ a —[k b]→ b"

    def test_a_label_followed_backwards_is_its_authors(self) -> None:
        search = store(
            make_record("m", 0.9, link_in("m")), make_record("a", 0.1, link_out("m", label="see m"))
        )
        assert paths(search(Eager(start_k=1, direction="backward")))["a"] == 'm —[k m "see m"]→ a'


class TestStarts:
    def test_links_of_the_query_start_as_a_document_with_them_would_lead(self) -> None:
        search = store(
            make_record("in", 0.5, link_in("x", weight=0.5), link_out("next")),
            make_record("out", 0.4, link_out("x")),
            make_record("next", 0.3, link_in("next")),
        )
        hits = search(Eager(start_k=0, depth=1), links=(link_out("x", weight=0.5),))
        assert [(hit.document.id, hit.depth) for hit in hits] == [("in", 0), ("next", 1)]
        assert hits[0].score == pytest.approx(1.5 * 0.25 - 1)
        assert ids(search(Eager(start_k=0, depth=0), links=(link_in("x"),))) == []
        assert ids(search(Eager(start_k=0, depth=0, direction="backward"), links=(link_in("x"),))) == ["out"]
        assert set(ids(search(Eager(start_k=0, depth=0, direction="both"), links=(link_both("x"),)))) == {
            "in",
            "out",
        }

    def test_links_of_kinds_that_are_not_followed_start_nothing(self) -> None:
        search = store(make_record("a", 0.5, link_in("x")))
        assert ids(search(Eager(start_k=0, kinds=["other"]), links=(link_out("x"),))) == []

    def test_a_hub_named_by_the_query_is_a_hub(self) -> None:
        search = store(*(make_record(f"{n}", 0.5, link_in("hub")) for n in range(4)))
        hits = search(Eager(start_k=0, hub_cap=3), links=(link_out("hub"),))
        assert cuts(hits) == [("hub", 1, 0)]
        assert "hub_cap 3" in (hits.reason or "")

    def test_what_the_query_names_in_vain_is_said(self) -> None:
        search = store(make_record("a", 0.5, link_out("dangling")), make_record("b", 0.4))
        hits = search(
            Eager(start_k=1, depth=0), links=(link_out("dangling"), link_out("?")), roots=("b", "gone")
        )
        assert cuts(hits) == [("missing", 1, 0), ("missing", 2, 0)]
        assert ids(hits) == ["a", "b"]

    def test_a_document_found_twice_is_one(self) -> None:
        search = store(make_record("a", 0.9, link_in("x")), make_record("b", 0.5))
        hits = search(Eager(start_k=2, depth=0), roots=("a", "b", "a"), links=(link_out("x", weight=0.1),))
        assert [(hit.document.id, str(hit.path)) for hit in hits] == [("a", "a"), ("b", "b")]

    def test_mmr_starts_from_roots_and_links_too(self) -> None:
        search = store(make_record("r", 0.1), make_record("l", 0.2, link_in("x")), make_record("n", 0.9))
        hits = search(Mmr(k=5, fetch_k=0), roots=("r",), links=(link_out("x"),))
        assert sorted(ids(hits)) == ["l", "r"]


def test_links_of_the_link_model_meet_as_it_says() -> None:
    """A leads to B when A's link leads out and B's leads in, with the same kind and tag."""
    ways = {"in": Link.incoming, "out": Link.outgoing, "bidir": Link.bidir}
    for leaving, leave in ways.items():
        for arriving, arrive in ways.items():
            search = store(
                make_record("a", 0.9, leave(kind="k", tag="t")),
                make_record("b", 0.1, arrive(kind="k", tag="t")),
            )
            meets = leaving != "in" and arriving != "out"
            assert ids(search(Eager(start_k=1, depth=1))) == (["a", "b"] if meets else ["a"])

"""PageRank: where the walk starts, which way it goes, and what scores are made of; on the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conformance.probe import QUERY_VECTOR, link_both, link_in, link_out, make_record
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    TRUST,
    Candidates,
    Lexical,
    Link,
    Nearest,
    compute_pagerank,
    parse_filter,
    sum_page_evidence,
)
from oracle import OracleReader, refuse_words
from searching import cuts, ids, paths, store

from linkstore.errors import StrategyError
from linkstore.strategies import AllPaths, PageRank, Question, first_stage, pagerank

NARROW = PageRank(start_k=1)


@pytest.fixture
def narrow(monkeypatch) -> None:
    """Let NARROW start from one document by meaning and one by words."""

    def run_first_stage(trail, question, controls, pool, lexical):
        pool = 1 if controls.start_k == 1 else pool
        return first_stage.run_first_stage(trail, question, controls, pool, lexical)

    monkeypatch.setattr(pagerank, "run_first_stage", run_first_stage)


@pytest.mark.usefixtures("narrow")
class TestStart:
    def test_words_find_what_meaning_does_not(self) -> None:
        search = store(
            make_record("near", 0.9), make_record("worded", 0.1, text="the monorail"), make_record("far", 0.2)
        )
        assert set(ids(search(NARROW, text="monorail"))) == {"near", "worded"}
        assert ids(search(replace(NARROW, lexical=0.0), text="monorail")) == ["near"]
        assert ids(search(NARROW)) == ["near"]  # asked by vector alone

    def test_an_opposite_meaning_takes_nothing_from_words(self) -> None:
        search = store(
            make_record("near", 0.05),
            make_record("next", 0.03),
            make_record("worded", -0.2, text="the monorail"),
        )
        assert set(ids(search(PageRank(), text="monorail"))[:2]) == {"near", "worded"}

    def test_names_in_the_query_lead_to_what_bears_them(self) -> None:
        search = store(
            make_record("near", 0.9),
            make_record("named", -0.5, Link.incoming(kind="mention", tag="space needle")),
        )
        hits = search(NARROW, text="Who built the Space Needle?")
        assert paths(hits)["named"] == "—[mention space needle]→ named"
        assert "named" not in ids(search(replace(NARROW, named=0), text="the Space Needle"))
        assert "named" not in ids(search(NARROW, text="a needle in space"))

    @pytest.mark.parametrize(
        ("tag", "text", "found"),
        [
            ("pearl jam", "Pearl Jam's first album", True),
            ("pearl jam", "Pearl Jam\u2019s first album", True),
            ("schindler's list", "who made Schindler's List", True),
            ("gila monster", "where do Gila monsters live", True),
            ("glass", "where are the glasses", False),
            ("monster", "where do monsters live", False),
            ("gila mos", "the gila moss", False),
        ],
    )
    def test_a_name_may_be_a_possessive_or_a_plural(self, tag: str, text: str, found: bool) -> None:
        search = store(
            make_record("near", 0.9), make_record("named", -0.5, Link.incoming(kind="mention", tag=tag))
        )
        assert ("named" in ids(search(NARROW, text=text))) == found

    def test_names_of_several_words_count_more_than_names_of_one(self) -> None:
        search = store(
            make_record("near", 0.9),
            make_record("one", -0.5, Link.incoming(kind="mention", tag="brother")),
            make_record("two", -0.5, Link.incoming(kind="mention", tag="pearl jam")),
            make_record("three", -0.5, Link.incoming(kind="mention", tag="the space needle")),
            make_record("four", -0.5, Link.incoming(kind="mention", tag="the tower of london")),
        )
        hits = search(NARROW, text="brother, pearl jam, the space needle, the tower of london")
        walk = {hit.document.id: hit.contributions["walk"] for hit in hits}
        assert walk["one"] < walk["two"] < walk["three"] == pytest.approx(walk["four"])

    def test_the_longest_name_is_meant(self) -> None:
        search = store(
            make_record("near", 0.9),
            make_record("york", -0.5, Link.incoming(kind="mention", tag="york")),
            make_record("new york", -0.6, Link.incoming(kind="mention", tag="new york")),
        )
        assert set(ids(search(NARROW, text="to new york"))) == {"near", "new york"}
        assert set(ids(search(NARROW, text="york, new york"))) == {"near", "york", "new york"}

    def test_a_name_that_many_bear_names_none(self, monkeypatch) -> None:
        bearers = [
            make_record(f"b{n}", -0.5, Link.incoming(kind="heading", tag="see also")) for n in range(4)
        ]
        search = store(make_record("near", 0.9), *bearers)
        assert ids(search(NARROW, text="see also")) == ["near"]
        monkeypatch.setattr(pagerank, "NAMED_CAP", 4)
        assert len(search(NARROW, text="see also")) == 5

    def test_roots_and_links_of_the_question_are_starts(self) -> None:
        search = store(
            make_record("near", 0.9), make_record("root", -0.9), make_record("linked", -0.8, link_in("x"))
        )
        hits = search(NARROW, roots=("root",), links=(link_out("x"),))
        assert set(ids(hits)) == {"near", "root", "linked"}
        assert paths(hits)["linked"] == "—[k x]→ linked"
        assert cuts(search(NARROW, roots=("nobody",))) == [("missing", 1, 0)]

    def test_a_floor_holds_for_all_that_was_found(self) -> None:
        search = store(make_record("near", 0.9), make_record("worded", 0.1, text="the monorail"))
        hits = search(PageRank(min_similarity=0.5), text="monorail")
        assert (ids(hits), cuts(hits)) == (["near"], [("min_similarity", 1, 0)])

    def test_without_lexical_search_it_says_so(self, monkeypatch) -> None:
        monkeypatch.setattr(OracleReader, "lexical", refuse_words)
        hits = store(make_record("near", 0.9, text="monorail"))(PageRank(), text="monorail")
        assert [cut.reason for cut in hits.cuts] == ["lexical"]
        assert "has no lexical search" in hits.explain()


@pytest.mark.usefixtures("narrow")
class TestWalk:
    def test_what_links_lead_to_comes_before_what_is_only_similar(self, monkeypatch) -> None:
        monkeypatch.undo()  # the first stage finds both
        search = store(
            make_record("seed", 0.9, link_out("x")),
            make_record("similar", 0.5),
            make_record("linked", -0.2, link_in("x")),
        )
        hits = search(PageRank(start_k=1))
        assert ids(hits) == ["seed", "linked", "similar"]
        assert [hit.depth for hit in hits] == [0, 1, 0]
        assert paths(hits)["linked"] == "seed —[k x]→ linked"

    def test_it_jumps_to_starts_alone(self) -> None:
        """Of 40 documents that match almost equally, one is no start, and is linked with the last start."""
        others = [make_record(f"d{n:02}", 1 - n * 1e-4) for n in range(1, 41) if n not in (16, 17)]
        search = store(
            *others, make_record("d16", 1 - 16e-4, link_out("x")), make_record("d17", 1 - 17e-4, link_in("x"))
        )
        for start_k in (15, 16, 17, 18):
            ranked = ids(search(PageRank(start_k=start_k, k=40)))
            assert ranked[:5] == ["d01", "d02", "d03", "d04", "d05"]
            assert ranked.index("d17") >= 15

    @pytest.mark.parametrize("best", [0.2, 1e-6, 0.0, -0.5])
    @pytest.mark.parametrize("sharpness", [pagerank.SHARPNESS, 100.0])
    @pytest.mark.parametrize("strategy", [PageRank(), AllPaths()], ids=repr)
    def test_scores_are_from_0_to_1_whatever_filters_keep_from_being_starts(
        self, best, strategy, sharpness, monkeypatch
    ) -> None:
        monkeypatch.setattr(pagerank, "SHARPNESS", sharpness)
        search = store(
            make_record("seed", best, link_out("x"), link_out("y"), role="seed"),
            make_record("better", 1.0, link_in("x")),
            make_record("worse", -0.9, link_in("y")),
        )
        hits = search(strategy, seed_filter=parse_filter({"role": "seed"}))
        assert set(ids(hits)) == {"seed", "better", "worse"}
        for hit in hits:
            assert 0 <= hit.score <= 1
            assert all(0 <= part <= 1 for name, part in hit.contributions.items() if name != "page")

    def test_it_also_walks_backward_and_then_less(self) -> None:
        search = store(
            make_record("seed", 0.9, link_out("x"), link_in("me")),
            make_record("on", 0, link_in("x")),
            make_record("before", 0, link_out("me")),
        )
        assert ids(search(NARROW)) == ["seed", "on", "before"]
        assert ids(search(replace(NARROW, direction="forward"))) == ["seed", "on"]
        assert ids(search(replace(NARROW, direction="backward"))) == ["seed", "before"]

    def test_a_group_shares_its_weight_among_those_it_leads_to(self) -> None:
        crowd = [make_record(f"c{n}", 0, link_in("crowd")) for n in range(5)]
        search = store(
            make_record("seed", 0.9, link_out("crowd"), link_out("one")),
            make_record("one", 0, link_in("one")),
            *crowd,
        )
        assert ids(search(NARROW))[:2] == ["seed", "one"]

    def test_hubs_are_not_followed(self) -> None:
        crowd = [make_record(f"c{n}", 0, link_both("hub")) for n in range(5)]
        hits = store(make_record("seed", 0.9, link_out("hub")), *crowd)(replace(NARROW, hub_cap=4))
        assert (ids(hits), cuts(hits)) == (["seed"], [("hub", 1, 1)])

    def test_kinds_that_say_less_count_less_unless_told(self) -> None:
        search = store(
            make_record(
                "seed",
                0.9,
                link_out("s", kind="section"),
                link_out("h", kind="hyperlink"),
                link_out("m", kind="mention"),
            ),
            make_record("a section", 0, link_in("s", kind="section")),
            make_record("mentioned", 0, link_in("m", kind="mention")),
            make_record("hyperlinked", 0, link_in("h", kind="hyperlink")),
        )
        assert 0 < TRUST["section"] < TRUST["mention"] < 1
        assert ids(search(NARROW)) == ["seed", "hyperlinked", "mentioned", "a section"]
        assert ids(search(replace(NARROW, kinds=["section", "hyperlink"]))) == [
            "seed",
            "a section",
            "hyperlinked",
        ]
        assert ids(search(replace(NARROW, kinds=["section"]))) == ["seed", "a section"]

    def test_a_link_without_weight_leads_nowhere(self) -> None:
        search = store(
            make_record("seed", 0.9, link_out("x", weight=0.0)), make_record("a", 0.1, link_in("x"))
        )
        hits = search(NARROW)
        assert [(hit.document.id, hit.contributions.get("walk", 0) > 0) for hit in hits] == [
            ("seed", True),
            ("a", False),
        ]

    def test_when_the_time_is_up_no_further_hop_begins(self, monkeypatch) -> None:
        search = store(
            make_record("seed", 0.9, link_out("x")),
            make_record("near", 0.1, link_in("x"), link_out("y")),
            make_record("far", 0.0, link_in("y")),
        )
        assert ids(search(replace(NARROW, depth=3))) == ["seed", "near", "far"]
        monkeypatch.setattr(pagerank, "SECONDS", 0.0)
        hits = search(replace(NARROW, depth=3))
        assert (ids(hits), cuts(hits)) == (["seed", "near"], [("beam", 1, 1)])
        assert cuts(search(NARROW)) == []

    def test_it_starts_from_five_named_documents(self) -> None:
        names = ["pearl jam", "space needle", "world fair", "pike place", "capitol hill", "lake union"]
        search = store(
            make_record("near", 0.9),
            *(make_record(name, -0.5, Link.incoming(kind="mention", tag=name)) for name in names),
        )
        hits = search(replace(NARROW, lexical=0.0), text=", ".join(names))
        assert len(set(ids(hits)) & set(names)) == 5

    def test_without_links_the_first_stage_decides(self) -> None:
        search = store(*(make_record(f"d{n}", n / 10, text="monorail" if n == 3 else "") for n in range(10)))
        assert ids(search(PageRank(k=3), text="monorail")) == ["d3", "d9", "d8"]
        assert ids(search(PageRank(k=3))) == ["d9", "d8", "d7"]

    def test_nothing_that_matches_is_still_ranked(self) -> None:
        hits = store(make_record("a", -0.5), make_record("b", -0.4))(PageRank())
        assert ids(hits) == ["a", "b"]
        assert all(np.isfinite(hit.score) for hit in hits)


class TestResult:
    SEARCH = staticmethod(
        store(
            make_record("seed", 0.9, link_out("x"), text="monorail"),
            make_record("linked", 0.3, link_in("x"), tag="t"),
            make_record("other", 0.5),
        )
    )

    def test_a_score_is_the_sum_of_its_contributions(self) -> None:
        hits = self.SEARCH(PageRank(), text="monorail")
        for hit in hits:
            assert sum(hit.contributions.values()) == pytest.approx(hit.score, abs=1e-6)
            assert 0 <= hit.score <= 1
        assert set(hits[0].contributions) == {"walk", "meaning", "words"}
        assert hits[0].to_document().metadata["linkstore"]["contributions"] == hits[0].contributions
        assert "= walk " in hits.explain()

    def test_the_evidence_of_a_page_changes_no_other_part_against_the_rest(self, monkeypatch) -> None:
        pages = store(
            make_record("p1", 0.9, link_in("p", kind="section"), link_out("x"), text="monorail"),
            make_record("p2", 0.8, link_in("p", kind="section"), text="monorail line"),
            make_record("other", 0.3, link_in("x"), text="a monorail"),
        )
        hits = pages(PageRank(), text="monorail")
        monkeypatch.setattr(pagerank, "PAGE_WEIGHT", 0.0)
        monkeypatch.setattr(pagerank, "PAGE_FADE", 1.0)
        plain = pages(PageRank(), text="monorail")
        without = {hit.document.id: hit.contributions for hit in plain}
        assert any("page" in hit.contributions for hit in hits)
        for hit in hits:
            before = without[hit.document.id]
            assert hit.contributions["walk"] < before["walk"]
            for part in ("meaning", "words"):
                ratio = hit.contributions[part] / hit.contributions["walk"]
                assert ratio == pytest.approx(before[part] / before["walk"], rel=1e-4)

    def test_of_the_chunks_of_a_page_20_others_are_evidence(self) -> None:
        pages, matches = np.zeros(30, dtype=np.int64), np.full(30, 0.5, dtype=np.float32)
        assert sum_page_evidence(pages, matches).tolist() == [20 * 0.5**3] * 30
        assert sum_page_evidence(np.array([0, 1, 0]), np.float32([0.5, 1, 1])).tolist() == [0.125, 0, 0.125]

    def test_filters_hold_at_their_stages(self, monkeypatch) -> None:
        monkeypatch.setattr(pagerank, "POOL", 2)
        for name in ("filter", "seed_filter", "hop_filter", "result_filter"):
            hits = self.SEARCH(PageRank(k=4, start_k=1), **{name: parse_filter({"tag": "t"})})
            others = {"hop_filter": {"seed", "other"}, "seed_filter": {"seed"}}.get(name, set())
            assert set(ids(hits)) == {"linked"} | others, name

    def test_a_result_that_passes_nothing_has_a_reason(self) -> None:
        hits = self.SEARCH(PageRank(), result_filter=parse_filter({"tag": "none"}))
        assert "passes result_filter" in (hits.reason or "")

    def test_limits_count_what_is_returned(self) -> None:
        assert len(self.SEARCH(PageRank().with_k(2))) == 2
        assert len(self.SEARCH(PageRank(max_nodes=1))) == 1

    def test_words_are_asked_for_once(self) -> None:
        plan = PageRank(k=300).plan(Question(vector=QUERY_VECTOR, text="the needle, a needle"))
        assert isinstance(next(plan), Nearest)
        fetch = plan.send(Candidates(refs=np.array([3]), similarity=np.array([0.5], dtype=np.float32)))
        assert isinstance(fetch, Lexical)
        assert (fetch.terms, fetch.k) == (("needle",), 150)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"k": -1},
            {"start_k": -1},
            {"named": -1},
            {"depth": -1},
            {"lexical": -1},
        ],
        ids=str,
    )
    def test_settings_out_of_range_are_refused(self, wrong) -> None:
        with pytest.raises(StrategyError, match=next(iter(wrong))):
            PageRank(**wrong)


@given(st.data())
def test_the_walkers_time_is_where_the_definition_puts_it(data) -> None:
    """Against the linear system: at = (1 - d) jump + d (followed + stuck * jump)."""
    count = data.draw(st.integers(1, 8))
    edges = data.draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), unique=True, max_size=20))
    weights = data.draw(st.lists(st.floats(0.01, 1), min_size=len(edges), max_size=len(edges)))
    teleport = np.array(data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    teleport[0] += 0.1
    source, target = (np.array([edge[side] for edge in edges], dtype=np.int64) for side in (0, 1))
    weight = np.array(weights)
    moves, jump = np.zeros((count, count)), teleport / teleport.sum()
    for start, end, strength in zip(source, target, weight, strict=True):
        moves[end, start] += strength
    leaving = moves.sum(axis=0)
    moves = np.where(leaving > 0, moves / np.where(leaving > 0, leaving, 1), jump[:, None])
    expected = np.linalg.solve(np.eye(count) - 0.6 * moves, 0.4 * jump)
    assert np.allclose(compute_pagerank(source, target, weight, teleport, 0.6), expected, atol=1e-7)

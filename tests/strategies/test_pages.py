"""Chunks of one page: which page it is, their common evidence, and their order among themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conformance.probe import link_in, link_out, make_record
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    EVIDENCE_POWER,
    MOST_CHUNKS,
    Groups,
    Ids,
    Link,
    Memberships,
    Tags,
    compute_page_fading,
    drive,
    find_pages,
    limit_per_page,
    rank_within_pages,
    sum_page_evidence,
)
from searching import cuts, ids, store

from linkstore.errors import StrategyError
from linkstore.strategies import Eager, Mmr, PageRank, Similarity, Words, pagerank

PLAIN = PageRank(lexical=0.0, named=0)


@pytest.fixture
def plain(monkeypatch) -> None:
    """Let PLAIN rank by similarity alone but for pages: no words, no walk."""
    monkeypatch.setattr(pagerank, "DAMPING", 0.0)
    monkeypatch.setattr(pagerank, "FIRST_STAGE_WEIGHT", 100.0)


def chunk(name: str, similarity: float, page: str):
    """A chunk of a page."""
    return make_record(name, similarity, Link.incoming(kind="section", tag=f"{page}#{name}"))


def test_a_page_is_the_tag_before_the_fragment() -> None:
    tags = ["/b#one", "/a", "/b#two", "/b"]

    def wait(fetch):
        match fetch:
            case Groups():
                assert (fetch.side, fetch.kinds) == ("in", frozenset({"section"}))
                named = np.array([0, 1, 3, 4])
                ones = np.ones(4, dtype=np.float32)
                return Memberships(
                    document=named, group=10 + np.arange(4), kind=named * 0, weight=ones, kinds=()
                )
            case Tags(groups=groups):
                return [("section", tags[group - 10]) for group in groups]

    pages = drive(find_pages(np.arange(7, 12)), wait)
    assert pages[0] == pages[3] == pages[4]
    assert len(set(pages.tolist())) == 3  # /b, /a, and the document that no page claims


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1, width=16)), min_size=1, max_size=60))
def test_evidence_is_what_the_other_chunks_add_up_to(given_chunks) -> None:
    pages = np.array([page for page, _ in given_chunks])
    matches = np.array([match for _, match in given_chunks], dtype=np.float32)
    found = sum_page_evidence(pages, matches)
    for at, page in enumerate(pages):
        own = sorted((float(match) ** EVIDENCE_POWER for match in matches[pages == page]), reverse=True)
        assert found[at] == pytest.approx(sum(own[1 : MOST_CHUNKS + 1]), abs=1e-5)


def test_chunks_stand_by_score_and_then_by_id() -> None:
    names = {5: "e", 6: "d", 7: "c", 8: "b"}

    def wait(fetch):
        assert isinstance(fetch, Ids)
        return [names[ref] for ref in fetch.refs.tolist()]

    scores = np.array([0.5, 0.5, 0.9, 0.1], dtype=np.float32)
    place = drive(rank_within_pages(np.array([5, 6, 7, 8]), np.array([0, 0, 0, 1]), scores), wait)
    assert place.tolist() == [2, 1, 0, 0]


def test_a_chunk_nearly_as_good_as_the_best_of_its_page_keeps_more_than_a_weak_one() -> None:
    pages = np.array([0, 0, 0, 2, 2, 4])
    scores = np.array([0.9, 0.225, 0.8, 0.5, 0.5, 0.0], dtype=np.float32)
    factors = compute_page_fading(pages, scores, np.array([0, 2, 1, 0, 1, 0]), 0.5)
    assert factors == pytest.approx([1, (0.5 * 0.5) ** 2, 0.5 * (0.8 / 0.9) ** 0.5, 1, 0.5, 1])
    assert compute_page_fading(pages[:0], scores[:0], pages[:0], 0.5).tolist() == []


@pytest.mark.usefixtures("plain")
def test_a_page_whose_chunks_match_together_stands_before_a_single_better_one(monkeypatch) -> None:
    search = store(
        chunk("one", 0.80, "/a"),
        chunk("two", 0.79, "/a"),
        chunk("three", 0.78, "/a"),
        chunk("alone", 0.85, "/b"),
    )
    assert ids(search(PLAIN))[0] == "one"
    monkeypatch.setattr(pagerank, "PAGE_WEIGHT", 0.0)
    assert ids(search(PLAIN))[0] == "alone"


@pytest.mark.usefixtures("plain")
def test_the_chunks_of_one_page_do_not_fill_the_head_of_the_list(monkeypatch) -> None:
    chunks = [chunk(f"a{n}", 0.9 - n / 100, "/a") for n in range(5)]
    search = store(*chunks, chunk("b", 0.7, "/b"))
    monkeypatch.setattr(pagerank, "PAGE_WEIGHT", 0.0)
    assert ids(search(PLAIN))[:2] == ["a0", "b"]
    monkeypatch.setattr(pagerank, "PAGE_FADE", 1.0)
    assert ids(search(PLAIN))[:2] == ["a0", "a1"]


def test_documents_without_a_page_rank_as_if_pages_did_not_exist(monkeypatch) -> None:
    search = store(*(make_record(f"d{n}", 0.9 - n / 10) for n in range(6)))
    with_pages = search(PLAIN)
    monkeypatch.setattr(pagerank, "PAGE_WEIGHT", 0.0)
    monkeypatch.setattr(pagerank, "PAGE_FADE", 1.0)
    without = search(PLAIN)
    assert ids(with_pages) == ids(without)
    assert [hit.score for hit in with_pages] == [hit.score for hit in without]


def test_a_score_is_the_sum_of_its_parts_and_at_most_one() -> None:
    search = store(*(chunk(f"a{n}", 0.9 - n / 50, f"/{n % 3}") for n in range(12)))
    for hit in search(PageRank()):
        assert hit.score == pytest.approx(sum(hit.contributions.values()), abs=1e-6)
        assert 0 <= hit.score <= 1 + 1e-6
        assert "page" in hit.contributions


def test_at_depth_0_the_first_stage_ranks_alone() -> None:
    """Without links, names and pages."""
    search = store(
        chunk("one", 0.80, "/a"),
        chunk("two", 0.79, "/a"),
        make_record("alone", 0.85, link_out("x")),
        make_record("linked", -0.2, link_in("x")),
        make_record("named", 0.1, Link.incoming(kind="mention", tag="space needle")),
    )
    hits = search(PageRank(depth=0), text="space needle")
    assert ids(hits) == ["alone", "one", "two", "named", "linked"]
    assert all(str(hit.path) == hit.document.id for hit in hits)
    assert not any("page" in hit.contributions for hit in hits)


STRATEGIES = [
    PageRank(k=4, per_page=1),
    Eager(k=4, start_k=50, depth=0, per_page=1),
    Mmr(k=4, depth=0, lambda_mult=1.0, per_page=1),
    Similarity(k=4, per_page=1),
    Words(k=4, per_page=1),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: type(one).__name__)
def test_a_page_gives_at_most_so_many_and_others_take_their_places(strategy) -> None:
    """However far down the documents of other pages are."""
    crowd = [chunk(f"a{n:02}", 0.9 - n / 1000, "/a") for n in range(30)]
    others = [chunk(f"{page}{n}", 0.6 - n / 10, f"/{page}") for page in "bc" for n in range(3)]
    search = store(*crowd, *others, make_record("alone", 0.3), make_record("lonely", 0.2))
    every = search(replace(strategy, k=100, per_page=None), text="text")
    for per_page in (1, 2):
        hits = search(replace(strategy, per_page=per_page), text="text")
        taken: dict[str, int] = {}
        expected = []
        for name in ids(every):
            page = name if name in {"alone", "lonely"} else name[0]
            taken[page] = taken.get(page, 0) + 1
            if taken[page] <= per_page:
                expected.append(name)
        assert ids(hits) == expected[:4]
        assert "per_page" in {reason for reason, _, _ in cuts(hits)}


def test_what_is_left_out_is_counted_up_to_the_last_that_is_returned() -> None:
    search = store(
        *(chunk(f"a{n}", 0.9 - n / 100, "/a") for n in range(5)),
        *(make_record(f"b{n}", 0.5 - n / 10) for n in range(3)),
    )
    hits = search(Eager(k=2, start_k=8, depth=0, per_page=2))
    assert (ids(hits), cuts(hits)) == (["a0", "a1"], [("k", 6, None)])
    hits = search(Eager(k=2, start_k=8, depth=0, per_page=1))
    assert (ids(hits), cuts(hits)) == (["a0", "b0"], [("per_page", 4, None), ("k", 2, None)])


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(1, 5), st.integers(1, 3))
def test_spreading_takes_the_first_of_each_page(numbers, k, per_page) -> None:
    pages = np.array(numbers, dtype=np.int64)

    def wait(fetch):
        match fetch:
            case Groups(refs=refs):
                at = np.arange(len(refs))
                ones = np.ones(len(refs), dtype=np.float32)
                return Memberships(document=at, group=pages[refs], kind=at * 0, weight=ones, kinds=())
            case Tags(groups=groups):
                return [("section", f"/{group}#x") for group in groups]

    expected = [at for at, page in enumerate(numbers) if numbers[:at].count(page) < per_page][:k]
    assert drive(limit_per_page(np.arange(len(pages)), k, per_page), wait).tolist() == expected


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: type(one).__name__)
def test_per_page_is_a_whole_number(strategy, wrong) -> None:
    with pytest.raises(StrategyError, match="per_page"):
        replace(strategy, per_page=wrong)

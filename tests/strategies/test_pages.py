"""Chunks of one page: which page it is, their common evidence, and their order among themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from searching import ids, store

from linkstore.drivers import run
from linkstore.errors import StrategyError
from linkstore.links import Link
from linkstore.plans import Groups, Memberships, Names, Tags
from linkstore.strategies import PageRank
from linkstore.strategies.pages import MOST, POWER, evidence, pages_of, standing
from linkstore.testing.conformance.probe import record

PLAIN = PageRank(lexical=0.0, damping=0.0, named=0, first=100.0)
"""Ranks by similarity alone but for pages: no words, no walk."""


def chunk(name: str, similarity: float, page: str):
    """A chunk of a page."""
    return record(name, similarity, Link.incoming(kind="section", tag=f"{page}#{name}"))


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

    pages = run(pages_of(np.arange(7, 12)), wait)
    assert pages[0] == pages[3] == pages[4]
    assert len(set(pages.tolist())) == 3  # /b, /a, and the document that no page claims


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1, width=16)), min_size=1, max_size=60))
def test_evidence_is_what_the_other_chunks_add_up_to(given_chunks) -> None:
    pages = np.array([page for page, _ in given_chunks])
    matches = np.array([match for _, match in given_chunks], dtype=np.float32)
    found = evidence(pages, matches)
    for at, page in enumerate(pages):
        own = sorted((float(match) ** POWER for match in matches[pages == page]), reverse=True)
        assert found[at] == pytest.approx(sum(own[1 : MOST + 1]), abs=1e-5)


def test_chunks_stand_by_score_and_then_by_id() -> None:
    names = {5: "e", 6: "d", 7: "c", 8: "b"}

    def wait(fetch):
        assert isinstance(fetch, Names)
        return [names[ref] for ref in fetch.refs.tolist()]

    scores = np.array([0.5, 0.5, 0.9, 0.1], dtype=np.float32)
    place = run(standing(np.array([5, 6, 7, 8]), np.array([0, 0, 0, 1]), scores), wait)
    assert place.tolist() == [2, 1, 0, 0]


def test_a_page_whose_chunks_match_together_stands_before_a_single_better_one() -> None:
    search = store(
        chunk("one", 0.80, "/a"),
        chunk("two", 0.79, "/a"),
        chunk("three", 0.78, "/a"),
        chunk("alone", 0.85, "/b"),
    )
    assert ids(search(PLAIN))[0] == "one"
    assert ids(search(replace(PLAIN, page_weight=0.0)))[0] == "alone"


def test_the_chunks_of_one_page_do_not_fill_the_head_of_the_list() -> None:
    chunks = [chunk(f"a{n}", 0.9 - n / 100, "/a") for n in range(5)]
    search = store(*chunks, chunk("b", 0.5, "/b"))
    alone = replace(PLAIN, page_weight=0.0)
    assert ids(search(alone))[:2] == ["a0", "b"]
    assert ids(search(replace(alone, page_fade=1.0)))[:2] == ["a0", "a1"]


def test_documents_without_a_page_rank_as_if_pages_did_not_exist() -> None:
    search = store(*(record(f"d{n}", 0.9 - n / 10) for n in range(6)))
    with_pages, without = search(PLAIN), search(replace(PLAIN, page_weight=0.0, page_fade=1.0))
    assert ids(with_pages) == ids(without)
    assert [hit.score for hit in with_pages] == [hit.score for hit in without]


def test_a_score_is_the_sum_of_its_parts_and_at_most_one() -> None:
    search = store(*(chunk(f"a{n}", 0.9 - n / 50, f"/{n % 3}") for n in range(12)))
    for hit in search(PageRank()):
        assert hit.score == pytest.approx(sum(hit.contributions.values()), abs=1e-6)
        assert 0 <= hit.score <= 1 + 1e-6
        assert "page" in hit.contributions


@pytest.mark.parametrize("wrong", [{"page_weight": -1}, {"page_fade": 0}, {"page_fade": 1.5}])
def test_settings_out_of_range_are_refused(wrong) -> None:
    with pytest.raises(StrategyError, match=next(iter(wrong))):
        PageRank(**wrong)

"""Hits as values: their pages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from internals import Hit, Hits, Path, PathStep, get_page, make_document
from langchain_core.documents import Document

from linkstore.strategies import Eager, Mmr, PageRank, Similarity, Words


def hit(name: str, score: float = 0.5, **metadata: Any) -> Hit:
    document = Document(id=name, page_content=f"text of {name}", metadata=metadata)
    return Hit(document=document, score=score, similarity=score, depth=0, path=Path((PathStep(id=name),)))


def test_pages_come_once_in_the_order_of_their_best_hits():
    hits = Hits(
        hits=(
            hit("b1", 0.9, page="/b"),
            hit("a1", 0.8, url="/a#one"),
            hit("b2", 0.7, page="/b"),
            hit("c", 0.6),
            hit("a2", 0.5, url="/a"),
        )
    )
    pages = [(page.page, page.score, [hit.document.id for hit in page.hits]) for page in hits.by_page()]
    assert pages == [("/b", 0.9, ["b1", "b2"]), ("/a", 0.8, ["a1", "a2"]), ("c", 0.6, ["c"])]
    assert Hits(hits=()).by_page() == ()


def test_the_page_of_a_document_is_said_or_read_from_its_url():
    assert get_page(Document(page_content="", id="i", metadata={"page": "p", "url": "u"})) == "p"
    assert get_page(Document(page_content="", id="i", metadata={"page": 3, "url": "u#f"})) == "u"
    assert get_page(Document(page_content="", id="i", metadata={"url": "#f"})) == "#f"
    assert get_page(Document(page_content="", id="i", metadata={"url": ""})) == "i"


def test_hits_say_in_short_what_they_are():
    hits = Hits(hits=tuple(hit(f"d{n}") for n in range(7)), strategy="PageRank(k=7)")
    assert repr(hits) == (
        "<7 Hits of PageRank(k=7): 'd0' 0.500, 'd1' 0.500, 'd2' 0.500, 'd3' 0.500, 'd4' 0.500, 2 more>"
    )
    assert repr(hits[0]) == "<Hit 'd0' score=0.5000 depth=0>"
    assert repr(Hits(hits=(), reason="the store is empty")) == "<Hits: none, the store is empty>"
    steps = Path((PathStep(id="a"), PathStep(id="b\n", kind="hyperlink", tag="/b", label="see")))
    assert repr(steps) == r'<Path a —[hyperlink /b "see"]→ b\n>'


HOSTILE = "<script>alert(1)</script>\x1b[2J\"'&"


def test_a_notebook_shows_hits_and_paths_and_runs_nothing_of_a_page():
    path = Path((PathStep(id=HOSTILE), PathStep(id="b", kind=HOSTILE, tag=HOSTILE, label=HOSTILE)))
    document = Document(id=HOSTILE, page_content=HOSTILE * 50)
    hits = Hits(hits=(Hit(document=document, score=0.5, similarity=0.5, depth=1, path=path),))
    for shown in (hits._repr_html_(), path._repr_html_(), Hits(hits=(), reason=HOSTILE)._repr_html_()):
        assert "<script" not in shown
        assert "\x1b" not in shown
        assert "&lt;script&gt;" in shown
    assert hits._repr_html_().count("<tr>") == 2


@pytest.mark.parametrize(
    ("strategy", "shown"),
    [
        (PageRank(), "PageRank()"),
        (PageRank(k=4), "PageRank(k=4)"),
        (PageRank(direction="forward", per_page=2), "PageRank(per_page=2, direction='forward')"),
        (Eager(k=10, depth=2, kinds=["a"]), "Eager(kinds={'a': 1.0}, depth=2)"),
        (Similarity(k=3), "Similarity(k=3)"),
        (Words(), "Words()"),
        (Mmr(fetch_k=5), "Mmr(fetch_k=5)"),
    ],
)
def test_a_strategy_shows_the_settings_that_differ_from_the_defaults(strategy, shown):
    assert repr(strategy) == str(strategy) == shown
    assert eval(shown) == strategy


@pytest.mark.parametrize("metadata", [{}, {"a": 1, "links": [{"kind": "k", "tag": "t", "direction": "out"}]}])
def test_a_document_that_is_made_quickly_is_one_of_langchain(metadata):
    made = make_document("i", "text", metadata)
    usual = Document(id="i", page_content="text", metadata=metadata)
    assert (made, repr(made), made.model_dump_json()) == (usual, repr(usual), usual.model_dump_json())
    assert made.model_fields_set == usual.model_fields_set
    assert pickle.loads(pickle.dumps(made)) == made.model_copy() == copy.deepcopy(made) == usual
    assert made.metadata is not metadata


def test_a_document_that_is_made_quickly_is_validated():
    with pytest.raises(ValueError, match="metadata"):
        make_document("i", "text", [1])

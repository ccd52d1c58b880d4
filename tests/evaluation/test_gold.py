"""Gold may be a page, a section or a document; the verdict compares with the best search without links."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from internals import (
    Comparison,
    Estimate,
    PageDocuments,
    StrategyRun,
    compare_with_baseline,
    compute_outcomes,
)
from langchain_core.documents import Document

from linkstore import Link, LinkStore
from linkstore.errors import EvaluationError
from linkstore.evaluate import GoldQuestion, evaluate, profile
from linkstore.strategies import Similarity

PAGES = {
    "guide.html": {
        "guide.html": "Contents and versions of this manual.",
        "guide.html#install": "How the tower is put up on its site.",
        "guide.html#install~2": "Bolts of the tower and the torque that each needs.",
        "guide.html#use": "Opening the doors of the lift every morning.",
    },
    "soup.html": {
        "soup.html": "Minestrone is a thick soup of vegetables.",
        "soup.html#bread": "Bread that goes with soup.",
    },
}


def put(store: LinkStore) -> None:
    """Index the pages; each chunk names its section."""
    pages = []
    for url, chunks in PAGES.items():
        documents = [
            Document(
                id=name,
                page_content=text,
                metadata={"links": [Link.incoming(kind="section", tag=f"/{name}").to_dict()]},
            )
            for name, text in chunks.items()
        ]
        pages.append(PageDocuments(url=url, digest=url, documents=tuple(documents)))
    store.pages.put("site", pages)


@pytest.fixture
def store():
    with LinkStore.open(":memory:") as opened:
        put(opened)
        yield opened


def asked(*gold: str) -> list[GoldQuestion]:
    return [GoldQuestion(question="Which torque do the bolts of the tower need?", gold=gold)]


class TestKinds:
    def test_any_chunk_of_a_gold_page_counts(self, store):
        found = evaluate(store, asked("guide.html"), {"dense": Similarity()})

        assert found.gold == "page"
        assert found["dense"].ranks == ((1,),)

    def test_any_chunk_of_a_gold_section_counts(self, store):
        found = evaluate(store, asked("guide.html#install"), {"dense": Similarity()})

        assert found.gold == "section"
        assert found["dense"].ranks == ((1,),)

    def test_as_an_id_a_page_s_url_is_its_first_chunk_alone(self, store):
        found = evaluate(store, asked("guide.html"), {"dense": Similarity()}, gold="id")

        assert found.gold == "id"
        rank = found["dense"].ranks[0][0]
        assert rank is not None
        assert rank > 1

    def test_pages_and_sections_together_are_sections(self, store):
        found = evaluate(store, asked("guide.html", "guide.html#use"), {"dense": Similarity()})

        assert found.gold == "section"
        assert found["dense"].ranks[0][0] != 1, (
            "the section of the page's URL is the chunk above the first heading"
        )

    def test_documents_that_are_on_no_page_are_ids(self):
        with LinkStore.open(":memory:") as plain:
            plain.add_documents([Document(id="guide.html", page_content="Bolts of the tower.")])
            assert evaluate(plain, asked("guide.html"), {"dense": Similarity()}).gold == "id"

    @pytest.mark.parametrize(
        ("kind", "name", "says"),
        [
            ("page", "guide.html#use", "URL of an indexed page"),
            ("section", "guide.html#none", "URL of a section"),
            ("id", "nowhere", "id of a document"),
            ("pages", "guide.html", "one of page, section, id"),
        ],
    )
    def test_gold_of_another_kind_is_refused_by_name(self, store, kind, name, says):
        with pytest.raises(EvaluationError, match=says):
            evaluate(store, asked(name), {"dense": Similarity()}, gold=kind)

    def test_a_page_that_was_removed_is_missing(self, store):
        store.pages.remove(["guide.html"], "site")
        with pytest.raises(EvaluationError, match=r"1 of 1 gold answers are not in the store: 'guide\.html'"):
            evaluate(store, asked("guide.html"))


class TestProfile:
    def test_a_page_is_found_by_any_of_its_chunks(self, store):
        found = profile(store, asked("guide.html"))

        assert (found.gold_kind, found.gold and found.gold.missed) == ("page", 0)
        assert found.comparison is not None
        assert found.verdict.startswith("Too few questions to tell: with 1")

    def test_links_between_sections_do_not_make_a_corpus_well_linked(self):
        with LinkStore.open(":memory:") as opened:
            both = [Link.bidir(kind="section", tag="/one#a").to_dict()]
            documents = [
                Document(id=f"d{n}", page_content=f"text {n}", metadata={"links": both}) for n in range(4)
            ]
            opened.add_documents(documents)
            assert profile(opened).verdict.startswith("Hardly linked")


def compare(default: list[int | None], **others: list[int | None]) -> Comparison | None:
    """Outcomes made of the rank of the one gold document of each question."""
    runs = [
        StrategyRun(
            name=name, settings="", ranks=[(rank,) for rank in ranks], ms_per_query=1, ms_without_embedding=1
        )
        for name, ranks in {"pagerank": default, **others}.items()
    ]
    outcomes = compute_outcomes(runs, [(1,)] * len(default), 0)
    return compare_with_baseline(outcomes, len(default), 0)


class TestVerdict:
    def test_the_default_is_compared_with_the_best_of_the_others(self):
        found = compare(
            [1] * 40 + [None] * 10,
            similarity=[1] * 10 + [None] * 40,
            **{"similarity+words": [1] * 39 + [None] * 11},
        )

        assert found is not None
        assert found.best == "similarity+words"
        assert found.gain.value == pytest.approx(0.02)
        assert str(found).startswith("No difference shown")

    @pytest.mark.parametrize(
        ("default", "words", "says"),
        [
            ([1] * 50, [1] * 25 + [None] * 25, "Links help: "),
            ([1] * 25 + [None] * 25, [1] * 50, "Links hurt: "),
            ([1] * 50, [5] * 50, "No difference shown: "),
            ([1] * 50, [6] * 50, "Links help: "),
        ],
    )
    def test_it_says_what_was_measured(self, default, words, says):
        found = compare(default, words=words)
        assert str(found).startswith(says)

    def test_the_interval_is_paired(self):
        half = [1, None] * 50
        found = compare(half, similarity=half)
        assert found is not None
        assert found.gain == Estimate(value=0.0, low=0.0, high=0.0)

    def test_without_a_rival_there_is_nothing_to_compare(self):
        assert compare([1]) is None


def test_the_command_says_what_gold_names_and_what_it_shows(tmp_path):
    with LinkStore.open(tmp_path / "kb") as opened:
        put(opened)
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question": asked("x")[0].question, "gold": ["guide.html"]}) + "\n")
    common = ("eval", "--store", str(tmp_path / "kb"), "--questions", str(questions))

    _, told, _ = linkstore(*common)
    assert "gold: pages, any chunk counts" in told
    assert "Too few questions to tell" in told

    found = json.loads(linkstore(*common, "--json")[1])
    assert found["gold"] == "page"
    assert found["comparison"]["gain"] == 0

    assert "gold: documents by id" in linkstore(*common, "--gold", "id")[1]

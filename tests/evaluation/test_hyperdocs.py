"""The recipe of the benchmark of hyperlinked manuals, on a tiny manual."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from hyperdocs.candidates import find_candidates
from hyperdocs.manuals import MANUALS, Manual
from hyperdocs.measures import measure, summarise
from hyperdocs.questions import read_questions, read_selectors, write_selectors

MANUAL = Manual(
    name="tiny",
    package="tiny-doc",
    version="1",
    root="html",
    generator="by hand",
    licence="MIT",
    split="open",
    faq=("faq.html",),
)
PAGES = {
    "faq.html": """
        <h1>Questions</h1>
        <h2 id="lost">1. What if I lost my key?</h2>
        <p>Make <a href="keys.html#new">a new one</a>; <a href="sub/store.html">where it lies</a>.</p>
        <h2 id="own">Is it on this page?</h2><p>Yes, <a href="#lost">above</a>.</p>
        <h2 id="away">Is it elsewhere?</h2><p>On <a href="https://example.org/keys.html">a site</a>.</p>
        <div class="navfooter"><a href="keys.html">Next</a></div>""",
    "keys.html": """
        <h1 id="top">Keys</h1>
        <p>For details on the format of a key file, see <a href="sub/store.html#format">Formats</a>.</p>
        <p>For this, see <a href="sub/store.html">there</a>.</p>
        <h2 id="new">How to make a key</h2><p>Run it.</p>""",
    "sub/store.html": """
        <h1>Store</h1>
        <p id="format">See <a href="../keys.html#new">the text</a> for how keys are made.</p>""",
}


@pytest.fixture
def root(tmp_path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"<html><body>{text}</body></html>")
    return tmp_path


def test_each_rule_takes_what_it_is_for(root):
    found = {
        (one.rule, one.page, one.anchor, one.question): one.gold for one in find_candidates(MANUAL, root)
    }
    assert found == {
        ("faq", "faq.html", "lost", "What if I lost my key?"): ("keys.html#new", "sub/store.html"),
        ("see", "keys.html", "top", "the format of a key file"): ("sub/store.html#format",),
        ("heading", "keys.html", "new", "How to make a key"): ("keys.html#new",),
        ("see", "sub/store.html", "format", "how keys are made"): ("keys.html#new",),
    }


def test_texts_are_found_again_by_what_is_committed(root, tmp_path):
    kept = tmp_path / "questions.jsonl"
    candidates = list(find_candidates(MANUAL, root))
    write_selectors(candidates, kept)
    assert "lost my key" not in kept.read_text()
    assert read_questions(MANUAL, root, kept) == candidates
    page = root / "faq.html"
    page.write_text(page.read_text().replace("lost my key", "lost a key"))
    with pytest.raises(SystemExit, match=r"tiny: 1 of 4 questions are not in the pages.*tiny-doc 1"):
        read_questions(MANUAL, root, kept)


def test_no_form_gives_a_question_its_place(root):
    page = root / "keys.html"
    page.write_text(
        page.read_text().replace("<p>For details", '<form id="ask"><input id="q"></form><p>For details')
    )
    found = {one.question: one.anchor for one in find_candidates(MANUAL, root)}
    assert found["the format of a key file"] == "top"


def test_the_index_of_links_finds_what_the_peer_finds():
    pytest.importorskip("langchain_graph_retriever")
    from hyperdocs.systems import IndexedAdapter
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_graph_retriever.adapters.in_memory import InMemoryAdapter

    embedding = DeterministicFakeEmbedding(size=8)
    memory = InMemoryVectorStore(embedding)
    memory.add_documents(
        [
            Document(id=str(n), page_content=f"text {n}", metadata={"known_as": [f"t{n % 3}"]})
            for n in range(30)
        ]
    )
    question = embedding.embed_query("which one?")
    for wanted in (None, {"known_as": "t1"}, {"known_as": "nobody"}):
        found = [
            [one.id for one in adapter(memory)._search(question, k=5, filter=wanted)]
            for adapter in (IndexedAdapter, InMemoryAdapter)
        ]
        assert found[0] == found[1]


def test_rows_of_some_manuals_are_named_by_them():
    pytest.importorskip("langchain_graph_retriever")
    from measure_hyperdocs import name_groups

    assert name_groups(MANUAL, "see", None) == ["English", "open", "see", "tiny"]
    assert name_groups(MANUAL, "see", "tiny,other") == ["tiny+other", "tiny"]
    assert name_groups(MANUAL, "see", "tiny") == ["tiny"]


def test_what_is_committed_names_manuals_that_there_are():
    rows = read_selectors()
    assert {one.manual for one in rows} <= {one.name for one in MANUALS}
    assert len({one.key for one in rows}) == len(rows)
    assert len({one.generator for one in MANUALS}) >= 8
    assert all(one.gold for one in rows)


def test_measures_are_those_of_a_count_by_hand():
    pages = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
    units = [frozenset({"b1"}), frozenset({"c1"})]
    found = measure(["a1", "a2", "b1"], units, pages)
    assert found["R@5"] == 0.5
    assert (found["hits@1"], found["hits@5"]) == (0, 1)
    assert (found["pages@1"], found["pages@5"]) == (0, 1)
    assert found["nDCG@10"] == pytest.approx(0.5 / (1 + 1 / 1.584962500721156))
    assert summarise([found, found])["interval of R@5"] == [50, 50]

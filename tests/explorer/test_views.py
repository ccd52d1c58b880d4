"""What the page shows: answers, why a document is missing, documents, and the graph of a whole store."""

from __future__ import annotations

import numpy as np
import pytest
from facet_cases import FacetCases, show
from internals import (
    GROUP_CAP,
    PageDocuments,
    PageGraph,
    Views,
    choose_drawn,
    choose_fields,
    find_passage,
    rank_pages,
    read_corpus,
    run,
)
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import DocumentError, LinkStoreError, StrategyError
from linkstore.memory import ConversationMemory, SessionKey
from linkstore.strategies import Eager

QUESTION = "How do I install the program?"
TITLES = {"guide": "Guide", "install": "Installing", "faq": "Questions", "history": "History"}


def graph_of(size, pairs, weights=None):
    source, target = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    return PageGraph(
        names=tuple(map(str, range(size))),
        first=tuple(map(str, range(size))),
        source=source,
        target=target,
        weight=np.ones(len(source), np.float32) if weights is None else np.array(weights, np.float32),
    )


def test_an_answer_has_the_hits_of_the_search(store):
    found = show(store, "answer", question=QUESTION, settings={"strategy": "eager", "depth": 1, "k": 3})
    hits = store.search(QUESTION, strategy=Eager(depth=1, k=3))
    assert [(hit["id"], hit["score"]) for hit in found["hits"]] == [
        (hit.document.id, hit.score) for hit in hits
    ]
    assert [at for page in found["pages"] for at in page["hits"]] == list(range(len(hits)))
    assert {cut["reason"] for cut in found["cuts"]} == {cut.reason for cut in hits.cuts}


def test_a_passage_stands_in_the_text_and_holds_words_of_the_question():
    text = (
        "It begins with other things. " * 20
        + "Then the installer asks for a password, twice. "
        + "End. " * 50
    )
    passage = find_passage(text, "Why does the installer ask for a password?")
    assert passage in text
    assert "installer" in passage


def test_a_passage_does_not_go_on_in_the_next_paragraph():
    text = "How to install\n\nRun the installer\nand then wait."
    assert find_passage(text, "the installer") == "installer"
    assert find_passage(text, "wait") == "wait."


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"strategy": "best"}, "no strategy 'best'"),
        ({"k": 0}, "k must be"),
        ({"k": 101}, "k must be"),
        ({"k": True}, "k must be"),
        ({"strategy": "words", "depth": 2}, "no setting 'depth'"),
        ({"depths": 2}, "no setting 'depths'"),
        ({"strategy": "similarity", "kinds": ["hyperlink"]}, "no setting 'kinds'"),
        ({"strategy": "eager", "depth": -1}, "depth"),
    ],
)
def test_a_wrong_setting_is_named(store, settings, says):
    with pytest.raises(LinkStoreError, match=says):
        show(store, "answer", question=QUESTION, settings=settings)


class TestFacets(FacetCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "facets") as store:
            yield store


def test_a_document_that_the_filter_excludes_is_said_to_be_excluded(store):
    settings = {"filter": {"title": "Guide"}}
    found = show(store, "absence", question=QUESTION, settings=settings, id="faq")
    assert found["rank"] is None
    assert found["reasons"] == ["the filter of the search excludes it"]


def test_a_document_behind_the_hits_has_its_rank_and_parts(store):
    found = show(store, "absence", question=QUESTION, settings={"k": 1}, id="faq")
    assert found["rank"] > 1
    assert found["hit"]["score"] <= found["last"]
    assert found["reasons"][0].endswith("ranks too low")


def test_a_document_that_is_not_reached_has_its_distance_in_links(store):
    """Of a chain of pages that lead to each other, the search returns one and follows no link."""
    settings = {"strategy": "eager", "depth": 0, "k": 1}
    first = show(store, "answer", question=QUESTION, settings=settings)["hits"][0]["id"]
    assert first == "guide"
    settings["strategy"] = "words"
    del settings["depth"]
    found = show(store, "absence", question="machine", settings=settings, id="install")
    assert found["rank"] is None
    assert found["reasons"][0] == "the search did not reach it; guide is 1 link away"
    found = show(store, "absence", question="machine", settings=settings, id="history")
    assert found["reasons"][0] == "the search did not reach it, and no hit is within 3 links of it"


def test_a_document_shows_its_links_and_who_is_at_their_other_ends(store):
    found = show(store, "document", id="guide")
    assert {(link["label"], link["id"], link["at"]) for link in found["outgoing"]} == {
        ("see install", "install", "guide"),
        ("see faq", "faq", "guide"),
    }
    assert [(link["id"], link["label"]) for link in found["incoming"]] == [("faq", "see guide")]
    assert {id: other["title"] for id, other in found["others"].items()} == {
        "install": "Installing",
        "faq": "Questions",
    }
    assert found["between"] == [["install", "faq"]]
    assert found["nowhere"] == []
    with pytest.raises(DocumentError, match="'nowhere'"):
        show(store, "document", id="nowhere")


def paged(page, number, *links, text="", **metadata):
    made = Document(
        id=f"{page}#{number}", page_content=text or f"{page} {number}", metadata={"page": page, **metadata}
    )
    add_links(made, Link.incoming(kind="to", tag=made.id))
    add_links(made, *(Link.outgoing(kind="to", tag=tag, label=f"to {tag}") for tag in links))
    return made


def test_a_document_is_shown_as_its_whole_page_with_the_links_of_all_its_chunks(tmp_path):
    """Links among its own chunks are not listed, and what leads nowhere is apart."""
    trail = {"title": "A", "headings": ["A", "Second"]}
    chunks = (
        paged("a", 0, "a#1", "b#0", title="A", headings=["A"]),
        paged("a", 1, "a#0", "gone", text="A > Second\n\nThe monorails and a monorail.", **trail),
    )
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.pages.put(
            "s",
            [PageDocuments("a", "1", chunks), PageDocuments("b", "1", (paged("b", 0, "a#1", title="B"),))],
        )
        found = show(store, "document", id="a#1", question="Which monorail is this?")
    assert [(chunk["id"], chunk["headings"], chunk["text"]) for chunk in found["chunks"]] == [
        ("a#0", ["A"], "a 0"),
        ("a#1", ["A", "Second"], "The monorails and a monorail."),
    ]
    assert (found["title"], found["words"], found["left_out"]) == ("A", ["monorails", "monorail"], 0)
    assert [(link["id"], link["label"], link["at"]) for link in found["outgoing"]] == [
        ("b#0", "to b#0", "a#0")
    ]
    assert [(link["id"], link["label"]) for link in found["incoming"]] == [("b#0", "to a#1")]
    assert found["nowhere"] == [{"kind": "to", "tag": "gone", "label": "to gone"}]


def test_of_a_very_long_page_the_beginning_and_the_document_are_shown(tmp_path, monkeypatch):
    chunks = tuple(paged("a", number, text="x" * 100) for number in range(9))
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.pages.put("s", [PageDocuments("a", "1", chunks)])
        monkeypatch.setattr("linkstore.explorer.views._LONGEST_PAGE", 250)
        found = show(store, "document", id="a#7")
    assert [chunk["id"] for chunk in found["chunks"]] == ["a#0", "a#1", "a#7"]
    assert found["left_out"] == 6


def test_a_snippet_is_split_at_the_words_of_the_question(store):
    snippet = show(store, "answer", question="What does the installer ask?")["hits"][0]["snippet"]
    assert "".join(snippet) == "Why does the installer ask for a password?"
    assert snippet[1::2] == ["installer", "ask"]


def test_a_document_on_the_way_has_its_title_and_page(store):
    settings = {"strategy": "all-paths", "depth": 2, "k": 1, "filter": None}
    found = show(store, "answer", question="installer password machine", settings=settings)
    way = [node for node in found["graph"]["nodes"] if node["role"] == "way"]
    assert way
    assert {(node["title"], node["page"]) for node in way} <= {
        (title, f"https://site.example/{name}") for name, title in TITLES.items()
    }
    for start, *triples in found["hits"][0]["chains"]:
        assert {start, *(end for triple in triples for end in (triple["subject"], triple["object"]))} <= set(
            TITLES
        )


def test_what_is_typed_finds_ids_pages_and_words(store):
    assert show(store, "find", text="guide")[0]["id"] == "guide"
    assert "install" in [one["id"] for one in show(store, "find", text="installer")]
    assert show(store, "find", text="  ") == []


def test_views_that_write_are_there_only_if_writing_is_allowed(store):
    with pytest.raises(StrategyError, match="no view 'accept'"):
        show(store, "accept", source="guide", target="faq")
    with pytest.raises(StrategyError, match="no view 'delete'"):
        show(store, "delete")


def test_the_corpus_of_a_store_without_pages_has_its_documents(store):
    found = show(store, "corpus")
    assert {node["id"] for node in found["nodes"]} == {"guide", "install", "faq", "history"}
    ids = [node["id"] for node in found["nodes"]]
    assert {(ids[source], ids[target]) for source, target, _ in found["edges"]} == {
        ("guide", "install"),
        ("guide", "faq"),
        ("install", "faq"),
        ("faq", "guide"),
    }
    assert found["orphans"] == {"count": 1, "first": [{"id": "history", "title": "History"}]}
    assert found["dates"] == ["date"]


def test_an_empty_store_has_an_empty_corpus(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        found = show(store, "corpus")
    assert (found["pages"], found["nodes"], found["edges"]) == (0, [], [])


def test_links_between_chunks_of_one_page_are_not_drawn_and_those_of_two_pages_are_counted(tmp_path):
    def chunk(page, number, *links):
        made = Document(id=f"{page}#{number}", page_content=f"{page} {number}", metadata={"title": page})
        add_links(
            made, Link.incoming(kind="to", tag=made.id), *(Link.outgoing(kind="to", tag=tag) for tag in links)
        )
        return made

    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.pages.put(
            "s",
            [
                PageDocuments("a", "1", (chunk("a", 0, "a#1", "b#0"), chunk("a", 1, "b#1"))),
                PageDocuments("b", "1", (chunk("b", 0), chunk("b", 1))),
            ],
        )
        found = show(store, "corpus")
    assert [node["page"] for node in found["nodes"]] == ["a", "b"]
    assert found["edges"] == [[0, 1, 2]]


def test_documents_of_no_page_stand_beside_the_pages(tmp_path):
    alone = Document(id="note", page_content="a note")
    add_links(alone, Link.outgoing(kind="to", tag="a"))
    chunks = [Document(id=f"a{number}", page_content=f"a {number}") for number in range(2)]
    add_links(chunks[1], Link.incoming(kind="to", tag="a"))
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.pages.put("s", [PageDocuments("a", "1", tuple(chunks))])
        store.add_documents([alone])
        found = show(store, "corpus")
    assert [(node["page"], node["id"]) for node in found["nodes"]] == [("a", "a0"), ("note", "note")]
    assert found["edges"] == [[1, 0, 1]]


def test_a_link_group_of_very_many_pages_is_a_hub_and_is_not_drawn(tmp_path):
    documents = []
    for number in range(GROUP_CAP + 1):
        made = Document(id=f"d{number:02}", page_content=f"text {number}")
        add_links(made, Link.bidir(kind="keyword", tag="common"))
        documents.append(made)
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_documents(documents)
        found = show(store, "corpus")
    assert found["edges"] == []
    assert found["hubs"] == [{"kind": "keyword", "tag": "common", "pages": GROUP_CAP + 1}]


def test_the_rank_of_pages_solves_the_equations_of_pagerank():
    random = np.random.default_rng(7)
    size = 40
    pairs = sorted({tuple(map(int, random.integers(0, size, 2))) for _ in range(150)})
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    weights = random.integers(1, 5, len(pairs))
    graph = graph_of(size, pairs, weights)
    matrix = np.zeros((size, size))
    for (source, target), weight in zip(pairs, weights, strict=True):
        matrix[target, source] += weight
    given = matrix.sum(axis=0)
    matrix[:, given == 0] = 1
    matrix /= matrix.sum(axis=0)
    exact = np.linalg.solve(np.eye(size) - 0.85 * matrix, np.full(size, 0.15 / size))
    assert np.allclose(rank_pages(graph), exact, atol=2e-3)


def test_of_many_pages_those_of_the_highest_rank_are_drawn_in_order():
    rank = np.random.default_rng(1).random(1000).astype(np.float32)
    drawn = choose_drawn(rank, 100)
    assert drawn.tolist() == sorted(drawn.tolist())
    assert rank[drawn].min() >= np.delete(rank, drawn).max()
    assert choose_drawn(rank[:3], 100).tolist() == [0, 1, 2]


def test_fields_with_few_values_colour_and_dates_slide():
    fields, dates = choose_fields(
        [
            {"title": "a", "lang": "en", "date": "2024-01-02", "id": 1, "same": "x", "long": "y" * 100},
            {"title": "b", "lang": "de", "date": "2024-02-01T10:00", "id": 2, "same": "x", "long": "z" * 100},
        ]
    )
    assert fields == {"id": ["1", "2"], "lang": ["de", "en"]}
    assert dates == ["date"]


def test_a_store_that_changes_is_read_again(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_texts(["one"], ids=["1"])
        views = Views(store)
        assert views.show("corpus", {})["pages"] == 1
        store.add_texts(["two"], ids=["2"])
        assert views.show("corpus", {})["pages"] == 2
        assert run(read_corpus(store.backend))["pages"] == 2


def test_conversations_are_shown_with_their_turns_and_what_a_recall_takes(store, tmp_path):
    with LinkStore.open(tmp_path / "chat") as chat:
        memory = ConversationMemory(chat)
        memory.add(SessionKey(run_id="r1", user_id="ann"), "My dog is called Rex.", "A fine name.")
        memory.add("r2", "What is a hub?", "A page with many links.")
        views = Views(store, chat)
        assert views.show("store", {})["memory"] is True
        sessions = {one["label"]: one for one in views.show("sessions", {})}
        assert {label: one["turns"] for label, one in sessions.items()} == {"ann, r1": 1, "r2": 1}
        path = sessions["ann, r1"]["path"]
        (turn,) = views.show("turns", {"session": path})
        assert (turn["query"], turn["response"]) == ("My dog is called Rex.", "A fine name.")
        found = views.show("recall", {"session": path, "question": "What is my dog called?"})
        assert found["turns"][0]["turn"]["id"] == turn["id"]
        assert "Rex" in found["prompt"]
    with pytest.raises(StrategyError, match="--memory"):
        show(store, "sessions")


def test_a_strategy_is_offered_with_the_depths_that_it_takes(store):
    for one in show(store, "store")["strategies"]:
        for depth in range(4):
            settings = {"strategy": one["name"], "depth": depth}
            if depth in one["depths"]:
                show(store, "answer", question=QUESTION, settings=settings)
            else:
                with pytest.raises(LinkStoreError, match="depth"):
                    show(store, "answer", question=QUESTION, settings=settings)


def test_a_document_without_title_is_named_by_how_its_text_begins(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_texts(
            ["A long text that nobody gave a title, of more than one line.", "短い" * 40], ids=["a", "b"]
        )
        found = show(store, "corpus")
        assert show(store, "document", id="a")["name"] == "A long text that nobody gave a title, of more t…"
    assert found["noun"] == "document"
    assert {node["title"] for node in found["nodes"]} == {
        "A long text that nobody gave a title, of more t…",
        "短い" * 23 + "短…",
    }

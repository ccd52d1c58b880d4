"""Observers and checkups of embedded stores, in memory and on disk."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from checkup_cases import CheckupCases, Listening
from internals import observe_searches
from stores import embedding, sql

from linkstore import LinkStore
from linkstore.evaluate import examine


@pytest.mark.sample("test_a_clean_store_has_nothing_to_report")
class TestOnDisk(CheckupCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb", embedding()) as store:
            yield store


class TestInMemory(CheckupCases):
    @pytest.fixture
    def store(self):
        with LinkStore(embedding()) as store:
            yield store


def test_the_searches_of_tools_are_seen():
    tools = pytest.importorskip("linkstore.agents", reason="the extra 'agents' is not installed")
    with LinkStore(embedding()) as store:
        store.add_texts(["a", "b"])
        search_tool = next(tool for tool in tools.graph_tools(store) if tool.name == "search")
        ended = []
        observe_searches(store, Listening(ended))
        search_tool.invoke({"question": "a"})
        asyncio.run(search_tool.ainvoke({"question": "b"}))
        assert [search.question for search in ended] == ["a", "b"]


def test_a_search_that_is_interrupted_ends_with_its_error():
    class Interrupted(type(embedding())):
        def embed_query(self, text):
            raise KeyboardInterrupt

    ended = []
    with LinkStore(Interrupted(size=16)) as store:
        store.add_texts(["a"])
        observe_searches(store, Listening(ended))
        with pytest.raises(KeyboardInterrupt):
            store.search("a")
    assert [type(search.error) for search in ended] == [GeneratorExit]


def test_an_observed_store_can_be_pickled_and_opened_elsewhere(tmp_path):
    ended = []
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        observe_searches(store, Listening(ended))
        store.add_texts(["a"])
        with pickle.loads(pickle.dumps(store)) as other:
            assert len(other.search("a")) == 1
    assert ended == []


def test_a_store_whose_derived_data_is_damaged_is_reported(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_texts(["a words", "b words"])
    sql(tmp_path / "kb", "UPDATE setting SET value = 5 WHERE name = 'documents'")
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        assert {one.check for one in examine(store).alarms} == {"sound"}


def test_questions_without_an_answer_are_kept_with_their_counts(tmp_path):
    """By the tools of an agent; other searches write nothing."""
    from langchain_core.documents import Document

    from linkstore.agents import graph_tools

    place = tmp_path / "kb"
    with LinkStore.open(place) as store:
        texts = [f"Nails and hammers of the Romans, part {number}." for number in range(120)]
        store.add_documents([Document(id=text, page_content=text) for text in texts])
        store.search("best pizza topping")
        assert examine(store).unanswered == ()
        (search_tool, *_) = graph_tools(store)
        for _ in range(2):
            answer = search_tool.invoke({"question": "best  pizza topping"})
            assert "Probably nothing here is about this" in answer
        assert "Nails" in search_tool.invoke({"question": "hammers of the Romans"})
        kept = {one.question: one.count for one in examine(store).unanswered}
        assert kept == {"best pizza topping": 2}
        for number in range(300):
            search_tool.invoke({"question": f"pizza topping {'x' * number}"})
        assert len(examine(store).unanswered) == 200

"""Watches and checkups of embedded stores, in memory and on disk."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref

import pytest
from stores import embedding, sql
from watch_cases import WatchCases, search

from linkstore import LinkStore
from linkstore.errors import StrategyError
from linkstore.evaluate import Limits, Watch, examine
from linkstore.evaluate.watch import SearchRecord, compute_vitals, make_alarms


@pytest.mark.sample("test_a_clean_store_has_nothing_to_report")
class TestOnDisk(WatchCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb", embedding()) as store:
            yield store


class TestInMemory(WatchCases):
    @pytest.fixture
    def store(self):
        with LinkStore(embedding()) as store:
            yield store


def some(seconds=0.1, reason=None):
    return SearchRecord(question="q", strategy="s", began=None, seconds=seconds, reason=reason)


@pytest.mark.parametrize("slow", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [20, 99, 100, 150, 200, 250])
def test_more_than_one_slow_search_of_a_hundred_is_an_alarm(count, slow):
    searches = [some(seconds=2.0)] * slow + [some()] * (count - slow)
    alarms = make_alarms(compute_vitals(searches), Limits(seconds=1.0))
    assert [alarm.name for alarm in alarms] == ["seconds"] * (slow > count // 100)


def test_percentiles_are_those_of_the_nearest_rank():
    vitals = compute_vitals([some(seconds=n / 1000) for n in range(1, 201)])
    assert (vitals.seconds_p50, vitals.seconds_p99) == (0.1, 0.198)
    assert compute_vitals([]).seconds_p99 == 0


def test_few_searches_raise_no_alarm():
    assert make_alarms(compute_vitals([some(reason="none")] * 19), Limits()) == ()
    assert make_alarms(compute_vitals([some(reason="none")] * 20), Limits())


@pytest.mark.parametrize("wrong", [{"empty": 1.1}, {"seconds": -1.0}])
def test_limits_out_of_range_are_refused(wrong):
    with pytest.raises(StrategyError):
        Limits(**wrong)


def test_a_window_of_nothing_is_refused():
    with LinkStore(embedding()) as store, pytest.raises(StrategyError, match="at least 1, not 0"):
        Watch(store, window=0)


def test_a_watch_keeps_no_documents():
    with LinkStore(embedding()) as store:
        store.add_texts(["a", "b"])
        watch = Watch(store)
        hits = store.search("a")
        held = weakref.ref(hits[0].document)
        del hits
        gc.collect()
        assert held() is None
        assert watch.vitals().searches == 1


def test_the_searches_of_tools_are_seen():
    tools = pytest.importorskip("linkstore.agents", reason="the extra 'agents' is not installed")
    with LinkStore(embedding()) as store:
        store.add_texts(["a", "b"])
        search_tool = next(tool for tool in tools.graph_tools(store) if tool.name == "search")
        with Watch(store) as watch:
            search_tool.invoke({"question": "a"})
            asyncio.run(search_tool.ainvoke({"question": "b"}))
            assert watch.vitals().searches >= 2


def test_a_search_that_is_interrupted_is_not_counted():
    class Interrupted(type(embedding())):
        def embed_query(self, text):
            raise KeyboardInterrupt

    with LinkStore(Interrupted(size=16)) as store, Watch(store) as watch:
        store.add_texts(["a"])
        with pytest.raises(KeyboardInterrupt):
            store.search("a")
        assert watch.vitals().searches == 0
        assert watch.list_unanswered() == ()


def test_a_search_whose_embedding_fails_has_found_nothing():
    class Failing(type(embedding())):
        def embed_query(self, text):
            raise ConnectionError("no answer")

    with LinkStore(Failing(size=16)) as store, Watch(store, limits=Limits(least=1)) as watch:
        store.add_texts(["a"])
        with pytest.raises(ConnectionError):
            store.search("a")
        assert [one.reason for one in watch.list_unanswered()] == ["no answer"]
        assert [alarm.name for alarm in watch.alarms()] == ["empty"]


def test_a_watched_store_can_be_pickled_and_opened_elsewhere(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store, Watch(store) as watch:
        store.add_texts(["a"])
        with pickle.loads(pickle.dumps(store)) as other:
            other.search("a")
        assert watch.vitals().searches == 0


def test_several_watches_see_the_same_searches_and_end_alone():
    with LinkStore(embedding()) as store:
        store.add_texts(["a", "b"], [{"type": "x"}, {"type": "y"}])
        one, other = Watch(store), Watch(store)
        search(store, 2, 1)
        one.close()
        search(store, 1, 0)
        assert (one.vitals().searches, other.vitals().searches) == (3, 4)


def test_a_store_whose_derived_data_is_damaged_is_reported(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_texts(["a words", "b words"])
    sql(tmp_path / "kb", "UPDATE setting SET value = 5 WHERE name = 'documents'")
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        assert {one.check for one in examine(store).alarms} == {"sound"}


def test_questions_without_an_answer_are_kept_with_their_counts(tmp_path):
    """By the tools of an agent and by a watch; plain searches write nothing."""
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
        with Watch(store):
            store.search("my cat sneezes")
        kept = {one.question: one.count for one in examine(store).unanswered}
        assert kept == {"best pizza topping": 2, "my cat sneezes": 1}
        for number in range(300):
            search_tool.invoke({"question": f"pizza topping {'x' * number}"})
        assert len(examine(store).unanswered) == 200

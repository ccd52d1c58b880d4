"""What every LangGraph store over linkstore must do, compared with LangGraph's own store in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from stores import times

from linkstore.errors import DocumentError, EmbeddingError, FilterError, StrategyError
from linkstore.memory import GraphStore
from linkstore.memory.graphstore import batching, expiry, items, reading
from linkstore.memory.graphstore.items import Kept
from linkstore.memory.graphstore.places import item_id

HOSTILE = ["a", "a/b", 'a","b', "[]", "*", " ", "ä", "a" * 300, "%2F", "$", "İ", "a\u0301", "👩‍🚀"]
FILTERS: list[dict[str, Any]] = [
    {"n": 1},
    {"n": {"$ne": 1}},
    {"n": {"$gt": 1}},
    {"n": {"$gte": 1, "$lt": 3}},
    {"n": {"$lte": 0}},
    {"in": {"city": "Oslo"}},
    {"in": {"n": {"$gte": 2}}},
    {"tags": ["x"]},
    {"n": 1, "in": {"city": "Oslo"}},
]
"""Filters that LangGraph's own store understands; values there have all keys."""


class GraphStoreCases:
    """Subclasses give ``store``, an empty linkstore store."""

    @pytest.fixture
    def graph(self, store):
        return GraphStore(store)

    def test_an_item_is_read_as_it_was_put(self, graph):
        value = {"text": "likes tea", "n": 1, "links": [1], "none": None, "deep": {"a": [1.5, True, "x"]}}
        graph.put(("users", "ann"), "k", value)
        item = graph.get(("users", "ann"), "k")
        assert (item.namespace, item.key, item.value) == (("users", "ann"), "k", value)
        assert item.created_at == item.updated_at
        assert graph.get(("users", "bob"), "k") is None

    def test_an_update_keeps_the_time_of_the_first_put(self, graph):
        graph.put(("a",), "k", {"n": 1})
        first = graph.get(("a",), "k")
        graph.put(("a",), "k", {"n": 2})
        second = graph.get(("a",), "k")
        assert second.value == {"n": 2}
        assert second.created_at == first.created_at < second.updated_at

    def test_deleted_items_are_gone_from_every_read(self, graph):
        graph.put(("a",), "k", {"text": "tea"})
        graph.delete(("a",), "k")
        graph.delete(("a",), "unknown")
        assert graph.get(("a",), "k") is None
        assert graph.search(("a",), query="tea") == graph.search(()) == graph.list_namespaces() == []
        assert graph.store.count() == 0

    def test_hostile_labels_and_keys_never_meet(self, graph):
        addresses = [
            ((first, second), key) for first in HOSTILE[:6] for second in HOSTILE for key in ("k", '"]')
        ]
        graph.batch([PutOp(namespace, key, {"of": [*namespace, key]}) for namespace, key in addresses])
        found = graph.batch([GetOp(namespace, key) for namespace, key in addresses])
        assert [item.value["of"] for item in found] == [[*namespace, key] for namespace, key in addresses]
        for first in HOSTILE[:6]:
            items = graph.search((first,), limit=1000)
            assert {item.namespace[0] for item in items} == {first}
            assert len(items) == 2 * len(HOSTILE)

    @pytest.mark.parametrize("key", ["", "\0", "a\0b", "\n"])
    def test_any_key_is_an_address(self, graph, key):
        graph.put(("a",), key, {"n": 1})
        assert graph.get(("a",), key).key == key
        assert graph.get(("a",), key + "x") is None

    @pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("a", "\0"), ("langgraph",)])
    def test_namespaces_that_langgraph_forbids_are_refused(self, graph, namespace):
        with pytest.raises(InvalidNamespaceError):
            graph.put(namespace, "k", {"n": 1})

    @pytest.mark.parametrize("value", [{"x": object()}, {"x": float("nan")}, {1: 2}, {"x": "\ud800"}])
    def test_a_value_that_is_not_json_is_refused_and_nothing_written(self, graph, value):
        with pytest.raises(DocumentError):
            graph.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", value)])
        assert graph.search(("a",)) == []

    def test_a_batch_reads_before_it_writes_and_the_last_put_of_a_key_counts(self, graph):
        ops = [
            PutOp(("a",), "k", {"n": 1}),
            GetOp(("a",), "k"),
            PutOp(("a",), "gone", {"n": 1}),
            PutOp(("a",), "k", {"n": 2}),
            SearchOp(("a",)),
            PutOp(("a",), "gone", None),
            ListNamespacesOp(),
        ]
        # LangGraph's own store also lists a namespace that was only asked for.
        assert InMemoryStore().batch(ops)[:-1] == graph.batch(ops)[:-1] == [None, None, None, None, [], None]
        assert graph.list_namespaces() == [("a",)]
        assert graph.get(("a",), "k").value == {"n": 2}
        assert graph.get(("a",), "gone") is None

    def test_logical_operators_match_and_a_missing_key_is_no_error(self, graph):
        graph.put(("a",), "one", {"n": 1, "kind": "x"})
        graph.put(("a",), "two", {"n": 2})
        graph.put(("a",), "none", {"kind": "y"})

        def keys(filter):
            return {item.key for item in graph.search(("a",), filter=filter)}

        assert keys({"n": {"$gt": 1}}) == {"two"}
        assert keys({"$and": [{"n": {"$gte": 1}}, {"kind": "x"}]}) == {"one"}
        assert keys({"$or": [{"n": 2}, {"kind": "y"}]}) == {"two", "none"}
        assert keys({"$not": {"n": 1}}) == {"two", "none"}
        assert keys({"n": {"$in": [1, 2]}}) == {"one", "two"}
        assert keys({"n": {"$nin": [1, 2]}}) == {"none"}
        assert keys({"n": {"$lt": "x"}}) == set()
        assert keys({"n": {"$exists": False}}) == {"none"}
        assert keys({"$or": [{"$and": [{"n": 1}, {"kind": "x"}]}, {"kind": {"$eq": "y"}}]}) == {"one", "none"}

    @pytest.mark.parametrize(
        "filter", [{"n": {"$regex": "x"}}, {"$or": []}, {"$and": {"n": 1}}, {"$xor": [{}]}, [1]]
    )
    def test_a_filter_that_means_nothing_is_an_error(self, graph, filter):
        with pytest.raises(FilterError):
            graph.search(("a",), filter=filter)

    def test_limits_are_checked_and_pages_join(self, graph):
        graph.batch([PutOp(("a", str(n % 3)), str(n), {"n": n}) for n in range(25)])
        pages = [graph.search(("a",), limit=4, offset=start) for start in range(0, 28, 4)]
        assert [item.key for page in pages for item in page] == [str(n) for n in range(25)]
        assert graph.search(("a",), limit=0) == []
        for wrong in ({"limit": -1}, {"offset": -1}):
            with pytest.raises(StrategyError):
                graph.search(("a",), **wrong)

    def test_pages_are_slices_of_all_items_by_the_time_of_their_first_put(self, graph, clock):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        addresses = [(one, str(n)) for one in [("a",), ("a", "b"), ("c",)] for n in range(150)]
        for _ in range(times(8, 100)):
            some = chance.sample(addresses, chance.choice([1, 3, 150]))
            graph.batch([_random_put(chance, *address) for address in some])
            clock.forward(seconds=chance.choice([0, 0, 0.3, 2, 50, -3]))
            with clock.stopped():  # nothing expires between the items and their pages
                _assert_pages_of_all(graph, addresses, chance)

    def test_a_list_reads_the_items_of_its_page_and_no_others(self, graph, clock, read):
        for batch in range(4):
            graph.batch([PutOp(("a",), f"{batch}/{n}", {"n": n}) for n in range(100)])
            clock.forward(seconds=3)
        graph.batch([PutOp(("b",), str(n), {"n": n}, ttl=10) for n in range(100)])
        assert [item.key for item in graph.search(("a",), limit=3)] == ["0/0", "0/1", "0/2"]
        assert [item.key for item in graph.search((), limit=2, offset=250)] == ["2/50", "2/51"]
        assert len(read) == 5
        read.clear()
        assert [item.key for item in graph.search((), filter={"n": 3}, limit=1)] == ["0/3"]
        assert len(read) == 5
        read.clear()
        assert [item.key for item in graph.search((), limit=1, offset=402)] == ["2"]
        assert len(read) == 3  # the first two may have expired

    def test_items_without_an_age_in_their_links_are_the_oldest(self, graph, monkeypatch):
        with monkeypatch.context() as former:
            former.setattr(items, "age_weights", lambda _: (1.0, 1.0))
            graph.batch([PutOp(("a",), f"old {n}", {"n": n}) for n in range(70)])
        graph.batch([PutOp(("a",), f"new {n}", {"n": n}) for n in range(3)])
        pages = [graph.search(("a",), limit=7, offset=start) for start in range(0, 77, 7)]
        wanted = [f"old {n}" for n in range(70)] + [f"new {n}" for n in range(3)]
        assert [item.key for page in pages for item in page] == wanted

    def test_a_full_page_is_given_though_the_oldest_items_have_expired(self, graph, clock):
        graph.batch([PutOp(("a",), str(n), {"n": n}, ttl=1 if n < 200 else None) for n in range(230)])
        clock.forward(minutes=2)
        assert [item.value["n"] for item in graph.search(("a",), limit=4, offset=5)] == [205, 206, 207, 208]

    def test_random_batches_are_answered_as_langgraphs_own_store_does(self, graph):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        chance, oracle = random.Random(seed), InMemoryStore()
        for _ in range(times(25, 400)):
            ops = [_random_op(chance) for _ in range(chance.randint(1, 6))]
            assert _shown(graph.batch(ops)) == _shown(oracle.batch(ops)), ops
        everything = SearchOp((), limit=1000)
        assert _shown(graph.batch([everything])) == _shown(oracle.batch([everything]))

    def test_a_query_ranks_as_langgraphs_own_store_does(self, store):
        index: Any = {"fields": ["title", "notes[*]"]}
        graph = GraphStore(store, index=index)
        oracle = InMemoryStore(index={"dims": 0, "embed": store.embeddings, **index})
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        for n in range(60):
            title, *notes = dict.fromkeys(
                _words(chance) for _ in range(1 + n % 4)
            )  # none twice: LangGraph's fails
            value = {"title": title, "notes": notes, "n": n % 5}
            op = PutOp(
                ("a", str(n % 2)),
                str(chance.randrange(50)),
                value,
                index=chance.choice([None, None, ["title"]]),
            )
            for one in (graph, oracle):
                one.delete(op.namespace, op.key)  # LangGraph's own store keeps vectors of former values
                one.batch([op])
        for _ in range(20):
            asked = {"query": _words(chance), "filter": chance.choice([None, {"n": {"$gte": 2}}]), "limit": 7}
            namespace, offset = chance.choice([("a",), ("a", "1")]), chance.choice([0, 5])
            found = graph.search(namespace, offset=offset, **asked)
            wanted = oracle.search(namespace, offset=offset, **asked)
            assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-5)
            assert _inner(found) == _inner(wanted)

    def test_items_that_are_not_indexed_follow_those_that_are(self, graph):
        graph.put(("a",), "plain", {"text": "green tea"}, index=False)
        graph.put(("a",), "found", {"text": "green tea"})
        graph.put(("a",), "mute", {"text": "?!"}, index=["text"])
        found = graph.search(("a",), query="green tea")
        assert [(one.key, one.score is None) for one in found] == [
            ("found", False),
            ("plain", True),
            ("mute", True),
        ]
        pages = [graph.search(("a",), query="green tea", limit=1, offset=n)[0].key for n in range(3)]
        assert pages == [one.key for one in found]

    def test_texts_of_a_former_value_are_not_found(self, store):
        graph = GraphStore(store, index={"fields": ["texts[*]"]})
        graph.put(("a",), "k", {"texts": ["green tea", "black coffee", "red wine"]})
        assert store.count() == 3
        graph.put(("a",), "k", {"texts": ["cold water"]})
        assert store.count() == 1
        (only,) = graph.search(("a",), query="black coffee")
        assert only.score < 0.9

    def test_many_matches_are_found_however_many_better_ones_a_filter_leaves_out(self, graph):
        graph.batch([PutOp(("a",), str(n), {"text": "green tea", "n": n}) for n in range(300)])
        found = graph.search(("a",), query="green tea", filter={"n": {"$gte": 290}}, limit=10)
        assert {one.value["n"] for one in found} == set(range(290, 300))

    def test_a_search_reads_each_document_once(self, graph, read):
        graph.batch([PutOp(("a",), str(n), {"text": f"green tea {n}"}) for n in range(300)])
        graph.put(("a",), "plain", {"text": "green tea"}, index=False)
        read.clear()
        assert graph.search(("a",), query="green tea", filter={"n": 1}) == []
        assert sorted(read) == sorted({*read})
        assert len(read) == 301
        read.clear()
        assert len(graph.search(("a",), query="green tea", limit=3)) == 3
        assert len(read) < 50

    @pytest.mark.parametrize(
        "asked",
        [
            {},
            {"prefix": ("a",)},
            {"prefix": ("a", "*", "c")},
            {"prefix": ("*", "b")},
            {"suffix": ("c",)},
            {"suffix": ("b", "*")},
            {"prefix": ("a",), "suffix": ("c",), "max_depth": 2},
            {"max_depth": 1},
            {"limit": 2, "offset": 1},
            {"prefix": ("a", "b", "c", "d", "e")},
        ],
    )
    def test_namespaces_are_listed_as_langgraphs_own_store_lists_them(self, graph, asked):
        oracle = InMemoryStore()
        spaces = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "x", "c"), ("z", "b"), ("ab", "b", "c", "d")]
        for store in (graph, oracle):
            for namespace in spaces:
                store.put(namespace, "k", {"n": 1})
        assert graph.list_namespaces(**asked) == oracle.list_namespaces(**asked)

    def test_listing_namespaces_reads_no_item_that_lives_for_ever(self, graph, monkeypatch):
        for number in range(20):
            graph.put(("users", f"u{number % 3}", "notes"), str(number), {"n": number})
            graph.put(("users",), str(number), {"n": number})
        graph.put(("users", "u9"), "soon", {"n": 0}, ttl=10)
        read = []
        of = Kept.of
        monkeypatch.setattr(Kept, "of", lambda one: read.append(one.id) or of(one))
        expected = [("users",), *(("users", f"u{number}", "notes") for number in range(3)), ("users", "u9")]
        assert graph.list_namespaces() == expected
        assert len(read) == 1

    def test_an_item_expires_unless_it_is_read(self, store, clock):
        graph = GraphStore(store, ttl={"default_ttl": 10})
        graph.put(("a",), "read", {"n": 1})
        graph.put(("a",), "unread", {"n": 2})
        graph.put(("a",), "for ever", {"n": 3}, ttl=None)
        clock.forward(minutes=6)
        assert graph.get(("a",), "read").value == {"n": 1}
        assert graph.get(("a",), "unread", refresh_ttl=False).value == {"n": 2}
        clock.forward(minutes=6)
        assert graph.get(("a",), "unread") is None
        found = {item.key for item in graph.search(("a",), query="n", refresh_ttl=False)}
        assert found == {item.key for item in graph.search(("a",), refresh_ttl=False)} == {"read", "for ever"}
        assert graph.sweep_ttl() == 1
        assert store.count() == 2
        clock.forward(minutes=60)
        assert [item.key for item in graph.search(("a",))] == ["for ever"]

    def test_a_search_refreshes_what_it_gives_and_nothing_else(self, store, clock):
        graph = GraphStore(store, ttl={"default_ttl": 10})
        graph.put(("a",), "given", {"n": 1})
        graph.put(("a",), "not given", {"n": 2})
        clock.forward(minutes=6)
        assert len(graph.search(("a",), filter={"n": 1})) == 1
        clock.forward(minutes=6)
        assert [item.key for item in graph.search(("a",))] == ["given"]

    def test_a_time_to_live_beyond_the_calendar_is_for_ever(self, graph):
        graph.put(("a",), "k", {"n": 1}, ttl=1e300)
        assert graph.get(("a",), "k").value == graph.search(("a",))[0].value == {"n": 1}
        assert graph.sweep_ttl() == 0

    def test_a_namespace_is_gone_with_its_last_item_and_an_expired_item_put_again_is_new(self, store, clock):
        graph = GraphStore(store)
        graph.put(("a",), "k", {"n": 1}, ttl=1)
        created = graph.get(("a",), "k").created_at
        clock.forward(minutes=2)
        assert graph.list_namespaces() == []
        graph.put(("a",), "k", {"n": 2})
        assert graph.get(("a",), "k").created_at > created
        assert graph.list_namespaces() == [("a",)]
        assert graph.sweep_ttl() == 0

    def test_writes_remove_expired_items_after_the_interval(self, store, clock):
        graph = GraphStore(store, ttl={"default_ttl": 1, "sweep_interval_minutes": 0.0001})
        graph.put(("a",), "k", {"n": 1})
        clock.forward(minutes=2)
        graph._swept_at -= 60
        graph.put(("a",), "other", {"n": 2})
        assert store.count() == 1

    def test_what_is_put_or_read_while_expired_items_are_removed_stays(self, store, clock, monkeypatch):
        graph, other = GraphStore(store), GraphStore(store)
        graph.batch([PutOp(("a",), str(n), {"n": n}, ttl=1) for n in range(9)])
        clock.forward(minutes=2)
        monkeypatch.setattr(expiry, "_DELETED_AT_ONCE", 4)
        remove, calls = expiry.delete, []

        def removed(store, ids):
            calls.append(ids)
            if len(calls) == 1:
                clock.forward(seconds=1)
                other.put(
                    ("a",), next(key for key in "01234" if item_id(("a",), key) not in ids), {"n": "new"}
                )
            return remove(store, ids)

        monkeypatch.setattr(expiry, "delete", removed)
        assert graph.sweep_ttl() == 8
        assert [item.value for item in graph.search(())] == [{"n": "new"}]
        assert store.count() == 1

    def test_a_clock_that_goes_back_neither_loses_items_nor_their_order(self, store, clock):
        graph = GraphStore(store, ttl={"default_ttl": 10})
        graph.put(("a",), "first", {"n": 1}, ttl=None)
        graph.put(("a",), "soon", {"n": 2})
        clock.forward(days=-2)
        graph.put(("a",), "before", {"n": 3})
        graph.put(("a",), "first", {"n": 4}, ttl=None)
        assert graph.get(("a",), "soon").value == {"n": 2}
        assert graph.sweep_ttl() == 0
        assert [item.key for item in graph.search(("a",), refresh_ttl=False)] == ["before", "first", "soon"]
        clock.forward(minutes=11)
        assert [item.key for item in graph.search(("a",))] == ["first", "soon"]
        assert graph.sweep_ttl() == 1
        clock.forward(days=2)
        assert [item.key for item in graph.search(("a",))] == ["first"]

    def test_writers_in_threads_lose_nothing(self, graph):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: graph.put(("a", str(n % 4)), str(n), {"n": n}), range(64)))
            found = list(pool.map(lambda n: graph.get(("a", str(n % 4)), str(n)).value["n"], range(64)))
        assert found == list(range(64))

    async def test_sync_and_async_work_in_a_running_loop(self, graph):
        await asyncio.gather(*(graph.aput(("a",), str(n), {"text": f"tea {n}"}) for n in range(10)))
        graph.put(("a",), "sync", {"text": "coffee"})
        found = await graph.asearch(("a",), query="coffee", limit=1)
        assert found[0].key == graph.search(("a",), query="coffee", limit=1)[0].key == "sync"
        assert (await graph.aget(("a",), "3")).value == {"text": "tea 3"}
        await graph.adelete(("a",), "3")
        assert await graph.aget(("a",), "3") is None
        assert await graph.alist_namespaces() == [("a",)]
        assert await graph.asweep_ttl() == 0

    def test_another_embedding_than_the_stores_is_refused(self, store):
        with pytest.raises(EmbeddingError, match="leave embed out"):
            GraphStore(store, index={"embed": object()})  # type: ignore[typeddict-item]

    @pytest.fixture
    def clock(self, monkeypatch):
        return Clock(monkeypatch)

    @pytest.fixture
    def read(self, monkeypatch):
        """The ids of the documents that were read."""
        read, documents = [], reading._documents

        def counted(refs):
            found = yield from documents(refs)
            read.extend(one.id for one in found)
            return found

        monkeypatch.setattr(reading, "_documents", counted)
        return read


class Clock:
    """Moves the time at which batches are carried out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = timedelta(0)
        self._stands: datetime | None = None
        real = batching.datetime

        class Shifted:
            @staticmethod
            def now(zone: Any) -> Any:
                return self._stands or real.now(zone) + self._ahead

        monkeypatch.setattr(batching, "datetime", Shifted)

    def forward(self, **by: float) -> None:
        self._ahead += timedelta(**by)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The time stands still: what comes first does not expire before what comes last."""
        self._stands = batching.datetime.now(UTC)
        try:
            yield
        finally:
            self._stands = None


def _assert_pages_of_all(graph: GraphStore, addresses: list[Any], chance: random.Random) -> None:
    """Pages are slices of the items that are read one by one."""
    found = graph.batch([GetOp(*address, refresh_ttl=False) for address in addresses])
    items = sorted(filter(None, found), key=lambda one: (one.created_at, *one.namespace, one.key))
    for prefix in [(), ("a",), ("a", "b"), ("d",)]:
        filter_, limit, offset = (
            chance.choice(few) for few in ([None, {"n": 1}], [0, 1, 10, 1000], [0, 7, 100, 400])
        )
        wanted = [one for one in items if one.namespace[: len(prefix)] == prefix]
        wanted = [one for one in wanted if filter_ is None or one.value["n"] == 1]
        page = graph.search(prefix, filter=filter_, limit=limit, offset=offset, refresh_ttl=False)
        assert [(one.namespace, one.key, one.value) for one in page] == [
            (one.namespace, one.key, one.value) for one in wanted[offset : offset + limit]
        ]


def _random_put(chance: random.Random, namespace: tuple[str, ...], key: str) -> PutOp:
    """Often indexed, seldom with a time to live, sometimes a removal."""
    value = chance.choice([None, *({"n": n} for n in range(4))])
    index, ttl = chance.choice([None, None, None, False]), chance.choice([None] * 30 + [0.1])
    return PutOp(namespace, key, value, index=index, ttl=ttl)


def _random_op(chance: random.Random) -> Any:
    namespace = chance.choice([("a",), ("a", "b"), ("a", "c"), ("ab",), ("b", "a", "b")])
    key = str(chance.randrange(4))
    match chance.randrange(5):
        case 0:
            return GetOp(namespace, key)
        case 1 | 2:
            value = {
                "n": chance.randrange(4),
                "in": {"city": chance.choice(["Oslo", "Rome"]), "n": chance.randrange(4)},
                "tags": chance.choice([[], ["x"], ["x", "y"]]),
            }
            return PutOp(namespace, key, chance.choice([value, value, value, None]))
        case 3:
            return SearchOp(namespace[: chance.randrange(3)], chance.choice([None, *FILTERS]), limit=100)
    return GetOp(namespace, key + "x")


def _shown(results: list[Any]) -> list[Any]:
    """Results without times; LangGraph's store has another order across namespaces."""
    shown: list[Any] = []
    for result in results:
        if isinstance(result, list):
            shown.append(sorted(repr((one.namespace, one.key, one.value)) for one in result))
        else:
            shown.append(result and (result.namespace, result.key, result.value))
    return shown


def _inner(found: list[Any]) -> set[Any]:
    """Items of a page; without those at its ends, which may tie with items of other pages."""
    if not found:
        return set()
    first, last = found[0].score - 1e-5, found[-1].score + 1e-5
    return {(one.namespace, one.key) for one in found if last < one.score < first}


def _words(chance: random.Random) -> str:
    words = ["tea", "coffee", "train", "Oslo", "winter", "guitar", "running", "bread", "python", "cat"]
    return " ".join(chance.sample(words, 3))

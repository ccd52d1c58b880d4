"""Retrievers: LinkRetriever, and what as_retriever gives."""

from __future__ import annotations

import asyncio

import pytest
from internals import HIT_KEY
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ValidationError
from stores import documents, embedding

from linkstore import LinkRetriever, LinkStore
from linkstore.errors import ArgumentError, DocumentError, FilterError, StrategyError
from linkstore.strategies import Eager, Mmr, PageRank, Similarity

QUERY = "doc 1 v0"


@pytest.fixture(scope="module")
def store():
    with LinkStore.from_documents(documents(0, 60), embedding()) as store:
        yield store


def ids(found) -> list[str]:
    return [one.id for one in found]


def test_it_retrieves_by_its_strategy(store) -> None:
    for strategy in (Similarity(k=3), Eager(start_k=2, depth=2), Mmr(k=5, depth=1)):
        retriever = LinkRetriever(store=store, strategy=strategy)
        expected = store.search(QUERY, strategy=strategy)
        assert ids(retriever.invoke(QUERY)) == [hit.document.id for hit in expected]
        assert [one.metadata[HIT_KEY]["score"] for one in retriever.invoke(QUERY)] == [
            hit.score for hit in expected
        ]


def test_a_result_is_not_stored_again_without_its_links(store) -> None:
    found = LinkRetriever(store=store).invoke(QUERY)
    with pytest.raises(DocumentError, match="is the result of a search, which leaves out its links"):
        store.add_documents(found[:1])
    assert store.add_documents(store.get_by_ids([found[0].id])) == [found[0].id]


def test_without_a_strategy_it_follows_links(store) -> None:
    found = LinkRetriever(store=store, k=10).invoke(QUERY)
    assert {one.metadata[HIT_KEY]["depth"] for one in found} == {0, 1}
    assert len(LinkRetriever(store=store).invoke(QUERY)) == 4


def test_both_retrievers_answer_alike(store) -> None:
    own, langchain = LinkRetriever(store=store), store.as_retriever()
    assert own.invoke(QUERY) == langchain.invoke(QUERY)
    assert asyncio.run(own.ainvoke(QUERY)) == asyncio.run(langchain.ainvoke(QUERY))
    strategy = Eager(start_k=2, depth=2, k=7)
    given = store.as_retriever(search_kwargs={"strategy": strategy})
    assert given.invoke(QUERY) == LinkRetriever(store=store, strategy=strategy).invoke(QUERY)
    assert len(given.invoke(QUERY)) == 7
    assert len(given.invoke(QUERY, k=3)) == 3
    beside = store.as_retriever(strategy=strategy, k=5, filter={"c": 2})
    within = store.as_retriever(search_kwargs={"strategy": strategy, "k": 5, "filter": {"c": 2}})
    assert beside.invoke(QUERY) == within.invoke(QUERY) != given.invoke(QUERY)


def test_a_retriever_can_be_configured_for_a_call(store) -> None:
    """LangChain makes the retriever anew from its fields."""
    made = LinkRetriever(store=store, k=3).configurable_fields(k=ConfigurableField(id="k"))
    assert len(made.invoke(QUERY)) == 3
    assert len(made.invoke(QUERY, config={"configurable": {"k": 2}})) == 2


def test_links_stay_in_the_store_unless_they_are_asked_for(store) -> None:
    for plain, with_links in (
        (LinkRetriever(store=store), LinkRetriever(store=store, with_links=True)),
        (store.as_retriever(), store.as_retriever(with_links=True)),
        (store.as_retriever(search_type="mmr"), store.as_retriever(search_type="mmr", with_links=True)),
    ):
        assert not any("links" in one.metadata for one in plain.invoke(QUERY))
        assert any("links" in one.metadata for one in with_links.invoke(QUERY))
        assert ids(plain.invoke(QUERY)) == ids(with_links.invoke(QUERY))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strategy": Eager(), "search_kwargs": {"depth": 1}}, 'depth belongs to search_type="traversal"'),
        ({"search_type": "similarity", "search_kwargs": {"fetch_k": 9}}, 'fetch_k belongs to .*"mmr"'),
        ({"search_kwargs": {"limit": 3}}, "no argument 'limit'; it has filter,"),
        ({"search_type": "traversal", "search_kwargs": {"start_k": 3}}, "'start_k'; its k is the number"),
        ({"search_type": "mmr_traversal", "search_kwargs": {"start_k": 3}}, "'start_k'; its fetch_k is"),
        ({"search_kwargs": {"start_k": 3}}, r"setting of strategies such as Eager\(start_k=\.\.\.\)"),
        ({"search_kwargs": {"named": 3}}, r"setting of strategies such as PageRank\(named"),
        (
            {"search_type": "traversal", "search_kwargs": {"strategy": Eager()}},
            'belongs to search_type="links"',
        ),
        (
            {"search_type": "similarity", "search_kwargs": {"initial_roots": ["a"]}},
            'belongs to .*"traversal"',
        ),
        (
            {"initial_roots": ["a"]},
            r"as_retriever\(\) has no argument 'initial_roots'; use search_kwargs=\{'initial_roots'",
        ),
        ({"depth": 2}, "no argument 'depth'; it is a setting of strategies such as Eager"),
        ({"search_type": "mmr", "fetch_k": 9}, "no argument 'fetch_k'; use search_kwargs="),
        ({"search_type": "mmr", "strategy": Eager()}, 'strategy belongs to search_type="links"'),
        (
            {"serch_type": "mmr"},
            r"as_retriever\(\) has no argument 'serch_type'; it has filter, k, metadata",
        ),
    ],
)
def test_an_argument_of_another_search_is_refused_when_the_retriever_is_made(store, options, says) -> None:
    with pytest.raises(TypeError, match=says):
        store.as_retriever(**options)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.search(QUERY, depth=1), r"search\(\) .* strategies such as Eager\(depth="),
        (
            lambda s: s.search(QUERY, limit=3),
            r"search\(\) has no argument 'limit'; it has fil.*k,",
        ),
        (lambda s: s.traversal_search(QUERY, start_k=3), "its k is the number of documents to start"),
        (
            lambda s: s.traversal_search(QUERY, nonsense=3),
            "no argument 'nonsense'; it has adjacent_k,",
        ),
        (lambda s: s.mmr_traversal_search(QUERY, pool=3), r"such as AllPaths\(pool="),
        (lambda s: s.similarity_search(QUERY, depth=1), r"similarity_search\(\) has no argument"),
        (
            lambda s: s.similarity_search_with_score(QUERY, depth=1),
            r"_with_score\(\) has no argument",
        ),
        (lambda s: s.max_marginal_relevance_search(QUERY, depth=1), r"max_marginal_\w+\(\) has no"),
        (
            lambda s: LinkRetriever(store=s, depth=1),
            r"LinkRetriever has no argument 'depth'; it is",
        ),
        (
            lambda s: LinkRetriever(store=s, top=1),
            "LinkRetriever has no argument 'top'; it has f",
        ),
        (
            lambda s: LinkRetriever(store=s).invoke(QUERY, top=1),
            "has no argument 'top'; it has filter",
        ),
        (
            lambda s: s.as_retriever().invoke(QUERY, depth=1),
            'depth belongs to search_type="traversal"',
        ),
    ],
)
def test_an_argument_of_another_call_is_refused_with_where_it_belongs(store, call, says) -> None:
    """No message names a constructor that the caller did not call."""
    with pytest.raises(TypeError, match=says) as caught:
        call(store)
    assert "__init__" not in str(caught.value)


def test_a_depth_means_a_traversal_as_in_the_class_that_people_come_from(store) -> None:
    for made in (
        store.as_retriever(search_kwargs={"k": 3, "depth": 1}),
        LinkRetriever(store=store, search_kwargs={"k": 3, "depth": 1}),
    ):
        assert made.search_type == "traversal"
        assert ids(made.invoke(QUERY)) == ids(store.traversal_search(QUERY, k=3, depth=1))
    assert store.as_retriever(search_kwargs={"initial_roots": ["a"]}).search_type == "links"


async def test_async_twins_refuse_the_same_arguments(store) -> None:
    retriever = LinkRetriever(store=store)
    for call in (
        store.asearch(QUERY, depth=1),
        store.atraversal_search(QUERY, nonsense=1),
        store.ammr_traversal_search(QUERY, nonsense=1),
        store.asimilarity_search(QUERY, depth=1),
        retriever.ainvoke(QUERY, depth=1),
        store.as_retriever().ainvoke(QUERY, depth=1),
    ):
        with pytest.raises(TypeError, match=r"has no argument|belongs to"):
            await call


@pytest.mark.parametrize(
    "options",
    [
        {"search_kwargs": {"k": 0}},
        {"search_kwargs": {"k": "4"}},
        {"search_kwargs": {"strategy": "eager"}},
        {"search_type": "traversal", "search_kwargs": {"depth": -1}},
        {"search_type": "traversal", "search_kwargs": {"k": -1}},
        {"search_type": "mmr_traversal", "search_kwargs": {"lambda_mult": 2}},
        {"search_type": "mmr", "search_kwargs": {"lambda_mult": 2}},
        {"search_type": "similarity", "search_kwargs": {"k": 0}},
    ],
)
def test_settings_are_checked_when_a_retriever_is_made(store, options) -> None:
    with pytest.raises(StrategyError):
        store.as_retriever(**options)


def test_a_traversal_may_start_from_roots_alone(store) -> None:
    options = {"k": 0, "depth": 0, "initial_roots": ["d7"]}
    retriever = store.as_retriever(search_type="traversal", search_kwargs=options)
    assert ids(retriever.invoke(QUERY)) == ["d7"]


def test_filters_are_checked_when_a_retriever_is_made(store) -> None:
    with pytest.raises(FilterError, match="nope"):
        store.as_retriever(search_kwargs={"filter": {"a": {"$nope": 1}}})
    with pytest.raises(ValidationError, match="k must be"):
        LinkRetriever(store=store, k=0)
    for make in (
        lambda: store.as_retriever(search_kwargs={"filter": {"a": {"$nope": 1}}}),
        lambda: LinkRetriever(store=store, filter={"a": {"$nope": 1}}),
    ):
        with pytest.raises(ValueError, match="nope"):
            make()


async def test_a_trace_says_how_it_was_searched(store) -> None:
    for retriever in (LinkRetriever(store=store), store.as_retriever()):
        events = [event async for event in retriever.astream_events(QUERY)]
        (told,) = [event["data"] for event in events if event["event"] == "on_custom_event"]
        assert told["strategy"].startswith("PageRank(")
        assert told["hits"] == 4
        assert told["hops"] == max(told["hits_by_depth"])
        assert any("ranked below the first 4" in cut for cut in told["cuts"])


@pytest.mark.parametrize(("search_type", "strategy"), [("traversal", "Eager"), ("mmr_traversal", "Mmr")])
async def test_a_trace_of_a_traversal_says_how_it_was_searched(store, search_type, strategy) -> None:
    retriever = store.as_retriever(search_type=search_type, search_kwargs={"k": 3, "depth": 1})
    events = [event async for event in retriever.astream_events(QUERY)]
    (told,) = [event["data"] for event in events if event["event"] == "on_custom_event"]
    assert told["strategy"].startswith(f"{strategy}(")
    assert told["hits"] == len(retriever.invoke(QUERY))
    assert sum(told["hits_by_depth"].values()) == told["hits"]


def test_k_counts_what_is_returned(store) -> None:
    every = LinkRetriever(store=store, strategy=Eager(start_k=2, depth=2)).invoke(QUERY)
    retriever = LinkRetriever(store=store, strategy=Eager(start_k=2, depth=2), k=6)
    assert ids(retriever.invoke(QUERY)) == ids(every)[:6]
    assert ids(retriever.invoke(QUERY, k=3)) == ids(every)[:3]
    assert len(LinkRetriever(store=store, k=30).invoke(QUERY)) == 30
    with pytest.raises(TypeError):
        retriever.invoke(QUERY, top=3)


def test_its_fields_are_typed(store) -> None:
    with pytest.raises(ArgumentError, match=r"such as LinkStore\.open\('not a store'\)"):
        LinkRetriever(store="not a store")
    with pytest.raises(ValidationError, match="strategy must be a Strategy such as"):
        LinkRetriever(store=store, strategy="eager")


def test_its_filter_holds_at_every_stage(store) -> None:
    found = LinkRetriever(store=store, strategy=Eager(start_k=4, depth=2), filter={"c": 2}).invoke(QUERY)
    assert found
    assert {one.metadata["c"] for one in found} == {2}


@pytest.mark.parametrize(
    ("search_type", "search_kwargs", "method"),
    [
        ("traversal", {"k": 3, "depth": 1}, "traversal_search"),
        ("traversal", {"k": 2, "depth": 2, "filter": {"c": 1}}, "traversal_search"),
        ("mmr_traversal", {"k": 4, "depth": 1, "lambda_mult": 0.3}, "mmr_traversal_search"),
        ("similarity", {"k": 5}, "similarity_search"),
        ("mmr", {"k": 3, "fetch_k": 10}, "max_marginal_relevance_search"),
    ],
)
def test_every_search_type_is_the_method_of_that_name(store, search_type, search_kwargs, method) -> None:
    retriever = store.as_retriever(search_type=search_type, search_kwargs=search_kwargs, with_links=True)
    expected = getattr(store, method)(QUERY, **search_kwargs)
    assert expected
    assert retriever.invoke(QUERY) == expected
    assert asyncio.run(retriever.ainvoke(QUERY)) == expected
    k = {"k": search_kwargs["k"] - 1}
    assert retriever.invoke(QUERY, **k) == getattr(store, method)(QUERY, **search_kwargs | k)


def test_the_default_has_the_name_that_the_command_line_gives_it(store) -> None:
    settings = {"k": 3, "start_k": 2, "filter": {"c": 1}}
    retriever = store.as_retriever(search_type="pagerank", search_kwargs=settings, with_links=True)
    strategy = PageRank(k=3, start_k=2)
    expected = store.search(QUERY, strategy=strategy, filter={"c": 1}).documents()
    assert expected
    assert retriever.invoke(QUERY) == store.search(QUERY, "pagerank", **settings).documents() == expected
    assert asyncio.run(store.asearch(QUERY, "pagerank", **settings)).documents() == expected
    assert len(store.search(QUERY, search_type="pagerank")) == 4
    with pytest.raises(TypeError, match="search_type=\"pagerank\" has no argument 'chains'"):
        store.search(QUERY, "pagerank", chains=3)


def test_score_threshold(store) -> None:
    retriever = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"k": 5, "score_threshold": 0.9}
    )
    assert ids(retriever.invoke(QUERY)) == ["d1"]
    assert ids(asyncio.run(retriever.ainvoke(QUERY))) == ["d1"]
    with pytest.raises(ValueError, match="score_threshold"):
        store.as_retriever(search_type="similarity_score_threshold")


def test_an_unknown_search_type_is_refused(store) -> None:
    with pytest.raises(ValueError, match="search_type"):
        store.as_retriever(search_type="nonsense")


def test_it_is_the_retriever_that_langchain_knows(store) -> None:
    retriever = store.as_retriever(search_kwargs={"k": 3}, tags=["mine"], metadata={"a": 1})
    assert isinstance(retriever, VectorStoreRetriever)
    assert retriever.vectorstore is store
    assert retriever.search_type == "links"
    assert retriever.search_kwargs == {"k": 3}
    assert retriever.tags == ["mine", "LinkStore", "DeterministicFakeEmbedding"]
    assert retriever.metadata == {"a": 1}


def test_documents_may_be_added_through_it() -> None:
    with LinkStore(embedding=embedding()) as store:
        retriever = store.as_retriever()
        assert retriever.add_documents(documents(0, 3)) == ["d0", "d1", "d2"]
        assert asyncio.run(retriever.aadd_documents(documents(3, 4))) == ["d3"]
        assert retriever.invoke(QUERY)[0].id == "d1"


class Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[object] = []

    def on_retriever_start(self, serialized, query, *, tags=None, metadata=None, **kwargs) -> None:
        self.events.append(("start", query, tags, metadata))

    def on_retriever_end(self, documents, **kwargs) -> None:
        self.events.append(("end", ids(documents)))

    def on_retriever_error(self, error, **kwargs) -> None:
        self.events.append(("error", type(error)))


class AsyncSeen(Seen, AsyncCallbackHandler):
    async def on_retriever_start(self, *args, **kwargs) -> None:
        Seen.on_retriever_start(self, *args, **kwargs)

    async def on_retriever_end(self, *args, **kwargs) -> None:
        Seen.on_retriever_end(self, *args, **kwargs)


@pytest.mark.parametrize("kind", ["own", "store's"])
def test_callbacks_see_the_run(store, kind) -> None:
    make = (
        (lambda **more: LinkRetriever(store=store, **more))
        if kind == "own"
        else (lambda **more: store.as_retriever(**more))
    )
    seen, later = Seen(), AsyncSeen()
    retriever = make(tags=["t"], metadata={"m": 1})
    found = ids(retriever.invoke(QUERY, config={"callbacks": [seen]}))
    (start, query, tags, metadata), end = seen.events
    assert (start, query) == ("start", QUERY)
    assert "t" in tags
    assert metadata["m"] == 1
    assert end == ("end", found)
    asyncio.run(retriever.ainvoke(QUERY, config={"callbacks": [later]}))
    assert [event[0] for event in later.events] == ["start", "end"]
    failing = make()
    failed = Seen()
    with pytest.raises(TypeError):
        failing.invoke(QUERY, config={"callbacks": [failed]}, nonsense=1)
    assert failed.events[-1] == ("error", TypeError)


def test_it_composes_with_other_runnables(store) -> None:
    chain = store.as_retriever(search_type="similarity", search_kwargs={"k": 2}) | RunnableLambda(ids)
    assert chain.invoke(QUERY)[0] == "d1"
    assert [found[0] for found in chain.batch([QUERY, "doc 2 v0"])] == ["d1", "d2"]


async def test_it_works_inside_a_running_loop(store) -> None:
    retriever = LinkRetriever(store=store, strategy=Eager(start_k=3, depth=1))
    assert retriever.invoke(QUERY) == await retriever.ainvoke(QUERY)

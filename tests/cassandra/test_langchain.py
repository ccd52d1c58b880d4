"""A store in Cassandra as LangChain expects a vector store: all its standard tests, its indexing API."""

from __future__ import annotations

import asyncio
import copy
import pickle
from datetime import date
from enum import Enum
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from indexing_cases import IndexingCases
from langchain_core.documents import Document
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests
from space_needle import NEIGHBORHOOD, QUESTION, articles, posts
from stores import documents, embedding

from linkstore import Link, LinkRetriever, LinkStore, add_links
from linkstore.errors import CapabilityError, FilterError
from linkstore.strategies import Eager, Mmr, PageRank, Similarity, Words


@pytest.fixture(scope="module")
def opening(cassandra_session):
    """Opens stores in a keyspace of this module's own."""
    from cassandra_tables import own_keyspace

    with own_keyspace(cassandra_session, "langchain") as name:
        yield {"session": cassandra_session, "keyspace": name}


class Color(Enum):
    RED = "red"


def paged(start: int, stop: int) -> list[Document]:
    """Documents of pages with three chunks each."""
    made = documents(start, stop)
    for number, one in enumerate(made):
        add_links(one, Link.incoming(kind="section", tag=f"/page{number // 3}#{number % 3}"))
    return made


def emptied(store: LinkStore) -> LinkStore:
    """The store without its documents: tables take long to make."""
    store.delete([str(one.id) for one in store.scan()])
    return store


@pytest.fixture(scope="module")
def standard(opening):
    given = VectorStoreIntegrationTests.get_embeddings()
    with LinkStore.cassandra(given, table="standard", **opening) as store:
        yield store


class TestStandard(VectorStoreIntegrationTests):
    """Sync and async."""

    @pytest.fixture
    def vectorstore(self, standard):
        return emptied(standard)


@pytest.fixture(scope="module")
def filled(opening):
    with LinkStore.cassandra(embedding(), table="retriever", **opening) as store:
        store.add_documents(documents(0, 40))
        yield store


class TestStandardRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def over(self, filled):
        self.store = filled

    @property
    def retriever_constructor(self):
        return self.made

    def made(self, k: int | None = None) -> LinkRetriever:
        return LinkRetriever(store=self.store, strategy=Eager(start_k=4, depth=1), k=k)

    @property
    def retriever_constructor_params(self):
        return {}

    @property
    def retriever_query_example(self):
        return "doc 1 v0"


@pytest.fixture(scope="module")
def shared(opening):
    with LinkStore.cassandra(embedding(), table="indexed", **opening) as store:
        yield store


@pytest.fixture
def store(shared):
    return emptied(shared)


class TestIndexing(IndexingCases):
    """In Cassandra."""


ASKS = [
    ("get_by_ids", (["d1", "nobody", "d2"],), {}),
    ("search", ("doc 5 v0",), {}),
    ("search", ("doc 5 v0",), {"strategy": Eager(start_k=3, depth=2), "filter": {"c": {"$lte": 1}}}),
    ("similarity_search", ("doc 5 v0",), {"filter": {"c": 1}}),
    ("similarity_search_with_score", ("doc 5 v0",), {"k": 7}),
    ("similarity_search_with_relevance_scores", ("doc 5 v0",), {}),
    ("similarity_search_by_vector", (embedding().embed_query("doc 5 v0"),), {}),
    ("max_marginal_relevance_search", ("doc 5 v0",), {"k": 5}),
    ("max_marginal_relevance_search_by_vector", (embedding().embed_query("doc 5 v0"),), {}),
    ("traversal_search", ("doc 5 v0",), {"k": 2, "depth": 2}),
    ("mmr_traversal_search", ("doc 5 v0",), {"k": 5}),
    ("search", ("doc 5 v0",), {"k": 7, "filter": {"c": {"$lte": 1}}}),
    *(
        ("search", ("doc 5 v0",), {"strategy": strategy(k=6, per_page=1)})
        for strategy in (PageRank, Eager, Mmr, Similarity, Words)
    ),
]
RETRIEVERS = [
    lambda store: store.as_retriever(),
    lambda store: store.as_retriever(search_type="traversal", search_kwargs={"k": 3, "depth": 1}),
    lambda store: store.as_retriever(search_type="mmr_traversal", search_kwargs={"k": 3, "per_page": 1}),
    lambda store: store.as_retriever(search_type="mmr"),
    lambda store: store.as_retriever(search_kwargs={"strategy": PageRank(k=5, per_page=1)}, with_links=True),
    lambda store: LinkRetriever(store=store, k=3, filter={"c": 1}),
]


def test_every_method_gives_what_the_embedded_store_gives_sync_and_async(store):
    """On 60 linked documents, where both search exactly."""
    store.add_documents(paged(0, 60))
    embedded = LinkStore(embedding=embedding())
    embedded.add_documents(paged(0, 60))

    async def all_async():
        return [await getattr(store, f"a{name}")(*words, **options) for name, words, options in ASKS]

    expected = [getattr(embedded, name)(*words, **options) for name, words, options in ASKS]
    assert [getattr(store, name)(*words, **options) for name, words, options in ASKS] == expected
    assert asyncio.run(all_async()) == expected
    assert all(expected)


def test_retrievers_give_what_those_of_the_embedded_store_give(store):
    store.add_documents(paged(0, 40))
    with LinkStore(embedding()) as embedded:
        embedded.add_documents(paged(0, 40))
        for made in RETRIEVERS:
            expected = made(embedded).invoke("doc 5 v0")
            assert made(store).invoke("doc 5 v0") == expected
            assert asyncio.run(made(store).ainvoke("doc 5 v0")) == expected
            assert expected
    assert store.survey().documents == asyncio.run(store.asurvey()).documents == 40
    with pytest.raises(TypeError, match="depth belongs to"):
        store.as_retriever(strategy=Eager(), search_kwargs={"depth": 1})
    with pytest.raises(FilterError):
        store.as_retriever(search_kwargs={"filter": {"c": {"$nope": 1}}})


def test_a_store_in_a_cluster_says_what_it_is_and_that_it_cannot_be_copied(store):
    assert repr(store).startswith("LinkStore(CassandraBackend(")
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(CapabilityError, match="Cassandra"):
            copied(store)


def test_metadata_of_usual_kinds_is_stored_as_in_an_embedded_store(store):
    given = {
        "day": date(2024, 2, 29),
        "id": UUID(int=7),
        "path": PurePosixPath("/a/b"),
        "kind": Color.RED,
        "pair": (1, "two"),
        "several": {3, 1, 2},
    }
    with LinkStore(embedding()) as embedded:
        for one in (store, embedded):
            one.add_documents([Document(id="a", page_content="x", metadata=given)])
        assert store.get_by_ids(["a"]) == embedded.get_by_ids(["a"])
        assert store.get_by_ids(["a"])[0].metadata["day"] == "2024-02-29"


def test_metadata_comes_back_exactly_as_given(store):
    metadata = {
        "int": 1,
        "float": 1.0,
        "bool": True,
        "none": None,
        "text": "é\U0001f600\0'; DROP TABLE x; --",
        "list": [1, [2.5, None], {"a": []}],
        "big": 2**63 - 1,
        "": "empty key",
        "linkstore": "mine",
        "links": [{"kind": "k", "tag": "t", "direction": "out", "label": "l"}],
    }
    store.add_documents([Document(id="a", page_content="x", metadata=metadata)])
    every = [
        store.get_by_ids(["a"])[0],
        store.similarity_search("x", k=1)[0],
        store.search("x")[0].document,
        next(store.scan()),
    ]
    for found in every:
        assert found == Document(id="a", page_content="x", metadata=metadata)
        assert repr(found.metadata) == repr(metadata)


def test_a_store_in_a_cluster_is_made_from_texts_and_opened_without_blocking(opening) -> None:
    async def counted() -> int:
        async with await LinkStore.afrom_texts(["c"], embedding(), table="made", **opening) as store:
            assert [one.page_content for one in await store.asimilarity_search("c", k=1)] == ["c"]
        async with await LinkStore.acassandra(embedding(), table="made", **opening, create=False) as store:
            return (await store.asurvey()).documents

    with LinkStore.from_texts(["a", "b"], embedding(), table="made", **opening) as store:
        assert store.survey().documents == 2
    assert asyncio.run(counted()) == 3


def test_the_space_needle_example(opening) -> None:
    """One hop finds what similarity misses, as in an embedded store."""
    with (
        LinkStore.from_documents([*articles(), *posts()], table="needle", **opening) as there,
        LinkStore.from_documents([*articles(), *posts()]) as here,
    ):
        for depth in (0, 1):
            options = {"search_type": "traversal", "search_kwargs": {"k": 3, "depth": depth}}
            found = there.as_retriever(**options).invoke(QUESTION)
            assert found == here.as_retriever(**options).invoke(QUESTION)
            assert (NEIGHBORHOOD in [one.id for one in found]) == (depth == 1)

"""What type checkers make of the public names; checked by ``make lint``, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from linkstore import Hit, Hits, Link, LinkRetriever, LinkStore, Path, PathStep, add_links, get_links
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.contract import Report, Survey
from linkstore.errors import LinkStoreError, StoreBusyError
from linkstore.strategies import Eager, Mmr, Similarity, Strategy


def stores(embedding: Embeddings, backend: Backend) -> None:
    with LinkStore.open("kb", embedding) as store:
        assert_type(store, LinkStore)
    assert_type(LinkStore(embedding, backend=backend), LinkStore)
    assert_type(LinkStore.from_texts(["a"], embedding), LinkStore)
    assert_type(LinkStore.from_documents([], embedding), LinkStore)
    with LinkStore.cassandra(embedding, table="kb", settings=CassandraSettings(ttl=60)) as store:
        assert_type(store, LinkStore)
    vector_store: VectorStore = LinkStore.open("kb")
    assert_type(vector_store.add_documents([]), list[str])


def searches(store: LinkStore) -> None:
    hits = store.search("q", strategy=Eager(start_k=4, depth=2), filter={"lang": "en"}, initial_roots=["a"])
    assert_type(hits, Hits)
    assert_type(hits[0], Hit)
    assert_type(hits[:2], tuple[Hit, ...])
    assert_type(hits[0].document, Document)
    assert_type(hits[0].path, Path)
    assert_type(hits[0].path[0], PathStep)
    assert_type([hit.score for hit in hits], list[float])
    assert_type(hits.reason, str | None)
    assert_type(hits.explain(), str)
    assert_type(store.search("q", "similarity"), Hits)
    assert_type(store.similarity_search("q"), list[Document])
    assert_type(store.similarity_search_with_score("q"), list[tuple[Document, float]])
    assert_type(store.traversal_search("q", k=3, depth=1), list[Document])
    assert_type(store.mmr_traversal_search("q"), list[Document])
    assert_type(store.get_by_ids(["a"]), list[Document])
    assert_type(store.scan(), Iterator[Document])
    assert_type(store.survey(), Survey)
    assert_type(store.verify(), Report)


async def asynchronously(store: LinkStore) -> None:
    assert_type(await store.asearch("q", strategy=Similarity(k=1)), Hits)
    assert_type(await store.asearch("q", "mmr"), Hits)
    assert_type(await store.atraversal_search("q"), list[Document])
    assert_type(await store.aadd_documents([]), list[str])
    assert_type(await store.aget_by_ids([]), list[Document])


def retrievers(store: LinkStore) -> None:
    assert_type(store.as_retriever(search_kwargs={"k": 3}), LinkRetriever)
    retriever: VectorStoreRetriever = store.as_retriever(strategy=Similarity(), k=3)
    assert_type(retriever.invoke("q"), list[Document])
    own = LinkRetriever(store=store, strategy=Mmr(k=2), k=4, filter={"a": 1})
    assert_type(own.invoke("q"), list[Document])
    assert_type(own.strategy, Strategy | None)


def links(document: Document) -> None:
    link = Link.outgoing(kind="hyperlink", tag="u", label="text", weight=0.5)
    assert_type(link, Link)
    add_links(document, link, [link], {"kind": "k", "tag": "t", "direction": "in"})
    assert_type(get_links(document), tuple[Link, ...])


def errors(error: StoreBusyError) -> None:
    roots: tuple[LinkStoreError, TimeoutError] = (error, error)
    assert_type(roots[0].message, str)


def wrong(store: LinkStore) -> None:
    Link(kind="k", tag="t", direction="sideways")  # type: ignore[arg-type]
    Eager(depth="2")  # type: ignore[arg-type]
    Eager(4)  # type: ignore[call-arg]
    store.search("q", strategy="eager")  # type: ignore[arg-type]
    LinkRetriever(store=store, k="4")  # type: ignore[arg-type]

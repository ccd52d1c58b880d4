"""Hits have LangChain's names for a document, so that its retrievers take them for documents."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import Comparator, Comparison, StructuredQuery

from linkstore import LinkStore


def test_a_hit_is_read_like_its_document() -> None:
    with LinkStore() as store:
        store.add_documents([Document("A dog barks.", id="d", metadata={"kind": "animal"})])
        [hit] = store.search("dogs", "similarity", k=1)
        assert (hit.id, hit.page_content, hit.metadata) == ("d", "A dog barks.", {"kind": "animal"})


def test_a_self_query_is_answered_with_its_filter() -> None:
    base = pytest.importorskip("langchain_classic.retrievers.self_query.base")
    chroma = pytest.importorskip("langchain_community.query_constructors.chroma")
    since = Comparison(comparator=Comparator.GTE, attribute="year", value=2000)
    asked = StructuredQuery(query="dogs", filter=since, limit=None)
    with LinkStore() as store:
        old = Document("A dog barks.", id="old", metadata={"year": 1990})
        store.add_documents([old, Document("A dog sleeps.", id="new", metadata={"year": 2010})])
        retriever = base.SelfQueryRetriever(
            query_constructor=RunnableLambda(lambda _: asked),
            vectorstore=store,
            structured_query_translator=chroma.ChromaTranslator(),
        )
        assert [document.page_content for document in retriever.invoke("dogs since 2000")] == [
            "A dog sleeps."
        ]

"""The retriever for LlamaIndex gives what the one for LangChain gives, as nodes."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import LinkStoreError
from linkstore.strategies import Eager

pytest.importorskip("llama_index.core", reason="needs the extra llama-index")
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MetadataMode

from linkstore.llama_index import LinkRetriever


@pytest.fixture
def store():
    needle = Document(id="needle", page_content="The Space Needle is a tower.", metadata={"year": 1962})
    city = Document(id="city", page_content="Seattle lies at the sound.", metadata={"url": "city.html"})
    add_links(needle, Link.outgoing(kind="in", tag="city", label="its city"))
    add_links(city, Link.incoming(kind="in", tag="city"))
    with LinkStore(embedding()) as store:
        store.add_documents([needle, city])
        yield store


QUESTION = "Which tower is the Space Needle?"
STRATEGY = Eager(start_k=1, depth=1)


def test_nodes_are_the_documents_of_langchains_retriever(store):
    nodes = LinkRetriever(store, STRATEGY, k=2).retrieve(QUESTION)
    documents = store.as_retriever(strategy=STRATEGY, k=2).invoke(QUESTION)

    assert [node.node_id for node in nodes] == [document.id for document in documents] == ["needle", "city"]
    for node, document in zip(nodes, documents, strict=True):
        assert (node.text, node.metadata) == (document.page_content, document.metadata)
        assert node.score == document.metadata["linkstore"]["score"]
    assert "its city" in str(nodes[1].metadata["linkstore"]["path"])


async def test_async_gives_the_same(store):
    retriever = LinkRetriever(store, STRATEGY)

    assert await retriever.aretrieve(QUESTION) == retriever.retrieve(QUESTION)


def test_a_filter_hides_documents(store):
    nodes = LinkRetriever(store, filter={"year": 1962}).retrieve("Seattle lies at the sound.")

    assert [node.node_id for node in nodes] == ["needle"]


def test_a_model_reads_the_url_and_no_path(store):
    (node,) = (node for node in LinkRetriever(store, STRATEGY).retrieve(QUESTION) if node.node_id == "city")

    assert node.get_content(MetadataMode.LLM) == "url: city.html\n\nSeattle lies at the sound."


def test_a_query_engine_answers_with_the_nodes_as_sources(store):
    handler = LlamaDebugHandler(print_trace_on_end=False)
    retriever = LinkRetriever(store, STRATEGY, callback_manager=CallbackManager([handler]))
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    answer = engine.query(QUESTION)

    assert [node.node_id for node in answer.source_nodes] == ["needle", "city"]
    assert "The Space Needle is a tower." in str(answer)
    assert handler.get_event_pairs(CBEventType.RETRIEVE)


def test_what_is_no_store_is_refused():
    with pytest.raises(LinkStoreError, match="store"):
        LinkRetriever("kb")

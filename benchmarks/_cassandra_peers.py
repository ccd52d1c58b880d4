"""The two peers of cassandra.py, on the same server and with their default settings."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from _growth_data import GivenVectors, GrowthData
from langchain_core.documents import Document

PATIENCE = 300.0
"""Timeout of the peers in seconds; they do not retry."""
SEEDS = 4
ADJACENT = 10


class AnyText(GivenVectors):
    """Accepts other texts too, because the peers embed a sentence to find out the dimension."""

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question; for other texts, the vector of the first question."""
        return super().embed_query(text if text.startswith("question ") else "question 0")


class Peer(ABC):
    """Another library's store of the same documents.

    Args:
        session: The driver's, for this peer alone.
        keyspace: Where its tables lie.
        data: What it holds.
    """

    name: ClassVar[str]
    asks: ClassVar[Sequence[str]]
    """The questions that it supports."""

    def __init__(self, session: Any, keyspace: str, data: GrowthData) -> None:
        self.data = data
        self.session = session
        from cassandra.cluster import EXEC_PROFILE_DEFAULT

        session.get_execution_profile(EXEC_PROFILE_DEFAULT).request_timeout = PATIENCE
        self.table = f"{self.name.replace('-', '_')}_{len(data)}"
        self.store = self._opened(session, keyspace, AnyText(data))

    @abstractmethod
    def _opened(self, session: Any, keyspace: str, embedding: AnyText) -> Any:
        """Open its store."""

    @abstractmethod
    def documents(self, numbers: Sequence[int]) -> list[Document]:
        """Documents in its format."""

    @abstractmethod
    def found(self, how: str, question: str) -> list[Document]:
        """Its answer to a question."""

    def add(self, numbers: Sequence[int]) -> float:
        """Seconds to add documents that are ready."""
        documents = self.documents(numbers)
        started = time.perf_counter()
        self.store.add_documents(documents)
        return time.perf_counter() - started


class CommunityGraph(Peer):
    """langchain-community's CassandraGraphVectorStore; beyond depth 1 its traversal takes minutes."""

    name = "graph-vector-store"
    asks = ("depth 1", "MMR, depth 2")

    def _opened(self, session: Any, keyspace: str, embedding: AnyText) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from langchain_community.graph_vectorstores import CassandraGraphVectorStore

            return CassandraGraphVectorStore(embedding, session, keyspace, self.table)

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        warnings.simplefilter("ignore")  # the peer's own: it is in beta and deprecated at once
        from langchain_community.graph_vectorstores.links import Link

        return [
            Document(
                id=str(n),
                page_content=self.data.text(n),
                metadata={
                    "links": {
                        Link(kind=link.kind, direction=link.direction, tag=link.tag)
                        for link in self.data.links(n)
                    }
                },
            )
            for n in numbers
        ]

    def found(self, how: str, question: str) -> list[Document]:
        if how == "depth 1":
            return list(self.store.traversal_search(question, k=SEEDS, depth=1))
        return list(self.store.mmr_traversal_search(question, k=SEEDS, depth=2, adjacent_k=ADJACENT))


class GraphRetriever(Peer):
    """langchain-graph-retriever with its Cassandra adapter.

    As it comes it takes, at each hop, the 10 best documents that the links lead to; ``wide``, it takes 40, so
    that it returns about as many as linkstore does.
    """

    name = "graph-retriever"
    asks = ("depth 1", "depth 2", "MMR, depth 2, 4 seeds", "wide, depth 1", "wide, depth 2")

    def _opened(self, session: Any, keyspace: str, embedding: AnyText) -> Any:
        from langchain_community.vectorstores import Cassandra

        return Cassandra(embedding, session, keyspace, self.table)

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        from _peer import document
        from langchain_graph_retriever.transformers import ShreddingTransformer

        data = {"keywords": self.data.keywords, "targets": self.data.targets}
        documents = [document(n, data) for n in numbers]
        for n, made in zip(numbers, documents, strict=True):
            made.page_content = self.data.text(n)
        return list(ShreddingTransformer().transform_documents(documents))

    def found(self, how: str, question: str) -> list[Document]:
        from _peer import EDGES, NESTED
        from langchain_graph_retriever import GraphRetriever as Retriever
        from langchain_graph_retriever.adapters.cassandra import CassandraAdapter
        from langchain_graph_retriever.transformers import ShreddingTransformer

        adapter = CassandraAdapter(self.store, ShreddingTransformer(), NESTED)
        retriever = Retriever(store=adapter, edges=EDGES, strategy=_strategy(how))
        found: list[Document] = retriever.invoke(question)
        return found


def _strategy(how: str) -> Any:
    from graph_retriever.strategies import Eager, Mmr

    if how.startswith("MMR"):
        return Mmr(k=SEEDS, start_k=SEEDS, adjacent_k=ADJACENT, max_depth=2)
    adjacent = 4 * ADJACENT if how.startswith("wide") else ADJACENT
    return Eager(k=1000, start_k=SEEDS, adjacent_k=adjacent, max_depth=int(how[-1]))

"""The systems that are compared: all of them rank the same chunks with the same vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from graph_retriever.strategies import Eager as PeerEager
from graph_retriever.strategies import Mmr as PeerMmr
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_graph_retriever import GraphRetriever
from langchain_graph_retriever._conversion import METADATA_EMBEDDING_KEY
from langchain_graph_retriever.adapters.in_memory import InMemoryAdapter
from typing_extensions import override

from linkstore import LinkStore, get_links
from linkstore.embeddings.encoder import Encoder
from linkstore.strategies import PageRank, Similarity, Strategy, Words, pagerank

DEPTH: Final = 100
"""Number of documents that each system ranks."""
WALKLESS: Final = "linkstore without links"
STRATEGIES: Final[Mapping[str, Strategy]] = {
    "BM25": Words(),
    "dense": Similarity(),
    "dense+BM25": PageRank(depth=0),
    WALKLESS: PageRank(),
    "linkstore": PageRank(),
}
System = Callable[[str], list[str]]


class Vectors(Embeddings):
    """An encoder as LangChain's embeddings."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of documents."""
        return self._encoder.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self._encoder.embed_query(text)


class IndexedAdapter(InMemoryAdapter):
    """The peer's adapter of its in-memory store, with an index of the tags that documents are known as.

    It finds what the peer's own finds, which scans all documents once for each link that it follows: with
    manuals of 10,000 chunks, that took seconds a question.
    """

    def __init__(self, memory: InMemoryVectorStore) -> None:
        super().__init__(memory)
        self._rows = list(memory.store.values())
        vectors = np.array([row["vector"] for row in self._rows])
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, row in enumerate(self._rows):
            for tag in row["metadata"]["known_as"]:
                self._places[tag].append(place)

    @override
    def _search(
        self, embedding: list[float], k: int = 4, filter: dict[str, str] | None = None, **kwargs: Any
    ) -> list[Document]:
        every = range(len(self._rows))
        places = np.array(every if filter is None else self._places.get(filter["known_as"], ()), dtype=int)
        scores = self._vectors[places] @ np.asarray(embedding)
        return [
            Document(
                id=row["id"],
                page_content=row["text"],
                metadata={METADATA_EMBEDDING_KEY: row["vector"], **row["metadata"]},
            )
            for row in (self._rows[place] for place in places[scores.argsort()[::-1][:k]])
        ]


def make_systems(store: LinkStore, documents: Sequence[Document], encoder: Encoder) -> dict[str, System]:
    """Return the systems over the documents of a store, by name."""
    found: dict[str, System] = {name: _ask_store(store, one) for name, one in STRATEGIES.items()}
    found[WALKLESS] = patch.object(pagerank, "DAMPING", 0.0)(found[WALKLESS])
    memory = InMemoryVectorStore(Vectors(encoder))
    memory.add_documents([_make_peer_document(one) for one in documents])
    peer = IndexedAdapter(memory)
    for name, strategy in (
        (
            "langchain-graph-retriever, Eager",
            PeerEager(select_k=DEPTH, start_k=10, adjacent_k=10, max_depth=1),
        ),
        ("langchain-graph-retriever, MMR", PeerMmr(select_k=DEPTH, start_k=10, adjacent_k=10, max_depth=1)),
    ):
        retriever = GraphRetriever(store=peer, edges=[("leads_to", "known_as")], strategy=strategy)
        found[name] = _ask_peer(retriever)
    return found


def _ask_store(store: LinkStore, strategy: Strategy) -> System:
    return lambda question: [
        str(hit.document.id) for hit in store.search(question, strategy=strategy.with_k(DEPTH))
    ]


def _ask_peer(retriever: Any) -> System:
    return lambda question: [str(one.id) for one in retriever.invoke(question)]


def _make_peer_document(document: Document) -> Document:
    """Return a document with its hyperlinks as the peer takes them: tags that it leads to and is known as."""
    links = [link for link in get_links(document) if link.kind == "hyperlink"]
    metadata = {
        "leads_to": sorted({link.tag for link in links if link.leads_out}),
        "known_as": sorted({link.tag for link in links if link.leads_in}),
    }
    return Document(id=document.id, page_content=document.page_content, metadata=metadata)

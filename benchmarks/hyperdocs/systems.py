"""The systems that are compared: all of them rank the same chunks with the same vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graph_retriever.strategies import Eager as PeerEager
from graph_retriever.strategies import Mmr as PeerMmr
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_graph_retriever import GraphRetriever

from linkstore import LinkStore, get_links
from linkstore.embeddings.encoder import Encoder
from linkstore.strategies import PageRank, Similarity, Strategy, Words

DEPTH: Final = 100
"""Number of documents that each system ranks."""
STRATEGIES: Final[Mapping[str, Strategy]] = {
    "BM25": Words(),
    "dense": Similarity(),
    "dense+BM25": PageRank(kinds=(), named=0, page_weight=0.0, page_fade=1.0),
    "linkstore without links": PageRank(damping=0.0),
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


def make_systems(store: LinkStore, documents: Sequence[Document], encoder: Encoder) -> dict[str, System]:
    """Return the systems over the documents of a store, by name."""
    found: dict[str, System] = {name: _ask_store(store, one) for name, one in STRATEGIES.items()}
    peer = InMemoryVectorStore(Vectors(encoder))
    peer.add_documents([_make_peer_document(one) for one in documents])
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
        str(hit.document.id) for hit in store.search(question, strategy=strategy.returning(DEPTH))
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

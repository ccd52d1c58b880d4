"""The other side of peers.py: langchain-graph-retriever on one of its adapters, asked from a pipe.

Needs no linkstore, so that it can run in an environment of its own with an older chromadb. Reads a
line of JSON for each question, ``{"question": 3, "depth": 2}``; answers ``{"seconds": …, "ids": […]}``.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

warnings.simplefilter("ignore")

from graph_retriever.strategies import Eager  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore  # noqa: E402
from langchain_graph_retriever import GraphRetriever  # noqa: E402

SEEDS = 4
ADJACENT = 10
BATCH = 1000
NESTED = {"keyword", "href"}
EDGES: list[Any] = [("keyword", "keyword"), ("href", "url")]


class Given(Embeddings):
    """Looks vectors up."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of documents."""
        return self._data["vectors"][[int(text.removeprefix("doc ")) for text in texts]].tolist()

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self._data["questions"][int(text.removeprefix("question "))].tolist()


def main() -> None:
    """Fill the adapter's store, then answer until the pipe ends."""
    adapter, path = sys.argv[1], Path(sys.argv[2])
    data = dict(np.load(path))
    store = _store(adapter, Given(data), path.parent)
    documents = [document(n, data) for n in range(len(data["vectors"]))]
    if adapter == "chroma":
        documents = list(_shredder().transform_documents(documents))
    for start in range(0, len(documents), BATCH):
        store.add_documents(documents[start : start + BATCH])
    print(json.dumps({"ready": adapter}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        retriever = _retriever(adapter, store, asked["depth"])
        started = time.perf_counter()
        found = retriever.invoke(f"question {asked['question']}")
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "ids": [document.id for document in found]}), flush=True)


def _store(adapter: str, embedding: Embeddings, folder: Path) -> VectorStore:
    if adapter == "memory":
        return InMemoryVectorStore(embedding)
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    return Chroma(
        embedding_function=embedding,
        collection_metadata={"hnsw:space": "cosine"},
        persist_directory=str(folder / "chroma"),
        client_settings=Settings(anonymized_telemetry=False),
    )


def document(n: int, data: Any) -> Document:
    metadata = {
        "url": f"u{n}",
        "keyword": sorted({f"k{keyword}" for keyword in data["keywords"][n].tolist()}),
        "href": sorted({f"u{target}" for target in data["targets"][n].tolist()}),
    }
    return Document(id=str(n), page_content=f"doc {n}", metadata=metadata)


def _retriever(adapter: str, store: Any, depth: int) -> GraphRetriever:
    strategy = Eager(k=1000, start_k=SEEDS, adjacent_k=ADJACENT, max_depth=depth)
    if adapter == "chroma":
        from langchain_graph_retriever.adapters.chroma import ChromaAdapter

        store = ChromaAdapter(store, _shredder(), NESTED)
    return GraphRetriever(store=store, edges=EDGES, strategy=strategy)


def _shredder() -> Any:
    """Chroma holds no lists: each entry becomes a key of its own, as the peer's manual says."""
    from langchain_graph_retriever.transformers import ShreddingTransformer

    return ShreddingTransformer(keys=NESTED)


if __name__ == "__main__":
    main()

"""What a query costs beside a bare search of the same vectors.

100,000 pieces of real text of at most 200 characters: a site of PEPs with its hyperlinks, sections and
citations, then passages of Wikipedia with mentions and entities. Questions are those of the sets.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from _report import milliseconds
from _retrieval_sets import ROW_SETS, RowSet
from _site import unpack_site
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import RecursiveCharacterTextSplitter
from usearch.index import Index

from linkstore import LinkStore
from linkstore.core.arrays import Floats, normalize_vector
from linkstore.engines.bookkeeping import Backend
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import ChunkLimits, FolderSource, index
from linkstore.strategies import DEFAULT_STRATEGY, PageRank, Question

PIECES: Final = 100_000
LENGTH: Final = 200
K: Final = 20
SMALL_PIECES: Final = ChunkLimits(longest=LENGTH, shortest=LENGTH // 4)


def cost(data: Path, embedding: Embeddings, questions: int = 300) -> list[dict[str, Any]]:
    """Median times of the default, of PageRank and of usearch, in turns, over the same questions."""
    sets = row_sets(data)
    asked = [row["question"] for one in sets for row in one.questions]
    asked = asked[:: -(-len(asked) // questions)]
    with tempfile.TemporaryDirectory(prefix="linkstore-cost-") as folder:
        with LinkStore.open(Path(folder) / "kb", embedding) as store:
            fill(store, data, sets, Path(folder))
            store.backend.run(store.backend.flush())
        with LinkStore.open(Path(folder) / "kb", embedding, create=False) as store:
            return _measured(store, [normalize_vector(embedding.embed_query(text)) for text in asked], asked)


def row_sets(data: Path) -> list[RowSet]:
    """The sets of which the passages and the questions are."""
    return [make(data) for name, make in ROW_SETS.items() if name != "single_hop"]


def fill(store: LinkStore, data: Path, sets: Sequence[RowSet], folder: Path) -> None:
    """Index the site, which is unpacked in ``folder``, and add passages until there are enough pieces."""
    unpack_site(data, folder / "site")
    index(store, FolderSource(folder / "site", limits=SMALL_PIECES))
    missing = PIECES - store.survey().documents
    pieces = [piece for one in sets for piece in _pieces(one)][: max(0, missing)]
    if len(pieces) != missing:
        raise SystemExit(f"{missing:,} pieces were wanted beside the site, there are {len(pieces):,}")
    store.add_documents(with_links(pieces, ["mention", "entity"]))


def _pieces(rows: RowSet) -> Iterator[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=LENGTH, chunk_overlap=0)
    for row in rows.corpus:
        for n, text in enumerate(splitter.split_text(row["text"])):
            title = row["title"] if n == 0 else ""
            name = f"{rows.name}/{row['id']}/{n}"
            yield Document(id=name, page_content=f"{row['title']}\n{text}", metadata={"title": title})


def _measured(store: LinkStore, vectors: Sequence[Any], asked: Sequence[str]) -> list[dict[str, Any]]:
    index, count = _index(store.backend)
    ours = {"default": DEFAULT_STRATEGY.with_k(K), "pagerank": PageRank(k=K)}
    seconds: dict[str, list[float]] = {name: [] for name in ("usearch alone", *ours)}
    for warm in (False, True):
        for vector, text in zip(vectors, asked, strict=True):
            question = Question(vector=vector, text=text)
            times = {"usearch alone": _timed(lambda vector=vector: index.search(vector, K))}
            for name, strategy in ours.items():
                plan = strategy.plan(question)
                times[name] = _timed(lambda plan=plan: store.backend.run(store.backend.answer(plan)))
            if warm:
                for name, one in times.items():
                    seconds[name].append(one)
    links = sum(store.survey().links.values())
    alone = milliseconds(seconds["usearch alone"])
    return [
        {
            "search": name,
            "pieces": count,
            "links": links,
            "questions": len(asked),
            "ms": milliseconds(times),
            "p95, ms": milliseconds(times, 95),
            "times usearch": milliseconds(times) / alone,
        }
        for name, times in seconds.items()
    ]


def _timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _index(backend: Backend) -> tuple[Index, int]:
    """usearch alone over all vectors of the store."""
    vectors = stored_vectors(backend)
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16")
    index.add(np.arange(len(vectors)), vectors)
    return index, len(vectors)


def stored_vectors(backend: Backend) -> Floats:
    """All vectors of a store, in the order of the documents' ids."""
    after, vectors = None, []
    while batch := backend.run(backend.scan(after, 2000)):
        vectors += [record.vector for record in batch]
        after = batch[-1].id
    return np.array(vectors)

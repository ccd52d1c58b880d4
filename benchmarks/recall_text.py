"""Recall of the index on 100,000 pieces of text, beside usearch with its own defaults.

Run: ``python benchmarks/recall_text.py --data DIR``. The pieces are those whose cost retrieval.py measures: a
site of PEPs and passages of Wikipedia. They are asked questions about them, and questions about the lives of
people who do not occur in them (LoCoMo): such vectors are far from those of the pieces, which is the harder
case for a graph of neighbours. The right answers come from comparing all vectors.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _memory_sets import locomo
from _report import add_data, add_output, milliseconds, report
from _retrieval_cost import fill, row_sets, stored_vectors
from usearch.index import Index

from linkstore import LinkStore
from linkstore.core.arrays import Floats, normalize_vectors
from linkstore.embeddings import get_embedding
from linkstore.strategies import Question, Similarity

SIZES = (10, 100)
TIE = 1e-6
"""A document so little below the k-th best is as right as it is."""
Search = Callable[[Floats, int], Floats]
"""The exact similarities of the documents that are found for a vector."""


def main() -> None:
    """Fill a store, ask it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--embedding", default="wordllama", help="name of an embedding (default wordllama)")
    add_data(parser)
    add_output(parser)
    options = parser.parse_args()
    data, embedding = Path(options.data), get_embedding(options.embedding)
    asked = {"questions about the pieces": _about(data), "other questions": _about_others(data)}
    with tempfile.TemporaryDirectory(prefix="linkstore-recall-") as folder:
        with LinkStore.open(Path(folder) / "kb", embedding) as store:
            fill(store, data, row_sets(data), Path(folder))
            store.backend.run(store.backend.flush())
        with LinkStore.open(Path(folder) / "kb", embedding, create=False) as store:
            vectors = stored_vectors(store.backend)
            searches = {"linkstore": _ours(store), "usearch alone": _alone(vectors)}
            rows = [
                {"search": f"{search}, {name}", "asked": len(texts), "pieces": len(vectors), **measured}
                for name, texts in asked.items()
                for search, measured in _recalled(
                    vectors, normalize_vectors(embedding.embed_documents(texts)), searches
                ).items()
            ]
    report("recall on text", rows, as_json=options.json, record_as=options.record)


def _about(data: Path) -> list[str]:
    pages = json.loads((data / "pep_questions" / "questions.json").read_text())
    rows = [row for one in row_sets(data) for row in one.questions[::3]]
    return [row["question"] for row in (*rows, *pages)]


def _about_others(data: Path) -> list[str]:
    conversations = locomo(data / "locomo_open" / "locomo.json")
    return [question.text for one in conversations for question in one.questions][::4]


def _ours(store: LinkStore) -> Search:
    backend = store.backend

    def search(vector: Floats, k: int) -> Floats:
        plan = Similarity(k=k).plan(Question(vector=vector, text=""))
        hits = backend.run(backend.answer(plan))
        return np.array([hit.similarity for hit in hits], np.float32)

    return search


def _alone(vectors: Floats) -> Search:
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16")
    index.add(np.arange(len(vectors)), vectors)

    def search(vector: Floats, k: int) -> Floats:
        found: Floats = vectors[np.asarray(index.search(vector, k).keys, np.int64)] @ vector
        return found

    return search


def _recalled(vectors: Floats, questions: Floats, searches: dict[str, Search]) -> dict[str, dict[str, float]]:
    """Recall and median time of each search, in turns."""
    found = {name: dict.fromkeys(SIZES, 0.0) for name in searches}
    times: dict[str, list[float]] = {name: [] for name in searches}
    for question in questions:
        best = np.sort(vectors @ question)[::-1]
        for name, search in searches.items():
            for k in SIZES:
                started = time.perf_counter()
                similarities = search(question, k)
                if k == SIZES[0]:
                    times[name].append(time.perf_counter() - started)
                found[name][k] += np.count_nonzero(similarities >= best[k - 1] - TIE) / k
    return {
        name: {f"recall@{k}": of / len(questions) for k, of in found[name].items()}
        | {"p50, ms": milliseconds(times[name])}
        for name in searches
    }


if __name__ == "__main__":
    main()

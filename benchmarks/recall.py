"""Recall of the index against exact search, with and without filters, and where the index starts to pay.

Run: ``python benchmarks/recall.py --sizes 5000,10000,20000,40000``. Each size is stored twice, once
searched exactly and once through the index; both are asked the same questions in turns. The vectors are
random, in clusters, which are easier than those of text: see recall_text.py.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _growth_data import QUESTIONS, GivenVectors, GrowthData, make
from _report import add_output, milliseconds, report

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.strategies import Similarity

BATCH = 10_000
SHARES = {"recall@10": 1.0, "recall@10, filter leaves 10 %": 0.1, "recall@10, filter leaves 0.1 %": 0.001}


def main() -> None:
    """Measure every size, print the table."""
    options = _options()
    rows = []
    for size in options.sizes.split(","):
        with tempfile.TemporaryDirectory(prefix="linkstore-recall-") as folder:
            rows.append(_measure(make(int(size)), Path(folder)))
    report("recall", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="5000,10000,20000,40000", help="numbers of documents, with commas")
    parser.add_argument("--data", help="not needed: the documents are made here")
    add_output(parser)
    return parser.parse_args()


def _measure(data: GrowthData, folder: Path) -> dict[str, Any]:
    exact = _filled(data, folder / "exact", EmbeddedSettings(exact_below=len(data)))
    indexed = _filled(data, folder / "indexed", EmbeddedSettings(exact_below=0))
    row: dict[str, Any] = {"documents": len(data)}
    for name, share in SHARES.items():
        allowed = {"share": {"$lt": share}}
        times: dict[str, list[float]] = {"exact": [], "indexed": []}
        shared = wanted = 0
        for n in range(QUESTIONS):
            spent, right = _ask(exact, n, allowed if share < 1 else None)
            times["exact"].append(spent)
            spent, found = _ask(indexed, n, allowed if share < 1 else None)
            times["indexed"].append(spent)
            shared, wanted = shared + len(right & found), wanted + len(right)
        row[name] = shared / wanted
        suffix = name.removeprefix("recall@10")
        row |= {f"{side} p50, ms{suffix}": milliseconds(spent) for side, spent in times.items()}
    exact.close()
    indexed.close()
    return row


def _filled(data: GrowthData, folder: Path, settings: EmbeddedSettings) -> LinkStore:
    """A store of the documents, each with a number from 0 to 1 to filter by."""
    store = LinkStore.open(folder, GivenVectors(data), settings=settings)
    shares = np.random.default_rng(3).random(len(data))
    for start, documents in data.batches(BATCH):
        for n, document in enumerate(documents, start):
            document.metadata = {"share": float(shares[n])}
        store.add_documents(documents)
    store.backend.run(store.backend.flush())
    return store


def _ask(store: LinkStore, n: int, filter: dict[str, Any] | None) -> tuple[float, set[str]]:
    started = time.perf_counter()
    hits = store.search(f"question {n}", strategy=Similarity(k=10), filter=filter)
    return time.perf_counter() - started, {str(hit.document.id) for hit in hits}


if __name__ == "__main__":
    main()

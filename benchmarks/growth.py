"""Ingest, query, memory and disk as a store grows, beside usearch alone on the same vectors.

Run: ``python benchmarks/growth.py --sizes 10000,100000``. For each size one process gives usearch
half of the vectors, writes all documents to a store, and gives usearch the other half, in batches of
the same size; the clock of each stops when its index is saved and verified. Another process opens
the store and asks, in turns, a depth-2 question of the store and a plain question of usearch's index.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xxhash
from _growth_data import DIMENSION, QUESTIONS, GivenVectors, GrowthData, make
from _report import add_output, milliseconds, report
from usearch.index import Index

from linkstore import LinkStore
from linkstore.strategies import Eager, Similarity

BATCH = 10_000
RECALL_AT = 10
ALONE = "alone.usearch"


def main() -> None:
    """Measure every size in processes of its own, print the table."""
    options = _options()
    if options.step:
        step = build if options.step == "build" else ask
        sys.stdout.write(json.dumps(step(make(options.size), options.folder)) + "\n")
        return
    rows = [_size(int(size)) for size in options.sizes.split(",")]
    report("growth", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="numbers of documents, with commas")
    parser.add_argument("--data", help="not needed: the documents are made here")
    add_output(parser)
    parser.add_argument("--step", choices=("build", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _size(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="linkstore-growth-") as folder:
        steps = [_step(step, size, folder) for step in ("build", "ask")]
    return {"documents": size, **steps[0], **steps[1]}


def _step(step: str, size: int, folder: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--step", step, "--size", str(size), "--folder", folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def build(data: GrowthData, folder: Path) -> dict[str, Any]:
    """Write the documents, and the vectors alone, in turns."""
    store = LinkStore.open(folder / "kb", GivenVectors(data))
    alone = Index(ndim=DIMENSION, metric="ip", dtype="f16", expansion_search=96)
    half = len(data) // 2
    theirs = _timed(lambda: _add(alone, data, 0, half))
    ours = 0.0
    for _, documents in data.batches(BATCH):
        ours += _timed(lambda documents=documents: store.add_documents(documents))
    ours += _timed(lambda: store.backend.run(store.backend.flush()))
    theirs += _timed(lambda: _add(alone, data, half, len(data)))
    theirs += _timed(lambda: _save_and_verify(alone, folder / ALONE))
    store.close()
    return {
        "ingest, documents/s": len(data) / ours,
        "usearch alone, vectors/s": len(data) / theirs,
        "share of usearch's rate": theirs / ours,
        "bytes on disk per document": sum(p.stat().st_size for p in (folder / "kb").iterdir()) / len(data),
    }


def _add(index: Index, data: GrowthData, start: int, stop: int) -> None:
    for first in range(start, stop, BATCH):
        keys = np.arange(first, min(first + BATCH, stop))
        index.add(keys, data.vectors[keys])


def _save_and_verify(index: Index, path: Path) -> None:
    """As safe as a store's own index: durable, hashed, and mapped from the file."""
    index.save(str(path))
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    digest = xxhash.xxh3_128(path.read_bytes())
    if not digest.hexdigest() or len(Index.restore(str(path), view=True)) != len(index):
        raise SystemExit(f"{path} does not hold what was saved")


def ask(data: GrowthData, folder: Path) -> dict[str, Any]:
    """Open the store, ask it and usearch's index in turns, and compare with an exact search."""
    process = psutil.Process()
    before = process.memory_info().rss
    started = time.perf_counter()
    store = LinkStore.open(folder / "kb", GivenVectors(data), create=False)
    store.search("question 0", strategy=Similarity(k=1))
    opened = time.perf_counter() - started
    walks = [_timed(lambda n=n: _walk(store, n)) for n in range(QUESTIONS)]
    memory = process.memory_info().rss - before
    alone = Index.restore(str(folder / ALONE), view=True)
    alone.expansion_search = 96
    walks, plain, bare = [], [], []
    for n in range(QUESTIONS):
        bare.append(_timed(lambda n=n: alone.search(data.questions[n], RECALL_AT)))
        walks.append(_timed(lambda n=n: _walk(store, n)))
        plain.append(_timed(lambda n=n: _plain(store, n)))
    return {
        "open to first answer, s": opened,
        "memory, MiB": memory / 2**20,
        "usearch alone p50, ms": milliseconds(bare),
        "usearch alone p95, ms": milliseconds(bare, 95),
        "k-NN p50, ms": milliseconds(plain),
        "depth 2 p50, ms": milliseconds(walks),
        "depth 2 p95, ms": milliseconds(walks, 95),
        "depth 2 p50 / usearch alone p50": milliseconds(walks) / milliseconds(bare),
        "hits at depth 2": float(np.mean([len(_walk(store, n)) for n in range(0, QUESTIONS, 10)])),
        "recall@10": _recall(store, data),
        "usearch alone recall@10": _alone_recall(alone, data),
    }


def _walk(store: LinkStore, n: int) -> Any:
    return store.search(f"question {n}", strategy=Eager(start_k=4, depth=2))


def _plain(store: LinkStore, n: int) -> Any:
    return store.search(f"question {n}", strategy=Similarity(k=RECALL_AT))


def _recall(store: LinkStore, data: GrowthData) -> float:
    found = [{int(str(hit.document.id)) for hit in _plain(store, n)} for n in range(QUESTIONS)]
    return _overlap(found, data)


def _alone_recall(alone: Index, data: GrowthData) -> float:
    found = [set(alone.search(question, RECALL_AT).keys.tolist()) for question in data.questions]
    return _overlap(found, data)


def _overlap(found: list[set[int]], data: GrowthData) -> float:
    shared = 0
    for question, keys in zip(data.questions, found, strict=True):
        best = np.argpartition(-(data.vectors @ question), RECALL_AT)[:RECALL_AT]
        shared += len(keys & set(best.tolist()))
    return shared / (RECALL_AT * len(found))


def _timed(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

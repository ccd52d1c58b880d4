"""Settings of SQLite connections, one changed at a time, on the work that a store does.

Run: ``python benchmarks/connections.py --documents 20000 --repeat 3``. Every run makes a store anew, by
durable writes unless it says otherwise; all settings are measured in turns, and the medians count. Times are
seconds of CPU, which other programs disturb less than the wall clock; the log's size is the largest seen.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from _report import report

from linkstore.core.arrays import Floats, normalize_vectors
from linkstore.core.filters import parse_filter
from linkstore.core.links import parse_links
from linkstore.core.plans import Documents, Find, Lexical, Nearest, Plan
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, database

DIMENSION = 64
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "chosen": {},
    "cache_size 2 MB": {"cache_size": -2_000},
    "cache_size 64 MB": {"cache_size": -65_536},
    "mmap_size 1 GB": {"mmap_size": 1 << 30},
    "temp_store MEMORY": {"temp_store": 2},
    "checkpoint 4,000": {"checkpoint": 4_000},
    "checkpoint 16,000": {"checkpoint": 16_000},
    "durable=False": {"durable": False},
}


def main() -> None:
    """Run every setting in turns and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000, help="how many (default 20,000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    for _ in range(options.repeat):
        for name, settings in VARIANTS.items():
            runs[name].append(_run(settings, options.documents))
    rows = [
        {"setting": name, **{key: statistics.median(run[key] for run in measured) for key in measured[0]}}
        for name, measured in runs.items()
    ]
    report(f"{options.documents:,} documents", rows, as_json=options.json)


def _run(settings: Mapping[str, Any], count: int) -> dict[str, float]:
    pragmas, checkpoint = database.PRAGMAS, database.CHECKPOINT_PAGES
    changed = {name: value for name, value in settings.items() if name not in ("checkpoint", "durable")}
    database.PRAGMAS = {**pragmas, **changed}  # type: ignore[misc]
    database.CHECKPOINT_PAGES = settings.get("checkpoint", checkpoint)  # type: ignore[misc]
    try:
        with tempfile.TemporaryDirectory() as folder:
            return dict(_measured(Path(folder) / "kb", count, durable=settings.get("durable", True)))
    finally:
        database.PRAGMAS, database.CHECKPOINT_PAGES = pragmas, checkpoint  # type: ignore[misc]


def _measured(folder: Path, count: int, *, durable: bool) -> Iterator[tuple[str, float]]:
    store = EmbeddedBackend(folder, settings=EmbeddedSettings(exact_below=10 * count, durable=durable))
    store.run(store.claim(Manifest(embedding="benchmark", dimension=DIMENSION)))
    chance = np.random.default_rng(0)
    rows = normalize_vectors(chance.standard_normal((count, DIMENSION)))
    log, started = 0, time.process_time()
    for start in range(0, count, 2000):
        stop = min(count, start + 2000)
        store.run(store.write(WriteBatch(put=[_record(n, rows[n], count) for n in range(start, stop)])))
        log = max(log, (folder / "linkstore.db-wal").stat().st_size)
    yield "bulk load", time.process_time() - started
    started = time.process_time()
    for n in chance.integers(0, count, 300).tolist():
        store.run(store.write(WriteBatch(put=[_record(n, rows[n - 1], count)])))
    yield "300 updates", time.process_time() - started
    store.run(store.answer(_nearest(rows[0], None)))
    started = time.process_time()
    store.run(store.answer(_nearest(rows[0], {"n": -1})))
    yield "filter over all", time.process_time() - started
    started = time.process_time()
    for n in range(300):
        store.run(store.answer(_by_words((f"w{n}", f"w{n * 3}"))))
    yield "300 by words", time.process_time() - started
    started = time.process_time()
    for _ in range(100):
        store.run(store.answer(_by_id([_name(n, count) for n in chance.integers(0, count, 50).tolist()])))
    yield "5,000 by id", time.process_time() - started
    started = time.process_time()
    store.run(store.verify())
    yield "verify", time.process_time() - started
    yield "log, MB", log / 1e6
    store.close()


def _name(n: int, count: int) -> str:
    return f"d{n * 7919 % count:06}"


def _record(n: int, vector: Floats, count: int) -> Record:
    links = [
        {"kind": "hyperlink", "tag": f"u{n * 7919 % count}", "direction": "out"},
        {"kind": "hyperlink", "tag": f"u{n}", "direction": "in"},
        {"kind": "keyword", "tag": f"k{n % 2000}", "direction": "bidir"},
    ]
    metadata = {"n": n, "links": links}
    text = f"doc {n} " + " ".join(f"w{n * k % 50_021}" for k in range(60))
    return Record(
        id=_name(n, count), text=text, metadata=metadata, vector=vector, links=parse_links(metadata)
    )


def _nearest(vector: Floats, wanted: dict[str, Any] | None) -> Plan[int]:
    found = yield Nearest(vector=vector, k=10, filter=parse_filter(wanted))
    return len(found.refs)


def _by_words(words: tuple[str, ...]) -> Plan[int]:
    found = yield Lexical(terms=words, k=10)
    return len(found.refs)


def _by_id(names: list[str]) -> Plan[int]:
    found = yield Find(ids=tuple(names))
    documents = yield Documents(refs=found.refs)
    return len(documents)


if __name__ == "__main__":
    main()

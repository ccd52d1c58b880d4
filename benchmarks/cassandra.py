"""linkstore on Cassandra beside a plain nearest-neighbour query of the same table, as it grows.

Run: ``python benchmarks/cassandra.py --sizes 10000,100000``; it starts a server of its own (Java 17 and
Maven are needed). The documents are those of growth.py. Bare inserts are the same rows of documents, written
through the same driver with as many statements at once and nothing read or written beside. Queries are asked
in turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # this file must not be taken for the driver's package of the same name
sys.path.insert(1, str(Path(__file__).parents[1] / "tests"))

from _growth_data import GivenVectors, GrowthData, make
from _report import milliseconds, report
from cassandra_server import Server, create_keyspace

from linkstore import LinkStore
from linkstore.backends.base import Change, Manifest, Record
from linkstore.backends.cassandra.backend import CassandraBackend
from linkstore.backends.cassandra.execution import Executor
from linkstore.backends.cassandra.requests import Requests
from linkstore.plans import Nearest, Plan
from linkstore.strategies import Eager, Mmr, Strategy

KEYSPACE = "bench"
BATCH = 1000
QUESTIONS = 40
STRATEGIES: dict[str, Strategy] = {
    "depth 1": Eager(k=4, depth=1),
    "depth 2": Eager(k=4, depth=2),
    "MMR, depth 2": Mmr(k=4, depth=2),
}


class Counting(Executor):
    """Counts statements and rows."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.statements = self.rows = 0

    def run(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
        """As always, counted."""
        answers = super().run(requests)
        self.statements += len(requests.statements)
        self.rows += sum(map(len, answers))
        return answers


def main() -> None:
    """Measure every size on one server, print the table."""
    options = _options()
    with Server(heap="4G") as server, server.connect() as session:
        create_keyspace(session, KEYSPACE)
        rows = [_measure(session, make(int(size)), f"t{size}") for size in options.sizes.split(",")]
    report("cassandra", rows, as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="10000", help="numbers of documents, with commas")
    parser.add_argument("--data", help="not needed: the documents are made here")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _measure(session: Any, data: GrowthData, table: str) -> dict[str, Any]:
    store = LinkStore.cassandra(GivenVectors(data), session=session, keyspace=KEYSPACE, table=table)
    began = time.perf_counter()
    for _, documents in data.batches(BATCH):
        store.add_documents(documents)
    spent = time.perf_counter() - began
    row: dict[str, Any] = {"documents": len(data), "ingest, documents/s": len(data) / spent}
    row["bare inserts, documents/s"] = _bare(session, data, f"{table}_bare")
    backend = store.backend
    counting = Counting(session, None)
    backend._executor = counting  # type: ignore[attr-defined]
    times: dict[str, list[float]] = {"plain nearest, k=4": [], **{name: [] for name in STRATEGIES}}
    work: dict[str, list[int]] = {name: [0, 0, 0] for name in STRATEGIES}
    for n in range(QUESTIONS + 5):
        times["plain nearest, k=4"].append(_timed(lambda n=n: backend.run(backend.answer(_plain(data, n)))))
        for name, strategy in STRATEGIES.items():
            before = counting.statements, counting.rows
            started = time.perf_counter()
            hits = store.search(f"question {n}", strategy=strategy)
            times[name].append(time.perf_counter() - started)
            done = counting.statements - before[0], counting.rows - before[1], len(hits)
            work[name] = [a + b for a, b in zip(work[name], done, strict=True)]
    for name, seconds in times.items():
        row[f"{name}: p50, ms"] = milliseconds(seconds[5:])
        row[f"{name}: p95, ms"] = milliseconds(seconds[5:], 95)
        if name in work:
            statements, rows, hits_ = (count / len(seconds) for count in work[name])
            row[f"{name}: statements"], row[f"{name}: rows"], row[f"{name}: hits"] = statements, rows, hits_
    return row


def _plain(data: GrowthData, n: int) -> Plan[Any]:
    return (yield Nearest(vector=data.questions[n], k=4))


def _bare(session: Any, data: GrowthData, table: str) -> float:
    """Rows of documents without links, so that nothing is read or written beside."""
    backend = CassandraBackend(session, KEYSPACE, table)
    backend.run(backend.claim(Manifest(embedding="bench", dimension=data.vectors.shape[1])))
    seconds = 0.0
    for start, documents in data.batches(BATCH):
        records = [
            Record(
                id=str(document.id),
                text=document.page_content,
                metadata=document.metadata,
                vector=data.vectors[n],
                links=(),
            )
            for n, document in enumerate(documents, start)
        ]
        seconds += _timed(lambda records=records: backend.run(backend.write(Change(put=records))))
    return len(data) / seconds


def _timed(action: Any) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

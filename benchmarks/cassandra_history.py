"""What a history of updates costs on Cassandra: the same documents, written once and written many times.

Run: ``python benchmarks/cassandra_history.py --documents 200 --rounds 300``; it starts a server of its own
(Java 17 and Maven are needed). Each round writes all documents with another text, another vector and another
link; a word and a link group stay. Questions are asked in turns, of the fresh store and of the one with the
history, before the server had time to compact anything, and again after ``--wait`` seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(sys.path.pop(0))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from _report import add_output, record, report
from cassandra_server import Server, create_keyspace

from linkstore import Link
from linkstore.core.arrays import normalize_vectors
from linkstore.core.plans import Ids, Lexical, LexicalMatches, Plan
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.strategies import Eager, Question, Similarity

KEYSPACE = "history"
DIMENSION = 64
TURNS = 20
Row = dict[str, Any]


def records(count: int, revision: int) -> list[Record]:
    """All documents as one round writes them."""
    vectors = normalize_vectors(np.random.default_rng(revision).standard_normal((count, DIMENSION)))
    return [_record(n, revision, vector) for n, vector in enumerate(vectors)]


def _record(n: int, revision: int, vector: Any) -> Record:
    links = (Link.bidir(kind="k", tag=f"{n % 20}"), Link.outgoing(kind="r", tag=f"{revision}"))
    metadata: Row = {"links": [link.to_dict() for link in links], "revision": revision}
    text = f"report number{n} revision{revision}"
    return Record(id=f"d{n}", text=text, metadata=metadata, vector=vector, links=links)


def opened(session: Any, name: str) -> CassandraBackend:
    """A store."""
    backend = CassandraBackend(session, KEYSPACE, name)
    backend.run(backend.claim(Manifest(embedding="bench", dimension=DIMENSION)))
    return backend


def by_word(word: str) -> Plan[list[str]]:
    """Who has a word."""
    found: LexicalMatches = yield Lexical(terms=(word,), k=10)
    ids: list[str] = yield Ids(refs=found.refs)
    return ids


def questions(count: int, revision: int) -> dict[str, Callable[[CassandraBackend], object]]:
    """What is asked, by name."""
    question = Question(vector=records(count, revision)[0].vector)

    def searched(strategy: Any) -> Callable[[CassandraBackend], object]:
        return lambda store: store.run(store.answer(strategy.plan(question)))

    return {
        "nearest 10": searched(Similarity(k=10)),
        "Eager, depth 2": searched(Eager(start_k=4, depth=2)),
        "a word that all have": lambda store: store.run(store.answer(by_word("report"))),
        "a word that one has": lambda store: store.run(store.answer(by_word("number7"))),
        "verify": lambda store: store.run(store.verify()),
        "repair": lambda store: store.run(store.repair()),
    }


def asked(fresh: CassandraBackend, old: CassandraBackend, count: int, revision: int, when: str) -> list[Row]:
    """Each question, of both stores in turns: a row of medians."""
    rows = []
    for name, ask in questions(count, revision).items():
        times: tuple[list[float], list[float]] = [], []
        for _ in range(3 if name in {"verify", "repair"} else TURNS):
            for store, into in zip((fresh, old), times, strict=True):
                began = time.perf_counter()
                ask(store)
                into.append(1000 * (time.perf_counter() - began))
        one, many = map(median, times)
        rows.append({"when": when, "asked": name, "fresh, ms": one, "updated, ms": many, "times": many / one})
    return rows


def main() -> None:
    """Write, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--wait", type=float, default=0, help="seconds until it is asked once more")
    add_output(parser)
    options = parser.parse_args()
    count, last = options.documents, options.rounds - 1
    with Server(heap="4G") as server, server.connect() as session:
        create_keyspace(session, KEYSPACE)
        fresh, old = opened(session, "fresh"), opened(session, "old")
        began = time.perf_counter()
        for revision in range(options.rounds):
            old.run(old.write(WriteBatch(put=records(count, revision))))
        spent = time.perf_counter() - began
        print(f"{count * options.rounds:,} updates in {spent:.0f} s", file=sys.stderr)
        fresh.run(fresh.write(WriteBatch(put=records(count, last))))
        rows = asked(fresh, old, count, last, "at once")
        if options.wait:
            time.sleep(options.wait)
            rows += asked(fresh, old, count, last, f"after {options.wait:.0f} s")
    title = f"{count} documents on Cassandra, written {options.rounds} times"
    report(title, [_shown(row) for row in rows], as_json=options.json)
    record(options.record, {f"{row['asked']}, {row['when']}": row for row in rows})


def _shown(row: Row) -> Row:
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in row.items()}


if __name__ == "__main__":
    main()

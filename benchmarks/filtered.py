"""What a filter costs: searches within a scope, where it hides none, half and 99 % of the documents.

Run: ``python benchmarks/filtered.py --size 30000`` for a folder, ``--cassandra --size 5000`` for Cassandra,
which starts a server of its own (Java 17 and Maven are needed). Documents have 60 to 180 words from a
vocabulary of 20,000 and 10 links: 5 to other documents, 3 to keywords by Zipf's law, so that there are hubs,
and their own page and title. By chance half have ``{"half": 1}``, and one in a hundred ``{"few": 1}``.
Medians over different questions, of CPU time for a folder and of elapsed time for Cassandra; the first search
within a filter is told apart.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from _report import add_output, listed

from linkstore.core.arrays import normalize_vectors
from linkstore.core.filters import EVERYTHING, Condition, parse_filter
from linkstore.core.links import Link
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.strategies import Eager, PageRank, Question, Similarity, Strategy, Words

DIMENSION = 128
VOCABULARY = 20_000
BATCH = 1_000
QUESTIONS = 20
PATIENT = {"write_request_timeout": "60s", "read_request_timeout": "60s"}
SCOPES: dict[str, Condition] = {
    "no filter": EVERYTHING,
    "hides none": parse_filter({"all": 1}),
    "hides 50 %": parse_filter({"half": 1}),
    "hides 99 %": parse_filter({"few": 1}),
    "hides 99 %, no equality": parse_filter({"few": {"$gte": 1}}),
}
STRATEGIES: dict[str, Strategy] = {
    "PageRank": PageRank(),
    "Words": Words(k=10),
    "Similarity": Similarity(k=10),
    "Eager": Eager(),
}


class Corpus:
    """Made-up documents and questions."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rng = np.random.default_rng(7)
        weights = 1 / (np.arange(VOCABULARY) + 20.0)
        self._cumulated = np.cumsum(weights / weights.sum())

    def words(self, count: int) -> list[str]:
        """Words by their frequency."""
        drawn = np.searchsorted(self._cumulated, self._rng.random(count))
        return [f"w{number}" for number in drawn.tolist()]

    def vectors(self, count: int) -> np.ndarray:
        """Unit vectors."""
        return normalize_vectors(self._rng.normal(size=(count, DIMENSION)))

    def batches(self) -> Iterator[list[Record]]:
        """All documents."""
        for start in range(0, self._size, BATCH):
            numbers = range(start, min(start + BATCH, self._size))
            yield [self._record(n, v) for n, v in zip(numbers, self.vectors(len(numbers)), strict=True)]

    def _record(self, number: int, vector: np.ndarray) -> Record:
        rng = self._rng
        title = " ".join(self.words(2))
        chance = rng.random()
        links = [Link.incoming(kind="hyperlink", tag=f"/{number}"), Link.incoming(kind="mention", tag=title)]
        links += [
            Link.outgoing(kind="hyperlink", tag=f"/{one}") for one in set(rng.integers(self._size, size=5))
        ]
        keywords = set(np.minimum(rng.zipf(1.3, size=3), 100_000).tolist())
        links += [Link.bidir(kind="keyword", tag=f"k{one}") for one in keywords]
        metadata = {"title": title, "all": 1, "half": int(chance < 0.5), "few": int(chance < 0.01)}
        text = " ".join(self.words(int(rng.integers(60, 180))))
        return Record(id=f"d{number}", text=text, metadata=metadata, vector=vector, links=tuple(links))

    def questions(self) -> list[Question]:
        """Questions of six words."""
        return [Question(vector=v, text=" ".join(self.words(6))) for v in self.vectors(QUESTIONS)]


def main() -> None:
    """Fill a store, then print a row for each scope."""
    arguments = _arguments()
    with ExitStack() as stack:
        open_ = _cassandra(stack) if arguments.cassandra else _embedded(stack)
        corpus, backend = Corpus(arguments.size), open_()
        backend.run(backend.claim(Manifest(embedding="bench", dimension=DIMENSION)))
        for records in corpus.batches():
            backend.run(backend.write(WriteBatch(put=records)))
        backend.run(backend.flush())
        questions = corpus.questions()
        rows = []
        for name, scope in SCOPES.items():
            backend = open_()  # anew, so that the first search has to judge
            clock = time.perf_counter if arguments.cassandra else time.process_time
            row: dict[str, Any] = {"scope": name}
            for label, strategy in STRATEGIES.items():
                times = _times(backend, strategy, scope, questions, clock)
                row |= {label: statistics.median(times[1:]), f"{label}, first": times[0]}
            rows.append(row)
    record_as = arguments.record and f"{arguments.record}{'-cassandra' if arguments.cassandra else ''}"
    listed(f"{arguments.size:,} documents, ms", rows, as_json=arguments.json, record_as=record_as)


def _times(
    backend: Backend,
    strategy: Strategy,
    scope: Condition,
    questions: list[Question],
    clock: Callable[[], float],
) -> list[float]:
    times = []
    for question in questions:
        started = clock()
        backend.run(backend.answer(strategy.plan(question), scope))
        times.append(1000 * (clock() - started))
    return times


def _embedded(stack: ExitStack) -> Callable[[], Backend]:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    return lambda: stack.enter_context(closing(EmbeddedBackend(folder)))


def _cassandra(stack: ExitStack) -> Callable[[], Backend]:
    from cassandra_server import Server, create_keyspace

    from linkstore.engines.cassandra.backend import CassandraBackend

    server = stack.enter_context(Server(heap="2G", settings=PATIENT))
    session = stack.enter_context(server.connect())
    create_keyspace(session, "bench")
    return lambda: stack.enter_context(closing(CassandraBackend(session, "bench")))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=50_000)
    parser.add_argument("--cassandra", action="store_true")
    add_output(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()

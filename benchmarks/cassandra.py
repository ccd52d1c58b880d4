"""linkstore on Cassandra beside a plain nearest-neighbour query, bare inserts and two peers, as it grows.

Run: ``python benchmarks/cassandra.py --sizes 10000,100000``; it starts a server of its own (Java 17 and
Maven are needed). All tables are on that server and contain the documents of growth.py; the stores take turns
in adding batches and answering questions. Bare inserts write the rows of documents and members of every
fourth batch with one prepared statement each, through the same driver with the same concurrency, and read
nothing. Words are not indexed, because the peers do not do so. With ``--words 110`` texts have so many words,
and a second store of linkstore indexes them, as it does by default.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))  # this file must not be taken for the driver's package of the same name
sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from _cassandra_peers import CommunityGraph, GraphRetriever, Peer
from _growth_data import GivenVectors, GrowthData, make
from _report import add_output, listed, milliseconds, record, report
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra_server import Server, create_keyspace

from linkstore import LinkStore
from linkstore.engines.cassandra import codec as codes
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.cassandra.codec import DocumentVersion, dump_links
from linkstore.engines.cassandra.derived import derive_members
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Requests, Statement
from linkstore.engines.contract import Manifest
from linkstore.strategies import Eager, Mmr, Strategy

KEYSPACE = "bench"
TESTED: tuple[str, ...] = (
    "memtable_heap_space",
    "memtable_offheap_space",
    "key_cache_size",
    "networking_cache_size",
    "file_cache_size",
    "commitlog_total_space",
)
"""Settings that the server of the tests reduces; here they have Cassandra's defaults."""
SERVER: dict[str, object] = {
    **dict.fromkeys(TESTED),
    "write_request_timeout": "300s",
    "read_request_timeout": "300s",
}
"""The peers do not retry, and compacting vectors on two cores slows the server down."""
SETTINGS = CassandraSettings(timeout=300, deadline=600, lexical=False)
FLUSH_SECONDS = 1800.0
"""Flushing the vector indexes of all stores takes minutes on a busy machine."""
BATCH = 500
BARE_EACH = 4
"""Bare inserts, which are the slowest, write every fourth batch."""
OURS: dict[str, Strategy] = {
    "depth 1": Eager(start_k=4, depth=1),
    "depth 2": Eager(start_k=4, depth=2),
    "MMR, depth 2": Mmr(k=4, depth=2),
    "MMR, depth 2, 4 seeds": Mmr(k=4, depth=2, fetch_k=4),
}
PLAIN = {"plain nearest, k=4": 4, "plain nearest, k=100": 100}
"""Queries of the server's index alone, with the columns that linkstore reads. MMR starts with the second."""
Row = dict[str, Any]


@dataclass(slots=True)
class Timings:
    """Seconds of the same question to one store, and what it took.

    Args:
        seconds: One for each time it was asked.
        requests: To the server, in all.
        rows: From the server, in all.
        documents: Returned, in all.
        ours: Seconds of linkstore for as many documents.
    """

    seconds: list[float] = field(default_factory=list)
    requests: int = 0
    rows: int = 0
    documents: int = 0
    ours: list[float] = field(default_factory=list)

    def row(self, size: int, store: str, how: str) -> Row:
        """As a row of the table."""
        each = len(self.seconds)
        return {
            "documents": size,
            "store": store,
            "question": how,
            "p50, ms": milliseconds(self.seconds),
            "p95, ms": milliseconds(self.seconds, 95),
            "requests": self.requests / each,
            "rows": self.rows / each,
            "returned": self.documents / each,
            "linkstore, as many, ms": milliseconds(self.ours) if self.ours else None,
            "times faster": float(np.median(self.seconds) / np.median(self.ours)) if self.ours else None,
        }


class Meter:
    """Counts what a session asks and gets.

    Args:
        session: The driver's.
    """

    def __init__(self, session: Any) -> None:
        self.requests = self.rows = 0
        session.add_request_init_listener(self._asked)
        profile = session.get_execution_profile(EXEC_PROFILE_DEFAULT)
        factory = profile.row_factory

        def counting(names: Any, rows: Any) -> Any:
            self.rows += len(rows)
            return factory(names, rows)

        profile.row_factory = counting

    def _asked(self, _: Any) -> None:
        self.requests += 1

    def measure(self, timings: Timings, ask: Callable[[], Sequence[Any]]) -> int:
        """Ask once; returns how many documents came."""
        before = self.requests, self.rows
        started = time.perf_counter()
        found = len(ask())
        timings.seconds.append(time.perf_counter() - started)
        timings.requests += self.requests - before[0]
        timings.rows += self.rows - before[1]
        timings.documents += found
        return found


class Counting(Executor):
    """Counts rows for a meter: the backend has its own way of reading them."""

    def __init__(self, session: Any, meter: Meter, tables: cql.Tables) -> None:
        super().__init__(session, SETTINGS, tables)
        self._meter = meter

    def run(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
        """As always, counted."""
        answers = super().run(requests)
        self._meter.rows += sum(map(len, answers))
        return answers


class Ours:
    """linkstore, and how long it takes."""

    def __init__(self, session: Any, data: GrowthData, *, lexical: bool = False) -> None:
        self.data = data
        self.meter = Meter(session)
        table = f"linkstore{'_words' if lexical else ''}_{len(data)}"
        self.store = LinkStore.cassandra(
            GivenVectors(data),
            session=session,
            keyspace=KEYSPACE,
            table=table,
            settings=replace(SETTINGS, lexical=lexical),
        )
        self.backend: Any = self.store.backend
        tables = cql.Tables(KEYSPACE, table)
        self.backend._executor = Counting(session, self.meter, tables)
        self._plain = (
            "SELECT id, body, attributes, links, vector FROM $documents ORDER BY vector ANN OF ? LIMIT ?"
        )

    def add(self, numbers: Sequence[int]) -> float:
        """Seconds to add documents that are ready."""
        documents = [self.data.document(n) for n in numbers]
        return _timed(lambda: self.store.add_documents(documents))

    def search(self, strategy: Strategy, n: int) -> Sequence[Any]:
        """The hits of a question."""
        return self.store.search(f"question {n}", strategy=strategy)

    def plain(self, n: int, k: int) -> Sequence[Any]:
        """The nearest ``k`` by the server's index, with nothing of linkstore but how vectors are sent."""
        values = (codes.pack_vector(self.data.questions[n]), k.to_bytes(4, "big"))
        statement = Statement(cql=self._plain, values=values, packed=True, level="one", limit=k)
        return self.backend._executor.run(Requests(statements=(statement,), what="search"))[0]


class Bare:
    """Rows of documents and members, written and nothing else."""

    def __init__(self, session: Any, data: GrowthData) -> None:
        self.data = data
        tables = cql.Tables(KEYSPACE, f"bare_{len(data)}")
        self._executor = Executor(session, SETTINGS, tables)
        backend = CassandraBackend(session, KEYSPACE, tables.name)
        backend.run(backend.claim(Manifest(embedding="bench", dimension=data.vectors.shape[1])))

    def add(self, numbers: Sequence[int]) -> float:
        """Seconds to write rows that are ready."""
        statements = tuple(self._statements(numbers))
        return _timed(lambda: self._executor.run(Requests(statements=statements, what="write rows")))

    def _statements(self, numbers: Sequence[int]) -> Iterator[Statement]:
        document = cql.write_documents(1)
        member = cql.write_rows(cql.MEMBER_ROWS, 1, replace=False)
        at = time.time_ns() // 1000
        packed = codes.encode_vectors(self.data.vectors[list(numbers)])
        for n, code in zip(numbers, packed, strict=True):
            links, name = dump_links(self.data.links(n)), str(n)
            attributes = str(self.data.document(n).metadata)
            columns = name, f"doc {n}", attributes, set(), links, "", bytes(24), self.data.vectors[n]
            values = (at, *columns, 0, at, 0)
            yield Statement(cql=document, values=values, level="write")
            version = DocumentVersion(name, "", {}, "", links, b"", self.data.vectors[n])
            for key, state in derive_members(version, code).items():
                values = (at, 0, {state}, *key)
                yield Statement(cql=member, values=values, level="write")


def main() -> None:
    """Measure every size on one server, print the tables."""
    options = _options()
    with Server(heap="8G", settings=SERVER) as server, ExitStack() as sessions:
        create_keyspace(sessions.enter_context(server.connect()), KEYSPACE)
        for size in map(int, options.sizes.split(",")):
            data = replace(make(size), words=options.words)
            ours, bare = (kind(sessions.enter_context(server.connect()), data) for kind in (Ours, Bare))
            peers = [
                kind(sessions.enter_context(server.connect()), KEYSPACE, data)
                for kind in (CommunityGraph, GraphRetriever)
                if not options.alone
            ]
            adding = options.record and f"{options.record}-adding"
            stores: dict[str, Any] = {"linkstore": ours, "bare inserts": bare}
            if options.words:
                session = sessions.enter_context(server.connect())
                stores["linkstore, words"] = Ours(session, data, lexical=True)
            stores |= {peer.name: peer for peer in peers}
            filled = _filled(server, stores, size, options.batch)
            report("Cassandra: adding documents", [filled], as_json=options.json, record_as=adding)
            if not options.questions:
                continue
            asked = _asked(ours, peers, options.questions)
            listed("Cassandra: asking", asked, as_json=options.json)
            asking = options.record and f"{options.record}-{size}"
            record(asking, {f"{row['store']}, {row['question']}": row for row in asked})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="10000", help="numbers of documents, with commas")
    parser.add_argument("--questions", type=int, default=20, help="how many are asked")
    parser.add_argument("--words", type=int, default=0, help="words of a text, which a further store indexes")
    parser.add_argument("--batch", type=int, default=BATCH, help="documents that are added at a time")
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--data", help="not needed: the documents are made here")
    add_output(parser)
    return parser.parse_args()


def _filled(server: Server, stores: dict[str, Any], size: int, at_once: int) -> Row:
    """Add all documents, a batch to one and then to the next."""
    seconds, added = dict.fromkeys(stores, 0.0), dict.fromkeys(stores, 0)
    for number, start in enumerate(range(0, size, at_once)):
        batch = range(start, min(start + at_once, size))
        for name, store in stores.items():
            if not isinstance(store, Bare) or number % BARE_EACH == 0:
                seconds[name] += store.add(batch)
                added[name] += len(batch)
        sys.stderr.write(f"\r{batch.stop:,} of {size:,} documents ")
    server.nodetool("flush", KEYSPACE, seconds=FLUSH_SECONDS)
    rates = {name: added[name] / spent for name, spent in seconds.items()}
    row: Row = {"documents": size}
    row |= {f"{name}, documents/s": rate for name, rate in rates.items()}
    row["linkstore / bare inserts"] = rates["linkstore"] / rates["bare inserts"]
    if peers := [rates[name] for name, store in stores.items() if isinstance(store, Peer)]:
        row |= {
            f"{name} / faster peer": rates[name] / max(peers)
            for name, store in stores.items()
            if isinstance(store, Ours)
        }
    for name in stores:
        table = f"{name.replace(', ', '_').split()[0].replace('-', '_')}_{size}"
        row[f"{name}, bytes/document"] = _bytes_on_disk(server, table) / added[name]
    return row


def _bytes_on_disk(server: Server, table: str) -> int:
    """Of a store's tables and their indexes, flushed and as far compacted as the server had time to."""
    folders = (server.node.folder / "data" / KEYSPACE).glob(f"{table}*")
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def _asked(ours: Ours, peers: list[Peer], questions: int) -> list[Row]:
    """Ask everybody everything, in turns."""
    timings = {("linkstore", how): Timings() for how in (*PLAIN, *OURS)}
    timings |= {(peer.name, how): Timings() for peer in peers for how in peer.asks}
    meters = {peer.name: Meter(peer.session) for peer in peers}
    for n in range(questions + 2):
        if n == 2:  # the first two warm up
            timings = {key: Timings() for key in timings}
        for how, k in PLAIN.items():
            ours.meter.measure(timings["linkstore", how], partial(ours.plain, n, k))
        for how, strategy in OURS.items():
            ours.meter.measure(timings["linkstore", how], partial(ours.search, strategy, n))
        for peer in peers:
            for how in peer.asks:
                timing = timings[peer.name, how]
                found = meters[peer.name].measure(timing, partial(peer.found, how, f"question {n}"))
                same = OURS[how.removeprefix("wide, ")].with_k(max(1, found))
                timing.ours += [_timed(partial(ours.search, same, n)) for _ in range(2)]
    return [timing.row(len(ours.data), store, how) for (store, how), timing in timings.items()]


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

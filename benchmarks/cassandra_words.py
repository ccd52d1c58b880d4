"""What it costs to search by words on Cassandra, and what other layouts of the same postings would.

Run: ``python benchmarks/cassandra_words.py --size 10000``; it starts a server of its own (Java 17 and Maven
are needed). Documents have 60 to 180 words from a vocabulary of 50,000, the r-th with weight 1 / (r + 20).
They are added to a store with and to one without lexical search, in turns; the postings of some of them are
also written alone, in the layouts that were compared, and read again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

sys.path.append(sys.path.pop(0))
sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
from _growth_data import DIMENSION, GrowthData, make
from _report import add_output, listed, milliseconds, report
from cassandra_server import Server, create_keyspace

from linkstore.core.lexical import extract_document_terms
from linkstore.core.links import parse_links
from linkstore.core.plans import Lexical, LexicalMatches, Plan
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.cassandra.codec import DocumentVersion
from linkstore.engines.cassandra.derived import (
    SHARDS,
    DerivedRows,
    compute_shard,
    compute_stamp,
    derive_postings,
)
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.placement import Placement
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import CREATE_WORD_TABLE, WORD_ROWS, Requests, Statement, Tables
from linkstore.engines.contract import Manifest, Record, WriteBatch

KEYSPACE = "bench"
PATIENT = {"write_request_timeout": "60s", "read_request_timeout": "60s"}
BATCH = 500
VOCABULARY = 50_000
CLAIM = Manifest(embedding="bench", dimension=DIMENSION)
Row = dict[str, Any]


class Texts:
    """Documents with texts.

    Args:
        data: Their vectors and links.
    """

    def __init__(self, data: GrowthData) -> None:
        self._data = data
        self._random = np.random.default_rng(5)
        weights = 1 / (np.arange(VOCABULARY) + 20.0)
        self._weights = weights / weights.sum()

    def records(self, numbers: Sequence[int]) -> list[Record]:
        """Documents of these numbers, each asked for once."""
        return [self._record(n) for n in numbers]

    def question(self) -> tuple[str, ...]:
        """Six words as texts have them."""
        return tuple(
            dict.fromkeys(f"w{word}" for word in self._random.choice(VOCABULARY, 6, p=self._weights))
        )

    def _record(self, n: int) -> Record:
        words = self._random.choice(VOCABULARY, self._random.integers(60, 181), p=self._weights)
        metadata = self._data.document(n).metadata
        return Record(
            id=f"page-{n}.html#part",
            text=" ".join(f"w{word}" for word in words),
            metadata=metadata,
            vector=self._data.vectors[n],
            links=parse_links(metadata, str(n)),
        )


@dataclass(frozen=True, slots=True)
class DocumentWords:
    """A document whose words are written, and how often it has each."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    counts: Mapping[str, int]
    length: int
    stamp: int

    @classmethod
    def of(cls, id: str, text: str, metadata: Mapping[str, Any]) -> DocumentWords:
        """The words of a name and a text."""
        words = extract_document_terms(text, metadata, id)
        stamp = compute_stamp(_make_version(id, text, metadata))
        return cls(id, text, metadata, Counter(words), len(words), stamp)


@dataclass(frozen=True, slots=True)
class Layout:
    """Postings in one layout.

    Args:
        name: For the table.
        create: Makes it.
        write: Statements for the words of documents.
        read: The statement that reads who has a word.
    """

    name: str
    create: tuple[str, ...]
    write: Callable[[Sequence[DocumentWords]], Iterator[Statement]]
    read: Callable[[str], Statement]


def _make_version(id: str, text: str, metadata: Mapping[str, Any]) -> DocumentVersion:
    record = Record(id=id, text=text, metadata=metadata, vector=np.ones(1, np.float32), links=())
    return DocumentVersion.of_record(record)


def layouts(fetcher: RowFetcher) -> list[Layout]:
    """Words that share partitions, which linkstore has; a partition for each word; an index over maps."""
    each, index = f"{KEYSPACE}.each_word", f"{KEYSPACE}.by_index"
    derived = DerivedRows(fetcher, 1, lexical=True)

    def shared(documents: Sequence[DocumentWords]) -> Iterator[Statement]:
        versions = (_make_version(words.id, words.text, words.metadata) for words in documents)
        rows = (derive_postings(version, SHARDS).items() for version in versions)
        return derived.write(WORD_ROWS, chain.from_iterable(rows), time.time_ns() // 1000)

    def alone(documents: Sequence[DocumentWords]) -> Iterator[Statement]:
        insert = f"INSERT INTO {each} (word, bucket, id, count, length, stamp) VALUES (?, 0, ?, ?, ?, ?)"
        rows = sorted(
            (word, words.id, count, words.length, words.stamp >> 1)
            for words in documents
            for word, count in words.counts.items()
        )
        for part in _by_partition(rows):
            values = tuple(value for row in part for value in row)
            text = f"BEGIN UNLOGGED BATCH {'; '.join([insert] * len(part))}; APPLY BATCH"
            yield Statement(cql=text, values=values, level="write")

    def indexed(documents: Sequence[DocumentWords]) -> Iterator[Statement]:
        insert = f"INSERT INTO {index} (id, words, length) VALUES (?, ?, ?)"
        for words in documents:
            yield Statement(cql=insert, values=(words.id, dict(words.counts), words.length), level="write")

    by_word = "SELECT hash, id, states FROM $words WHERE shard = ? AND bucket = 0 AND word = ?"
    alone_by_word = "SELECT id, count, length, stamp FROM {each} WHERE word = ? AND bucket = 0"
    by_key = f"SELECT id, words[?], length FROM {index} WHERE words CONTAINS KEY ?"
    return [
        Layout(
            "shared partitions",
            (CREATE_WORD_TABLE,),
            shared,
            lambda word: Statement(cql=by_word, values=(compute_shard(word, SHARDS), word)),
        ),
        Layout(
            "a partition a word",
            (
                f"CREATE TABLE {each} (word text, bucket int, id text, count int, length int, stamp bigint,"
                " PRIMARY KEY ((word, bucket), id))",
            ),
            alone,
            lambda word: Statement(cql=alone_by_word, values=(word,)),
        ),
        Layout(
            "index over a map",
            (
                f"CREATE TABLE {index} (id text PRIMARY KEY, words map<text, int>, length int)",
                f"CREATE CUSTOM INDEX ON {index} (keys(words)) USING 'StorageAttachedIndex'",
            ),
            indexed,
            lambda word: Statement(cql=by_key, values=(word, word)),
        ),
    ]


def _by_partition(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Rows of a word together where there are many, the others as many as a batch may have partitions."""
    loose: list[tuple[Any, ...]] = []
    for _, group in groupby(rows, lambda row: row[0]):
        of, start = list(group), 0
        for size in (128, 64, 32, 16, 8):
            while start + size <= len(of):
                yield of[start : start + size]
                start += size
        loose += of[start:]
    for start in range(0, len(loose), 9):
        yield loose[start : start + 9]


def main() -> None:
    """Measure, print the tables."""
    options = _options()
    with Server(heap="4G", settings=PATIENT) as server, ExitStack() as sessions:
        session = sessions.enter_context(server.connect())
        create_keyspace(session, KEYSPACE)
        texts = Texts(make(options.size))
        adding, stores = _stores(server, session, texts, options.size)
        asking = _asked(stores["with words"], texts, options.questions)
        compared = _compared(server, session, Texts(make(options.size)), min(options.size, options.alone))
    report("Cassandra: adding documents with words", [adding], as_json=options.json, record_as=options.record)
    report("Cassandra: the best 100 by six words", [asking], as_json=options.json)
    listed("Cassandra: layouts of postings", compared, as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, default=10_000, help="documents of the stores")
    parser.add_argument("--alone", type=int, default=3_000, help="documents whose postings are written alone")
    parser.add_argument("--questions", type=int, default=40, help="how many are asked")
    parser.add_argument("--data", help="not needed: the documents are made here")
    add_output(parser)
    return parser.parse_args()


def _stores(server: Server, session: Any, texts: Texts, size: int) -> tuple[Row, dict[str, CassandraBackend]]:
    """Add all documents to a store with words and to one without, a batch to one and then to the other."""
    tables = {"with words": "lexical", "without": "dense"}
    stores = {
        name: CassandraBackend(
            session, KEYSPACE, table, settings=CassandraSettings(lexical=table == "lexical")
        )
        for name, table in tables.items()
    }
    for store in stores.values():
        store.run(store.claim(CLAIM))
    spent = {name: Spent(server) for name in stores}
    for start in range(0, size, BATCH):
        change = WriteBatch(put=texts.records(range(start, min(start + BATCH, size))))
        for name, store in stores.items():
            spent[name].on(lambda store=store, change=change: store.run(store.write(change)))
    server.nodetool("flush", KEYSPACE)
    row: Row = {"documents": size}
    row |= {f"{name}, documents/s": size / each.seconds for name, each in spent.items()}
    row["with / without"] = spent["without"].seconds / spent["with words"].seconds
    row |= {f"{name}, ms of CPU/document": each.cpu / size * 1e3 for name, each in spent.items()}
    row |= {f"{name}, bytes/document": _bytes(server, table) / size for name, table in tables.items()}
    return row, stores


def _asked(store: CassandraBackend, texts: Texts, questions: int) -> Row:
    def plan(words: tuple[str, ...]) -> Plan[int]:
        found: LexicalMatches = yield Lexical(terms=words, k=100)
        return len(found.refs)

    asked = [texts.question() for _ in range(questions + 5)]
    seconds = [_timed(lambda words=words: store.run(store.answer(plan(words)))) for words in asked][5:]
    return {"questions": questions, "p50, ms": milliseconds(seconds), "p95, ms": milliseconds(seconds, 95)}


def _compared(server: Server, session: Any, texts: Texts, size: int) -> list[Row]:
    executor = Executor(session, tables=Tables(KEYSPACE, "shared"))
    compared = layouts(RowFetcher(Placement(session, KEYSPACE)))
    for layout in compared:
        for text in layout.create:
            executor.run(Requests(statements=(Statement(cql=text, level="schema"),), what="make tables"))
    spent = {one.name: Spent(server) for one in compared}
    sent = dict.fromkeys(spent, 0)
    for start in range(0, size, BATCH):
        records = texts.records(range(start, min(start + BATCH, size)))
        words = [DocumentWords.of(record.id, record.text, record.metadata) for record in records]
        for layout in compared:
            statements = tuple(layout.write(words))
            sent[layout.name] += len(statements)
            requests = Requests(statements=statements, what="write postings")
            spent[layout.name].on(lambda requests=requests: executor.run(requests))
    server.nodetool("flush", KEYSPACE)
    return [
        {
            "layout": layout.name,
            "documents": size,
            "documents/s": size / spent[layout.name].seconds,
            "ms of CPU/document": spent[layout.name].cpu / size * 1e3,
            "statements/document": sent[layout.name] / size,
            **_read(executor, layout),
        }
        for layout in compared
    ]


def _read(executor: Executor, layout: Layout) -> Row:
    """The time to read a word that many have, one that some have and one that few have."""
    row: Row = {}
    for word in ("w0", "w100", "w5000"):
        requests = Requests(statements=(layout.read(word),), what="read postings")
        rows = len(executor.run(requests)[0])
        seconds = [_timed(lambda requests=requests: executor.run(requests)) for _ in range(12)]
        row[f"{word}: rows"], row[f"{word}: ms"] = rows, milliseconds(seconds)
    return row


def _bytes(server: Server, table: str) -> int:
    folders = (server.node.folder / "data" / KEYSPACE).glob(f"{table}*")
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


class Spent:
    """What actions took.

    Args:
        server: Whose work counts too.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.seconds = self.cpu = 0.0

    def on(self, action: Callable[[], object]) -> None:
        """Do something and add what it took: time, and computing by client and server."""
        before = self._computed()
        self.seconds += _timed(action)
        self.cpu += self._computed() - before

    def _computed(self) -> float:
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

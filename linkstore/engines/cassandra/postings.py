"""Postings: which documents contain a word, written with the documents and read within a scope.

Postings, which record the documents that contain a word: their partitions, content and statements.

A posting has the number of times that a document contains a word, for one or more states of the document's
name and text. A state is identified by its stamp, a hash of name and text. A reader that has read the
document can tell which state of the posting is current.

Words are assigned to partitions by their hash. So the words of many documents go to few partitions, and each
partition is one write. The documents of a word are ordered by a hash of their ids. So the first of them are a
random sample, and their density tells how many there are.

Reads the postings of partitions within a scope, page by page, and skips those of other documents.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.core.lexical import extract_document_terms, get_document_name
from linkstore.core.plans import Operation
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.members import find_bucket
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import (
    SINGLE_STATE,
    SINGLE_STATE_OFFSET,
    pack_batch,
    pack_states,
    split_batches,
    unpack_states,
)
from linkstore.engines.cassandra.scopes import Scope
from linkstore.engines.cassandra.statements import Tables

SHARDS: Final = 256
"""Number of partitions of all words, for each bucket."""
EVERY_DOCUMENT: Final = ""
"""A word that is recorded for every document, with the count 0, so that documents can be counted."""
EVERY_DOCUMENT_SHARDS: Final = 4
"""Number of partitions of that word."""
LARGE_BATCH_SIZES: Final = (128, 64, 32, 16, 8)
"""Numbers of rows in a batch of one partition."""
POSTING_BATCH_SIZES: Final = (8, 4, 2, 1)
"""Numbers of rows in a batch of several partitions."""
POSTING_HEAD: Final = np.dtype([("hash", ">u8"), ("count", ">u4"), ("length", ">u4"), ("stamp", ">u8")])
"""A posting in one state: hash of the id, count of the word, length of the document in words, stamp."""
HASH_BYTES: Final = 8
"""The hash is part of the key; the rest of a head is the state."""
_TERMS_VERSION: Final = 1
"""Increment if the words of a text change: then all stamps differ, and ``repair`` writes all postings."""
_LONG_ID: Final = 256
_INT: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">Q")
_PARTITION_NUMBER: Final = struct.Struct(">i")
PostingKey = tuple[int, int, str, bytes, str]
"""The primary key of a row: shard, bucket, word, hash of the id, document id."""
PostingRow = tuple[PostingKey, bytes]
"""A key and a state."""
WordPartition = tuple[int, int]
"""Shard and bucket."""
_FlatPosting = tuple[int, int, str, bytes, str, bytes]
"""A key and a state in one tuple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWords:
    """The words of a document in one state.

    Args:
        id: The document.
        stamp: The stamp of the state.
        counts: Number of occurrences of each word.
        length: Number of words.
    """

    id: str
    stamp: int
    counts: Mapping[str, int]
    length: int

    @classmethod
    def of(cls, id: str, text: str, metadata: Mapping[str, Any]) -> DocumentWords:
        """Return the words of a name and a text."""
        words = extract_document_terms(text, metadata)
        return cls(id=id, stamp=compute_stamp(text, metadata), counts=Counter(words), length=len(words))

    def rows(self, buckets: int) -> Iterator[PostingRow]:
        """Yield the rows of the document, with their states."""
        at, end = find_bucket(self.id, buckets), _INT.pack(self.length) + _LONG.pack(self.stamp)
        for word, (shard, hashed) in self._hash_places().items():
            yield (shard, at, word, hashed, self.id), _INT.pack(self.counts.get(word, 0)) + end

    def keys_gone(self, before: DocumentWords, buckets: int) -> Iterator[PostingKey]:
        """Yield the keys of rows that existed before and do not any more."""
        at = find_bucket(self.id, buckets)
        for word, (shard, hashed) in before._hash_places().items():
            if word != EVERY_DOCUMENT and word not in self.counts:
                yield shard, at, word, hashed, self.id

    def rows_differing(self, before: DocumentWords, buckets: int) -> Iterator[PostingRow]:
        """Yield the rows that existed before with another state."""
        if self.stamp != before.stamp:
            known = {EVERY_DOCUMENT, *before.counts}
            yield from ((key, state) for key, state in self.rows(buckets) if key[2] in known)

    def _hash_places(self) -> dict[str, tuple[int, bytes]]:
        """Return shard and hash of the id, for each word."""
        number = _hash_text(self.id)
        hashed = _LONG.pack(number)
        places = {word: (compute_shard(word), hashed) for word in self.counts}
        return {EVERY_DOCUMENT: ((number >> 32) % EVERY_DOCUMENT_SHARDS, hashed), **places}


def compute_stamp(text: str, metadata: Mapping[str, Any]) -> int:
    """Return a hash of everything that the words of a document are derived from."""
    name = get_document_name(metadata).encode()
    stamp = xxhash.xxh3_64(b"%d\0" % len(name) + name, seed=_TERMS_VERSION)
    stamp.update(text.encode())
    return stamp.intdigest()


@lru_cache(maxsize=100_000)
def compute_shard(word: str) -> int:
    """Return the shard of a word."""
    return _hash_text(word) % SHARDS


def list_partitions(word: str, buckets: int) -> list[WordPartition]:
    """Return the partitions with the documents of a word."""
    shards = range(EVERY_DOCUMENT_SHARDS) if word == EVERY_DOCUMENT else (compute_shard(word),)
    return [(shard, at) for shard in shards for at in range(buckets)]


class PostingStatements:
    """Statements that write and delete postings.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        lifetime: Seconds until written rows expire. None: never.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, lifetime: int | None = None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = () if lifetime is None else (lifetime,)

    def add(self, rows: Iterable[PostingRow], at: int) -> Iterator[Statement]:
        """Add states to rows, with many rows that one node owns in each statement."""
        return self._write(rows, at, replace=False)

    def replace(self, rows: Iterable[PostingRow], at: int) -> Iterator[Statement]:
        """Add states to rows, and remove all states added before ``at``."""
        return self._write(rows, at, replace=True)

    def delete(self, keys: Iterable[PostingKey], at: int) -> Iterator[Statement]:
        """Delete rows, except for states added after ``at``."""
        for part, routing in self._make_batches([(*key, b"") for key in keys]):
            values = (_pack_posting_key(row) for row in part)
            yield pack_batch(cql.delete_postings(self._tables, len(part)), at, values, routing)

    def _write(self, rows: Iterable[PostingRow], at: int, *, replace: bool) -> Iterator[Statement]:
        lifetime = [_INT.pack(seconds) for seconds in self._lifetime]
        for part, routing in self._make_batches([(*key, state) for key, state in rows]):
            text = cql.write_postings(self._tables, len(part), replace=replace, lifetime=bool(lifetime))
            values = ([*lifetime, pack_states(row[-1]), *_pack_posting_key(row)] for row in part)
            yield pack_batch(text, at, values, routing)

    def _make_batches(
        self, rows: Iterable[_FlatPosting]
    ) -> Iterator[tuple[Sequence[_FlatPosting], bytes | None]]:
        rows_of: defaultdict[WordPartition, list[_FlatPosting]] = defaultdict(list)
        for row in rows:
            rows_of[row[:2]].append(row)
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(self._tables.words_name, partitions):
            loose: list[_FlatPosting] = []
            for position in share.positions:
                for part in _split_large_batches(rows_of[partitions[position]], loose):
                    yield part, None
            for part in split_batches(loose, POSTING_BATCH_SIZES):
                yield part, share.routing


def _pack_posting_key(row: _FlatPosting) -> list[bytes]:
    shard, at, word, hashed, id, _ = row
    return [_PARTITION_NUMBER.pack(shard), _PARTITION_NUMBER.pack(at), word.encode(), hashed, id.encode()]


def _split_large_batches(
    rows: Sequence[_FlatPosting], loose: list[_FlatPosting]
) -> Iterator[Sequence[_FlatPosting]]:
    """Split rows of one partition into batches, and append the rest to ``loose``."""
    short = [row for row in rows if len(row[-2]) <= _LONG_ID]
    loose += [row for row in rows if len(row[-2]) > _LONG_ID]
    start = 0
    for size in LARGE_BATCH_SIZES:
        while start + size <= len(short):
            yield short[start : start + size]
            start += size
    loose += short[start:]


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


ReadPosting = tuple[bytes, str]
"""Head of a state, and document id."""
ServerPosting = tuple[bytes, str, bytes]
"""Hash of the document id, document id, states."""
_LARGEST_POSTING_PAGE: Final = 5_000
_POSTING_PAGE_GROWTH: Final = 4


@dataclass(slots=True)
class PostingReading:
    """The postings of a word in one partition that were read.

    Args:
        word: The word.
        partition: The partition.
        wanted: Number of rows of the scope to read.
        rows: The rows of the scope that were read.
        looked_at: Number of rows that were read, including those outside the scope.
        last: The last row that was read, None before the first.
        more: Whether there may be more.
    """

    word: str
    partition: WordPartition
    wanted: int
    rows: list[ReadPosting] = field(default_factory=list)
    looked_at: int = 0
    last: ReadPosting | None = None
    more: bool = True

    def take(self, rows: Sequence[ServerPosting], held: set[str], asked: int) -> None:
        """Add rows, which answer a request for ``asked`` rows."""
        self.looked_at += len(rows)
        self.more = len(rows) == asked
        found = split_states(rows)
        if found:
            self.last = found[-1]
        self.rows += [row for row in found if row[1] in held]
        if len(self.rows) >= self.wanted:
            # Same rows as in a store with only the scope's documents; the last document with all its states.
            end = self.wanted
            while end < len(self.rows) and self.rows[end][1] == self.rows[end - 1][1]:
                end += 1
            del self.rows[end:]
            self.last, self.more = self.rows[-1], True


def read_postings_within(
    tables: Tables, readings: Sequence[PostingReading], scope: Scope, most: int | None = None
) -> Operation[None]:
    """Read until each reading has the wanted rows, or ``most`` rows were read, or there are no more."""
    page = min((_LARGEST_POSTING_PAGE, *(one.wanted for one in readings)))
    while open_ := [one for one in readings if _is_unfinished(one, most)]:
        statements = tuple(_make_page_statement(tables, one, page) for one in open_)
        answers: list[list[ServerPosting]] = yield Requests(statements=statements, what="look words up")
        ids = (id for rows in answers for _, id, _ in rows)
        held = yield from scope.of(ids, sample=most is not None)
        for one, rows in zip(open_, answers, strict=True):
            one.take(rows, held, page)
        page = min(page * _POSTING_PAGE_GROWTH, _LARGEST_POSTING_PAGE)


def _is_unfinished(reading: PostingReading, most: int | None) -> bool:
    enough = len(reading.rows) >= reading.wanted
    return reading.more and not enough and (most is None or reading.looked_at < most)


def _make_page_statement(tables: Tables, reading: PostingReading, page: int) -> Statement:
    key = (*reading.partition, reading.word)
    if reading.last is None:
        return Statement(cql=cql.read_first_postings(tables), values=(*key, page))
    return Statement(cql=cql.read_next_postings(tables), values=(*key, *locate_posting(reading.last), page))


def split_states(rows: Sequence[ServerPosting]) -> list[ReadPosting]:
    """Return a row for each state of each posting, of which nearly all have one."""
    return [
        (hashed + state, id)
        for hashed, id, states in rows
        for state in (
            (states[SINGLE_STATE_OFFSET:],) if states.startswith(SINGLE_STATE) else unpack_states(states)
        )
    ]


def locate_posting(row: ReadPosting) -> tuple[bytes, str]:
    """Return the position of a row within its word: hash, document id."""
    head, id = row
    return head[:HASH_BYTES], id

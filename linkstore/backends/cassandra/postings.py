"""Postings, which record the documents that contain a word: their partitions, content and statements.

A posting has the number of times that a document contains a word, for one or more states of the document's
name and text. A state is identified by its stamp, a hash of name and text. A reader that has read the
document can tell which state of the posting is current.

Words are assigned to partitions by their hash. So the words of many documents go to few partitions, and each
partition is one write. The documents of a word are ordered by a hash of their ids. So the first of them are a
random sample, and their density tells how many there are.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.backends.cassandra import derived_cql
from linkstore.backends.cassandra.batching import batches, packed_batch
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.members import bucket
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.states import packed
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.lexical import document_terms, name_of

SHARDS: Final = 256
"""Number of partitions of all words, for each bucket."""
EVERY_DOCUMENT: Final = ""
"""A word that is recorded for every document, with the count 0, so that documents can be counted."""
PARTS: Final = 4
"""Number of partitions of that word."""
LARGE_SIZES: Final = (128, 64, 32, 16, 8)
"""Numbers of rows in a batch of one partition."""
SIZES: Final = (8, 4, 2, 1)
"""Numbers of rows in a batch of several partitions."""
HEAD: Final = np.dtype([("hash", ">u8"), ("count", ">u4"), ("length", ">u4"), ("stamp", ">u8")])
"""A posting in one state: hash of the id, count of the word, length of the document in words, stamp."""
HASH_BYTES: Final = 8
"""The hash is part of the key; the rest of a head is the state."""
_DEFINITION: Final = 1
"""Increment if the words of a text change: then all stamps differ, and ``repair`` writes all postings."""
_LONG_ID: Final = 256
_INT: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">Q")
_PLACE: Final = struct.Struct(">i")
PostingKey = tuple[int, int, str, bytes, str]
"""The primary key of a row: shard, bucket, word, hash of the id, document id."""
PostingRow = tuple[PostingKey, bytes]
"""A key and a state."""
Partition = tuple[int, int]
"""Shard and bucket."""
_Flat = tuple[int, int, str, bytes, str, bytes]
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
        words = document_terms(text, metadata)
        return cls(id=id, stamp=stamp_of(text, metadata), counts=Counter(words), length=len(words))

    def rows(self, buckets: int) -> Iterator[PostingRow]:
        """Yield the rows of the document, with their states."""
        at, end = bucket(self.id, buckets), _INT.pack(self.length) + _LONG.pack(self.stamp)
        for word, (shard, hashed) in self._hash_places().items():
            yield (shard, at, word, hashed, self.id), _INT.pack(self.counts.get(word, 0)) + end

    def keys_gone(self, before: DocumentWords, buckets: int) -> Iterator[PostingKey]:
        """Yield the keys of rows that existed before and do not any more."""
        at = bucket(self.id, buckets)
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
        number = _hash(self.id)
        hashed = _LONG.pack(number)
        places = {word: (shard_of(word), hashed) for word in self.counts}
        return {EVERY_DOCUMENT: ((number >> 32) % PARTS, hashed), **places}


def stamp_of(text: str, metadata: Mapping[str, Any]) -> int:
    """Return a hash of everything that the words of a document are derived from."""
    name = name_of(metadata).encode()
    stamp = xxhash.xxh3_64(b"%d\0" % len(name) + name, seed=_DEFINITION)
    stamp.update(text.encode())
    return stamp.intdigest()


@lru_cache(maxsize=100_000)
def shard_of(word: str) -> int:
    """Return the shard of a word."""
    return _hash(word) % SHARDS


def partitions_of(word: str, buckets: int) -> list[Partition]:
    """Return the partitions with the documents of a word."""
    shards = range(PARTS) if word == EVERY_DOCUMENT else (shard_of(word),)
    return [(shard, at) for shard in shards for at in range(buckets)]


class PostingStatements:
    """Statements that write and delete postings.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        lifetime: Seconds until written rows expire. None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None = None) -> None:
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
            values = (_packed_key(row) for row in part)
            yield packed_batch(derived_cql.delete_postings(self._tables, len(part)), at, values, routing)

    def _write(self, rows: Iterable[PostingRow], at: int, *, replace: bool) -> Iterator[Statement]:
        lifetime = [_INT.pack(seconds) for seconds in self._lifetime]
        for part, routing in self._make_batches([(*key, state) for key, state in rows]):
            text = derived_cql.write_postings(
                self._tables, len(part), replace=replace, lifetime=bool(lifetime)
            )
            values = ([*lifetime, packed(row[-1]), *_packed_key(row)] for row in part)
            yield packed_batch(text, at, values, routing)

    def _make_batches(self, rows: Iterable[_Flat]) -> Iterator[tuple[Sequence[_Flat], bytes | None]]:
        rows_of: defaultdict[Partition, list[_Flat]] = defaultdict(list)
        for row in rows:
            rows_of[row[:2]].append(row)
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(self._tables.words_name, partitions):
            loose: list[_Flat] = []
            for position in share.positions:
                for part in _large_batches(rows_of[partitions[position]], loose):
                    yield part, None
            for part in batches(loose, SIZES):
                yield part, share.routing


def _packed_key(row: _Flat) -> list[bytes]:
    shard, at, word, hashed, id, _ = row
    return [_PLACE.pack(shard), _PLACE.pack(at), word.encode(), hashed, id.encode()]


def _large_batches(rows: Sequence[_Flat], loose: list[_Flat]) -> Iterator[Sequence[_Flat]]:
    """Split rows of one partition into batches, and append the rest to ``loose``."""
    short = [row for row in rows if len(row[-2]) <= _LONG_ID]
    loose += [row for row in rows if len(row[-2]) > _LONG_ID]
    start = 0
    for size in LARGE_SIZES:
        while start + size <= len(short):
            yield short[start : start + size]
            start += size
    loose += short[start:]


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())

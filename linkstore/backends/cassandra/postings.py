"""Who has a word, as rows: where they lie, what is in them, and how they are sent.

A posting says that a document, as it is in one state, has a word so many times. Its key holds all of that, so
a row is never changed, only added and removed, and the rows of two states of a document do not meet. A state
goes by its stamp, a hash of name and text: whoever has read the document knows which rows are about it as it
is now.

Words are spread over a number of partitions by their hash: the words of many documents so go to few
partitions, of which each is one write. The documents of a word are in the order of a hash of their ids. So
the first of them are a random sample, and how near to each other these lie tells how many there are in all.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.batching import batches
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.members import bucket
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.lexical import document_terms, name_of

SHARDS: Final = 256
"""Into how many partitions words are spread, for each bucket."""
EVERY_DOCUMENT: Final = ""
"""The word that every document has, 0 times: its documents are all there are."""
PARTS: Final = 4
"""Into how many partitions that word alone is split."""
LARGE_SIZES: Final = (128, 64, 32, 16, 8)
"""Rows of a batch that is of one partition."""
SIZES: Final = (8, 4, 2, 1)
"""Rows of a batch of several partitions."""
HEAD: Final = np.dtype([("hash", ">u8"), ("count", ">u4"), ("length", ">u4"), ("stamp", ">u8")])
"""Hash of the id, how often the document has the word, how many words it has, stamp."""
_DEFINITION: Final = 1
"""To be raised if other words are made of a text: then no stamp is right, and ``repair`` makes all anew."""
_LONG_ID: Final = 256
_INT: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">Q")
PostingKey = tuple[int, int, str, bytes, str]
"""The primary key of a row: shard, bucket, word, head, document id."""
Partition = tuple[int, int]
"""Shard and bucket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWords:
    """The words of a document in one state.

    Args:
        id: Of the document.
        stamp: Of the state.
        counts: How often it has each word.
        length: How many words it has in all.
    """

    id: str
    stamp: int
    counts: Mapping[str, int]
    length: int

    @classmethod
    def of(cls, name: str, text: str, metadata: Mapping[str, Any]) -> DocumentWords:
        """The words of a name and a text."""
        words = document_terms(text, metadata)
        return cls(id=name, stamp=stamp_of(text, metadata), counts=Counter(words), length=len(words))

    def keys(self, buckets: int) -> Iterator[PostingKey]:
        """The rows that say so."""
        name, hashed = self.id, _hash(self.id)
        at = bucket(name, buckets)
        start, end = _LONG.pack(hashed), _INT.pack(self.length) + _LONG.pack(self.stamp)
        yield (hashed >> 32) % PARTS, at, EVERY_DOCUMENT, start + _INT.pack(0) + end, name
        for word, count in self.counts.items():
            yield shard_of(word), at, word, start + _INT.pack(count) + end, name


def stamp_of(text: str, metadata: Mapping[str, Any]) -> int:
    """Stands for all that the words of a document follow from."""
    name = name_of(metadata).encode()
    stamp = xxhash.xxh3_64(b"%d\0" % len(name) + name, seed=_DEFINITION)
    stamp.update(text.encode())
    return stamp.intdigest()


@lru_cache(maxsize=100_000)
def shard_of(word: str) -> int:
    """Where a word lies."""
    return _hash(word) % SHARDS


def partitions_of(word: str, buckets: int) -> list[Partition]:
    """The partitions in which documents that have a word lie."""
    shards = range(PARTS) if word == EVERY_DOCUMENT else (shard_of(word),)
    return [(shard, at) for shard in shards for at in range(buckets)]


class PostingStatements:
    """Statements that write and delete postings.

    Args:
        tables: Of the store.
        fetcher: Knows which node has which partition.
        lifetime: Seconds until what is written expires; None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None = None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = () if lifetime is None else (lifetime,)

    def write(self, keys: Iterable[PostingKey], at: int) -> Iterator[Statement]:
        """Many rows a statement, each statement to a node that has them."""
        lifetime = [_INT.pack(seconds) for seconds in self._lifetime]
        for rows, routing in self._batches(keys):
            text = cql.write_postings(self._tables, len(rows), lifetime=bool(lifetime))
            yield _packed(text, at, (_values(row) + lifetime for row in rows), routing)

    def delete(self, keys: Iterable[PostingKey], at: int) -> Iterator[Statement]:
        """Likewise."""
        for rows, routing in self._batches(keys):
            yield _packed(cql.delete_postings(self._tables, len(rows)), at, map(_values, rows), routing)

    def _batches(self, keys: Iterable[PostingKey]) -> Iterator[tuple[Sequence[PostingKey], bytes | None]]:
        rows_of: defaultdict[Partition, list[PostingKey]] = defaultdict(list)
        for key in keys:
            rows_of[key[:2]].append(key)
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(self._tables.words_name, partitions):
            loose: list[PostingKey] = []
            for position in share.positions:
                for part in _large_batches(rows_of[partitions[position]], loose):
                    yield part, None
            for part in batches(loose, SIZES):
                yield part, share.routing


def _values(row: PostingKey) -> list[bytes]:
    shard, at, word, head, name = row
    return [_INT.pack(shard), _INT.pack(at), word.encode(), head, name.encode()]


def _packed(text: str, at: int, rows: Iterable[list[bytes]], routing: bytes | None) -> Statement:
    values = [_LONG.pack(at), *chain.from_iterable(rows)]
    return Statement(cql=text, values=values, packed=True, level="write", routing=routing)


def _large_batches(rows: Sequence[PostingKey], loose: list[PostingKey]) -> Iterator[Sequence[PostingKey]]:
    """Rows of one partition in batches of their own; those that make none are added to the loose ones."""
    short = [row for row in rows if len(row[-1]) <= _LONG_ID]
    loose += [row for row in rows if len(row[-1]) > _LONG_ID]
    start = 0
    for size in LARGE_SIZES:
        while start + size <= len(short):
            yield short[start : start + size]
            start += size
    loose += short[start:]


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())

"""Rows derived from documents, members and postings: what a change adds, replaces and deletes.

A member row stands for a document on one side of a link group. Its state is the weight of the link and the
code of the document's vector. Each document has such a row in the list of documents too
(:mod:`.listing`). A posting stands for a word of a document. Its state has the number of times that the
document contains the word, the number of its words, and a stamp, a hash of its names and text, by which a
reader of the document can tell which state is the current one.

Words are assigned to partitions by their hash. So the words of many documents go to few partitions, and each
partition is one write. The documents of a word are ordered by a hash of their ids. So the first of them are a
random sample, and their density tells how many there are.

A link group or a word whose first partition has become large is *split* (:mod:`.listing`): the rows of its
further documents go to other buckets. Rows are derived for the first bucket, 0, and placed when they are
written. A row is valid in either place, so none is moved until its document changes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.core.lexical import extract_document_terms, get_document_name, list_other_names
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import SIDES, DocumentVersion
from linkstore.engines.cassandra.reading import RowFetcher, split_by_weight
from linkstore.engines.cassandra.statements import MEMBER_ROWS, WORD_ROWS, DerivedTable, Statement

_EXACT: Final = 10
"""From this number of rows on, not every number has a prepared statement."""
BATCH_SIZES: Final = (*range(1, _EXACT), 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of rows in a batch. There are few of them, because each needs a prepared statement."""
BATCH_PARTITIONS: Final = 9
"""Maximum number of partitions in a batch. The server warns about more than 10."""
PARTITION_BATCH_BYTES: Final = 1 << 19
"""The most bytes in a batch of one partition, which is a single write for the server."""
SHARDS: Final = 256
"""Number of partitions of all words, but for those of words that were split, where a store sets no other."""
GROUP_BUCKETS: Final = 64
"""Number of further partitions of a side of a link group that was split, by the hash of ids."""
WORD_BUCKETS: Final = 32
"""Number of further partitions of a word that was split, by ranges of the hash of ids."""
EVERY_DOCUMENT: Final = ""
"""A word that is recorded for every document, with the count 0, so that documents can be counted."""
EVERY_DOCUMENT_SHARDS: Final = 4
"""Number of partitions of that word."""
_PADDING: Final = 1.5
"""How many times as many rows as there are a batch has at most."""
WEIGHT_FORMAT: Final = struct.Struct("<f")
POSTING_HEAD: Final = np.dtype([("hash", ">u8"), ("count", ">u4"), ("length", ">u4"), ("stamp", ">u8")])
"""A posting in one state: hash of the id, count of the word, length of the document in words, stamp."""
HASH_BYTES: Final = 8
"""The hash is part of the key; the rest of a head is the state."""
_POSTING_STATE: Final = struct.Struct(">IIQ")
"""The state of a posting: count, length, stamp."""
_TERMS_VERSION: Final = 1
"""Increment if the words of a text change: then all stamps differ, and ``repair`` writes all postings."""
_HASH: Final = struct.Struct(">Q")
_PACKERS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    **dict.fromkeys(("kind", "tag", "side", "word", "id"), str.encode),
    **dict.fromkeys(("bucket", "shard"), codec.SIZE.pack),
    "hash": bytes,
}
"""How the columns of keys are packed in the format of the native protocol."""
RowKey = tuple[Any, ...]
"""The primary key of a row: kind, tag, side, bucket, id; or shard, bucket, word, hash of the id, id."""
Rows = Mapping[RowKey, bytes]
"""The state of each row."""
RowSet = tuple[Rows, ...]
"""The rows of a document in each table: members, and words if the store indexes them."""
NO_ROWS: Final[RowSet] = ({}, {})
LIST: Final = ("", "", "")
"""Kind, tag and side of the members that are the list of all documents. No link has an empty kind."""
LIST_SHARDS: Final = 64
"""Number of partitions of that list."""
SplitName = tuple[str | int, ...]
"""Names what can be split: kind, tag and side, or shard and word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """What the change of a document makes of its rows.

    Args:
        now: The rows to have.
        before: The rows that it had.
        at: The timestamp of rows that are written.
        gone_at: The timestamp of deletions.
        lifetime: Seconds until the rows expire. 0: never.
    """

    now: RowSet
    before: RowSet
    at: int
    gone_at: int
    lifetime: int = 0


class DerivedRows:
    """Derives rows from documents, and makes the statements that write and delete them.

    Args:
        fetcher: Finds the nodes of partitions.
        shards: Number of partitions of words.
        lexical: Whether postings are derived.
        listed: Whether the rows of the list of documents are.

    Attributes:
        splits: What is split, as a write reads it before it begins; its rows are placed by nothing else.
    """

    def __init__(self, fetcher: RowFetcher, shards: int, *, lexical: bool, listed: bool = True) -> None:
        self.splits: frozenset[SplitName] = frozenset()
        self._listed = listed
        self.lexical = lexical
        self.tables = (MEMBER_ROWS, WORD_ROWS) if lexical else (MEMBER_ROWS,)
        self._fetcher = fetcher
        self._shards = shards

    def with_splits(self, splits: frozenset[SplitName]) -> DerivedRows:
        """Return a copy for one write, which places rows by these splits."""
        derived = copy(self)
        derived.splits = splits
        return derived

    def derive(
        self, versions: Sequence[DocumentVersion], known: Mapping[str, RowSet] | None = None
    ) -> dict[str, RowSet]:
        """Return the rows of versions of documents, by id.

        Args:
            versions: One of each document, with its text if :meth:`needs_text`.
            known: The rows of other versions of them, which are reused where the words are the same.
        """
        if not versions:
            return {}
        codes = codec.encode_vectors(np.stack([version.vector for version in versions]))
        rows: dict[str, RowSet] = {}
        for version, code in zip(versions, codes, strict=True):
            members = derive_members(version, code)
            if self._listed:
                shard = hash_id(version.id) % LIST_SHARDS
                members[(*LIST, shard, version.id)] = pack_member_state(1.0, code)
            rows[version.id] = (members,)
            if self.lexical:
                like = known.get(version.id, NO_ROWS) if known else NO_ROWS
                same = _has_same_words(version, like)
                rows[version.id] = members, like[1] if same else derive_postings(version, self._shards)
        return rows

    def needs_text(self, version: DocumentVersion, known: Mapping[str, RowSet]) -> bool:
        """Say whether the rows of a version cannot be derived without its text, which was not read."""
        return (
            self.lexical
            and version.unread > 0
            and not _has_same_words(version, known.get(version.id, NO_ROWS))
        )

    def add(self, changes: Iterable[RowChange]) -> Iterator[Statement]:
        """Add the rows to have, before the documents are written."""
        for alike in _group_changes(changes):
            for number, table in enumerate(self.tables):
                rows = ((self.place(key), state) for c in alike for key, state in c.now[number].items())
                yield from self.write(table, rows, alike[0].at, lifetime=alike[0].lifetime)

    def finish(self, changes: Iterable[RowChange]) -> Iterator[Statement]:
        """Remove the previous states of rows, and rows that are not needed any more."""
        for alike in _group_changes(changes):
            for number, table in enumerate(self.tables):
                differing: list[tuple[RowKey, bytes]] = []
                gone: list[RowKey] = []
                for change in alike:
                    now, before = change.now[number], change.before[number]
                    if now is before and not self.splits:
                        continue
                    other = (key for key, state in now.items() if before.get(key, state) != state)
                    differing += ((self.place(key), now[key]) for key in other)
                    for key in before:  # an old row may be in either place, a new one is where it is placed
                        place = self.place(key)
                        gone += {key} - {place} if key in now else {key, place}
                at, lifetime = alike[0].at, alike[0].lifetime
                yield from self.write(table, differing, at, replace=True, lifetime=lifetime)
                yield from self.delete(table, gone, alike[0].gone_at)

    def place(self, key: RowKey) -> RowKey:
        """Return the key by which a row of the first bucket is written: in another one if that was split."""
        if not self.splits or (name := name_split(key)) not in self.splits:
            return key
        if isinstance(key[0], int):
            return (key[0], find_range(key[3]), *key[2:])
        return (*name, 1 + hash_id(key[-1]) % GROUP_BUCKETS, key[-1])

    def find_first(self, key: RowKey) -> RowKey:
        """Return the key that a row of what was split has in the first bucket."""
        name = name_split(key)
        if name not in self.splits:
            return key
        return (key[0], 0, *key[2:]) if isinstance(key[0], int) else (*name, 0, key[-1])

    def write(
        self,
        table: DerivedTable,
        rows: Iterable[tuple[RowKey, bytes]],
        at: int,
        *,
        replace: bool = False,
        lifetime: int = 0,
    ) -> Iterator[Statement]:
        """Add states to rows.

        Args:
            table: The table.
            rows: Keys and states, in any order.
            at: The timestamp.
            replace: Whether to remove all states that were added before.
            lifetime: Seconds until written rows expire. 0: never.
        """
        expiry = codec.SIZE.pack(lifetime)
        pack_key = _make_key_packer(table)
        packed = ((expiry, codec.pack_set(state), *pack_key(key)) for key, state in rows)
        make_text = cache(partial(cql.write_rows, table, replace=replace))
        for part, routing in self._make_batches(table, packed):
            yield codec.pack_batch(make_text(len(part)), at, part, routing)

    def delete(self, table: DerivedTable, keys: Iterable[RowKey], at: int) -> Iterator[Statement]:
        """Delete rows, except for states added after ``at``."""
        for part, routing in self._make_batches(table, map(_make_key_packer(table), keys)):
            yield codec.pack_batch(cql.delete_rows(table, len(part)), at, part, routing)

    def _make_batches(
        self, table: DerivedTable, rows: Iterable[tuple[bytes, ...]]
    ) -> Iterator[tuple[Sequence[tuple[bytes, ...]], bytes | None]]:
        """Yield the rows and the routing key of each statement.

        A statement has as many rows of one partition as are allowed, or all that fit of several of a node.
        The last row is repeated up to the next number of rows for which there is a prepared statement.
        """
        start, end = -len(table.key), -len(table.clustering)
        rows_of: defaultdict[tuple[bytes, ...], list[tuple[bytes, ...]]] = defaultdict(list)
        for row in rows:
            rows_of[row[start:end]].append(row)
        for share, routing in self._fetcher.placement.by_replica(rows_of):
            large: list[list[tuple[bytes, ...]]] = []
            small: list[list[tuple[bytes, ...]]] = []
            for own in share:
                for part in split_by_weight(own, _weigh, PARTITION_BATCH_BYTES, BATCH_SIZES[-1]):
                    (large if sum(map(_weigh, part)) > codec.BATCH_BYTES else small).append(part)
            for batch in chain(large, _join_partitions(small)):
                count = BATCH_SIZES[bisect_left(BATCH_SIZES, len(batch))]
                yield batch + batch[-1:] * (count - len(batch)), routing


def _weigh(row: tuple[bytes, ...]) -> float:
    """Return the bytes of a row as the server counts them; more if a batch of such rows is padded."""
    size = codec.ROW_BYTES + sum(map(len, row))
    return size if size > codec.BATCH_BYTES / _EXACT else _PADDING * size


def _join_partitions(parts: Iterable[list[tuple[bytes, ...]]]) -> Iterator[list[tuple[bytes, ...]]]:
    """Yield batches of rows of several partitions, as large as the server accepts them without a warning."""
    batch: list[tuple[bytes, ...]] = []
    weight, partitions = 0.0, 0
    for part in parts:
        for at, row in enumerate(part):
            weight += _weigh(row)
            partitions += at == 0
            if batch and (weight > codec.BATCH_BYTES or partitions > BATCH_PARTITIONS):
                yield batch
                batch, weight, partitions = [], _weigh(row), 1
            batch.append(row)
    if batch:
        yield batch


def _group_changes(changes: Iterable[RowChange]) -> Iterable[list[RowChange]]:
    """Group changes with the same timestamps and lifetime."""
    groups: defaultdict[Any, list[RowChange]] = defaultdict(list)
    for change in changes:
        groups[change.at, change.gone_at, change.lifetime].append(change)
    return groups.values()


def _make_key_packer(table: DerivedTable) -> Callable[[RowKey], tuple[bytes, ...]]:
    """Return a function that packs the columns of a key."""
    packers = [_PACKERS[column] for column in table.key]
    return lambda key: tuple([pack(value) for pack, value in zip(packers, key, strict=True)])


def _has_same_words(version: DocumentVersion, rows: RowSet) -> bool:
    """Say whether the rows of another version have the postings of this one."""
    return len(rows) > 1 and bool(rows[1]) and get_words(rows[1])[1] == compute_stamp(version)


def name_split(key: RowKey) -> SplitName:
    """Name what a row belongs to that may be split: a link group and side, or a shard and word."""
    return (key[0], key[2]) if isinstance(key[0], int) else key[:3]


def derive_members(version: DocumentVersion, code: bytes) -> dict[RowKey, bytes]:
    """Return the members of a document, one on each side of its link groups."""
    return {
        (*group, side, 0, version.id): pack_member_state(weight, code)
        for side in SIDES
        for group, weight in version.weights(side).items()
    }


def pack_member_state(weight: float, code: bytes) -> bytes:
    """Return the state of a member."""
    return WEIGHT_FORMAT.pack(weight) + code


def derive_postings(version: DocumentVersion, shards: int) -> Rows:
    """Return the postings of a document, whose text was read."""
    id, words = version.id, extract_document_terms(version.text, version.fields, version.id)
    length, stamp = len(words), compute_stamp(version)
    hashed = _HASH.pack(hash_id(id))
    shard = hashed[3] % EVERY_DOCUMENT_SHARDS
    return {
        (shard, 0, EVERY_DOCUMENT, hashed, id): _POSTING_STATE.pack(0, length, stamp),
        **{
            (compute_shard(word, shards), 0, word, hashed, id): _POSTING_STATE.pack(times, length, stamp)
            for word, times in Counter(words).items()
        },
    }


def get_words(postings: Rows) -> tuple[int, int]:
    """Return the number of words of a document with these postings, and the stamp of its names and text."""
    _, length, stamp = _POSTING_STATE.unpack(next(iter(postings.values())))
    return length, stamp


def compute_stamp(version: DocumentVersion) -> int:
    """Return a hash of everything that the words of a document are derived from: its names and its text."""
    names = get_document_name(version.fields), *list_other_names(version.fields, version.id)
    return xxhash.xxh3_64_intdigest(version.text_hash + "\0".join(names).encode(), seed=_TERMS_VERSION)


@lru_cache(maxsize=100_000)
def compute_shard(word: str, shards: int) -> int:
    """Return the shard of a word, of so many."""
    return hash_id(word) % shards


def list_shards(word: str, shards: int) -> Sequence[int]:
    """Return the shards with the documents of a word."""
    return range(EVERY_DOCUMENT_SHARDS) if word == EVERY_DOCUMENT else (compute_shard(word, shards),)


def find_range(hashed: bytes) -> int:
    """Return the bucket for the hash of an id, within a word that was split: in the order of hashes."""
    return 1 + (hashed[0] * WORD_BUCKETS >> 8)


def hash_id(id: str) -> int:
    """Return a hash of a document's id, or of a word."""
    return xxhash.xxh3_64_intdigest(id.encode())

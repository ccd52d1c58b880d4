"""Rows that are derived from documents, members and postings: what a change adds, replaces and deletes.

A member row stands for a document on one side of a link group. Its state is the weight of the link and the
code of the document's vector. A posting stands for a word of a document. Its state has the number of times
that the document contains the word, the number of its words, and a stamp, a hash of its name and text, by
which a reader of the document can tell which state is the current one.

Words are assigned to partitions by their hash. So the words of many documents go to few partitions, and each
partition is one write. The documents of a word are ordered by a hash of their ids. So the first of them are a
random sample, and their density tells how many there are.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any, Final

import numpy as np
import orjson
import xxhash

from linkstore.core.lexical import extract_document_terms, get_document_name
from linkstore.core.plans import Operation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.statements import DerivedTable, Row, Statement, Tables, ask
from linkstore.engines.contract import Record

DOCUMENTS_PER_PAGE: Final = 1_000
"""Documents per page."""
PARTITION_BATCH_SIZES: Final = (128, 64, 32, 16, 8)
"""Numbers of rows in a batch of one partition, which is a single write for the server."""
PARTITION_BATCH_BYTES: Final = 1 << 19
"""The most bytes in a batch of one partition."""
MIXED_BATCH_SIZES: Final = (9, 6, 3, 2, 1)
"""Numbers of rows in a batch of several partitions.

There are few of them, because each needs a prepared statement. 9 members fit with vectors of 256 dimensions,
6 with 384. The server warns about more than 10 partitions.
"""
SHARDS: Final = 256
"""Number of partitions of all words, for each bucket."""
EVERY_DOCUMENT: Final = ""
"""A word that is recorded for every document, with the count 0, so that documents can be counted."""
EVERY_DOCUMENT_SHARDS: Final = 4
"""Number of partitions of that word."""
WEIGHT_FORMAT: Final = struct.Struct("<f")
POSTING_HEAD: Final = np.dtype([("hash", ">u8"), ("count", ">u4"), ("length", ">u4"), ("stamp", ">u8")])
"""A posting in one state: hash of the id, count of the word, length of the document in words, stamp."""
HASH_BYTES: Final = 8
"""The hash is part of the key; the rest of a head is the state."""
_POSTING_STATE: Final = struct.Struct(">IIQ")
"""The state of a posting: count, length, stamp."""
_NO_POSTING: Final = _POSTING_STATE.pack(0, 0, 0)
_TERMS_VERSION: Final = 1
"""Increment if the words of a text change: then all stamps differ, and ``repair`` writes all postings."""
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">Q")
_PACKERS: Final[Mapping[str, Callable[[Any], bytes]]] = {
    **dict.fromkeys(("kind", "tag", "side", "word", "id"), str.encode),
    **dict.fromkeys(("bucket", "shard"), _INT.pack),
    "hash": bytes,
}
"""How the columns of keys are packed in the format of the native protocol."""
RowKey = tuple[Any, ...]
"""The primary key of a row: kind, tag, side, bucket, id; or shard, bucket, word, hash of the id, id."""
Rows = Mapping[RowKey, bytes]
"""The state of each row."""
WordPartition = tuple[int, int]
"""Shard and bucket."""


def derive_members(id: str, weights: Mapping[codec.Membership, float], code: bytes, buckets: int) -> Rows:
    """Return the members of a document that belongs to these sides of link groups."""
    at = find_bucket(id, buckets)
    return {(*one, at, id): pack_member_state(weight, code) for one, weight in weights.items()}


def pack_member_state(weight: float, code: bytes) -> bytes:
    """Return the state of a member."""
    return WEIGHT_FORMAT.pack(weight) + code


def derive_postings(id: str, text: str, metadata: Mapping[str, Any], buckets: int) -> Rows:
    """Return the postings of a document with this text and name."""
    words = extract_document_terms(text, metadata)
    length, stamp = len(words), compute_stamp(text, metadata)
    at, number = find_bucket(id, buckets), _hash_text(id)
    hashed = _LONG.pack(number)
    shard = (number >> 32) % EVERY_DOCUMENT_SHARDS
    return {
        (shard, at, EVERY_DOCUMENT, hashed, id): _POSTING_STATE.pack(0, length, stamp),
        **{
            (compute_shard(word), at, word, hashed, id): _POSTING_STATE.pack(times, length, stamp)
            for word, times in Counter(words).items()
        },
    }


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


def find_bucket(id: str, buckets: int) -> int:
    """Return the bucket that a document belongs to, within a side of a link group, or a word."""
    return _hash_text(id) % buckets if buckets > 1 else 0


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """The state of a document, stored or about to be written, from which rows are derived.

    Args:
        id: The document.
        written: Latest write time of its columns, 0 if it is not written yet.
        born: When it was added, None if an older linkstore did.
        lifetime: Seconds until it expires. None: never.
        links: Its links as JSON, as in its metadata.
        relinked: Those that were replaced since it was written.
        attributes: Its metadata without links, as JSON.
        code: The code of its vector.
        members: Its rows of members.
        postings: Its rows of words, none in a store without lexical search.
    """

    id: str
    written: int = 0
    born: int | None = None
    lifetime: int | None = None
    links: str = ""
    relinked: codec.ReplacedLinks = field(default_factory=dict)
    attributes: str
    code: bytes
    members: Rows
    postings: Rows

    @property
    def rows(self) -> tuple[Rows, Rows]:
        """The rows of both tables."""
        return self.members, self.postings

    @property
    def words(self) -> tuple[int, int]:
        """The number of its words, and the stamp of its name and text; zeros without postings."""
        _, length, stamp = _POSTING_STATE.unpack(next(iter(self.postings.values()), _NO_POSTING))
        return length, stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """The change of one document.

    Args:
        now: The state that was written, None if the document was deleted.
        before: The previous state, None if the document did not exist.
    """

    now: DocumentState | None
    before: DocumentState | None


class DerivedRows:
    """Reads the states of documents, and makes the statements that write members and postings.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions, and reads documents.
        buckets: Number of partitions of one side of a link group, and of a word.
        lexical: Whether postings are derived.
    """

    def __init__(
        self,
        tables: Tables,
        fetcher: RowFetcher,
        buckets: int,
        *,
        lexical: bool,
    ) -> None:
        self.tables = (tables.member_rows, tables.word_rows) if lexical else (tables.member_rows,)
        self._documents = tables
        self._fetcher = fetcher
        self._buckets = buckets
        self._lexical = lexical

    def state(self, record: Record, attributes: str, code: bytes) -> DocumentState:
        """Return the state of a document once a record is written."""
        weights = codec.derive_memberships(codec.make_link_set(record.links))
        return DocumentState(
            id=record.id,
            attributes=attributes,
            code=code,
            members=derive_members(record.id, weights, code, self._buckets),
            postings=self._derive_postings(record.id, record.text, record.metadata, None),
        )

    def stored(
        self, ids: Sequence[str], now: Mapping[str, DocumentState] | None = None
    ) -> Operation[dict[str, DocumentState]]:
        """Read the current states of documents, leaving out documents that do not exist.

        Args:
            ids: The documents.
            now: The states about to be written. Their words are reused where the text is the same.
        """
        rows = yield from self._fetcher.by_id(cql.read_states(self._documents), ids, "read documents")
        return {state.id: state for state in self._make_states(rows, now or {})}

    def after(self, id: str | None) -> Operation[list[DocumentState]]:
        """Read the next documents in token order. The result is empty after the last document."""
        rows = yield from read_documents_after(self._documents, id)
        while rows and not any(map(codec.is_whole, rows)):
            rows = yield from read_documents_after(self._documents, rows[-1][0])
        return self._make_states(rows, {})

    def _make_states(self, rows: Sequence[Row], now: Mapping[str, DocumentState]) -> list[DocumentState]:
        rows = [row for row in rows if codec.is_whole(row)]
        if not rows:
            return []
        codes = codec.encode_vectors(np.stack([codec.unpack_vector(row[5]) for row in rows]))
        return [self._make_state(row, code, now.get(row[0])) for row, code in zip(rows, codes, strict=True)]

    def _make_state(self, row: Row, code: bytes, now: DocumentState | None) -> DocumentState:
        id, written, stored, text, attributes, _, lifetime, born, relinked = row
        links = codec.merge_replaced_links(stored, relinked)
        weights = codec.derive_memberships(codec.unpack_links(links))
        return DocumentState(
            id=id,
            written=max(written, codec.find_last_replaced(relinked)),
            born=born,
            lifetime=lifetime,
            links=codec.extract_links_json(links).decode(),
            relinked=dict(relinked or {}),
            attributes=attributes,
            code=code,
            members=derive_members(id, weights, code, self._buckets),
            postings=self._derive_postings(id, text, orjson.loads(attributes), now) if self._lexical else {},
        )

    def _derive_postings(
        self, id: str, text: str, metadata: Mapping[str, Any], known: DocumentState | None
    ) -> Rows:
        """Return the postings of a document, those of the known state if it has the same text and name."""
        if not self._lexical:
            return {}
        if known and known.words[1] == compute_stamp(text, metadata):
            return known.postings
        return derive_postings(id, text, metadata, self._buckets)

    def add(
        self, states: Iterable[DocumentState], at: int, lifetime: int | None = None
    ) -> Iterator[Statement]:
        """Add the rows derived from states that are about to be written."""
        states = list(states)
        for number, table in enumerate(self.tables):
            rows = (row for state in states for row in state.rows[number].items())
            yield from self.write(table, rows, at, lifetime=lifetime)

    def finish(
        self, steps: Sequence[DocumentChange], at: int, lifetime: int | None = None
    ) -> Iterator[Statement]:
        """Remove rows derived from the previous states but not from the written ones."""
        for number, table in enumerate(self.tables):
            differing: list[tuple[RowKey, bytes]] = []
            gone: list[RowKey] = []
            for step in steps:
                if step.before is None:
                    continue
                before, now = step.before.rows[number], step.now.rows[number] if step.now else {}
                if now is not before:
                    differing += (
                        (key, state) for key, state in now.items() if before.get(key, state) != state
                    )
                    gone += (key for key in before if key not in now)
            yield from self.write(table, differing, at, replace=True, lifetime=lifetime)
            yield from self.delete(table, gone, at)

    def write(
        self,
        table: DerivedTable,
        rows: Iterable[tuple[RowKey, bytes]],
        at: int,
        *,
        replace: bool = False,
        lifetime: int | None = None,
    ) -> Iterator[Statement]:
        """Add states to rows.

        Args:
            table: The table.
            rows: Keys and states, in any order.
            at: The timestamp.
            replace: Whether to remove all states that were added before.
            lifetime: Seconds until written rows expire. None: never.
        """
        expiry = [] if lifetime is None else [_INT.pack(lifetime)]
        pack_key = _make_key_packer(table)
        packed = ((*expiry, codec.pack_states(state), *pack_key(key)) for key, state in rows)
        make_text = cache(partial(cql.write_rows, table, replace=replace, lifetime=bool(expiry)))
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

        A statement has as many rows of one partition as possible. What is left of the partitions of a node
        is mixed.
        """
        start, end = -len(table.key), -len(table.clustering)
        rows_of: defaultdict[tuple[bytes, ...], list[tuple[bytes, ...]]] = defaultdict(list)
        for row in rows:
            rows_of[row[start:end]].append(row)
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(partitions):
            loose: list[tuple[bytes, ...]] = []
            for position in share.positions:
                own = rows_of[partitions[position]]
                if len(own) < PARTITION_BATCH_SIZES[-1]:
                    loose += own
                    continue
                for part in codec.split_batches(own, PARTITION_BATCH_SIZES, PARTITION_BATCH_BYTES):
                    if len(part) > 1:
                        yield part, None
                    else:
                        loose += part
            for part in codec.split_batches(loose, MIXED_BATCH_SIZES, codec.BATCH_BYTES):
                yield part, share.routing


def _make_key_packer(table: DerivedTable) -> Callable[[RowKey], tuple[bytes, ...]]:
    """Return a function that packs the columns of a key."""
    packers = [_PACKERS[column] for column in table.key]
    return lambda key: tuple([pack(value) for pack, value in zip(packers, key, strict=True)])


def read_documents_after(tables: Tables, after: str | None) -> Operation[list[Row]]:
    """Read the next documents in token order, with the columns of :func:`.statements.read_states`."""
    return ask(
        "read documents",
        cql.scan_states(tables, after=after is not None),
        *(() if after is None else (after,)),
        DOCUMENTS_PER_PAGE,
        page_limit=DOCUMENTS_PER_PAGE,
    )

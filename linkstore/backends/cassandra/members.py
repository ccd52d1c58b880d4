"""Rows of members: which rows a change adds, replaces and deletes, and the statements that do so.

The state of a member is the weight of its link and the code of its document's vector.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.backends.cassandra import derived_cql
from linkstore.backends.cassandra.batching import BATCH_BYTES, ROW_BYTES, batches, packed_batch
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import Membership
from linkstore.backends.cassandra.states import packed, packed_list
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.plans import Side
from linkstore.vectors import Floats

BATCH_SIZES: Final = (9, 6, 3, 2, 1)
"""Numbers of rows in a batch. There are few of them, because each needs a prepared statement.

9 rows fit with vectors of 256 dimensions, 6 with 384. The server warns about more than 10 partitions.
"""
WEIGHT: Final = struct.Struct("<f")
MemberKey = tuple[str, str, Side, int, str]
"""The primary key of a row: kind, tag, side, bucket, document id."""
MemberRow = tuple[MemberKey, bytes]
"""A key and a state."""
_Partition = tuple[str, str, Side, int]
_KEY: Final = 4
"""Number of columns of a partition key."""
_Row = tuple[Any, ...]
"""The key of a partition; then the id and the state of a row, or the tuples (id,) of rows to delete."""
_IDS: Final = 100
"""Number of rows of a partition that one statement deletes."""
_INT: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMembers:
    """The members that a document has in link groups.

    Args:
        id: The document.
        weights: The sides of link groups it belongs to, with the weight of its link on each.
        vector: (d,) its vector.
        code: The code of its vector, which may be empty for a document that is replaced or removed.
    """

    id: str
    weights: Mapping[Membership, float]
    vector: Floats
    code: bytes = b""

    def keys(self, buckets: int) -> Iterator[MemberKey]:
        """Return the keys of the document's rows."""
        at = bucket(self.id, buckets)
        return ((*membership, at, self.id) for membership in self.weights)

    def rows(self, buckets: int) -> Iterator[MemberRow]:
        """Yield the keys and states of the document's rows."""
        states = (state_of(weight, self.code) for weight in self.weights.values())
        return zip(self.keys(buckets), states, strict=True)

    def rows_differing(self, before: DocumentMembers, buckets: int) -> Iterator[MemberRow]:
        """Yield the rows that existed before with another state."""
        vector_changed = not np.array_equal(before.vector, self.vector)
        for (key, state), (membership, weight) in zip(self.rows(buckets), self.weights.items(), strict=True):
            known = before.weights.get(membership)
            if known is not None and (vector_changed or WEIGHT.pack(known) != WEIGHT.pack(weight)):
                yield key, state

    def keys_gone(self, before: DocumentMembers, buckets: int) -> Iterator[MemberKey]:
        """Return the keys of rows that existed before and do not any more."""
        at = bucket(self.id, buckets)
        return ((*one, at, self.id) for one in before.weights if one not in self.weights)


class MemberStatements:
    """Statements that write and delete rows of members.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        lifetime: Seconds until written rows expire. None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None = None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = [] if lifetime is None else [_INT.pack(lifetime)]

    def add(self, rows: Iterable[MemberRow], at: int) -> Iterator[Statement]:
        """Add states to rows.

        Args:
            rows: Keys and states, in any order.
            at: The timestamp.
        """
        return self._write(rows, at, replace=False)

    def replace(self, rows: Iterable[MemberRow], at: int) -> Iterator[Statement]:
        """Add states to rows, and remove all states added before ``at``."""
        return self._write(rows, at, replace=True)

    def delete(self, keys: Iterable[MemberKey], at: int) -> Iterator[Statement]:
        """Delete rows, except for states added after ``at``, grouping keys by partition."""
        rows_of: defaultdict[_Partition, list[_Row]] = defaultdict(list)
        for key, ids in _by_partition(keys):
            rows_of[key].append((*key, *((one,) for one in ids)))
        for part, routing in self._make_batches(rows_of):
            values = ([*_packed_key(row), packed_list([id for (id,) in row[_KEY:]])] for row in part)
            text = derived_cql.delete_members(self._tables, len(part))
            yield packed_batch(text, at, values, routing)

    def _write(self, rows: Iterable[MemberRow], at: int, *, replace: bool) -> Iterator[Statement]:
        rows_of: defaultdict[_Partition, list[_Row]] = defaultdict(list)
        for key, state in rows:
            rows_of[key[:_KEY]].append((*key, state))
        for part, routing in self._make_batches(rows_of):
            values = map(self._pack_row, part)
            lifetime = bool(self._lifetime)
            text = derived_cql.write_members(self._tables, len(part), replace=replace, lifetime=lifetime)
            yield packed_batch(text, at, values, routing)

    def _pack_row(self, row: _Row) -> list[bytes]:
        *_, id, state = row
        return [*self._lifetime, packed(state), *_packed_key(row), id.encode()]

    def _make_batches(
        self, rows_of: Mapping[_Partition, Sequence[_Row]]
    ) -> Iterator[tuple[Sequence[_Row], bytes | None]]:
        """Yield the rows and the routing key of each statement."""
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(self._tables.members_name, partitions):
            rows = chain.from_iterable(rows_of[partitions[position]] for position in share.positions)
            for part in batches(list(rows), BATCH_SIZES):
                yield part, share.routing


def state_of(weight: float, code: bytes) -> bytes:
    """Return the state of a member."""
    return WEIGHT.pack(weight) + code


def bucket(id: str, buckets: int) -> int:
    """Return the bucket that a document belongs to, within one side of a link group."""
    return xxhash.xxh3_64_intdigest(id.encode()) % buckets if buckets > 1 else 0


def _by_partition(keys: Iterable[MemberKey]) -> Iterator[tuple[_Partition, list[str]]]:
    """Group document ids by partition, at most as many at a time as one statement may delete."""
    ids_of: defaultdict[_Partition, list[str]] = defaultdict(list)
    for key in sorted(keys):
        ids_of[key[:-1]].append(key[-1])
    for partition, ids in ids_of.items():
        start = size = 0
        for end, id in enumerate(ids):
            size += len(id) + ROW_BYTES
            if end > start and (end - start == _IDS or size > BATCH_BYTES):
                yield partition, ids[start:end]
                start, size = end, len(id) + ROW_BYTES
        yield partition, ids[start:]


def _packed_key(row: _Row) -> list[bytes]:
    kind, tag, side, at = row[:_KEY]
    return [kind.encode(), tag.encode(), side.encode(), _INT.pack(at)]

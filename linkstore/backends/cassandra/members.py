"""Which rows of members a change writes, before its documents and after them, and how they are sent.

What lies on a link group and stays there may change its vector or its weight. Neither the old row nor the new
one would be right while the document is being changed, should the client be stopped. So the row is marked as
unfinished before, which has readers read the document, and written anew after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.batching import batches
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import UNFINISHED, Membership
from linkstore.backends.cassandra.transport.requests import UNSET, Statement
from linkstore.plans import Side
from linkstore.vectors import Floats

BATCH_SIZES: Final = (9, 6, 3, 2, 1)
"""Rows of a batch: few sizes, for each is a statement to prepare.

9 rows fit with vectors of 256 dimensions, 6 with 384; more than 10 partitions make the server warn.
"""
_KEY_COLUMNS: Final = 4
MemberKey = tuple[str, str, Side, int, str]
"""The primary key of a row: kind, tag, side, bucket, document id."""
MemberRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a document lies, or is to lie.

    Args:
        id: Of the document.
        members: Its sides of link groups, with the weight there.
        vector: (d,).
        code: Of the vector.
    """

    id: str
    members: Mapping[Membership, float]
    vector: Floats
    code: bytes | None = None


class MemberRows:
    """Rows of members as a change has them.

    Args:
        buckets: Into how many partitions a side of a link group is split.
        renew: Whether rows that are right are written too, so that their lifetime begins anew.
    """

    def __init__(self, buckets: int, *, renew: bool) -> None:
        self._buckets = buckets
        self._renew = renew

    def first(self, now: Placed, before: Placed | None) -> Iterator[MemberRow]:
        """What is written before the document: (key…, weight, code)."""
        known, changing = before.members if before else {}, _changing(now, before)
        for membership, weight in now.members.items():
            if membership in changing:
                yield *self._key(membership, now.id), UNFINISHED, UNSET
            elif self._renew or membership not in known:
                yield *self._key(membership, now.id), weight, now.code

    def last(self, now: Placed, before: Placed | None) -> Iterator[MemberRow]:
        """What is written after it."""
        for membership in _changing(now, before):
            yield *self._key(membership, now.id), now.members[membership], now.code

    def gone(self, before: Placed, now: Mapping[Membership, float]) -> Iterator[MemberKey]:
        """What is deleted after it."""
        return (self._key(membership, before.id) for membership in before.members if membership not in now)

    def _key(self, membership: Membership, name: str) -> MemberKey:
        return *membership, bucket(name, self._buckets), name


class MemberStatements:
    """Statements that write and delete rows of members.

    Args:
        tables: Of the store.
        fetcher: Knows which node has which partition.
        lifetime: Seconds until what is written expires; None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None = None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._stamp = () if lifetime is None else (lifetime,)

    def write(self, rows: Iterator[MemberRow], at: int) -> Iterator[Statement]:
        """A few rows a statement, each statement to a node that has them.

        Args:
            rows: (key…, weight, code), in any order.
            at: The timestamp.
        """
        ordered = sorted(rows, key=lambda row: row[:_KEY_COLUMNS])
        keys = [row[:_KEY_COLUMNS] for row in ordered]
        for share in self._fetcher.by_replica(self._tables.members_name, keys):
            for part in batches([ordered[position] for position in share.positions], BATCH_SIZES):
                text = cql.write_members(self._tables, len(part), lifetime=bool(self._stamp))
                values = tuple(value for row in part for value in (*row, at, *self._stamp))
                yield Statement(cql=text, values=values, level="write", routing=share.routing)

    def delete(self, keys: Iterator[MemberKey], at: int) -> Iterator[Statement]:
        """A statement for each row."""
        text = cql.delete_member(self._tables)
        return (Statement(cql=text, values=(at, *key), level="write") for key in keys)


def _changing(now: Placed, before: Placed | None) -> set[Membership]:
    """Where the document lies before and after, and differently."""
    if before is None:
        return set()
    turned = not np.array_equal(before.vector, now.vector)
    both = before.members.keys() & now.members.keys()
    return {one for one in both if turned or before.members[one] != now.members[one]}


def bucket(name: str, buckets: int) -> int:
    """The partition of a side of a link group in which a document lies."""
    return xxhash.xxh3_64_intdigest(name.encode()) % buckets if buckets > 1 else 0

"""Rows that are derived from documents, and those of members of link groups.

Rows of members: which rows a change adds, replaces and deletes, and the statements that do so.

The state of a member is the weight of its link and the code of its document's vector.

Reads the members of link groups, of a hub only as many as are needed to recognise it as a hub.
"""

from __future__ import annotations

import struct
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.core.arrays import Floats
from linkstore.core.plans import Operation, Side
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import (
    BATCH_BYTES,
    ROW_BYTES,
    Membership,
    pack_batch,
    pack_list,
    pack_states,
    split_batches,
)
from linkstore.engines.cassandra.scopes import ScopeCheck, remember_value
from linkstore.engines.cassandra.statements import Tables

MEMBER_BATCH_SIZES: Final = (9, 6, 3, 2, 1)
"""Numbers of rows in a batch. There are few of them, because each needs a prepared statement.

9 rows fit with vectors of 256 dimensions, 6 with 384. The server warns about more than 10 partitions.
"""
WEIGHT_FORMAT: Final = struct.Struct("<f")
MemberKey = tuple[str, str, Side, int, str]
"""The primary key of a row: kind, tag, side, bucket, document id."""
MemberRow = tuple[MemberKey, bytes]
"""A key and a state."""
_MemberPartition = tuple[str, str, Side, int]
_PARTITION_KEY_COLUMNS: Final = 4
"""Number of columns of a partition key."""
_FlatMember = tuple[Any, ...]
"""The key of a partition; then the id and the state of a row, or the tuples (id,) of rows to delete."""
_IDS_PER_DELETION: Final = 100
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
        at = find_bucket(self.id, buckets)
        return ((*membership, at, self.id) for membership in self.weights)

    def rows(self, buckets: int) -> Iterator[MemberRow]:
        """Yield the keys and states of the document's rows."""
        states = (pack_member_state(weight, self.code) for weight in self.weights.values())
        return zip(self.keys(buckets), states, strict=True)

    def rows_differing(self, before: DocumentMembers, buckets: int) -> Iterator[MemberRow]:
        """Yield the rows that existed before with another state."""
        vector_changed = not np.array_equal(before.vector, self.vector)
        for (key, state), (membership, weight) in zip(self.rows(buckets), self.weights.items(), strict=True):
            known = before.weights.get(membership)
            if known is not None and (
                vector_changed or WEIGHT_FORMAT.pack(known) != WEIGHT_FORMAT.pack(weight)
            ):
                yield key, state

    def keys_gone(self, before: DocumentMembers, buckets: int) -> Iterator[MemberKey]:
        """Return the keys of rows that existed before and do not any more."""
        at = find_bucket(self.id, buckets)
        return ((*one, at, self.id) for one in before.weights if one not in self.weights)


class MemberStatements:
    """Statements that write and delete rows of members.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        lifetime: Seconds until written rows expire. None: never.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, lifetime: int | None = None) -> None:
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
        rows_of: defaultdict[_MemberPartition, list[_FlatMember]] = defaultdict(list)
        for key, ids in _group_by_partition(keys):
            rows_of[key].append((*key, *((one,) for one in ids)))
        for part, routing in self._make_batches(rows_of):
            values = (
                [*_pack_member_key(row), pack_list([id for (id,) in row[_PARTITION_KEY_COLUMNS:]])]
                for row in part
            )
            text = cql.delete_members(self._tables, len(part))
            yield pack_batch(text, at, values, routing)

    def _write(self, rows: Iterable[MemberRow], at: int, *, replace: bool) -> Iterator[Statement]:
        rows_of: defaultdict[_MemberPartition, list[_FlatMember]] = defaultdict(list)
        for key, state in rows:
            rows_of[key[:_PARTITION_KEY_COLUMNS]].append((*key, state))
        for part, routing in self._make_batches(rows_of):
            values = map(self._pack_row, part)
            lifetime = bool(self._lifetime)
            text = cql.write_members(self._tables, len(part), replace=replace, lifetime=lifetime)
            yield pack_batch(text, at, values, routing)

    def _pack_row(self, row: _FlatMember) -> list[bytes]:
        *_, id, state = row
        return [*self._lifetime, pack_states(state), *_pack_member_key(row), id.encode()]

    def _make_batches(
        self, rows_of: Mapping[_MemberPartition, Sequence[_FlatMember]]
    ) -> Iterator[tuple[Sequence[_FlatMember], bytes | None]]:
        """Yield the rows and the routing key of each statement."""
        partitions = list(rows_of)
        for share in self._fetcher.by_replica(self._tables.members_name, partitions):
            rows = chain.from_iterable(rows_of[partitions[position]] for position in share.positions)
            for part in split_batches(list(rows), MEMBER_BATCH_SIZES):
                yield part, share.routing


def pack_member_state(weight: float, code: bytes) -> bytes:
    """Return the state of a member."""
    return WEIGHT_FORMAT.pack(weight) + code


def find_bucket(id: str, buckets: int) -> int:
    """Return the bucket that a document belongs to, within one side of a link group."""
    return xxhash.xxh3_64_intdigest(id.encode()) % buckets if buckets > 1 else 0


def _group_by_partition(keys: Iterable[MemberKey]) -> Iterator[tuple[_MemberPartition, list[str]]]:
    """Group document ids by partition, at most as many at a time as one statement may delete."""
    ids_of: defaultdict[_MemberPartition, list[str]] = defaultdict(list)
    for key in sorted(keys):
        ids_of[key[:-1]].append(key[-1])
    for partition, ids in ids_of.items():
        start = size = 0
        for end, id in enumerate(ids):
            size += len(id) + ROW_BYTES
            if end > start and (end - start == _IDS_PER_DELETION or size > BATCH_BYTES):
                yield partition, ids[start:end]
                start, size = end, len(id) + ROW_BYTES
        yield partition, ids[start:]


def _pack_member_key(row: _FlatMember) -> list[bytes]:
    kind, tag, side, at = row[:_PARTITION_KEY_COLUMNS]
    return [kind.encode(), tag.encode(), side.encode(), _INT.pack(at)]


ReadMember = tuple[str, str, bytes]
"""A member: tag, document id, states in the format of the native protocol."""
GroupKey = tuple[str, str]
_LARGEST_MEMBER_PAGE: Final = 2_000
"""The most members of a partition that are read at once."""
_MEMBER_PAGE_GROWTH: Final = 4
MAX_REMEMBERED_HUBS: Final = 10_000
"""How many hubs are remembered."""


@dataclass(slots=True)
class GroupRows:
    """The members of one side of a link group.

    Args:
        size: Number of members, counted up to the requested limit in each partition.
        rows: The members, which may be empty if the group has at least as many as the limit.
    """

    size: int = 0
    rows: list[ReadMember] = field(default_factory=list)


@dataclass(slots=True)
class _GroupPartition:
    """A partition of a link group: the page read last, and whether there may be more."""

    group: GroupKey
    bucket: int
    rows: list[ReadMember]
    more: bool


class GroupReader:
    """Reads link groups by kind and tag.

    A reader remembers which groups were hubs. For these it reads only the tags of the rows, a tenth of the
    bytes. This affects only what is read: a group that is not a hub any more is read again in full.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        buckets: Number of partitions of one side of a link group.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, buckets: int) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = list(range(buckets))
        self._hubs: OrderedDict[tuple[str, str, Side], int] = OrderedDict()

    def read(self, groups: Sequence[GroupKey], side: Side, limit: int) -> Operation[list[GroupRows]]:
        """Read the members on one side of each link group, up to ``limit`` per partition."""
        asked = list(dict.fromkeys(groups))
        large = [group for group in asked if self._hubs.get((*group, side), 0) >= limit]
        known = set(large)
        found = yield from self._read_rows(
            [group for group in asked if group not in known], large, side, limit
        )
        smaller = [group for group in large if found[group].size < limit]
        if smaller:
            found |= yield from self._read_rows(smaller, [], side, limit)
        for group in asked:
            self._remember((*group, side), found[group], limit)
        return [found[group] for group in groups]

    def read_within(
        self, groups: Sequence[GroupKey], side: Side, limit: int, held: ScopeCheck
    ) -> Operation[list[GroupRows]]:
        """Read only the members in a scope, as :meth:`read`, skipping other members page by page.

        Args:
            groups: The link groups.
            side: Which members.
            limit: How many members per group.
            held: Tells which documents are in the scope.
        """
        asked = list(dict.fromkeys(groups))
        found = yield from self._read_rows(asked, [], side, limit)
        parts = [part for group in asked for part in self._list_partitions(group, found[group], limit)]
        for group in asked:
            found[group].rows.clear()
        most = limit
        while parts:
            within = yield from held([row[1] for part in parts for row in part.rows])
            for part in parts:
                found[part.group].rows += [row for row in part.rows if row[1] in within]
            parts = [part for part in parts if part.more and len(found[part.group].rows) < limit]
            most = min(_MEMBER_PAGE_GROWTH * most, _LARGEST_MEMBER_PAGE)
            yield from self._read_further(parts, side, most)
        for members in found.values():
            members.size = len(members.rows)
        return [found[group] for group in groups]

    def _list_partitions(self, group: GroupKey, found: GroupRows, limit: int) -> Iterator[_GroupPartition]:
        """Return the partitions of a link group, with the rows that were read."""
        of: dict[int, list[ReadMember]] = {}
        for row in found.rows:
            of.setdefault(find_bucket(row[1], len(self._buckets)), []).append(row)
        return (_GroupPartition(group, at, rows, len(rows) >= limit) for at, rows in of.items())

    def _read_further(self, parts: Sequence[_GroupPartition], side: Side, most: int) -> Operation[None]:
        """Read the next rows of partitions."""
        if not parts:
            return
        text = cql.read_more_members(self._tables)
        statements = tuple(
            Statement(cql=text, values=(*part.group, side, part.bucket, part.rows[-1][1], most))
            for part in parts
        )
        answers = yield Requests(statements=statements, what="read link groups")
        for part, rows in zip(parts, answers, strict=True):
            part.rows, part.more = list(rows), len(rows) == most

    def _read_rows(
        self, full: Sequence[GroupKey], light: Sequence[GroupKey], side: Side, limit: int
    ) -> Operation[dict[GroupKey, GroupRows]]:
        """Read the members of the groups in ``full``, and the sizes of those in ``light``."""
        found, counted = {group: GroupRows() for group in (*full, *light)}, set(light)
        asked = [
            *self._make_statements(cql.read_members(self._tables), full, side, limit),
            *self._make_statements(cql.count_members(self._tables), light, side, limit),
        ]
        if asked:
            answers = yield Requests(
                statements=tuple(statement for _, statement in asked), what="read link groups"
            )
            for (kind, _), rows in zip(asked, answers, strict=True):
                for tag, of in groupby(rows, itemgetter(0)):
                    found[kind, tag].rows += of
        for group, members in found.items():
            members.size = len(members.rows)
            if group in counted:
                members.rows.clear()
        return found

    def _make_statements(
        self, text: str, groups: Sequence[GroupKey], side: Side, limit: int
    ) -> Iterator[tuple[str, Statement]]:
        """Yield a link kind and a statement that reads groups of this kind."""
        for kind in dict.fromkeys(kind for kind, _ in groups):
            tags = [tag for of, tag in groups if of == kind]
            keys: list[tuple[Any, ...]] = [(kind, tag, side, 0) for tag in tags]
            for part, routing in self._fetcher.parts(self._tables.members_name, keys):
                values = (kind, [tags[at] for at in part], side, self._buckets, limit)
                yield kind, Statement(cql=text, values=values, routing=routing)

    def _remember(self, key: tuple[str, str, Side], group: GroupRows, limit: int) -> None:
        """Remember a hub, up to a number of them."""
        if group.size < limit:
            self._hubs.pop(key, None)
        else:
            remember_value(self._hubs, key, group.size, MAX_REMEMBERED_HUBS)

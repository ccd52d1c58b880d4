"""Reads the members of link groups, of a hub only as many as are needed to recognise it as a hub."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from linkstore.backends.cassandra import derived_cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.experience import remember
from linkstore.backends.cassandra.members import bucket
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.scopes import Held
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation, Side

MemberRow = tuple[str, str, bytes]
"""A member: tag, document id, states in the format of the native protocol."""
Tag = tuple[str, str]
_PAGE: Final = 2_000
"""The most members of a partition that are read at once."""
_FASTER: Final = 4
REMEMBERED: Final = 10_000
"""How many hubs are remembered."""


@dataclass(slots=True)
class GroupRows:
    """The members of one side of a link group.

    Args:
        size: Number of members, counted up to the requested limit in each partition.
        rows: The members, which may be empty if the group has at least as many as the limit.
    """

    size: int = 0
    rows: list[MemberRow] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """A partition of a link group: the page read last, and whether there may be more."""

    group: Tag
    bucket: int
    rows: list[MemberRow]
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

    def __init__(self, tables: Tables, fetcher: Fetcher, buckets: int) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = list(range(buckets))
        self._hubs: OrderedDict[tuple[str, str, Side], int] = OrderedDict()

    def read(self, groups: Sequence[Tag], side: Side, limit: int) -> Operation[list[GroupRows]]:
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
        self, groups: Sequence[Tag], side: Side, limit: int, held: Held
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
            most = min(_FASTER * most, _PAGE)
            yield from self._read_further(parts, side, most)
        for members in found.values():
            members.size = len(members.rows)
        return [found[group] for group in groups]

    def _list_partitions(self, group: Tag, found: GroupRows, limit: int) -> Iterator[_Part]:
        """Return the partitions of a link group, with the rows that were read."""
        of: dict[int, list[MemberRow]] = {}
        for row in found.rows:
            of.setdefault(bucket(row[1], len(self._buckets)), []).append(row)
        return (_Part(group, at, rows, len(rows) >= limit) for at, rows in of.items())

    def _read_further(self, parts: Sequence[_Part], side: Side, most: int) -> Operation[None]:
        """Read the next rows of partitions."""
        if not parts:
            return
        text = derived_cql.read_more_members(self._tables)
        statements = tuple(
            Statement(cql=text, values=(*part.group, side, part.bucket, part.rows[-1][1], most))
            for part in parts
        )
        answers = yield Requests(statements=statements, what="read link groups")
        for part, rows in zip(parts, answers, strict=True):
            part.rows, part.more = list(rows), len(rows) == most

    def _read_rows(
        self, full: Sequence[Tag], light: Sequence[Tag], side: Side, limit: int
    ) -> Operation[dict[Tag, GroupRows]]:
        """Read the members of the groups in ``full``, and the sizes of those in ``light``."""
        found, counted = {group: GroupRows() for group in (*full, *light)}, set(light)
        asked = [
            *self._make_statements(derived_cql.read_members(self._tables), full, side, limit),
            *self._make_statements(derived_cql.count_members(self._tables), light, side, limit),
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
        self, text: str, groups: Sequence[Tag], side: Side, limit: int
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
            remember(self._hubs, key, group.size, REMEMBERED)

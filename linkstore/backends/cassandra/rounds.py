"""Rows of members and words as an inspection reads them: all there are, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from linkstore.backends.cassandra import cql, derived_cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.postings import SHARDS, Partition
from linkstore.backends.cassandra.states import unpacked
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

PAGE: Final = 1_000
"""Documents that are read at once."""
POSTINGS: Final = 5_000
"""Postings of a partition that are read at once."""
AT_ONCE: Final = 8
"""Ranges or partitions that are read at once."""
_A_RANGE: Final = 2_000
_LEAST_RANGES: Final = 16
_FIRST_TOKEN: Final = -(1 << 63)
_TOKENS: Final = 1 << 64
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A row of members or words.

    Args:
        key: Its primary key.
        states: What it says.
        written: When the last of its states was written.
    """

    key: Row
    states: Sequence[bytes]
    written: int

    @classmethod
    def of(cls, row: Row) -> Found:
        """Read a row of key…, states, when they were written."""
        *key, states, times = row
        return cls(key=tuple(key), states=unpacked(states), written=max(times or (), default=0))


def documents_after(tables: Tables, after: str | None) -> Operation[list[Row]]:
    """The next documents in the order of the ring, as :func:`.cql.read_states` has them."""
    first = Statement(cql=cql.read_states_first(tables), values=(PAGE,), page_limit=PAGE)
    following = Statement(cql=cql.read_states_after(tables), values=(after, PAGE), page_limit=PAGE)
    (rows,) = yield Requests(statements=(first if after is None else following,), what="read documents")
    return list(rows)


class MemberRounds:
    """All members, part of the ring by part of the ring.

    Args:
        tables: Of the store.
        expected: About how many there are; of so many parts.
    """

    def __init__(self, tables: Tables, expected: int) -> None:
        parts = max(_LEAST_RANGES, expected // _A_RANGE)
        ends = [_FIRST_TOKEN + _TOKENS * n // parts for n in range(parts)] + [_FIRST_TOKEN + _TOKENS - 1]
        text = derived_cql.read_range_of_members(tables)
        self._left = [Statement(cql=text, values=ends[at : at + 2]) for at in range(parts)]

    def next(self) -> Operation[list[Found] | None]:
        """The next members; None if there are no more parts."""
        if not self._left:
            return None
        now, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
        answers = yield Requests(statements=tuple(now), what="compare members with documents")
        return [Found.of(row) for rows in answers for row in rows]


class PostingRounds:
    """All postings, some thousand of a partition at a time.

    Args:
        tables: Of the store.
        buckets: Into how many partitions a word is split.
    """

    def __init__(self, tables: Tables, buckets: int) -> None:
        self._tables = tables
        partitions = ((shard, at) for shard in range(SHARDS) for at in range(buckets))
        self._left: list[tuple[Partition, Row | None]] = [(each, None) for each in partitions]

    def next(self) -> Operation[list[Found] | None]:
        """The next postings; None if there are no more."""
        if not self._left:
            return None
        now, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
        statements = tuple(self._statement(*each) for each in now)
        answers = yield Requests(statements=statements, what="compare words with documents")
        found: list[Found] = []
        for (partition, _), rows in zip(now, answers, strict=True):
            if len(rows) == POSTINGS:
                self._left.append((partition, rows[-1][:3]))
            found += (Found.of((*partition, *row)) for row in rows)
        return found

    def _statement(self, partition: Partition, after: Row | None) -> Statement:
        if after is None:
            first = derived_cql.read_postings_first(self._tables)
            return Statement(cql=first, values=(*partition, POSTINGS), page_limit=POSTINGS)
        following = derived_cql.read_postings_after(self._tables)
        return Statement(cql=following, values=(*partition, *after, POSTINGS), page_limit=POSTINGS)

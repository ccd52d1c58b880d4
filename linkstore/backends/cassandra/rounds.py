"""Reads all rows of members and words for an inspection, a bounded number at a time."""

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
"""Documents per page."""
POSTINGS: Final = 5_000
"""Postings of a partition per page."""
AT_ONCE: Final = 8
"""Ranges or partitions that are read concurrently."""
_ROWS_PER_RANGE: Final = 2_000
_MIN_RANGES: Final = 16
_FIRST_TOKEN: Final = -(1 << 63)
_TOKENS: Final = 1 << 64
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A row of members or words.

    Args:
        key: Its primary key.
        states: Its states.
        written: Latest write time of its states.
    """

    key: Row
    states: Sequence[bytes]
    written: int

    @classmethod
    def of(cls, row: Row) -> Found:
        """Make a row from key columns, states, write times."""
        *key, states, times = row
        return cls(key=tuple(key), states=unpacked(states), written=max(times or (), default=0))


def documents_after(tables: Tables, after: str | None) -> Operation[list[Row]]:
    """Read the next documents in token order, with the columns of :func:`.cql.read_states`."""
    first = Statement(cql=cql.read_states_first(tables), values=(PAGE,), page_limit=PAGE)
    following = Statement(cql=cql.read_states_after(tables), values=(after, PAGE), page_limit=PAGE)
    (rows,) = yield Requests(statements=(first if after is None else following,), what="read documents")
    return list(rows)


class MemberRounds:
    """Reads all members, by ranges of tokens.

    Args:
        tables: The tables of the store.
        expected: Estimated number of members, which determines the number of ranges.
    """

    def __init__(self, tables: Tables, expected: int) -> None:
        parts = max(_MIN_RANGES, expected // _ROWS_PER_RANGE)
        self._left = _by_range(derived_cql.read_range_of_members(tables), parts)

    def next(self) -> Operation[list[Found] | None]:
        """Read the next members. Return None after the last range."""
        if not self._left:
            return None
        now, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
        answers = yield Requests(statements=tuple(now), what="compare members with documents")
        return [Found.of(row) for rows in answers for row in rows]


def _by_range(text: str, parts: int) -> list[Statement]:
    """Return a statement for each of ``parts`` ranges of tokens, which together cover all tokens."""
    ends = [_FIRST_TOKEN + _TOKENS * n // parts for n in range(parts)] + [_FIRST_TOKEN + _TOKENS - 1]
    return [Statement(cql=text, values=ends[at : at + 2]) for at in range(parts)]


class PostingRounds:
    """Reads all postings, by pages of the partitions that exist, also those that no word has.

    Args:
        tables: The tables of the store.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._left: list[tuple[Partition, Row | None]] | None = None

    def next(self) -> Operation[list[Found] | None]:
        """Read the next postings. Return None after the last ones."""
        if self._left is None:
            ranges = _by_range(derived_cql.read_word_partitions(self._tables), SHARDS)
            answers = yield Requests(statements=tuple(ranges), what="compare words with documents")
            self._left = [(partition, None) for partitions in answers for partition in partitions]
        if not self._left:
            return None
        now, self._left = self._left[:AT_ONCE], self._left[AT_ONCE:]
        statements = tuple(self._make_statement(*each) for each in now)
        answers = yield Requests(statements=statements, what="compare words with documents")
        found: list[Found] = []
        for (partition, _), rows in zip(now, answers, strict=True):
            if len(rows) == POSTINGS:
                self._left.append((partition, rows[-1][:3]))
            found += (Found.of((*partition, *row)) for row in rows)
        return found

    def _make_statement(self, partition: Partition, after: Row | None) -> Statement:
        if after is None:
            first = derived_cql.read_postings_first(self._tables)
            return Statement(cql=first, values=(*partition, POSTINGS), page_limit=POSTINGS)
        following = derived_cql.read_postings_after(self._tables)
        return Statement(cql=following, values=(*partition, *after, POSTINGS), page_limit=POSTINGS)

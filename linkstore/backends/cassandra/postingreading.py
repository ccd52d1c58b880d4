"""Reads postings of partitions within a scope, page by page: those of other documents are read past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.postings import Partition
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

PostingRow = tuple[bytes, str]
"""Head and document id."""
_LARGEST_PAGE: Final = 5_000
_FASTER: Final = 4


@dataclass(slots=True)
class Reading:
    """One word in one partition, as far as it was read.

    Args:
        word: The word.
        partition: Where it lies.
        wanted: How many rows of the scope are wanted; None: all.
        rows: Those of the scope.
        looked_at: How many rows were read, those of other documents included.
        last: The last of them; None before the first.
        more: Whether there may be more.
    """

    word: str
    partition: Partition
    wanted: int | None
    rows: list[PostingRow] = field(default_factory=list)
    looked_at: int = 0
    last: PostingRow | None = None
    more: bool = True

    def take(self, rows: Sequence[PostingRow], held: set[str], asked: int) -> None:
        """Take in the next ``asked`` rows."""
        self.looked_at += len(rows)
        self.more = len(rows) == asked
        if rows:
            self.last = rows[-1]
        self.rows += [row for row in rows if row[1] in held]
        if self.wanted is not None and len(self.rows) >= self.wanted:
            # As many as a store of the scope alone would have given.
            del self.rows[self.wanted :]
            self.last, self.more = self.rows[-1], True


def read_within(
    tables: Tables, readings: Sequence[Reading], scope: Scope, most: int | None = None
) -> Operation[None]:
    """Read on until each has as many as are wanted, or ``most`` rows were looked at, or there are no more."""
    page = min((one.wanted or _LARGEST_PAGE for one in readings), default=0)
    while open_ := [one for one in readings if _is_open(one, most)]:
        statements = tuple(_statement(tables, one, page) for one in open_)
        answers: list[list[PostingRow]] = yield Requests(statements=statements, what="look words up")
        names = (name for rows in answers for _, name in rows)
        held = yield from scope.of(names, sample=most is not None)
        for one, rows in zip(open_, answers, strict=True):
            one.take(rows, held, page)
        page = min(page * _FASTER, _LARGEST_PAGE)


def _is_open(reading: Reading, most: int | None) -> bool:
    enough = reading.wanted is not None and len(reading.rows) >= reading.wanted
    return reading.more and not enough and (most is None or reading.looked_at < most)


def _statement(tables: Tables, reading: Reading, page: int) -> Statement:
    key = (*reading.partition, reading.word)
    if reading.last is None:
        return Statement(cql=cql.read_first_postings(tables), values=(*key, page))
    return Statement(cql=cql.read_next_postings(tables), values=(*key, *reading.last, page))

"""Reads the postings of partitions within a scope, page by page, and skips those of other documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from linkstore.backends.cassandra import derived_cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.postings import HASH_BYTES, Partition
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.states import BEFORE, ONE, unpacked
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

PostingRow = tuple[bytes, str]
"""Head of a state, and document id."""
ServerRow = tuple[bytes, str, bytes]
"""Hash of the document id, document id, states."""
_LARGEST_PAGE: Final = 5_000
_FASTER: Final = 4


@dataclass(slots=True)
class Reading:
    """The postings of a word in one partition that were read.

    Args:
        word: The word.
        partition: The partition.
        wanted: Number of rows of the scope to read.
        rows: The rows of the scope that were read.
        looked_at: Number of rows that were read, including those outside the scope.
        last: The last row that was read, None before the first.
        more: Whether there may be more.
    """

    word: str
    partition: Partition
    wanted: int
    rows: list[PostingRow] = field(default_factory=list)
    looked_at: int = 0
    last: PostingRow | None = None
    more: bool = True

    def take(self, rows: Sequence[ServerRow], held: set[str], asked: int) -> None:
        """Add rows, which answer a request for ``asked`` rows."""
        self.looked_at += len(rows)
        self.more = len(rows) == asked
        found = by_state(rows)
        if found:
            self.last = found[-1]
        self.rows += [row for row in found if row[1] in held]
        if len(self.rows) >= self.wanted:
            # Same rows as in a store with only the scope's documents; the last document with all its states.
            end = self.wanted
            while end < len(self.rows) and self.rows[end][1] == self.rows[end - 1][1]:
                end += 1
            del self.rows[end:]
            self.last, self.more = self.rows[-1], True


def read_within(
    tables: Tables, readings: Sequence[Reading], scope: Scope, most: int | None = None
) -> Operation[None]:
    """Read until each reading has the wanted rows, or ``most`` rows were read, or there are no more."""
    page = min((_LARGEST_PAGE, *(one.wanted for one in readings)))
    while open_ := [one for one in readings if _is_open(one, most)]:
        statements = tuple(_statement(tables, one, page) for one in open_)
        answers: list[list[ServerRow]] = yield Requests(statements=statements, what="look words up")
        ids = (id for rows in answers for _, id, _ in rows)
        held = yield from scope.of(ids, sample=most is not None)
        for one, rows in zip(open_, answers, strict=True):
            one.take(rows, held, page)
        page = min(page * _FASTER, _LARGEST_PAGE)


def _is_open(reading: Reading, most: int | None) -> bool:
    enough = len(reading.rows) >= reading.wanted
    return reading.more and not enough and (most is None or reading.looked_at < most)


def _statement(tables: Tables, reading: Reading, page: int) -> Statement:
    key = (*reading.partition, reading.word)
    if reading.last is None:
        return Statement(cql=derived_cql.read_first_postings(tables), values=(*key, page))
    return Statement(cql=derived_cql.read_next_postings(tables), values=(*key, *place(reading.last), page))


def by_state(rows: Sequence[ServerRow]) -> list[PostingRow]:
    """Return a row for each state of each posting, of which nearly all have one."""
    return [
        (hashed + state, id)
        for hashed, id, states in rows
        for state in ((states[BEFORE:],) if states.startswith(ONE) else unpacked(states))
    ]


def place(row: PostingRow) -> tuple[bytes, str]:
    """Return the position of a row within its word: hash, document id."""
    head, id = row
    return head[:HASH_BYTES], id

"""The documents and link groups read for a plan, their refs, and reading more by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.rows import DocumentRow, is_possible, is_whole
from linkstore.backends.cassandra.transport.placement import Placement, Share
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.filters import EVERYTHING, Condition
from linkstore.plans import Operation, Side
from linkstore.vectors import Bools, Floats, Ints

KEYS_A_STATEMENT: Final = 100
"""Maximum number of partitions in one statement."""
LANES: Final = 4
"""Number of statements that the keys of one node are split into. A node handles the keys of a statement one
after another, but several statements in parallel."""
LEAST_KEYS: Final = 16
"""Minimum number of keys in a statement, if there are as many."""


class Documents:
    """The documents met by a plan: the refs of their ids, and the rows of those that were read.

    Each document is read at most once, so all answers about it are of one state.
    """

    def __init__(self) -> None:
        self._refs: dict[str, int] = {}
        self.ids: list[str] = []
        self.rows: list[DocumentRow | None] = []
        self._read = bytearray()
        self._weights: dict[int, dict[Side, dict[tuple[str, str], float]]] = {}
        self._passing: dict[tuple[int, Side, str], dict[tuple[str, str], float]] = {}

    def ref(self, id: str) -> int:
        """The ref of an id."""
        ref = self._refs.setdefault(id, len(self.ids))
        if ref == len(self.ids):
            self.ids.append(id)
            self.rows.append(None)
            self._read.append(0)
        return ref

    def refs(self, ids: Sequence[str]) -> Ints:
        """The refs of ids, which may have duplicates."""
        new = [id for id in dict.fromkeys(ids) if id not in self._refs]
        self._refs.update(zip(new, range(len(self.ids), len(self.ids) + len(new)), strict=True))
        self.ids += new
        self.rows += [None] * len(new)
        self._read += bytes(len(new))
        return np.fromiter(map(self._refs.__getitem__, ids), np.int64, len(ids))

    def keep(self, row: DocumentRow) -> int:
        """Store a row unless the document was read before; returns its ref."""
        ref = self.ref(row.id)
        if not self._read[ref]:
            self.rows[ref], self._read[ref] = row, 1
        return ref

    def read(self, refs: Ints) -> Bools:
        """Which of the documents were read, (n,)."""
        return np.array(self._read, dtype=np.bool_)[refs]

    def unread(self, refs: Sequence[int]) -> list[int]:
        """The documents that were not read yet."""
        return [ref for ref in refs if not self._read[ref]]

    def mark_read(self, refs: Sequence[int]) -> None:
        """Mark documents as read; those without a row do not exist."""
        for ref in refs:
            self._read[ref] = 1

    def row(self, ref: int) -> DocumentRow:
        """The row of a document that an answer contained."""
        row = self.rows[ref]
        assert row is not None, "a ref that no answer contained"
        return row

    def weights(self, ref: int, side: Side, links: Condition = EVERYTHING) -> dict[tuple[str, str], float]:
        """The link groups that a document belongs to on one side, with weights; empty if it does not exist.

        Args:
            ref: The document.
            side: The side of the link groups.
            links: Condition on the data of links; other links do not count.
        """
        row = self.rows[ref]
        if row is None:
            return {}
        if links.always:
            known = self._weights.get(ref)
            if known is None:
                known = self._weights[ref] = row.weights()
            return known[side]
        passing = self._passing.get((ref, side, links.key))
        if passing is None:
            passing = self._passing[ref, side, links.key] = row.passing(side, links)
        return passing

    def vectors(self, refs: Sequence[int]) -> Floats:
        """(n, d) vectors."""
        if not len(refs):
            return np.empty((0, 0), np.float32)
        return np.stack([self.row(ref).vector for ref in refs])

    def ids_of(self, refs: Ints) -> list[str]:
        """The ids of documents."""
        return [self.ids[ref] for ref in refs.tolist()]


class LinkGroups:
    """The link groups met by a plan: a ref for each (kind, tag)."""

    def __init__(self) -> None:
        self._refs: dict[tuple[str, str], int] = {}
        self.tags: list[tuple[str, str]] = []

    def ref(self, tag: tuple[str, str]) -> int:
        """The ref of a link group."""
        ref = self._refs.setdefault(tag, len(self.tags))
        if ref == len(self.tags):
            self.tags.append(tag)
        return ref


class Fetcher:
    """Reads rows by key, with few statements for many keys, each sent to a node that owns them.

    Args:
        tables: The tables of the store.
        placement: Finds the nodes of partitions.
    """

    def __init__(self, tables: Tables, placement: Placement) -> None:
        self._tables = tables
        self._placement = placement

    def documents(self, ids: Sequence[str]) -> Operation[list[DocumentRow]]:
        """The existing documents with these ids, in any order."""
        rows = yield from self.by_id(cql.read_documents(self._tables), ids, "read documents")
        return [DocumentRow.of(row) for row in rows if is_whole(row)]

    def present(self, ids: Sequence[str]) -> Operation[dict[str, int | None]]:
        """The ids whose documents exist, with when they were added; None if an older linkstore did."""
        rows = yield from self.by_id(cql.read_presence(self._tables), ids, "read documents")
        return {id: born for id, digest, born in rows if digest is not None}

    def by_id(self, statement: str, ids: Sequence[str], what: str) -> Operation[list[tuple[Any, ...]]]:
        """The rows that a statement with a list of ids returns."""
        ids = [id for id in ids if is_possible(id)]
        if not ids:
            return []
        statements = tuple(
            Statement(cql=statement, values=([ids[at] for at in part],), routing=routing)
            for part, routing in self.parts(self._tables.name, [(one,) for one in ids])
        )
        answers = yield Requests(statements=statements, what=what)
        return [row for rows in answers for row in rows]

    def parts(self, table: str, keys: Sequence[tuple[Any, ...]]) -> Iterator[tuple[list[int], bytes | None]]:
        """For each statement, the positions of its keys and its routing key."""
        for share in self.by_replica(table, keys):
            size = min(KEYS_A_STATEMENT, max(LEAST_KEYS, -(-len(share.positions) // LANES)))
            for start in range(0, len(share.positions), size):
                yield share.positions[start : start + size], share.routing

    def by_replica(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[Share]:
        """See :meth:`Placement.by_replica`."""
        return self._placement.by_replica(table, keys)

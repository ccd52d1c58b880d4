"""Documents and link groups read for a plan: their refs, content and members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.plans import Operation, Side
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import DocumentRow, is_possible_id, is_whole
from linkstore.engines.cassandra.sending import NodeShare, Placement
from linkstore.engines.cassandra.statements import Tables

MAX_KEYS_PER_STATEMENT: Final = 100
"""Maximum number of partitions in one statement."""
STATEMENTS_PER_NODE: Final = 4
"""Number of statements that the keys of one node are split into. A node handles the keys of a statement one
after another, but several statements in parallel."""
MIN_KEYS_PER_STATEMENT: Final = 16
"""Minimum number of keys in a statement, if there are as many."""


class MetDocuments:
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
        """Return the ref of an id."""
        ref = self._refs.setdefault(id, len(self.ids))
        if ref == len(self.ids):
            self.ids.append(id)
            self.rows.append(None)
            self._read.append(0)
        return ref

    def refs(self, ids: Sequence[str]) -> Ints:
        """Return the refs of ids, which may have duplicates."""
        new = [id for id in dict.fromkeys(ids) if id not in self._refs]
        self._refs.update(zip(new, range(len(self.ids), len(self.ids) + len(new)), strict=True))
        self.ids += new
        self.rows += [None] * len(new)
        self._read += bytes(len(new))
        return np.fromiter(map(self._refs.__getitem__, ids), np.int64, len(ids))

    def keep(self, row: DocumentRow) -> int:
        """Store a row unless the document was read before, and return the document's ref."""
        ref = self.ref(row.id)
        if not self._read[ref]:
            self.rows[ref], self._read[ref] = row, 1
        return ref

    def read(self, refs: Ints) -> Bools:
        """Say which of the documents were read, (n,)."""
        return np.array(self._read, dtype=np.bool_)[refs]

    def unread(self, refs: Sequence[int]) -> list[int]:
        """Return the documents that were not read yet."""
        return [ref for ref in refs if not self._read[ref]]

    def mark_read(self, refs: Sequence[int]) -> None:
        """Mark documents as read. Those without a row do not exist."""
        for ref in refs:
            self._read[ref] = 1

    def row(self, ref: int) -> DocumentRow:
        """Return the row of a document that an answer contained."""
        row = self.rows[ref]
        assert row is not None, "a ref that no answer contained"
        return row

    def weights(self, ref: int, side: Side, links: Condition = EVERYTHING) -> dict[tuple[str, str], float]:
        """Return the link groups that a document belongs to on one side, with weights.

        The result is empty if the document does not exist.

        Args:
            ref: The document.
            side: The side of the link groups.
            links: Condition on the data of links. Other links do not count.
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
        """Return (n, d) vectors."""
        if not len(refs):
            return np.empty((0, 0), np.float32)
        return np.stack([self.row(ref).vector for ref in refs])

    def ids_of(self, refs: Ints) -> list[str]:
        """Return the ids of documents."""
        return [self.ids[ref] for ref in refs.tolist()]


class MetLinkGroups:
    """The link groups met by a plan: a ref for each (kind, tag)."""

    def __init__(self) -> None:
        self._refs: dict[tuple[str, str], int] = {}
        self.tags: list[tuple[str, str]] = []

    def ref(self, tag: tuple[str, str]) -> int:
        """Return the ref of a link group."""
        ref = self._refs.setdefault(tag, len(self.tags))
        if ref == len(self.tags):
            self.tags.append(tag)
        return ref


class RowFetcher:
    """Reads rows by key, with few statements for many keys, each sent to a node that owns them.

    Args:
        tables: The tables of the store.
        placement: Finds the nodes of partitions.
    """

    def __init__(self, tables: Tables, placement: Placement) -> None:
        self._tables = tables
        self._placement = placement

    def documents(self, ids: Sequence[str]) -> Operation[list[DocumentRow]]:
        """Read the existing documents with these ids, in any order."""
        rows = yield from self.by_id(cql.read_documents(self._tables), ids, "read documents")
        return [DocumentRow.of(row) for row in rows if is_whole(row)]

    def present(self, ids: Sequence[str]) -> Operation[dict[str, int | None]]:
        """Read which documents exist.

        Returns when each of them was added, by id. This is None if an older linkstore added the document.
        """
        rows = yield from self.by_id(cql.read_presence(self._tables), ids, "read documents")
        return {id: born for id, digest, born in rows if digest is not None}

    def by_id(self, statement: str, ids: Sequence[str], what: str) -> Operation[list[tuple[Any, ...]]]:
        """Read the rows that a statement with a list of ids returns."""
        ids = [id for id in ids if is_possible_id(id)]
        if not ids:
            return []
        statements = tuple(
            Statement(cql=statement, values=([ids[at] for at in part],), routing=routing)
            for part, routing in self.parts(self._tables.name, [(one,) for one in ids])
        )
        answers = yield Requests(statements=statements, what=what)
        return [row for rows in answers for row in rows]

    def parts(self, table: str, keys: Sequence[tuple[Any, ...]]) -> Iterator[tuple[list[int], bytes | None]]:
        """Yield, for each statement, the positions of its keys and its routing key."""
        for share in self.by_replica(table, keys):
            size = min(
                MAX_KEYS_PER_STATEMENT,
                max(MIN_KEYS_PER_STATEMENT, -(-len(share.positions) // STATEMENTS_PER_NODE)),
            )
            for start in range(0, len(share.positions), size):
                yield share.positions[start : start + size], share.routing

    def by_replica(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[NodeShare]:
        """Group keys by replica, see :meth:`Placement.by_replica`."""
        return self._placement.by_replica(table, keys)

"""Rows that are derived from documents (members and postings): what a change adds, replaces and deletes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import orjson

from linkstore.backends.base import Record
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.members import DocumentMembers, MemberStatements
from linkstore.backends.cassandra.postings import DocumentWords, PostingStatements, stamp_of
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rounds import documents_after
from linkstore.backends.cassandra.rows import (
    Replaced,
    current_links,
    is_whole,
    last_replaced,
    links_of,
    memberships,
    stored_links,
    written_links,
)
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.plans import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a document, stored or about to be written, from which rows are derived.

    Args:
        id: The document.
        written: Latest write time of its columns, 0 if it is not written yet.
        born: When it was added, None if an older linkstore did.
        lifetime: Seconds until it expires. None: never.
        links: Its links as JSON, as in its metadata.
        relinked: Those that were replaced since it was written.
        attributes: Its metadata without links, as JSON.
        members: Its members of link groups.
        words: Its words, None in a store without lexical search.
    """

    id: str
    written: int = 0
    born: int | None = None
    lifetime: int | None = None
    links: str = ""
    relinked: Replaced = field(default_factory=dict)
    attributes: str = "{}"
    members: DocumentMembers
    words: DocumentWords | None = None

    @property
    def length(self) -> int:
        """Number of words."""
        return self.words.length if self.words else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The change of one document.

    Args:
        now: The state that was written, None if the document was deleted.
        before: The previous state, None if the document did not exist.
    """

    now: State | None
    before: State | None


class DerivedRows:
    """Makes the statements that write members and postings.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions, and reads documents.
        buckets: Number of partitions of one side of a link group, and of a word.
        lexical: Whether the store has postings.
        lifetime: Seconds until written rows expire. None: never.
    """

    def __init__(
        self, tables: Tables, fetcher: Fetcher, buckets: int, *, lexical: bool, lifetime: int | None
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = buckets
        self._lexical = lexical
        self._members = MemberStatements(tables, fetcher, lifetime)
        self._postings = PostingStatements(tables, fetcher, lifetime)

    def state(self, record: Record, attributes: str, code: bytes) -> State:
        """Return the state of a document once a record is written."""
        weights = memberships(stored_links(record.links))
        return State(
            id=record.id,
            attributes=attributes,
            members=DocumentMembers(id=record.id, weights=weights, vector=record.vector, code=code),
            words=DocumentWords.of(record.id, record.text, record.metadata) if self._lexical else None,
        )

    def stored(self, ids: Sequence[str], now: Mapping[str, State]) -> Operation[dict[str, State]]:
        """Read the current states of documents, leaving out documents that do not exist.

        Args:
            ids: The documents.
            now: The states about to be written. Their words are reused where the text is the same.
        """
        rows = yield from self._fetcher.by_id(cql.read_states(self._tables), ids, "read documents")
        return {row[0]: self._make_stored_state(row, now.get(row[0])) for row in rows if is_whole(row)}

    def coded(self, ids: Sequence[str]) -> Operation[dict[str, State]]:
        """Read the current states of documents, with the codes of their vectors."""
        states = yield from self.stored(ids, {})
        return {state.id: state for state in _with_codes(list(states.values()))}

    def after(self, id: str | None) -> Operation[Sequence[State]]:
        """Read the next documents in token order, with the codes of their vectors.

        The result is empty after the last document.
        """
        rows = yield from documents_after(self._tables, id)
        while rows and not any(map(is_whole, rows)):
            rows = yield from documents_after(self._tables, rows[-1][0])
        return _with_codes([self._make_stored_state(row, None) for row in rows if is_whole(row)])

    def _make_stored_state(self, row: Sequence[Any], now: State | None) -> State:
        id, written, stored, text, attributes, vector, lifetime, born, relinked = row
        links = current_links(stored, relinked)
        words = None
        if self._lexical:
            metadata = orjson.loads(attributes)
            words = now.words if now else None
            if words is None or words.stamp != stamp_of(text, metadata):
                words = DocumentWords.of(id, text, metadata)
        return State(
            id=id,
            written=max(written, last_replaced(relinked)),
            born=born,
            lifetime=lifetime,
            links=written_links(links).decode(),
            relinked=dict(relinked or {}),
            attributes=attributes,
            members=DocumentMembers(id=id, weights=memberships(links_of(links)), vector=vector),
            words=words,
        )

    def add(self, states: Iterable[State], at: int) -> Iterator[Statement]:
        """Add the rows derived from states that are about to be written."""
        states = list(states)
        yield from self._members.add(
            chain.from_iterable(state.members.rows(self._buckets) for state in states), at
        )
        yield from self._postings.add(
            chain.from_iterable(state.words.rows(self._buckets) for state in states if state.words), at
        )

    def finish(self, steps: Sequence[Step], at: int) -> Iterator[Statement]:
        """Remove rows derived from the previous states but not from the written ones."""
        yield from self._finish_members(steps, at)
        yield from self._finish_postings(steps, at)

    def _finish_members(self, steps: Sequence[Step], at: int) -> Iterator[Statement]:
        buckets = self._buckets
        pairs = [(step.now and step.now.members, step.before.members) for step in steps if step.before]
        differing = (now.rows_differing(before, buckets) for now, before in pairs if now)
        gone = (now.keys_gone(before, buckets) if now else before.keys(buckets) for now, before in pairs)
        yield from self._members.replace(chain.from_iterable(differing), at)
        yield from self._members.delete(chain.from_iterable(gone), at)

    def _finish_postings(self, steps: Sequence[Step], at: int) -> Iterator[Statement]:
        buckets = self._buckets
        pairs = [(step.now and step.now.words, step.before.words) for step in steps if step.before]
        differing = (now.rows_differing(before, buckets) for now, before in pairs if now and before)
        gone = (
            now.keys_gone(before, buckets) if now else (key for key, _ in before.rows(buckets))
            for now, before in pairs
            if before
        )
        yield from self._postings.replace(chain.from_iterable(differing), at)
        yield from self._postings.delete(chain.from_iterable(gone), at)


def _with_codes(states: Sequence[State]) -> list[State]:
    if not states:
        return []
    packed = codes.encode(np.stack([state.members.vector for state in states]))
    return [
        replace(state, members=replace(state.members, code=code))
        for state, code in zip(states, packed, strict=True)
    ]

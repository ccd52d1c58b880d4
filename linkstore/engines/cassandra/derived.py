"""Rows derived from documents, members and postings: what a change adds and removes, and reading all.

Reads all rows of members and words for an inspection, a bounded number at a time.

Rows that are derived from documents (members and postings): what a change adds, replaces and deletes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import orjson

from linkstore.core.plans import Operation
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.members import DocumentMembers, MemberStatements
from linkstore.engines.cassandra.postings import (
    SHARDS,
    DocumentWords,
    PostingStatements,
    WordPartition,
    compute_stamp,
)
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import (
    ReplacedLinks,
    derive_memberships,
    encode_vectors,
    extract_links_json,
    find_last_replaced,
    is_whole,
    make_link_set,
    merge_replaced_links,
    unpack_links,
    unpack_states,
)
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.contract import Record

DOCUMENTS_PER_PAGE: Final = 1_000
"""Documents per page."""
POSTINGS_PER_PAGE: Final = 5_000
"""Postings of a partition per page."""
CONCURRENT_READS: Final = 8
"""Ranges or partitions that are read concurrently."""
_ROWS_PER_RANGE: Final = 2_000
_MIN_RANGES: Final = 16
_FIRST_TOKEN: Final = -(1 << 63)
_TOKENS: Final = 1 << 64
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRow:
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
    def of(cls, row: Row) -> FoundRow:
        """Make a row from key columns, states, write times."""
        *key, states, times = row
        return cls(key=tuple(key), states=unpack_states(states), written=max(times or (), default=0))


def read_documents_after(tables: Tables, after: str | None) -> Operation[list[Row]]:
    """Read the next documents in token order, with the columns of :func:`.cql.read_states`."""
    first = Statement(
        cql=cql.read_states_first(tables), values=(DOCUMENTS_PER_PAGE,), page_limit=DOCUMENTS_PER_PAGE
    )
    following = Statement(
        cql=cql.read_states_after(tables), values=(after, DOCUMENTS_PER_PAGE), page_limit=DOCUMENTS_PER_PAGE
    )
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
        self._left = _split_by_range(cql.read_member_range(tables), parts)

    def next(self) -> Operation[list[FoundRow] | None]:
        """Read the next members. Return None after the last range."""
        if not self._left:
            return None
        now, self._left = self._left[:CONCURRENT_READS], self._left[CONCURRENT_READS:]
        answers = yield Requests(statements=tuple(now), what="compare members with documents")
        return [FoundRow.of(row) for rows in answers for row in rows]


def _split_by_range(text: str, parts: int) -> list[Statement]:
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
        self._left: list[tuple[WordPartition, Row | None]] | None = None

    def next(self) -> Operation[list[FoundRow] | None]:
        """Read the next postings. Return None after the last ones."""
        if self._left is None:
            ranges = _split_by_range(cql.read_word_partitions(self._tables), SHARDS)
            answers = yield Requests(statements=tuple(ranges), what="compare words with documents")
            self._left = [(partition, None) for partitions in answers for partition in partitions]
        if not self._left:
            return None
        now, self._left = self._left[:CONCURRENT_READS], self._left[CONCURRENT_READS:]
        statements = tuple(self._make_statement(*each) for each in now)
        answers = yield Requests(statements=statements, what="compare words with documents")
        found: list[FoundRow] = []
        for (partition, _), rows in zip(now, answers, strict=True):
            if len(rows) == POSTINGS_PER_PAGE:
                self._left.append((partition, rows[-1][:3]))
            found += (FoundRow.of((*partition, *row)) for row in rows)
        return found

    def _make_statement(self, partition: WordPartition, after: Row | None) -> Statement:
        if after is None:
            first = cql.read_postings_first(self._tables)
            return Statement(cql=first, values=(*partition, POSTINGS_PER_PAGE), page_limit=POSTINGS_PER_PAGE)
        following = cql.read_postings_after(self._tables)
        return Statement(
            cql=following, values=(*partition, *after, POSTINGS_PER_PAGE), page_limit=POSTINGS_PER_PAGE
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
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
    relinked: ReplacedLinks = field(default_factory=dict)
    attributes: str = "{}"
    members: DocumentMembers
    words: DocumentWords | None = None

    @property
    def length(self) -> int:
        """Number of words."""
        return self.words.length if self.words else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """The change of one document.

    Args:
        now: The state that was written, None if the document was deleted.
        before: The previous state, None if the document did not exist.
    """

    now: DocumentState | None
    before: DocumentState | None


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
        self, tables: Tables, fetcher: RowFetcher, buckets: int, *, lexical: bool, lifetime: int | None
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = buckets
        self._lexical = lexical
        self._members = MemberStatements(tables, fetcher, lifetime)
        self._postings = PostingStatements(tables, fetcher, lifetime)

    def state(self, record: Record, attributes: str, code: bytes) -> DocumentState:
        """Return the state of a document once a record is written."""
        weights = derive_memberships(make_link_set(record.links))
        return DocumentState(
            id=record.id,
            attributes=attributes,
            members=DocumentMembers(id=record.id, weights=weights, vector=record.vector, code=code),
            words=DocumentWords.of(record.id, record.text, record.metadata) if self._lexical else None,
        )

    def stored(
        self, ids: Sequence[str], now: Mapping[str, DocumentState]
    ) -> Operation[dict[str, DocumentState]]:
        """Read the current states of documents, leaving out documents that do not exist.

        Args:
            ids: The documents.
            now: The states about to be written. Their words are reused where the text is the same.
        """
        rows = yield from self._fetcher.by_id(cql.read_states(self._tables), ids, "read documents")
        return {row[0]: self._make_stored_state(row, now.get(row[0])) for row in rows if is_whole(row)}

    def coded(self, ids: Sequence[str]) -> Operation[dict[str, DocumentState]]:
        """Read the current states of documents, with the codes of their vectors."""
        states = yield from self.stored(ids, {})
        return {state.id: state for state in _add_codes(list(states.values()))}

    def after(self, id: str | None) -> Operation[Sequence[DocumentState]]:
        """Read the next documents in token order, with the codes of their vectors.

        The result is empty after the last document.
        """
        rows = yield from read_documents_after(self._tables, id)
        while rows and not any(map(is_whole, rows)):
            rows = yield from read_documents_after(self._tables, rows[-1][0])
        return _add_codes([self._make_stored_state(row, None) for row in rows if is_whole(row)])

    def _make_stored_state(self, row: Sequence[Any], now: DocumentState | None) -> DocumentState:
        id, written, stored, text, attributes, vector, lifetime, born, relinked = row
        links = merge_replaced_links(stored, relinked)
        words = None
        if self._lexical:
            metadata = orjson.loads(attributes)
            words = now.words if now else None
            if words is None or words.stamp != compute_stamp(text, metadata):
                words = DocumentWords.of(id, text, metadata)
        return DocumentState(
            id=id,
            written=max(written, find_last_replaced(relinked)),
            born=born,
            lifetime=lifetime,
            links=extract_links_json(links).decode(),
            relinked=dict(relinked or {}),
            attributes=attributes,
            members=DocumentMembers(id=id, weights=derive_memberships(unpack_links(links)), vector=vector),
            words=words,
        )

    def add(self, states: Iterable[DocumentState], at: int) -> Iterator[Statement]:
        """Add the rows derived from states that are about to be written."""
        states = list(states)
        yield from self._members.add(
            chain.from_iterable(state.members.rows(self._buckets) for state in states), at
        )
        yield from self._postings.add(
            chain.from_iterable(state.words.rows(self._buckets) for state in states if state.words), at
        )

    def finish(self, steps: Sequence[DocumentChange], at: int) -> Iterator[Statement]:
        """Remove rows derived from the previous states but not from the written ones."""
        yield from self._finish_members(steps, at)
        yield from self._finish_postings(steps, at)

    def _finish_members(self, steps: Sequence[DocumentChange], at: int) -> Iterator[Statement]:
        buckets = self._buckets
        pairs = [(step.now and step.now.members, step.before.members) for step in steps if step.before]
        differing = (now.rows_differing(before, buckets) for now, before in pairs if now)
        gone = (now.keys_gone(before, buckets) if now else before.keys(buckets) for now, before in pairs)
        yield from self._members.replace(chain.from_iterable(differing), at)
        yield from self._members.delete(chain.from_iterable(gone), at)

    def _finish_postings(self, steps: Sequence[DocumentChange], at: int) -> Iterator[Statement]:
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


def _add_codes(states: Sequence[DocumentState]) -> list[DocumentState]:
    if not states:
        return []
    packed = encode_vectors(np.stack([state.members.vector for state in states]))
    return [
        replace(state, members=replace(state.members, code=code))
        for state, code in zip(states, packed, strict=True)
    ]

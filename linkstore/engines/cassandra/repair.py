"""Counts the content of a store, compares derived rows with the documents, and repairs them.

Counts the content of a store. Each count reads the links of all documents.

How rows differ from the documents they are derived from, and how they are repaired while others write.

A row without a document may belong to a write in progress, which writes its document later. So such a row is
neither reported nor deleted until it is older than any write takes (``settle``) and its document was read
once more. The deletion has the write time of the row as it was read, so it deletes nothing written later.

Compares all members with the links and vectors of documents, and repairs them.

Compares all postings with the words of documents, and repairs them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol

import xxhash

from linkstore.core.plans import Operation
from linkstore.engines.cassandra import statements
from linkstore.engines.cassandra.derived import (
    DOCUMENTS_PER_PAGE,
    DerivedRows,
    DocumentState,
    FoundRow,
    MemberRounds,
    PostingRounds,
)
from linkstore.engines.cassandra.members import MemberKey, MemberStatements
from linkstore.engines.cassandra.postings import PostingKey, PostingStatements
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import (
    StoredLink,
    derive_memberships,
    is_whole,
    merge_replaced_links,
    unpack_links,
)
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.contract import Finding, LinkedPage, PageEntry, Survey


class StoreInspection:
    """Counts documents, links and pages.

    Args:
        tables: The tables of the store.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def survey(self, pages: int) -> Operation[Survey]:
        """Count documents and links."""
        rows = yield from self._read_links()
        links: list[StoredLink] = [link for _, of in rows for link in unpack_links(of)]
        memberships_found = {key for _, of in rows for key in derive_memberships(unpack_links(of))}
        asked = Counter((kind, tag) for kind, tag, direction, _ in links if direction != "in")
        dangling = sorted(tag for tag in asked if (*tag, "in") not in memberships_found)
        return Survey(
            documents=len(rows),
            pages=pages,
            links=dict(sorted(Counter(kind for kind, *_ in links).items())),
            groups=len({(kind, tag) for kind, tag, _ in memberships_found}),
            dangling=tuple((*tag, asked[tag]) for tag in dangling),
        )

    def linked(self, entries: Iterable[PageEntry], kind: str, take: int) -> Operation[list[LinkedPage]]:
        """Find the pages that most links of a kind lead to."""
        rows = yield from self._read_links()
        owners: dict[str, set[PageEntry]] = defaultdict(set)
        for entry in entries:
            for id in entry.ids:
                owners[id].add(entry)
        asking: dict[str, list[str]] = defaultdict(list)
        answering: dict[str, set[PageEntry]] = defaultdict(set)
        for id, of in rows:
            for found, tag, side in derive_memberships(unpack_links(of)):
                if found == kind and side == "out":
                    asking[tag].append(id)
                elif found == kind:
                    answering[tag].update(owners.get(id, ()))
        counts = Counter(
            (page.source, page.url)
            for tag, pages in answering.items()
            for page in pages
            for id in asking.get(tag, ())
            if page not in owners.get(id, ())
        )
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:take]
        return [LinkedPage(source=source, url=url, links=links) for (source, url), links in ranked]

    def _read_links(self) -> Operation[list[tuple[str, bytes | None]]]:
        statement = Statement(cql=statements.read_all_links(self._tables))
        (rows,) = yield Requests(statements=(statement,), what="read all documents")
        return [(row[0], merge_replaced_links(row[1], row[-1])) for row in rows if is_whole(row)]


_MAX_ROW_EXAMPLES: Final = 5
RowKey = Any
"""The primary key of a row of members or of words; its last part is the document's id."""
ExpectedRows = Callable[[DocumentState], Mapping[RowKey, bytes]]
"""The rows derived from a state of a document."""
MissingRows = Callable[[str, Mapping[RowKey, bytes], Sequence[FoundRow]], Iterable[RowKey]]
"""Takes a document's id, the rows it must have, and its doubtful rows; returns the keys of missing rows."""


class RowStatements(Protocol):
    """Writes rows: :class:`.members.MemberStatements` or :class:`.postings.PostingStatements`."""

    def add(self, rows: Iterable[tuple[Any, bytes]], at: int) -> Iterator[Statement]:
        """Add states to rows."""
        ...

    def replace(self, rows: Iterable[tuple[Any, bytes]], at: int) -> Iterator[Statement]:
        """Add states to rows, and remove the states that were added before."""
        ...

    def delete(self, keys: Iterable[Any], at: int) -> Iterator[Statement]:
        """Delete rows that were written before a time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowProblem:
    """How to report rows that differ.

    Args:
        text: Description of the problem.
        shown: Formats the key of a row. Rows with the same result are counted once.
    """

    text: str
    shown: Callable[[RowKey], str]


@dataclass(slots=True)
class Differences:
    """Rows that differ from documents.

    Args:
        strays: Rows without a document that should have them, with the last write time of each.
        missing: Rows that do not exist or lack a state, with the state to add to each.
        mixed: Rows with wrong or additional states, with the last write time and the correct state.
    """

    strays: dict[RowKey, int] = field(default_factory=dict)
    missing: dict[RowKey, bytes] = field(default_factory=dict)
    mixed: dict[RowKey, tuple[int, bytes]] = field(default_factory=dict)

    def take(self, found: FoundRow, right: bytes | None, horizon: int) -> None:
        """Compare one row.

        Args:
            found: The row.
            right: The correct state, None if the row should not exist.
            horizon: Rows with a later timestamp may belong to a write in progress.
        """
        settled = found.written <= horizon
        if right is None:
            if settled:
                self.strays[found.key] = found.written
        elif list(found.states) != [right]:
            if settled:
                self.mixed[found.key] = found.written, right
            elif right not in found.states:
                self.missing[found.key] = right

    def findings(self, *problems: RowProblem) -> tuple[Finding, ...]:
        """Return the differences as findings.

        Args:
            problems: The problems of strays, missing and mixed rows, in this order.
        """
        found = []
        of_each: tuple[Iterable[RowKey], ...] = (self.strays, self.missing, self.mixed)
        for problem, keys in zip(problems, of_each, strict=True):
            shown = sorted(set(map(problem.shown, keys)))
            if shown:
                found.append(
                    Finding(problem=problem.text, count=len(shown), examples=tuple(shown[:_MAX_ROW_EXAMPLES]))
                )
        return tuple(found)

    def mend(self, statements: RowStatements, now: int, what: str) -> Operation[None]:
        """Delete surplus rows, and write missing ones.

        Args:
            statements: Makes the statements.
            now: The timestamp of added states.
            what: Name of the operation, for error messages.
        """
        strays: defaultdict[int, list[RowKey]] = defaultdict(list)
        mixed: defaultdict[int, list[tuple[RowKey, bytes]]] = defaultdict(list)
        for key, written in self.strays.items():
            strays[written].append(key)
        for key, (written, state) in self.mixed.items():
            mixed[written].append((key, state))
        deleted = (statements.delete(keys, written) for written, keys in strays.items())
        replaced = (statements.replace(rows, written + 1) for written, rows in mixed.items())
        added = statements.add(self.missing.items(), now)
        mending = (*chain.from_iterable(deleted), *chain.from_iterable(replaced), *added)
        if mending:
            yield Requests(statements=mending, what=what)


def compare_again(
    derived: DerivedRows,
    expected: ExpectedRows,
    absent: MissingRows,
    seen: Mapping[str, int],
    doubtful: Sequence[FoundRow],
    lacking: Iterable[str],
    horizon: int,
) -> Operation[Differences]:
    """Compare doubtful rows with their documents, which are read again.

    Args:
        derived: Reads states of documents.
        expected: Returns the rows derived from a state.
        absent: Returns the missing rows of a document.
        seen: Write times of the documents when they were first read.
        doubtful: Rows that did not match the documents when they were first read.
        lacking: Ids of documents with missing rows.
        horizon: Rows with a later timestamp may belong to a write in progress.
    """
    rows_of: defaultdict[str, list[FoundRow]] = defaultdict(list)
    for found in doubtful:
        rows_of[found.key[-1]].append(found)
    ids, differences = sorted({*rows_of, *lacking}), Differences()
    for start in range(0, len(ids), DOCUMENTS_PER_PAGE):
        part = ids[start : start + DOCUMENTS_PER_PAGE]
        states = yield from derived.coded(part)
        for id in part:
            state = states.get(id)
            right = expected(state) if state else {}
            unchanged = state is not None and seen.get(id) == state.written
            for found in rows_of[id]:
                if unchanged or found.key not in right:
                    differences.take(found, right.get(found.key), horizon)
            if unchanged:
                differences.missing.update((key, right[key]) for key in absent(id, right, rows_of[id]))
    return differences


class MemberInspection:
    """Inspects all members.

    It keeps a hash of the expected state of each member, and only those rows that differ.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        derived: Reads states of documents.
        buckets: Number of partitions of one side of a link group.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, derived: DerivedRows, buckets: int) -> None:
        self._tables = tables
        self._derived = derived
        self._buckets = buckets
        self._statements = MemberStatements(tables, fetcher)

    def compare(self, horizon: int) -> Operation[Differences]:
        """Read documents, then members, then once more the documents whose members differ.

        Args:
            horizon: Rows with a later timestamp may belong to a write in progress.
        """
        seen: dict[str, int] = {}
        right: dict[MemberKey, int] = {}
        page: Sequence[DocumentState] = yield from self._derived.after(None)
        while page:
            seen.update((state.id, state.written) for state in page)
            for state in page:
                right.update((key, _hash_member(s)) for key, s in self._list_expected(state).items())
            page = yield from self._derived.after(page[-1].id)
        rounds = MemberRounds(self._tables, expected=len(right))
        doubtful: list[FoundRow] = []
        while (found := (yield from rounds.next())) is not None:
            doubtful += (
                row for row in found if [right.pop(row.key, None)] != [*map(_hash_member, row.states)]
            )
        return (
            yield from compare_again(
                self._derived,
                self._list_expected,
                lambda _, rows, __: (key for key in rows if key in right),
                seen,
                doubtful,
                {key[-1] for key in right},
                horizon,
            )
        )

    def mend(self, differences: Differences, now: int) -> Operation[None]:
        """Delete surplus members, and write missing ones."""
        yield from differences.mend(self._statements, now, "repair members")

    def findings(self, differences: Differences) -> tuple[Finding, ...]:
        """Return the differences as findings."""
        return differences.findings(*_MEMBER_PROBLEMS)

    def _list_expected(self, state: DocumentState) -> Mapping[MemberKey, bytes]:
        return dict(state.members.rows(self._buckets))


def _hash_member(state: bytes) -> int:
    return xxhash.xxh3_64_intdigest(state)


def _show_member(key: MemberKey) -> str:
    kind, tag, side, _, id = key
    return f"{kind} {tag} ({side}) {id}"


_MEMBER_PROBLEMS: Final = (
    RowProblem(text="members of link groups without a document that has the link", shown=_show_member),
    RowProblem(text="links of documents that are missing from their link group", shown=_show_member),
    RowProblem(text="members of link groups that differ from their document", shown=_show_member),
)


class WordInspection:
    """Inspects all postings.

    Only a sum of hashes is kept for each document, over its postings that are expected and not yet found. If
    the sum is not 0 in the end, all postings are read once more, and those of such documents are compared.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        derived: Reads states of documents.
        buckets: Number of partitions of a word.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, derived: DerivedRows, buckets: int) -> None:
        self._tables = tables
        self._derived = derived
        self._buckets = buckets
        self._statements = PostingStatements(tables, fetcher)

    def compare(self, horizon: int) -> Operation[Differences]:
        """Read documents, then postings, then once more the documents whose postings differ.

        Args:
            horizon: Rows with a later timestamp may belong to a write in progress.
        """
        seen: dict[str, int] = {}
        sums: defaultdict[str, int] = defaultdict(int)
        page: Sequence[DocumentState] = yield from self._derived.after(None)
        while page:
            for state in page:
                seen[state.id] = state.written
                sums[state.id] = sum(
                    _hash_posting(key, (found,)) for key, found in self._list_expected(state).items()
                )
            page = yield from self._derived.after(page[-1].id)
        rounds = PostingRounds(self._tables)
        while (found := (yield from rounds.next())) is not None:
            for row in found:
                sums[row.key[-1]] -= _hash_posting(row.key, row.states)
        differing = {id for id, left in sums.items() if left}
        doubtful = yield from self._read_postings_of(differing)
        return (
            yield from compare_again(
                self._derived, self._list_expected, _find_absent_postings, seen, doubtful, differing, horizon
            )
        )

    def _read_postings_of(self, ids: Collection[str]) -> Operation[list[FoundRow]]:
        """Return all postings of some documents. This reads those of all documents."""
        of_them: list[FoundRow] = []
        rounds = PostingRounds(self._tables)
        while ids and (found := (yield from rounds.next())) is not None:
            of_them += (row for row in found if row.key[-1] in ids)
        return of_them

    def mend(self, differences: Differences, now: int) -> Operation[None]:
        """Delete surplus postings, and write missing ones."""
        yield from differences.mend(self._statements, now, "repair words")

    def findings(self, differences: Differences) -> tuple[Finding, ...]:
        """Return the differences as findings."""
        return differences.findings(*_WORD_PROBLEMS)

    def _list_expected(self, state: DocumentState) -> Mapping[PostingKey, bytes]:
        return dict(state.words.rows(self._buckets)) if state.words else {}


def _find_absent_postings(
    _id: str, rows: Mapping[PostingKey, bytes], found: Sequence[FoundRow]
) -> Iterable[PostingKey]:
    """Return the postings that a document must have and that were not found."""
    return rows.keys() - {row.key for row in found}


def _hash_posting(key: PostingKey, states: Sequence[bytes]) -> int:
    """Return a hash of a posting. Different keys or states have different hashes."""
    shard, at, word, hashed, id = key
    packed = b"\0".join((b"%d %d" % (shard, at), word.encode(), hashed, id.encode(), *states))
    return xxhash.xxh3_64_intdigest(packed)


def _show_posting(key: PostingKey) -> str:
    _, _, word, _, id = key
    return f"{word!r} of {id}"


_WORD_PROBLEMS: Final = (
    RowProblem(text="words without a document that has them", shown=_show_posting),
    RowProblem(text="documents whose words are not all indexed", shown=lambda key: str(key[-1])),
    RowProblem(text="words that differ from their document", shown=_show_posting),
)

"""Reads the links of all documents, compares derived rows with the documents, and repairs them.

A row without a document may belong to a write in progress, which writes its document later. So such a row is
neither reported nor deleted until it is older than any write takes (``settle``) and its document was read
once more. The deletion has the write time of the row as it was read, so it deletes nothing written later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final

import numpy as np
import xxhash

from linkstore.core.calls import split_batches
from linkstore.core.plans import EngineOperation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import (
    DocumentVersion,
    has_content,
    is_whole,
    merge_replaced_links,
    parse_stored_links,
    read_versions,
)
from linkstore.engines.cassandra.derived import DerivedRows, RowKey, Rows
from linkstore.engines.cassandra.listing import SPLITS, mark_list, mark_splits
from linkstore.engines.cassandra.reading import DOCUMENTS_PER_PAGE, RowFetcher, split_tokens
from linkstore.engines.cassandra.statements import DerivedTable, Requests, Row, Statement, run_writes, send
from linkstore.engines.contract import Finding, StoredLinks, make_findings

CONCURRENT_READS: Final = 8
"""Ranges of tokens that are read concurrently."""
_RANGES: Final = 64
_PARTIAL: Final = (
    "documents that lack a column or their text, or whose metadata are not JSON, and so are not found; add"
    " them again, or delete them"
)


def read_links(fetcher: RowFetcher | None) -> EngineOperation[StoredLinks]:
    """Return the links of all documents. An empty store has no table of them, and nothing that reads it."""
    ids: list[str] = []
    groups: dict[tuple[str, str], int] = {}
    link_rows: list[tuple[int, int, bool, bool]] = []
    scan = fetcher and fetcher.scan(cql.READ_ALL_LINKS)
    while scan and (rows := (yield from scan.read())):
        for id, _, _, parsed, written, *_, relinked, _ in filter(is_whole, rows):
            _, links = merge_replaced_links(id, written, parsed, relinked)
            for kind, tag, direction, _ in parse_stored_links(id, links):
                group = groups.setdefault((kind, tag), len(groups))
                link_rows.append((len(ids), group, direction != "in", direction != "out"))
            ids.append(id)
    columns = np.array(link_rows, np.int64).reshape(-1, 4)
    return StoredLinks(
        ids=ids,
        groups=list(groups),
        document=columns[:, 0],
        group=columns[:, 1],
        leads_out=columns[:, 2] != 0,
        leads_in=columns[:, 3] != 0,
    )


@dataclass(slots=True)
class Differences:
    """Rows that differ from documents.

    Args:
        horizon: Rows with a later timestamp may belong to a write in progress.
        first: Returns the key of a row in the first bucket.
        strays: Rows without a document that should have them, with the last write time of each; the horizon
            for a row without a state, of which it is not known.
        missing: Rows that do not exist or lack a state, with the state to add to each.
        mixed: Rows with wrong or additional states, with the last write time and the correct state.
    """

    horizon: int
    first: Callable[[RowKey], RowKey]
    strays: dict[RowKey, int] = field(default_factory=dict)
    missing: dict[RowKey, bytes] = field(default_factory=dict)
    mixed: dict[RowKey, tuple[int, bytes]] = field(default_factory=dict)

    def take(self, rows: Iterable[Row], right: Rows, *, changed: bool) -> None:
        """Compare the rows of a document.

        Args:
            rows: Those that are stored, each in the first bucket or where it is placed.
            right: Those that it should have.
            changed: Whether it changed while rows were read. Then only strays are certain.
        """
        missing = dict(right)
        for *columns, packed, times in rows:
            key, states = tuple(columns), codec.unpack_set(packed)
            state, written = missing.pop(self.first(key), None), max(times or (), default=0)
            if state is None and written <= self.horizon:
                self.strays[key] = written or self.horizon
            elif state is None or changed or states == [state]:
                continue
            elif states and written <= self.horizon:
                self.mixed[key] = written, state
            elif state not in states:
                self.missing[key] = state
        if not changed:
            self.missing.update(missing)

    def findings(self, table: DerivedTable) -> Iterator[Finding]:
        """Yield the differences as findings. Rows that are shown alike are counted once."""
        problems = _PROBLEMS["word" in table.clustering]
        of_each: tuple[Iterable[RowKey], ...] = (self.strays, self.missing, self.mixed)
        for (text, show), keys in zip(problems, of_each, strict=True):
            yield from make_findings(text, sorted(set(map(show, keys))))

    def mend(self, derived: DerivedRows, table: DerivedTable, now: int) -> EngineOperation[None]:
        """Delete surplus rows, and write missing ones.

        Args:
            derived: Makes the statements.
            table: The table of the rows.
            now: The timestamp of added states.
        """
        strays: defaultdict[int, list[RowKey]] = defaultdict(list)
        mixed: defaultdict[int, list[tuple[RowKey, bytes]]] = defaultdict(list)
        for key, written in self.strays.items():
            strays[written].append(key)
        for key, (written, state) in self.mixed.items():
            mixed[written].append((key, state))
        deleted = (derived.delete(table, keys, written) for written, keys in strays.items())
        replaced = (derived.write(table, rows, at + 1, replace=True) for at, rows in mixed.items())
        missing = ((derived.place(key), state) for key, state in self.missing.items())
        added = derived.write(table, missing, now)
        yield from run_writes("repair members and words", chain(*deleted, *replaced, added))


class RowInspection:
    """Derives all rows again, and compares them with the stored ones.

    Only a sum of hashes is kept for each document, over its rows that are expected and not yet found. If a
    sum is not 0 in the end, all rows are read once more, and those of such documents are compared.

    Args:
        fetcher: Reads documents again.
        derived: Derives rows from documents.
        horizon: Rows with a later timestamp may belong to a write in progress.
    """

    def __init__(self, fetcher: RowFetcher, derived: DerivedRows, horizon: int) -> None:
        self._fetcher = fetcher
        self._derived = derived
        self._horizon = horizon
        self._seen: dict[str, int] = {}
        self._partial: list[str] = []

    def inspect(self, mend_at: int | None) -> EngineOperation[list[Finding]]:
        """Read documents, then the derived rows, then once more the documents whose rows differ.

        Args:
            mend_at: The timestamp of what is written to mend the rows. None: they are not mended.
        """
        expected: list[defaultdict[str, int]] = [defaultdict(int) for _ in self._derived.tables]
        scan = self._fetcher.scan(cql.READ_ALL_VERSIONS)
        while rows := (yield from scan.read()):
            for part in self._fetcher.split_texts(read_versions(rows)):
                versions = yield from self._read_texts(part)
                self._seen.update((version.id, version.written) for version in versions)
                derived = self._derived.derive(versions)
                for id, of_tables in derived.items():
                    for sums, of in zip(expected, of_tables, strict=True):
                        sums[id] = sum(_hash_row(key, (state,)) for key, state in of.items())
            self._partial += (row[0] for row in rows if has_content(row) and row[0] not in self._seen)
        findings: list[Finding] = []
        for number, table in enumerate(self._derived.tables):
            differences = yield from self._compare(number, table, expected[number])
            findings += differences.findings(table)
            if mend_at is not None:
                yield from differences.mend(self._derived, table, mend_at)
        if mend_at is not None:
            yield from mark_list(mend_at)
            yield from mark_splits(self._derived, self._derived.splits, mend_at)
        return findings + make_findings(_PARTIAL, sorted(self._partial))

    def _compare(
        self, number: int, table: DerivedTable, sums: defaultdict[str, int]
    ) -> EngineOperation[Differences]:
        """Compare the rows of a table, and once more those of documents with differences."""

        def subtract(rows: Iterable[Row]) -> None:
            for *key, states, _ in filter(_is_compared, rows):
                sums[key[-1]] -= _hash_row(self._derived.find_first(tuple(key)), codec.unpack_set(states))

        yield from _read_rows(table, subtract)
        rows_of: dict[str, list[Row]] = {id: [] for id in sorted(sums) if sums[id]}

        def collect(rows: Iterable[Row]) -> None:
            for row in rows:
                if row[-3] in rows_of:
                    rows_of[row[-3]].append(row)

        if rows_of:
            yield from _read_rows(table, collect)
        return (yield from self._compare_again(number, rows_of))

    def _compare_again(self, number: int, rows_of: dict[str, list[Row]]) -> EngineOperation[Differences]:
        """Read documents again, and compare their rows in a table, which were read again too."""
        differences = Differences(self._horizon, self._derived.find_first)
        for ids in split_batches(rows_of, DOCUMENTS_PER_PAGE):
            there = yield from self._fetcher.versions(ids)
            for part in self._fetcher.split_texts(there.values()):
                versions = yield from self._read_texts(part)
                derived = self._derived.derive(versions)
                for version in versions:
                    changed = self._seen.get(version.id) != version.written
                    rows = filter(_is_compared, rows_of.pop(version.id))
                    differences.take(rows, derived[version.id][number], changed=changed)
            for id in ids:
                differences.take(filter(_is_compared, rows_of.pop(id, ())), {}, changed=False)
        return differences

    def _read_texts(self, versions: Sequence[DocumentVersion]) -> EngineOperation[list[DocumentVersion]]:
        """Read the texts of documents if words are derived from them, and leave out those without one."""
        return (yield from self._fetcher.complete(versions)) if self._derived.lexical else list(versions)


def _is_compared(row: Row) -> bool:
    """Say whether a row is of a document, and not a mark or of the list of what was split."""
    return bool(row[-3]) and row[: len(SPLITS)] != SPLITS


def _read_rows(table: DerivedTable, take: Callable[[Iterable[Row]], None]) -> EngineOperation[None]:
    """Read all rows, page by page, by ranges of tokens.

    A single read of all would pass over more deleted rows than a server allows.
    """
    text = cql.read_row_range(table)
    ranges = [Statement(cql=text, values=ends) for ends in pairwise(split_tokens(_RANGES))]
    for part in split_batches(ranges, CONCURRENT_READS):
        yield from send(
            Requests(statements=tuple(part), what="compare members and words with documents", take=take)
        )


def _hash_row(key: Iterable[object], states: Sequence[bytes]) -> int:
    """Return a hash of a row. Different keys or states have different hashes."""
    parts = (part if isinstance(part, bytes) else str(part).encode() for part in key)
    return xxhash.xxh3_64_intdigest(b"\0".join((*parts, *states)))


def _show_member(key: RowKey) -> str:
    kind, tag, side, _, id = key
    return f"{kind} {tag} ({side}) {id}" if kind else f"{id} (in the list of documents)"


def _show_posting(key: RowKey) -> str:
    _, _, word, _, id = key
    return f"{word!r} of {id}"


_PROBLEMS: Final = (
    (
        ("members of link groups without a document that has the link", _show_member),
        ("links of documents that are missing from their link group", _show_member),
        ("members of link groups that differ from their document", _show_member),
    ),
    (
        ("words without a document that has them", _show_posting),
        ("documents whose words are not all indexed", lambda key: str(key[-1])),
        ("words that differ from their document", _show_posting),
    ),
)
"""How strays, missing and mixed rows are reported, and shown: of members, and of words."""

"""Reads the links of all documents, compares derived rows with the documents, and repairs them.

A row without a document may belong to a write in progress, which writes its document later. So such a row is
neither reported nor deleted until it is older than any write takes (``settle``) and its document was read
once more. The deletion has the write time of the row as it was read, so it deletes nothing written later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np
import xxhash

from linkstore.core.plans import Operation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import DOCUMENTS_PER_PAGE, DerivedRows, RowKey
from linkstore.engines.cassandra.statements import (
    DerivedTable,
    Requests,
    Row,
    Statement,
    Tables,
    ask,
    run_writes,
)
from linkstore.engines.contract import Finding, StoredLinks

CONCURRENT_READS: Final = 8
"""Ranges of tokens that are read concurrently."""
_RANGES: Final = 64
_FIRST_TOKEN: Final = -(1 << 63)
_TOKENS: Final = 1 << 64
_MAX_EXAMPLES: Final = 5


def read_links(tables: Tables) -> Operation[StoredLinks]:
    """Return the links of all documents."""
    rows = yield from ask("read all documents", cql.read_all_links(tables))
    ids: list[str] = []
    groups: dict[tuple[str, str], int] = {}
    found: list[tuple[int, int, bool, bool]] = []
    for id, stored, *_, relinked in filter(codec.is_whole, rows):
        for kind, tag, direction, _ in codec.unpack_links(codec.merge_replaced_links(stored, relinked)):
            group = groups.setdefault((kind, tag), len(groups))
            found.append((len(ids), group, direction != "in", direction != "out"))
        ids.append(id)
    columns = np.array(found, np.int64).reshape(-1, 4)
    return StoredLinks(
        ids=ids,
        groups=list(groups),
        document=columns[:, 0],
        group=columns[:, 1],
        leads_out=columns[:, 2] != 0,
        leads_in=columns[:, 3] != 0,
        count=np.ones(len(columns), np.int64),
    )


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

    def findings(self, table: DerivedTable) -> Iterator[Finding]:
        """Yield the differences as findings. Rows that are shown alike are counted once."""
        problems = _PROBLEMS["word" in table.clustering]
        of_each: tuple[Iterable[RowKey], ...] = (self.strays, self.missing, self.mixed)
        for (text, show), keys in zip(problems, of_each, strict=True):
            if shown := sorted(set(map(show, keys))):
                yield Finding(problem=text, count=len(shown), examples=tuple(shown[:_MAX_EXAMPLES]))

    def mend(self, derived: DerivedRows, table: DerivedTable, now: int) -> Operation[None]:
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
        added = derived.write(table, self.missing.items(), now)
        yield from run_writes("repair members and words", chain(*deleted, *replaced, added))


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row of members or words: its key, its states, and the latest write time of these."""

    key: RowKey
    states: Sequence[bytes]
    written: int


class RowInspection:
    """Derives all rows again, and compares them with those that are stored.

    Only a sum of hashes is kept for each document, over its rows that are expected and not yet found. If a
    sum is not 0 in the end, all rows are read once more, and those of such documents are compared.

    Args:
        derived: Derives rows from documents.
        horizon: Rows with a later timestamp may belong to a write in progress.
    """

    def __init__(self, derived: DerivedRows, horizon: int) -> None:
        self._derived = derived
        self._horizon = horizon
        self._seen: dict[str, int] = {}

    def compare(self) -> Operation[list[tuple[DerivedTable, Differences]]]:
        """Read documents, then the derived rows, then once more the documents whose rows differ."""
        expected: list[defaultdict[str, int]] = [defaultdict(int) for _ in self._derived.tables]
        page = yield from self._derived.after(None)
        while page:
            for state in page:
                self._seen[state.id] = state.written
                for sums, rows in zip(expected, state.rows, strict=False):
                    sums[state.id] = sum(_hash_row(key, (found,)) for key, found in rows.items())
            page = yield from self._derived.after(page[-1].id)
        compared = []
        for number, table in enumerate(self._derived.tables):
            compared.append((table, (yield from self._compare_table(number, table, expected[number]))))
        return compared

    def _compare_table(
        self, number: int, table: DerivedTable, sums: defaultdict[str, int]
    ) -> Operation[Differences]:
        def subtract(rows: Iterable[Row]) -> None:
            for *key, states, _ in rows:
                sums[key[-1]] -= _hash_row(key, codec.unpack_states(states))

        yield from _read_rows(table, subtract)
        differing = sorted(id for id, left in sums.items() if left)
        rows_of: dict[str, list[FoundRow]] = {id: [] for id in differing}

        def collect(rows: Iterable[Row]) -> None:
            for *key, states, times in rows:
                if key[-1] in rows_of:
                    written = max(times or (), default=0)
                    rows_of[key[-1]].append(FoundRow(tuple(key), codec.unpack_states(states), written))

        if differing:
            yield from _read_rows(table, collect)
        return (yield from self._compare_again(number, rows_of))

    def _compare_again(self, number: int, rows_of: Mapping[str, list[FoundRow]]) -> Operation[Differences]:
        """Compare the rows of some documents, which are read again."""
        differences = Differences()
        for part in codec.split_list(list(rows_of), DOCUMENTS_PER_PAGE):
            states = yield from self._derived.stored(part)
            for id in part:
                state = states.get(id)
                right = state.rows[number] if state else {}
                unchanged = state is not None and self._seen.get(id) == state.written
                for found in rows_of[id]:
                    if unchanged or found.key not in right:
                        differences.take(found, right.get(found.key), self._horizon)
                if unchanged:
                    there = {found.key for found in rows_of[id]}
                    differences.missing.update((key, right[key]) for key in right if key not in there)
        return differences


def _read_rows(table: DerivedTable, take: Callable[[Iterable[Row]], None]) -> Operation[None]:
    """Read all rows, page by page, by ranges of tokens.

    A single read of all would pass over more deleted rows than a server allows.
    """
    ends = [_FIRST_TOKEN + _TOKENS * n // _RANGES for n in range(_RANGES)] + [_FIRST_TOKEN + _TOKENS - 1]
    text = cql.read_row_range(table)
    ranges = [Statement(cql=text, values=ends[at : at + 2]) for at in range(_RANGES)]
    for part in codec.split_list(ranges, CONCURRENT_READS):
        yield Requests(statements=tuple(part), what="compare members and words with documents", take=take)


def _hash_row(key: Iterable[object], states: Sequence[bytes]) -> int:
    """Return a hash of a row. Different keys or states have different hashes."""
    parts = (part if isinstance(part, bytes) else str(part).encode() for part in key)
    return xxhash.xxh3_64_intdigest(b"\0".join((*parts, *states)))


def _show_member(key: RowKey) -> str:
    kind, tag, side, _, id = key
    return f"{kind} {tag} ({side}) {id}"


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

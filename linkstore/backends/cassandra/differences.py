"""How rows differ from the documents they are derived from, and how they are repaired while others write.

A row without a document may belong to a write in progress, which writes its document later. So such a row is
neither reported nor deleted until it is older than any write takes (``settle``) and its document was read
once more. The deletion has the write time of the row as it was read, so it deletes nothing written later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol

from linkstore.backends.base import Finding
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.rounds import PAGE, Found
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

_EXAMPLES: Final = 5
Key = Any
"""The primary key of a row of members or of words; its last part is the document's id."""
Expected = Callable[[State], Mapping[Key, bytes]]
"""The rows derived from a state of a document."""
Absent = Callable[[str, Mapping[Key, bytes], Sequence[Found]], Iterable[Key]]
"""Takes a document's id, the rows it must have, and its doubtful rows; returns the keys of missing rows."""


class Statements(Protocol):
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
class Problem:
    """How to report rows that differ.

    Args:
        text: Description of the problem.
        shown: Formats the key of a row. Rows with the same result are counted once.
    """

    text: str
    shown: Callable[[Key], str]


@dataclass(slots=True)
class Differences:
    """Rows that differ from documents.

    Args:
        strays: Rows without a document that should have them, with the last write time of each.
        missing: Rows that do not exist or lack a state, with the state to add to each.
        mixed: Rows with wrong or additional states, with the last write time and the correct state.
    """

    strays: dict[Key, int] = field(default_factory=dict)
    missing: dict[Key, bytes] = field(default_factory=dict)
    mixed: dict[Key, tuple[int, bytes]] = field(default_factory=dict)

    def take(self, found: Found, right: bytes | None, horizon: int) -> None:
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

    def findings(self, *problems: Problem) -> tuple[Finding, ...]:
        """Return the differences as findings.

        Args:
            problems: The problems of strays, missing and mixed rows, in this order.
        """
        found = []
        of_each: tuple[Iterable[Key], ...] = (self.strays, self.missing, self.mixed)
        for problem, keys in zip(problems, of_each, strict=True):
            shown = sorted(set(map(problem.shown, keys)))
            if shown:
                found.append(
                    Finding(problem=problem.text, count=len(shown), examples=tuple(shown[:_EXAMPLES]))
                )
        return tuple(found)

    def mend(self, statements: Statements, now: int, what: str) -> Operation[None]:
        """Delete surplus rows, and write missing ones.

        Args:
            statements: Makes the statements.
            now: The timestamp of added states.
            what: Name of the operation, for error messages.
        """
        strays: defaultdict[int, list[Key]] = defaultdict(list)
        mixed: defaultdict[int, list[tuple[Key, bytes]]] = defaultdict(list)
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


def second_look(
    derived: DerivedRows,
    expected: Expected,
    absent: Absent,
    seen: Mapping[str, int],
    doubtful: Sequence[Found],
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
    rows_of: defaultdict[str, list[Found]] = defaultdict(list)
    for found in doubtful:
        rows_of[found.key[-1]].append(found)
    ids, differences = sorted({*rows_of, *lacking}), Differences()
    for start in range(0, len(ids), PAGE):
        part = ids[start : start + PAGE]
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

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
"""The rows that follow from a state of a document."""
Absent = Callable[[str, Mapping[Key, bytes], Sequence[Found]], Iterable[Key]]
"""Of the rows that a document must have, by its id: which were not there; also given are those in doubt."""


class Statements(Protocol):
    """What writes rows: :class:`.members.MemberStatements` or :class:`.postings.PostingStatements`."""

    def add(self, rows: Iterable[tuple[Any, bytes]], at: int) -> Iterator[Statement]:
        """Add states to rows."""
        ...

    def replace(self, rows: Iterable[tuple[Any, bytes]], at: int) -> Iterator[Statement]:
        """Add states to rows, and take out all that were added before."""
        ...

    def delete(self, keys: Iterable[Any], at: int) -> Iterator[Statement]:
        """Delete rows as they were."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What to say of rows that differ.

    Args:
        text: What is wrong.
        shown: Shows one of them; those that look alike count once.
    """

    text: str
    shown: Callable[[Key], str]


@dataclass(slots=True)
class Differences:
    """Rows that differ from documents.

    Args:
        strays: Rows that no document stands behind, and when each was last written.
        missing: Rows that are not there or lack a state, and the state to add to each.
        mixed: Rows that say something else or besides: when each was last written, and the state that stays.
    """

    strays: dict[Key, int] = field(default_factory=dict)
    missing: dict[Key, bytes] = field(default_factory=dict)
    mixed: dict[Key, tuple[int, bytes]] = field(default_factory=dict)

    def take(self, found: Found, right: bytes | None, horizon: int) -> None:
        """Compare one row.

        Args:
            found: The row.
            right: The state that it must hold; None if it should not be there.
            horizon: What was written later may be of a write that is under way.
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
        """The same in words; the problems are those of strays, missing and mixed rows."""
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
            statements: Make the statements.
            now: The timestamp of what is added.
            what: The operation in words.
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
    """Compare rows with documents as they are now, after the rows were read.

    Args:
        derived: Reads states of documents.
        expected: The rows that follow from a state.
        absent: Says which rows of a document were not there.
        seen: When each document was written, as it was read before the rows were.
        doubtful: Rows that did not fit the documents as they were then.
        lacking: Ids of documents of which rows were not there.
        horizon: What was written later may be of a write that is under way.
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

"""Compares all members with the links and vectors of documents, and repairs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import xxhash

from linkstore.backends.base import Finding
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.differences import Differences, Problem, second_look
from linkstore.backends.cassandra.members import MemberKey, MemberStatements
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rounds import Found, MemberRounds
from linkstore.plans import Operation


class MemberInspection:
    """Inspects all members.

    It keeps a hash of the expected state of each member, and only those rows that differ.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        derived: Reads states of documents.
        buckets: Number of partitions of one side of a link group.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, derived: DerivedRows, buckets: int) -> None:
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
        page: Sequence[State] = yield from self._derived.after(None)
        while page:
            seen.update((state.id, state.written) for state in page)
            for state in page:
                right.update((key, _hash(s)) for key, s in self._list_expected(state).items())
            page = yield from self._derived.after(page[-1].id)
        rounds = MemberRounds(self._tables, expected=len(right))
        doubtful: list[Found] = []
        while (found := (yield from rounds.next())) is not None:
            doubtful += (row for row in found if [right.pop(row.key, None)] != [*map(_hash, row.states)])
        return (
            yield from second_look(
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
        return differences.findings(*_PROBLEMS)

    def _list_expected(self, state: State) -> Mapping[MemberKey, bytes]:
        return dict(state.members.rows(self._buckets))


def _hash(state: bytes) -> int:
    return xxhash.xxh3_64_intdigest(state)


def _shown(key: MemberKey) -> str:
    kind, tag, side, _, id = key
    return f"{kind} {tag} ({side}) {id}"


_PROBLEMS: Final = (
    Problem(text="members of link groups without a document that has the link", shown=_shown),
    Problem(text="links of documents that are missing from their link group", shown=_shown),
    Problem(text="members of link groups that differ from their document", shown=_shown),
)

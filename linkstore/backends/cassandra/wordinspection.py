"""Compares all postings with the words of documents, and repairs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from linkstore.backends.base import Finding
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.differences import Differences, Problem, second_look
from linkstore.backends.cassandra.postings import HASH_BYTES, HEAD, PostingKey, PostingStatements
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rounds import Found, PostingRounds
from linkstore.plans import Operation

_STAMP: Final = slice(HEAD.fields["stamp"][1] - HASH_BYTES, None)  # type: ignore[index]


class WordInspection:
    """Inspects all postings.

    The stamp of a posting determines its state. So only the stamp and the number of postings of each document
    are kept.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of partitions.
        derived: Reads states of documents.
        buckets: Number of partitions of a word.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, derived: DerivedRows, buckets: int) -> None:
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
        stamps: dict[str, bytes] = {}
        missing: dict[str, int] = {}
        page: Sequence[State] = yield from self._derived.after(None)
        while page:
            for state in page:
                if state.words:
                    seen[state.id], stamps[state.id] = state.written, state.words.stamp.to_bytes(8, "big")
                    missing[state.id] = len(state.words.counts) + 1
            page = yield from self._derived.after(page[-1].id)
        rounds = PostingRounds(self._tables, self._buckets)
        doubtful: list[Found] = []
        while (found := (yield from rounds.next())) is not None:
            for row in found:
                id = row.key[-1]
                if [s[_STAMP] for s in row.states] == [stamps.get(id)]:
                    missing[id] -= 1
                else:
                    doubtful.append(row)

        def absent(
            id: str, rows: Mapping[PostingKey, bytes], doubted: Sequence[Found]
        ) -> Iterable[PostingKey]:
            """Only the number of missing rows is known; so return all rows that are not doubtful."""
            there = {found.key for found in doubted}
            return rows.keys() - there if missing[id] > len(there & rows.keys()) else ()

        lacking = [id for id, count in missing.items() if count]
        return (
            yield from second_look(self._derived, self._expected, absent, seen, doubtful, lacking, horizon)
        )

    def mend(self, differences: Differences, now: int) -> Operation[None]:
        """Delete surplus postings, and write missing ones."""
        yield from differences.mend(self._statements, now, "repair words")

    def findings(self, differences: Differences) -> tuple[Finding, ...]:
        """The differences as findings."""
        return differences.findings(*_PROBLEMS)

    def _expected(self, state: State) -> Mapping[PostingKey, bytes]:
        return dict(state.words.rows(self._buckets)) if state.words else {}


def _shown(key: PostingKey) -> str:
    _, _, word, _, id = key
    return f"{word!r} of {id}"


_PROBLEMS: Final = (
    Problem(text="words without a document that has them", shown=_shown),
    Problem(text="documents whose words are not all indexed", shown=lambda key: str(key[-1])),
    Problem(text="words that differ from their document", shown=_shown),
)

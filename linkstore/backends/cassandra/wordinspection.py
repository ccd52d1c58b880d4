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
    """Looks at all postings.

    The state of a posting follows from the text that its stamp names. So of each document no more is kept
    than its stamp and how many postings it has.

    Args:
        tables: Of the store.
        fetcher: Knows which node has which partition.
        derived: Reads states of documents.
        buckets: Into how many partitions a word is split.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, derived: DerivedRows, buckets: int) -> None:
        self._tables = tables
        self._derived = derived
        self._buckets = buckets
        self._statements = PostingStatements(tables, fetcher)

    def compare(self, horizon: int) -> Operation[Differences]:
        """Read documents, then postings, then once more the documents whose postings differ.

        Args:
            horizon: What was written later may be of a write that is under way.
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
            """Only how many are absent is known; so it is all of which the rows are not in doubt."""
            there = {found.key for found in doubted}
            return rows.keys() - there if missing[id] > len(there & rows.keys()) else ()

        lacking = [id for id, count in missing.items() if count]
        return (
            yield from second_look(self._derived, self._expected, absent, seen, doubtful, lacking, horizon)
        )

    def mend(self, differences: Differences, now: int) -> Operation[None]:
        """Delete strays, write what is missing."""
        yield from differences.mend(self._statements, now, "mend words")

    def findings(self, differences: Differences) -> tuple[Finding, ...]:
        """The differences in words."""
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

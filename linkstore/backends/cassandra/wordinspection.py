"""Compares all postings with the words of documents, and repairs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import xxhash

from linkstore.backends.base import Finding
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State
from linkstore.backends.cassandra.differences import Differences, Problem, second_look
from linkstore.backends.cassandra.postings import PostingKey, PostingStatements
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rounds import Found, PostingRounds
from linkstore.plans import Operation


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
        sums: defaultdict[str, int] = defaultdict(int)
        page: Sequence[State] = yield from self._derived.after(None)
        while page:
            for state in page:
                seen[state.id] = state.written
                sums[state.id] = sum(
                    _hash(key, (found,)) for key, found in self._list_expected(state).items()
                )
            page = yield from self._derived.after(page[-1].id)
        rounds = PostingRounds(self._tables)
        while (found := (yield from rounds.next())) is not None:
            for row in found:
                sums[row.key[-1]] -= _hash(row.key, row.states)
        differing = {id for id, left in sums.items() if left}
        doubtful = yield from self._read_postings_of(differing)
        return (
            yield from second_look(
                self._derived, self._list_expected, _absent, seen, doubtful, differing, horizon
            )
        )

    def _read_postings_of(self, ids: Collection[str]) -> Operation[list[Found]]:
        """Return all postings of some documents. This reads those of all documents."""
        of_them: list[Found] = []
        rounds = PostingRounds(self._tables)
        while ids and (found := (yield from rounds.next())) is not None:
            of_them += (row for row in found if row.key[-1] in ids)
        return of_them

    def mend(self, differences: Differences, now: int) -> Operation[None]:
        """Delete surplus postings, and write missing ones."""
        yield from differences.mend(self._statements, now, "repair words")

    def findings(self, differences: Differences) -> tuple[Finding, ...]:
        """Return the differences as findings."""
        return differences.findings(*_PROBLEMS)

    def _list_expected(self, state: State) -> Mapping[PostingKey, bytes]:
        return dict(state.words.rows(self._buckets)) if state.words else {}


def _absent(_id: str, rows: Mapping[PostingKey, bytes], found: Sequence[Found]) -> Iterable[PostingKey]:
    """Return the postings that a document must have and that were not found."""
    return rows.keys() - {row.key for row in found}


def _hash(key: PostingKey, states: Sequence[bytes]) -> int:
    """Return a hash of a posting. Different keys or states have different hashes."""
    shard, at, word, hashed, id = key
    packed = b"\0".join((b"%d %d" % (shard, at), word.encode(), hashed, id.encode(), *states))
    return xxhash.xxh3_64_intdigest(packed)


def _shown(key: PostingKey) -> str:
    _, _, word, _, id = key
    return f"{word!r} of {id}"


_PROBLEMS: Final = (
    Problem(text="words without a document that has them", shown=_shown),
    Problem(text="documents whose words are not all indexed", shown=lambda key: str(key[-1])),
    Problem(text="words that differ from their document", shown=_shown),
)

"""The number of documents and their average length, as counted by one client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from linkstore.backends.cassandra.postingreading import Reading
from linkstore.backends.cassandra.postings import HEAD, PARTS
from linkstore.filters import EVERYTHING, Condition

ALWAYS_COUNTED: Final = 1_000
"""Up to this many documents are counted again for every query."""
SECONDS: Final = 60.0
"""For more documents, a count stays valid for this many seconds."""
SAMPLE: Final = 20_000
"""More documents than about this many are not counted but estimated, from a sample of this size."""
MOST_COUNTED: Final = 100_000
"""To count the documents of a scope, at most this many are read; beyond that, the count is an estimate."""
REMEMBERED: Final = 1_000
"""For how many scopes the last count is kept."""
CHECKED: Final = 10_000
"""A change is followed by at most this many checks of a document against a scope, about 10 µs each."""
_HASHES: Final = float(1 << 64)
Counted = tuple[str, int]
"""A document: its metadata without links, as JSON, and its number of words."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over all documents.

    Args:
        documents: Number of documents.
        words: Number of words in all documents.
    """

    documents: float = 0.0
    words: float = 0.0

    @property
    def average(self) -> float:
        """Average number of words in a document."""
        return self.words / self.documents if self.words > 0 and self.documents > 0 else 1.0


class Corpus:
    """The last count, updated when this client writes.

    Threads may use it without a lock. At worst, a write of one thread is missing until the next count.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[Condition, Totals, float]] = {}

    def known(self, scope: Condition = EVERYTHING) -> Totals | None:
        """Return the last count of the documents in a scope, or None if it is not recent enough."""
        last = self._last.get(scope.key)
        if last is None:
            return None
        _, totals, until = last
        return totals if totals.documents > ALWAYS_COUNTED and time.monotonic() < until else None

    def learn(self, totals: Totals, scope: Condition = EVERYTHING) -> None:
        """Store a new count."""
        if len(self._last) >= REMEMBERED:
            self._last = {}
        self._last[scope.key] = scope, totals, time.monotonic() + SECONDS

    def add(self, written: Sequence[Counted], replaced: Sequence[Counted]) -> None:
        """Add documents that were written to the counts, and subtract those that they replaced.

        If these are too many, the counts of scopes are discarded instead.
        """
        now = time.monotonic()
        last = {key: count for key, count in self._last.items() if now < count[2]}
        if len(last) * (len(written) + len(replaced)) > CHECKED:
            last = {key: count for key, count in last.items() if key == EVERYTHING.key}
        self._last = {
            key: (scope, _changed(totals, scope, written, replaced), until)
            for key, (scope, totals, until) in last.items()
        }


def _changed(
    totals: Totals, scope: Condition, written: Sequence[Counted], replaced: Sequence[Counted]
) -> Totals:
    """Return the totals of a scope after a change."""
    added, gone = (_lengths_within(scope, documents) for documents in (written, replaced))
    return Totals(totals.documents + len(added) - len(gone), totals.words + sum(added) - sum(gone))


def _lengths_within(scope: Condition, documents: Sequence[Counted]) -> list[int]:
    """Return the lengths of the documents in a scope."""
    return [
        length for attributes, length in documents if scope.always or scope.matches(orjson.loads(attributes))
    ]


def rows_a_part(buckets: int) -> int:
    """Return the number of documents that are sampled in each partition."""
    return -(-SAMPLE // (PARTS * buckets))


def how_many(hashes: npt.NDArray[np.uint64], most: int) -> float:
    """Estimate the number of documents in a partition from its first hashes.

    The result is exact if there are fewer than ``most``. Hashes are distributed uniformly, so the ``n``-th
    smallest hash divided by the range of hashes estimates ``n`` divided by their number. Source: Z.
    Bar-Yossef et al., "Counting Distinct Elements in a Data Stream", RANDOM 2002; in the unbiased form of
    K. Beyer et al., "On Synopses for Distinct-Value Estimation under Multiset Operations", SIGMOD 2007. The
    standard error is a little over 1/sqrt(n).

    Args:
        hashes: (n,) ascending.
        most: Number of hashes that were requested.
    """
    distinct = len(np.unique(hashes))
    if len(hashes) < most:
        return distinct
    return (distinct - 1) / ((float(hashes[-1]) + 1) / _HASHES)


def count(parts: Sequence[Sequence[bytes]], most: int) -> Totals:
    """Compute the totals of all documents from the first ``most`` heads of each part."""
    documents = words = 0.0
    for part in parts:
        heads = np.frombuffer(b"".join(part), HEAD)
        _, places = np.unique(heads["hash"], return_index=True)
        number = how_many(heads["hash"], most)
        documents += number
        words += float(heads["length"][places].sum()) * (number / max(1, len(places)))
    return Totals(documents, words)


def count_within(readings: Sequence[Reading]) -> Totals:
    """Compute a scope's totals from the first documents of each part and the share of it that was read."""
    documents = words = 0.0
    for part in readings:
        heads = np.frombuffer(b"".join([head for head, _ in part.rows]), HEAD)
        hashes, places = np.unique(heads["hash"], return_index=True)
        number = float(len(hashes))
        if len(part.rows) >= part.wanted:
            number = how_many(heads["hash"], len(heads))
        elif part.more and part.last is not None:
            (last,) = np.frombuffer(part.last[0], HEAD)["hash"]
            number /= (float(last) + 1) / _HASHES
        documents += number
        words += float(heads["length"][places].sum()) * (number / max(1, len(places)))
    return Totals(documents, words)

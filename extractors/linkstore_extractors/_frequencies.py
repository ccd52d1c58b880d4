"""Counts the documents that contain each candidate, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, Final

from linkstore.errors import ExtractionError

_VERSION: Final = 1
_KEPT: Final = 0.75
"""Share of the limit that pruning leaves at most."""


class Frequencies:
    """Document frequencies of words and phrases.

    When the table exceeds its limit, candidates of one document go first, then those of two, and so
    on until three quarters of the limit are left, in the manner of lossy counting (G. Manku and
    R. Motwani, "Approximate Frequency Counts over Data Streams", VLDB 2002): counts may then be too
    low, never too high, and what is frequent is always kept.

    Args:
        limit: Most candidates to remember; one takes some 120 bytes.
        documents: How many documents were observed.
        counts: In how many of them each candidate occurs.
    """

    __slots__ = ("_counts", "_limit", "documents")

    def __init__(self, limit: int, documents: int = 0, counts: Mapping[str, int] | None = None) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter(counts)
        self.documents = documents
        self._prune()

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, term: str) -> int:
        return self._counts.get(term, 0)

    def add(self, terms: set[str]) -> None:
        """Count one document's candidates."""
        self._counts.update(terms)
        self.documents += 1
        if len(self._counts) > self._limit:
            self._prune()

    def cohesion(self, words: Sequence[str]) -> float:
        """Measure how much more often words occur together than apart, from -1 to 1 (always together).

        The measure is normalised pointwise mutual information over documents (G. Bouma, "Normalized
        (Pointwise) Mutual Information in Collocation Extraction", GSCL 2009). A phrase of three words has
        that of the weaker of its two joints.
        """
        count = self._counts.get
        together = count(" ".join(words), 0)
        if not together:
            return -1.0
        if together >= self.documents:
            return 1.0
        if len(words) == 2:
            apart = count(words[0], 1) * count(words[1], 1)
        else:
            cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
            apart = max(count(left, 1) * count(right, 1) for left, right in cuts)
        return log(together * self.documents / apart) / -log(together / self.documents)

    def to_dict(self) -> dict[str, Any]:
        """Return the frequencies as a plain dict, ready for JSON."""
        return {"version": _VERSION, "documents": self.documents, "frequencies": dict(self._counts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], limit: int) -> Frequencies:
        """Read frequencies that :meth:`to_dict` wrote.

        Raises:
            ExtractionError: If it is not that.
        """
        documents, counts = data.get("documents"), data.get("frequencies")
        if data.get("version") != _VERSION or type(documents) is not int or not isinstance(counts, Mapping):
            raise ExtractionError(
                f"these are not keyword statistics of version {_VERSION}; observe the corpus again"
            )
        if not all(type(count) is int and 0 < count <= documents for count in counts.values()):
            raise ExtractionError("these keyword statistics are damaged: observe the corpus again")
        return cls(limit, documents, counts)

    def _prune(self) -> None:
        rare = 0
        while len(self._counts) > self._limit or (rare and len(self._counts) > self._limit * _KEPT):
            rare += 1
            self._counts = Counter({term: n for term, n in self._counts.items() if n > rare})

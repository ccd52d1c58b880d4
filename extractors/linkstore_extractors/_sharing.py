"""Finds the phrases that few documents of a corpus share, in 8 bytes for each phrase of each document."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

_BLOCK: Final = 1 << 20
Hashes = npt.NDArray[np.uint64]


class Sharing:
    """Counts documents by phrase, where nearly all phrases are of one document and of no interest.

    A phrase is its 64-bit hash. Of 100 million different ones, two have the same hash in one corpus of
    3,700; there a link more or less is made, and nothing else is wrong.

    Args:
        least: Documents that must have a phrase for it to count as shared.
        most: Documents that may.
    """

    __slots__ = ("_blocks", "_least", "_most", "_open", "_shared")

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = most
        self._open = array("Q")
        self._blocks: list[Hashes] = []
        self._shared: Hashes | None = None

    def add(self, phrases: Sequence[str]) -> None:
        """Count one document's phrases, each of which is given once."""
        self._open.extend(map(_hash, phrases))
        self._shared = None
        if len(self._open) >= _BLOCK:
            self._close_block()

    def shared(self, phrases: Sequence[str]) -> list[str]:
        """Return the phrases that few documents share, in the order given."""
        if self._shared is None:
            self._shared = self._counted()
        known = self._shared
        if not len(known) or not phrases:
            return []
        hashes = np.fromiter(map(_hash, phrases), dtype=np.uint64, count=len(phrases))
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return [phrase for phrase, found in zip(phrases, known[at] == hashes, strict=True) if found]

    def _counted(self) -> Hashes:
        self._close_block()
        if not self._blocks:
            return np.empty(0, dtype=np.uint64)
        self._blocks = [np.concatenate(self._blocks)]
        self._blocks[0].sort()
        hashes, counts = np.unique(self._blocks[0], return_counts=True)
        return hashes[(counts >= self._least) & (counts <= self._most)]

    def _close_block(self) -> None:
        if self._open:
            self._blocks.append(np.frombuffer(self._open, dtype=np.uint64))
            self._open = array("Q")


def _hash(phrase: str) -> int:
    return xxhash.xxh3_64_intdigest(phrase.encode())

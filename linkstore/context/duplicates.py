"""Texts that say the same: near-duplicates, and chunks that overlap.

Near-duplicates are told by the Jaccard index of runs of words (A. Broder, "On the resemblance and containment
of documents", 1997). Pairs worth a look are those that share values of a sketch, the smallest hashes of their
runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]

ALIKE: Final = 0.8
"""Texts with at least this Jaccard index are near-duplicates."""
_RUN: Final = 4
_SKETCH: Final = 24
_FEW: Final = 8
"""Maximum number of texts with a common hash of which all pairs are compared."""
_OVERLAP: Final = (40, 2_000)
"""Minimum and maximum number of characters of an overlap of two chunks."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Likeness:
    """The common parts of texts, by their positions.

    Args:
        same: For each near-duplicate the first text that it repeats.
        follows: For each text that begins with the end of another, that other.
    """

    same: dict[int, int]
    follows: dict[int, int]


def likeness(texts: Sequence[str]) -> Likeness:
    """Find near-duplicates and overlaps.

    Args:
        texts: The first of several alike is kept.
    """
    same: dict[int, int] = {}
    follows: dict[int, int] = {}
    sketches = [_sketch(text) for text in texts]
    for first, second in _pairs(sketches):
        if first in same or second in same:
            continue
        if (
            _may_be_alike(sketches[first], sketches[second])
            and _jaccard(texts[first], texts[second]) >= ALIKE
        ):
            same[second] = first
        elif overlap(texts[first], texts[second]):
            follows.setdefault(second, first)
        elif overlap(texts[second], texts[first]):
            follows.setdefault(first, second)
    return Likeness(same, follows)


def overlap(first: str, second: str) -> int:
    """How many characters end the first text and begin the second; 0 for fewer than 40."""
    least, most = _OVERLAP
    if len(second) < least:
        return 0
    start = first.find(second[:least], max(0, len(first) - most))
    while start >= 0:
        if second.startswith(first[start:]):
            return len(first) - start
        start = first.find(second[:least], start + 1)
    return 0


def _may_be_alike(first: Hashes, second: Hashes) -> bool:
    """Whether two sketches share half of their hashes, which near-duplicates all but surely do."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return 2 * shared >= min(len(first), len(second))


def _pairs(sketches: Sequence[Hashes]) -> list[tuple[int, int]]:
    """Pairs that share a hash, in order; where many share one, each with the first and with the next."""
    owners = np.repeat(np.arange(len(sketches)), [len(sketch) for sketch in sketches])
    values = np.concatenate(sketches) if sketches else np.empty(0, dtype=np.uint64)
    order = np.lexsort((owners, values))
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values[order]) != 0))[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    found: set[tuple[int, int]] = set()
    for at in np.flatnonzero(sizes > 1).tolist():
        sharing = owners[order[starts[at] : starts[at] + sizes[at]]].tolist()
        if len(sharing) <= _FEW:
            found.update(combinations(sharing, 2))
        else:
            found.update((sharing[0], other) for other in sharing[1:])
            found.update(pairwise(sharing))
    return sorted(found)


def _jaccard(first: str, second: str) -> float:
    one, other = _hashes(first), _hashes(second)
    return len(one & other) / (len(one | other) or 1)


@lru_cache(maxsize=4096)
def _sketch(text: str) -> Hashes:
    return np.array(sorted(_hashes(text))[:_SKETCH], dtype=np.uint64)


def _hashes(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    runs = [" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]
    if not runs:  # a short text is compared with all that it has, such as signs that belong to no word
        runs = [" ".join(text.lower().split())]
    return {xxhash.xxh3_64_intdigest(run.encode("utf-8", "surrogatepass")) for run in runs}

"""Texts that say the same, and chunks that overlap.

Two texts say the same if they have the same letters and signs, whatever their case and white space: a single
number, name or "not" can be what the question is about, so texts that are merely alike are all kept.

Pairs that may overlap are those that share values of a sketch, the smallest hashes of their runs of words
(A. Broder, "On the resemblance and containment of documents", 1997).
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
        same: For each text that says the same as others before it, the first of them.
        follows: For each text that begins with the end of another, that other.
    """

    same: dict[int, int]
    follows: dict[int, int]


def likeness(texts: Sequence[str]) -> Likeness:
    """Find texts that say the same, and overlaps among the others.

    Args:
        texts: The first of several that say the same is kept.
    """
    firsts: dict[str, int] = {}
    for at, text in enumerate(texts):
        firsts.setdefault(_letters(text), at)
    kept = list(firsts.values())
    same = {at: first for at, text in enumerate(texts) if (first := firsts[_letters(text)]) != at}
    follows: dict[int, int] = {}
    for one, other in _pairs([_sketch(texts[at]) for at in kept]):
        first, second = kept[one], kept[other]
        if overlap(texts[first], texts[second]):
            follows.setdefault(second, first)
        elif overlap(texts[second], texts[first]):
            follows.setdefault(first, second)
    return Likeness(same, follows)


def _letters(text: str) -> str:
    """Normalise case and white space, in which two texts that say the same may differ."""
    return " ".join(text.split()).casefold()


def overlap(first: str, second: str) -> int:
    """Count the characters that end the first text and begin the second, 0 for fewer than 40."""
    least, most = _OVERLAP
    if len(second) < least:
        return 0
    start = first.find(second[:least], max(0, len(first) - most))
    while start >= 0:
        if second.startswith(first[start:]):
            return len(first) - start
        start = first.find(second[:least], start + 1)
    return 0


def _pairs(sketches: Sequence[Hashes]) -> list[tuple[int, int]]:
    """Return pairs that share a hash, in order. Where many do, pair each with the first and with the next."""
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


@lru_cache(maxsize=4096)
def _sketch(text: str) -> Hashes:
    return np.array(sorted(_hashes(text))[:_SKETCH], dtype=np.uint64)


def _hashes(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    runs = [" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)]
    if not runs:  # a short text is compared with all that it has, such as signs that belong to no word
        runs = [" ".join(text.lower().split())]
    return {xxhash.xxh3_64_intdigest(run.encode("utf-8", "surrogatepass")) for run in runs}

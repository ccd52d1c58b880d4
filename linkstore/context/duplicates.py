"""Texts that say the same, and chunks of a page that join into one text.

Texts that say the same, and chunks that overlap.

Two texts say the same if they have the same letters and signs, whatever their case and white space: a single
number, name or "not" can be what the question is about, so texts that are merely alike are all kept.

Pairs that may overlap are those that share values of a sketch, the smallest hashes of their runs of words
(A. Broder, "On the resemblance and containment of documents", 1997).

Joins chunks of a page that follow each other in a context into one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]

_WORDS_PER_RUN: Final = 4
_SKETCH_SIZE: Final = 24
_MOST_SHARING: Final = 8
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


def find_likeness(texts: Sequence[str]) -> Likeness:
    """Find texts that say the same, and overlaps among the others.

    Args:
        texts: The first of several that say the same is kept.
    """
    firsts: dict[str, int] = {}
    for at, text in enumerate(texts):
        firsts.setdefault(_normalize_text(text), at)
    kept = list(firsts.values())
    same = {at: first for at, text in enumerate(texts) if (first := firsts[_normalize_text(text)]) != at}
    follows: dict[int, int] = {}
    for one, other in _pair_similar([_make_sketch(texts[at]) for at in kept]):
        first, second = kept[one], kept[other]
        if measure_overlap(texts[first], texts[second]):
            follows.setdefault(second, first)
        elif measure_overlap(texts[second], texts[first]):
            follows.setdefault(first, second)
    return Likeness(same, follows)


def _normalize_text(text: str) -> str:
    """Normalise case and white space, in which two texts that say the same may differ."""
    return " ".join(text.split()).casefold()


def measure_overlap(first: str, second: str) -> int:
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


def _pair_similar(sketches: Sequence[Hashes]) -> list[tuple[int, int]]:
    """Return pairs that share a hash, in order. Where many do, pair each with the first and with the next."""
    owners = np.repeat(np.arange(len(sketches)), [len(sketch) for sketch in sketches])
    values = np.concatenate(sketches) if sketches else np.empty(0, dtype=np.uint64)
    order = np.lexsort((owners, values))
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values[order]) != 0))[: len(order)])
    sizes = np.diff(np.append(starts, len(order)))
    found: set[tuple[int, int]] = set()
    for at in np.flatnonzero(sizes > 1).tolist():
        sharing = owners[order[starts[at] : starts[at] + sizes[at]]].tolist()
        if len(sharing) <= _MOST_SHARING:
            found.update(combinations(sharing, 2))
        else:
            found.update((sharing[0], other) for other in sharing[1:])
            found.update(pairwise(sharing))
    return sorted(found)


@lru_cache(maxsize=4096)
def _make_sketch(text: str) -> Hashes:
    return np.array(sorted(_hash_runs(text))[:_SKETCH_SIZE], dtype=np.uint64)


def _hash_runs(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    runs = [" ".join(words[at : at + _WORDS_PER_RUN]) for at in range(len(words) - _WORDS_PER_RUN + 1)]
    if not runs:  # a short text is compared with all that it has, such as signs that belong to no word
        runs = [" ".join(text.lower().split())]
    return {xxhash.xxh3_64_intdigest(run.encode("utf-8", "surrogatepass")) for run in runs}


_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that a document adds to a context.

    Args:
        id: The document.
        text: Its text, without what the document before says already.
        joined: Whether it continues that document, with no header or separator between.
    """

    id: str
    text: str
    joined: bool


def join_chunks(
    ordered: Sequence[str], texts: Mapping[str, str], follows: Mapping[str, frozenset[str]]
) -> list[Piece]:
    """Turn documents in their order into pieces.

    A document that follows the one before it on its page continues it: an overlap is written once, and so is
    the heading that both begin with.

    Args:
        ordered: Ids.
        texts: By id.
        follows: For each document those that it may continue.
    """
    pieces: list[Piece] = []
    for at, name in enumerate(ordered):
        before = ordered[at - 1] if at else None
        if before is not None and before in follows.get(name, ()):
            pieces.append(Piece(name, continue_text(texts[before], texts[name]), joined=True))
        else:
            pieces.append(Piece(name, texts[name], joined=False))
    return pieces


def continue_text(before: str, text: str) -> str:
    """Return the second text without what the first ends with, or without a heading that both begin with."""
    size = measure_overlap(before, text)
    if size:
        return text[size:]
    heading, gap, body = text.partition(_GAP)
    if gap and body and before.startswith(heading + _GAP):
        return _GAP + body
    return _GAP + text

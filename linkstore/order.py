"""The one order of results: score descending, then id.

Ids are requested only where scores tie, so that engines with many documents need not look up
ids that decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from linkstore.plans import Ids, Plan
from linkstore.vectors import Bools, Floats, Ints

Asking = Generator[Ints, list[str], Ints]
_WHOLE = 63
"""Bits of a non-negative int64."""


def best(scores: Floats, take: int) -> Asking:
    """Return the positions of the ``take`` best scores, in order; yield positions whose ids are needed."""
    chosen = _contenders(scores, take)
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
    tied = ties(scores[chosen])
    if tied.any():
        chosen = yield from _untied(chosen, -scores[chosen], tied)
    return chosen[:take]


def best_by_group(groups: Ints, scores: Floats) -> Asking:
    """Return positions ordered by group, then score descending, then id."""
    order, ordered = _sorted((groups << 32) + _descending(scores), int(groups.max(initial=0)))
    tied = ties(ordered)
    if tied.any():
        order = yield from _untied(order, -scores[order], tied, groups[order])
    return order


def first_by_group(groups: Ints, scores: Floats, take: int, ids: Callable[[Ints], list[str]]) -> Ints:
    """Return the positions of the ``take`` best of each group, in the order of :func:`best_by_group`.

    Args:
        groups: (n,) group of each entry.
        scores: (n,) score of each entry.
        take: How many of a group.
        ids: Looks up the ids of positions.
    """
    order = with_ids(best_by_group(groups, scores), ids)
    return order[places(groups[order]) < take]


def with_ids(asking: Asking, ids: Callable[[Ints], list[str]]) -> Ints:
    """Finish an ordering where ids can be looked up at once."""
    try:
        positions = next(asking)
        while True:
            positions = asking.send(ids(positions))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def ranked(refs: Ints, scores: Floats, take: int) -> Plan[Ints]:
    """Return the positions of the ``take`` best of ``refs``, in order, as a plan."""
    asking = best(scores, take)
    try:
        positions = next(asking)
        while True:
            positions = asking.send((yield Ids(refs=refs[positions])))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def ties(ordered: Floats | Ints) -> Bools:
    """Mark which entries of an ordered array equal a neighbour."""
    equal = ordered[1:] == ordered[:-1]
    tied = np.zeros(len(ordered), dtype=np.bool_)
    tied[1:] |= equal
    tied[:-1] |= equal
    return tied


def places(ordered: Ints) -> Ints:
    """Return (n,) the place of each entry, from 0, among its equals, which stand side by side."""
    at = np.arange(len(ordered))
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]
    return at - np.maximum.accumulate(np.where(starts, at, 0))


def _sorted(keys: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the order of keys that consist of a group up to ``most`` and 32 bits, and the sorted keys.

    Where the position fits into the key as well, sorting the numbers themselves is several times faster
    than sorting positions by them.
    """
    bits = len(keys).bit_length()
    if most.bit_length() + 32 + bits > _WHOLE:
        order = np.argsort(keys)
        return order, keys[order]
    packed = np.sort((keys << bits) | np.arange(len(keys)))
    return packed & ((1 << bits) - 1), packed >> bits


def _descending(scores: Floats) -> Ints:
    """Return whole numbers below 2^32 that ascend exactly as the scores descend.

    One sort of whole numbers is several times faster than a sort by two keys.
    """
    bits = (0.0 - scores).astype(np.float32).view(np.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) + (1 << 31)


def _contenders(scores: Floats, take: int) -> Ints:
    """Return every position that may be among the best ``take``, ties with the last included."""
    if take >= len(scores):
        return np.arange(len(scores))
    if take <= 0:
        return np.empty(0, dtype=np.int64)
    threshold = np.partition(scores, len(scores) - take)[len(scores) - take]
    return np.flatnonzero(scores >= threshold)


def _untied(order: Ints, keys: Floats, tied: Bools, groups: Ints | None = None) -> Asking:
    at = np.flatnonzero(tied)
    ids = yield order[at]
    rank = np.zeros(len(order), dtype=np.int64)
    by_id: Any = sorted(range(len(ids)), key=ids.__getitem__)
    rank[at[by_id]] = np.arange(len(ids))
    return order[np.lexsort((rank, keys) if groups is None else (rank, keys, groups))]

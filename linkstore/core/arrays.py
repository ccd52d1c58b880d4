"""Arrays: joins on integers, unit vectors and their similarities, and the one order of results.

Every backend scores with :func:`cosine_similarities`, so that two engines cannot disagree about a
score or about a tie. Vectors are stored at unit length; cosine is then a dot product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import quote_value
from linkstore.errors import DocumentError, EmbeddingError

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_INTEGER_BITS: Final = 63
"""Bits of a non-negative int64."""
_DENSE: Final = 8
"""Numbers below this multiple of how many they are get a table of their own, which is faster than to sort."""


def as_matrix(vectors: Any) -> Floats:
    """Return vectors of one dimension as float32 of shape ``(n, dimension)``.

    Raises:
        EmbeddingError: If they are not such vectors.
    """
    try:
        matrix = convert_numbers(vectors)
        if matrix.ndim == 2 and (matrix.shape[1] or not len(matrix)):
            return matrix
        cause = None
    except (TypeError, ValueError, OverflowError) as error:
        cause = error
    raise EmbeddingError(
        "the embedding must give a list of numbers for each text, all of one length; it gave"
        f" {quote_value(vectors)[:200]}"
    ) from cause


def convert_numbers(given: Any) -> Floats:
    """Return numbers in lists of one length as float32, where numbers too large for it become infinite.

    Raises:
        TypeError: If the items are not numbers, but such as strings, from which NumPy would read numbers.
        ValueError: If the lists differ in length.
    """
    array = np.asarray(given)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"an array of type {array.dtype} does not hold numbers")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32).reshape(array.shape)


def normalize_vectors(vectors: Any, dimension: int | None = None, ids: Sequence[str] | None = None) -> Floats:
    """Scale vectors to unit length.

    Args:
        vectors: ``n`` vectors of one dimension: anything numpy reads as shape ``(n, dimension)``.
        dimension: The dimension of the store. None accepts any.
        ids: The documents that the vectors belong to, or None if they are of questions.

    Returns:
        float32 of shape ``(n, dimension)``.

    Raises:
        EmbeddingError: If the shape or dimension is wrong, or the vector of a question has no direction.
        DocumentError: If the vector of a document has no direction: if it is zero, or a number in it is not
            finite in float32. The message names the document.
    """
    matrix = as_matrix(vectors)
    if dimension is not None and len(matrix) and matrix.shape[1] != dimension:
        raise EmbeddingError(
            f"the store holds vectors of dimension {dimension}, the embedding gives {matrix.shape[1]};"
            " open the store with the embedding it was built with"
        )
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    bad = ~np.isfinite(norms) | (norms == 0)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        problem = "is zero" if norms[at] == 0 else "has a number that is not finite in float32"
        whose = f"document {ids[at]!r}" if ids else "the question"
        raise (DocumentError if ids else EmbeddingError)(
            f"the vector of {whose} {problem}, so it has no direction to compare; see what the embedding"
            " gives (for an empty text often zeros)"
        )
    units: Floats = (matrix / norms[:, None]).astype(np.float32)
    return units


def normalize_vector(vector: Any, dimension: int | None = None) -> Floats:
    """Scale the vector of a question to unit length: see :func:`normalize_vectors`."""
    unit: Floats = normalize_vectors([vector], dimension)[0]
    return unit


def make_unit_vector(dimension: int) -> Floats:
    """Return some unit vector, for plans that need one and rank nothing by it."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[0] = 1.0
    return vector


def cosine_similarities(matrix: Floats, vector: Floats) -> Floats:
    """Return the cosine similarity of each unit row of ``matrix`` (n, d) with the unit ``vector`` (d,).

    Each row is summed by itself, in the same order whatever the other rows are (a matrix product
    is not), so equal vectors always score equal and ties can be broken by id.

    Returns:
        float32 of shape ``(n,)``, within [-1, 1].
    """
    cosines: Floats = np.clip(np.vecdot(matrix, vector), -1.0, 1.0)
    return cosines


def damp_similarity(similarity: Floats, weight: Floats) -> Floats:
    """Return the score of documents (n,): similarity damped by the weight of the path, in [-1, 1].

    ``(1 + similarity) * weight - 1``, written so that a weight of 1 changes no digit.
    """
    return similarity * weight + (weight - 1)


def find_positions(wanted: Ints, ordered: Ints) -> Ints:
    """Return (m,) the position of each of ``wanted`` in the ascending ``ordered``; -1 for those not in it."""
    if not len(ordered):
        return np.full(len(wanted), -1, dtype=np.int64)
    most = int(ordered[-1])
    if ordered[0] >= 0 and most < _DENSE * (len(wanted) + len(ordered)):
        place = np.full(most + 2, -1)
        place[ordered] = np.arange(len(ordered))
        return place[np.minimum(np.maximum(wanted, -1), most + 1)]
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)


def mark_first(ordered: npt.NDArray[Any]) -> Bools:
    """Mark (n,) each entry that differs from the one before it, and the first."""
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def sort_unique(keys: Ints) -> Ints:
    """Return the different values of ``keys``, ascending; np.unique takes three times as long for a few."""
    ordered = np.sort(keys)
    return ordered[mark_first(ordered)]


def sort_integers(keys: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the order of keys from 0 to ``most``, and the sorted keys.

    Where the position fits into the key as well, sorting the numbers themselves is several times faster
    than sorting positions by them.
    """
    bits = len(keys).bit_length()
    if most.bit_length() + bits > _INTEGER_BITS:
        order = np.argsort(keys)
        return order, keys[order]
    packed = np.sort((keys << bits) | np.arange(len(keys)))
    return packed & ((1 << bits) - 1), packed >> bits


def find_distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return the different values of keys that are not negative, ascending, and where each key is there."""
    if len(keys) and keys.max() < _DENSE * len(keys):
        seen = np.zeros(int(keys.max()) + 1, dtype=np.bool_)
        seen[keys] = True
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]
    return np.unique(keys, return_inverse=True)


def is_member(keys: Ints, some: Ints) -> Bools:
    """Mark the ``keys`` (n,) that are among ``some``, a short array."""
    members: Bools = find_positions(keys, np.sort(some)) >= 0
    return members


def expand_ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the positions ``start … start + count - 1`` of every pair, one range after another."""
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(total)


def match_equal(wanted: Ints, ordered: Ints) -> tuple[Ints, Ints]:
    """Return every pair of equal values, as positions in ``wanted`` and in ``ordered``, which ascends."""
    starts = np.searchsorted(ordered, wanted)
    counts = np.searchsorted(ordered, wanted, side="right") - starts
    return np.repeat(np.arange(len(wanted)), counts), expand_ranges(starts, counts)


def join_equal(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return every pair of equal values, as positions in both, by ``right`` first."""
    order = np.argsort(left, kind="stable")
    of_right, at = match_equal(right, left[order])
    return order[at], of_right

"""The one function that scores: cosine similarity over float32 unit vectors.

Every backend scores with :func:`similarities`, so that two engines cannot disagree about a
score or about a tie. Vectors are stored at unit length; cosine is then a dot product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstore.errors import DocumentError, EmbeddingError

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def as_matrix(vectors: Any) -> Floats:
    """Vectors of one dimension, as float32 of shape ``(n, dimension)``.

    Raises:
        EmbeddingError: If they are none.
    """
    try:
        found = np.ascontiguousarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"the embedding did not return vectors of one dimension: {error}") from error
    if found.ndim != 2 or (len(found) and not found.shape[1]):
        raise EmbeddingError(f"expected vectors of shape (n, dimension), got {found.shape}")
    return found


def unit_vectors(vectors: Any, dimension: int | None = None, ids: Sequence[str] | None = None) -> Floats:
    """Scale vectors to unit length.

    Args:
        vectors: ``n`` vectors of one dimension: anything numpy reads as shape ``(n, dimension)``.
        dimension: What the store holds; None accepts any.
        ids: The documents that the vectors belong to, for the message.

    Returns:
        float32 of shape ``(n, dimension)``.

    Raises:
        EmbeddingError: If the shape or dimension is wrong.
        DocumentError: If a vector is zero or not finite; the message names it.
    """
    given = as_matrix(vectors)
    if dimension is not None and len(given) and given.shape[1] != dimension:
        raise EmbeddingError(
            f"the store holds vectors of dimension {dimension}, the embedding gives {given.shape[1]};"
            " open the store with the embedding it was built with"
        )
    norms = np.sqrt(np.einsum("ij,ij->i", given, given, dtype=np.float64))
    bad = ~np.isfinite(norms) | (norms == 0)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DocumentError(
            f"the vector of {ids[at] if ids else at!r} is zero or not finite; cosine needs a direction"
            " (an empty text often embeds to zero)"
        )
    units: Floats = (given / norms[:, None]).astype(np.float32)
    return units


def unit_vector(vector: Any, dimension: int | None = None) -> Floats:
    """Scale one vector to unit length: see :func:`unit_vectors`."""
    unit: Floats = unit_vectors(np.asarray(vector, dtype=np.float32)[None], dimension)[0]
    return unit


def some_vector(dimension: int) -> Floats:
    """Some unit vector, for plans that need one and rank nothing by it."""
    vector = np.zeros(dimension, dtype=np.float32)
    vector[0] = 1.0
    return vector


def question_vector(given: Any) -> Floats:
    """A question that was given as a vector, as float32 of shape ``(dimension,)``, not scaled.

    Raises:
        EmbeddingError: If it is not a sequence of numbers, such as the input of a whole chain.
    """
    try:
        vector: Floats = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty(0, np.float32)
    if vector.ndim != 1 or not vector.size:
        raise EmbeddingError(f"a question must be a string or a list of numbers, not {repr(given)[:200]}")
    return vector


def similarities(matrix: Floats, vector: Floats) -> Floats:
    """Cosine similarity of each unit row of ``matrix`` (n, d) with the unit ``vector`` (d,).

    Each row is summed by itself, in the same order whatever the other rows are (a matrix product
    is not), so equal vectors always score equal and ties can be broken by id.

    Returns:
        float32 of shape ``(n,)``, within [-1, 1].
    """
    cosines: Floats = np.clip(np.vecdot(matrix, vector), -1.0, 1.0)
    return cosines


def damped(similarity: Floats, weight: Floats) -> Floats:
    """The score of documents (n,): similarity damped by the weight of the path, in [-1, 1].

    ``(1 + similarity) * weight - 1``, written so that a weight of 1 changes no digit.
    """
    return similarity * weight + (weight - 1)

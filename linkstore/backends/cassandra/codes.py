"""Compressed vectors: 12 bits per component, with a bound on the error of a similarity.

``v ≈ scale · units`` with integer units from -2,047 to 2,047. By the Cauchy-Schwarz inequality, the error of
the similarity to a unit vector is at most the length of ``v - scale · units``, which is stored in the code. A
reader finds the exact best documents if it reads the full vectors of all documents that may be among the best
within this bound. A code has the high 8 bits of all components, then the low 4 bits, two components per byte.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.vectors import Floats

_HEAD: Final = np.dtype([("scale", "<f4"), ("loss", "<f4")])
_MOST: Final = np.float32(2047)
_ARITHMETIC: Final = np.float32(1e-5)
"""Upper limit of the rounding errors of float32 sums."""
_AT_ONCE: Final = 1_024
"""Vectors whose products are computed together, so that they fit into the processor's cache."""
_ANYTHING: Final = np.array([(0, 2)], _HEAD).tobytes()
_Bytes = npt.NDArray[np.uint8]


def encode(vectors: Floats) -> list[bytes]:
    """Encode unit vectors (n, d) as codes of 8 + 1.5 d bytes each."""
    scale = np.abs(vectors).max(axis=1, initial=0) / _MOST
    units = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    lost = vectors.astype(np.float64) - units * scale[:, None].astype(np.float64)
    heads = np.zeros(len(vectors), _HEAD)
    heads["scale"] = scale
    heads["loss"] = np.sqrt((lost**2).sum(axis=1)) + _ARITHMETIC
    high = (units >> 4).astype(np.int8).view(np.uint8)
    packed = np.hstack((heads.view(np.uint8).reshape(-1, _HEAD.itemsize), high, _paired(units & 15)))
    return [row.tobytes() for row in packed]


def width(dimension: int) -> int:
    """Return the number of bytes of a code."""
    return _HEAD.itemsize + dimension + (dimension + 1) // 2


def unknown(dimension: int) -> bytes:
    """Return a code without information, whose error bound covers every possible similarity."""
    return _ANYTHING.ljust(width(dimension), b"\0")


def estimate(codes: _Bytes, vector: Floats) -> tuple[Floats, Floats]:
    """Return similarities of encoded vectors to a unit vector, and bounds on their errors: (n,) and (n,).

    Args:
        codes: (n, width of a code) bytes.
        vector: (d,).
    """
    heads = np.ascontiguousarray(codes[:, : _HEAD.itemsize]).view(_HEAD)[:, 0]
    return heads["scale"] * _products(codes[:, _HEAD.itemsize :], vector), heads["loss"].copy()


def _products(body: _Bytes, vector: Floats) -> Floats:
    """Return the (n,) dot products of the units and a vector."""
    parts = (_products_of_part(body[at : at + _AT_ONCE], vector) for at in range(0, len(body), _AT_ONCE))
    return np.concatenate([np.empty(0, np.float32), *parts])


def _products_of_part(body: _Bytes, vector: Floats) -> Floats:
    dimension = len(vector)
    high, low = body[:, :dimension].view(np.int8), body[:, dimension:]
    first, second = vector[0::2], vector[1::2]
    products: Floats = 16 * _dots(high, vector)
    products += _dots(low & 15, first)
    products += _dots((low >> 4)[:, : len(second)], second)
    return products


def _dots(units: npt.NDArray[np.generic], vector: Floats) -> Floats:
    """Return (n,) dot products.

    This does without BLAS, whose idle threads spin, and slow down a server on the same cores.
    """
    dots: Floats = np.einsum("ij,j->i", units.astype(np.float32), vector)
    return dots


def _paired(nibbles: npt.NDArray[np.int16]) -> _Bytes:
    """Pack two components into each byte, the first one in the low bits."""
    first, second = nibbles[:, 0::2].astype(np.uint8), nibbles[:, 1::2].astype(np.uint8)
    first[:, : second.shape[1]] |= second << 4
    return first

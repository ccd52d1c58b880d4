"""A vector in a quarter of the space: int8 codes with a bound on what that loses.

``v ≈ scale · codes``. By Cauchy and Schwarz the similarity to a unit vector computed from the codes is wrong
by at most the length of ``v - scale · codes``, which is kept with the codes; so whoever reads the full
vectors of all that may be among the best by that bound misses none of the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from linkstore.vectors import Floats

_HEAD: Final = np.dtype([("scale", "<f4"), ("loss", "<f4")])
_ARITHMETIC: Final = np.float32(1e-5)
"""What float32 sums may add to the loss."""


def encode(vectors: Floats) -> list[bytes]:
    """Codes of unit vectors (n, d): 8 + d bytes each."""
    scale = np.abs(vectors).max(axis=1, initial=0) / np.float32(127)
    codes = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8)
    lost = vectors.astype(np.float64) - codes * scale[:, None].astype(np.float64)
    heads = np.zeros(len(vectors), _HEAD)
    heads["scale"] = scale
    heads["loss"] = np.sqrt((lost**2).sum(axis=1)) + _ARITHMETIC
    return [head.tobytes() + code.tobytes() for head, code in zip(heads, codes, strict=True)]


def estimate(codes: Sequence[bytes], vector: Floats) -> tuple[Floats, Floats]:
    """Similarity of encoded vectors to a unit vector, and by how much each may be wrong: (n,) and (n,)."""
    width = _HEAD.itemsize + len(vector)
    raw = np.frombuffer(b"".join(codes), dtype=np.uint8).reshape(len(codes), width)
    heads = np.ascontiguousarray(raw[:, : _HEAD.itemsize]).view(_HEAD)[:, 0]
    products = raw[:, _HEAD.itemsize :].view(np.int8).astype(np.float32) @ vector
    return heads["scale"] * products, heads["loss"].copy()

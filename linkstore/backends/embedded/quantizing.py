"""Vectors as int8, as the approximate index holds them: a quarter of the bytes, half the time to build."""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.vectors import Floats

Codes = npt.NDArray[np.int8]
_MOST: Final = 127
_DEVIATIONS: Final = 8
"""Components are cut off at this multiple of the root mean square of the components of a unit vector."""


def quantized(vectors: Floats) -> Codes:
    """Quantize unit vectors to int8, in steps that are small enough for their dimension.

    The root mean square of the components of a unit vector of dimension d is 1/sqrt(d). If 127 always stood
    for 1, a step would be a fifth of that with 768 dimensions. (usearch's own conversion does so, and does
    not round.) So 127 stands for eight times the root mean square, but at most for 1.

    Args:
        vectors: One vector or several, of unit length.

    Returns:
        int8 of the same shape.
    """
    steps = _MOST * max(1.0, sqrt(vectors.shape[-1]) / _DEVIATIONS)
    scaled = np.rint(vectors * np.float32(steps))
    codes: Codes = np.clip(scaled, -_MOST, _MOST).astype(np.int8)
    return codes

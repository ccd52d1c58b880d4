"""Vectors between numpy and the server, without a Python float for each component.

The driver turns a vector<float, n> into a list one component at a time, at some 0.3 µs each; its bytes
are big-endian float32, as the native protocol has it, and numpy reads and writes those in one step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linkstore.backends.cassandra.driver import FloatType, PreparedStatement, VectorType
from linkstore.vectors import Floats


def carry_arrays(prepared: PreparedStatement) -> None:
    """Let a prepared statement take and give vectors as float32 arrays of shape (d,).

    It looks again at each use, for the driver forgets it when it prepares the statement anew.
    """
    columns = prepared.result_metadata
    if columns and not isinstance(columns, _Carried):
        prepared.result_metadata = _Carried(map(_as_array, columns))
    columns = prepared.column_metadata
    if columns and not isinstance(columns, _Carried):
        prepared.column_metadata = _Carried(map(_as_array, columns))


class _Carried(list[Any]):
    """Columns whose vectors are arrays."""


def _as_array(column: Any) -> Any:
    kind: Any = column[3]
    if not issubclass(kind, VectorType) or kind.subtype is not FloatType:
        return column
    if hasattr(column, "_replace"):
        return column._replace(type=_array_type(kind))
    return (*column[:3], _array_type(kind))


def _array_type(kind: Any) -> type:
    """A driver type like ``kind`` whose values are arrays; it has its name, its size and its errors."""
    size = kind.vector_size

    def serialize(vector: Floats, _protocol_version: int) -> bytes:
        packed = np.asarray(vector, dtype=">f4")
        if packed.shape != (size,):
            raise ValueError(f"a vector of shape {packed.shape} where the table has {size} dimensions")
        return packed.tobytes()

    def deserialize(packed: bytes, _protocol_version: int) -> Floats:
        return np.frombuffer(packed, dtype=">f4").astype(np.float32)

    methods = {"serialize": staticmethod(serialize), "deserialize": staticmethod(deserialize)}
    return type(kind.__name__, (kind,), methods)

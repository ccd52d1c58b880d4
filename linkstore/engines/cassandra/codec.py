"""Values in the format of the native protocol, codes of vectors, and batches of rows.

A collection is its length followed by its elements, a tuple is its parts. Each element or part is preceded by
its size in bytes, -1 for null. All numbers are 32-bit big-endian integers. Parsing and packing this here is
several times faster than the driver.

A code of a vector has 12 bits per component, with a bound on the error of a similarity: ``v ≈ scale · units``
with integer units from -2,047 to 2,047. By the Cauchy-Schwarz inequality, the error of the similarity to a
unit vector is at most the length of ``v - scale · units``, which is stored in the code. A reader finds the
exact best documents if it reads the full vectors of all documents that may be among the best within this
bound. A code has the high 8 bits of all components, then the low 4 bits, two components per byte.

A row of members or words has a set of blobs, one for each recorded state of the document. A write adds its
state to a row, then writes the document, then removes the other states. So a row always has the current state
of its document. Nearly all rows have exactly one state, which is then the current one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from linkstore.core.arrays import Floats
from linkstore.engines.cassandra.statements import Statement

BATCH_BYTES: Final = 4_500
"""The server warns about batches of more than 5 KiB."""
ROW_BYTES: Final = 60
"""Bytes that the server counts for a row in addition to its values."""
SIZE: Final = struct.Struct(">i")
SINGLE_STATE: Final = SIZE.pack(1)
SINGLE_STATE_OFFSET: Final = 2 * SIZE.size
"""Bytes before the state in a set of one: the number of elements, and the size of the element."""
LONG: Final = struct.Struct(">q")
_CODE_HEAD: Final = np.dtype([("scale", "<f4"), ("loss", "<f4")])
_MAX_UNIT: Final = np.float32(2047)
_ROUNDING_ERROR: Final = np.float32(1e-5)
"""Upper limit of the rounding errors of float32 sums."""
_VECTORS_PER_BLOCK: Final = 512
"""Vectors whose products are computed together, so that they fit into the processor's cache."""
_UNKNOWN_HEAD: Final = np.array([(0, 2)], _CODE_HEAD).tobytes()
_CodeBytes = npt.NDArray[np.uint8]
PackedRow = TypeVar("PackedRow", bound=Sequence[bytes | None])


def pack_vector(vector: Floats) -> bytes:
    """Pack a vector (d,)."""
    return vector.astype(">f4").tobytes()


def unpack_vector(packed: bytes) -> Floats:
    """Return a vector (d,) float32."""
    return np.frombuffer(packed, dtype=">f4").astype(np.float32)


def pack_set(*elements: bytes) -> bytes:
    """Pack a set of packed elements, such as states."""
    return SIZE.pack(len(elements)) + join_sized(elements)


def unpack_set(packed: bytes | None) -> list[bytes]:
    """Return the packed elements of a set."""
    return split_sized(packed, SIZE.size) if packed else []


def pack_map(entries: Mapping[str, str]) -> bytes:
    """Pack a map of texts."""
    return SIZE.pack(len(entries)) + join_sized(part.encode() for part in chain(*entries.items()))


def join_sized(values: Iterable[bytes]) -> bytes:
    """Join values, each after its size."""
    return b"".join([SIZE.pack(len(one)) + one for one in values])


def split_sized(packed: bytes, at: int = 0) -> list[bytes]:
    """Return the values from a position on, each of which follows its size."""
    values = []
    while at < len(packed):
        (size,) = SIZE.unpack_from(packed, at)
        at += SIZE.size + size
        values.append(packed[at - size : at])
    return values


def encode_vectors(vectors: Floats) -> list[bytes]:
    """Encode unit vectors (n, d) as codes of 8 + 1.5 d bytes each."""
    dimension = vectors.shape[1]
    scale = np.abs(vectors).max(axis=1, initial=0) / _MAX_UNIT
    units = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    lost = vectors.astype(np.float64) - units * scale[:, None].astype(np.float64)
    heads = np.zeros(len(vectors), _CODE_HEAD)
    heads["scale"] = scale
    heads["loss"] = np.sqrt((lost**2).sum(axis=1)) + _ROUNDING_ERROR
    low = np.pad((units & 15).astype(np.uint8), ((0, 0), (0, dimension % 2)))
    parts = (
        heads.view(np.uint8).reshape(-1, _CODE_HEAD.itemsize),
        (units >> 4).astype(np.int8).view(np.uint8),
        low[:, 0::2] | low[:, 1::2] << 4,
    )
    return [row.tobytes() for row in np.hstack(parts)]


def compute_code_width(dimension: int) -> int:
    """Return the number of bytes of a code."""
    return _CODE_HEAD.itemsize + dimension + (dimension + 1) // 2


def make_unknown_code(dimension: int) -> bytes:
    """Return a code without information, whose error bound covers every possible similarity."""
    return _UNKNOWN_HEAD.ljust(compute_code_width(dimension), b"\0")


def estimate_similarities(codes: _CodeBytes, vector: Floats) -> tuple[Floats, Floats]:
    """Return similarities of encoded vectors to a unit vector, and bounds on their errors: (n,) and (n,).

    This does without BLAS, whose idle threads spin, and slow down a server on the same cores.

    Args:
        codes: (n, width of a code) bytes.
        vector: (d,).
    """
    heads = np.ascontiguousarray(codes[:, : _CODE_HEAD.itemsize]).view(_CODE_HEAD)[:, 0]
    body, dimension = codes[:, _CODE_HEAD.itemsize :], len(vector)
    products = np.empty(len(codes), np.float32)
    for at in range(0, len(codes), _VECTORS_PER_BLOCK):
        block = body[at : at + _VECTORS_PER_BLOCK]
        units, low = block[:, :dimension].view(np.int8).astype(np.float32), block[:, dimension:]
        units *= 16
        units[:, 0::2] += low & 15
        units[:, 1::2] += low[:, : dimension // 2] >> 4
        products[at : at + _VECTORS_PER_BLOCK] = np.einsum("ij,j->i", units, vector)
    return heads["scale"] * products, heads["loss"].copy()


def split_rows(
    rows: Sequence[PackedRow], counts: Sequence[int], most: int = BATCH_BYTES
) -> Iterator[Sequence[PackedRow]]:
    """Split rows into batches, limited by number of rows and by bytes.

    The number of rows of a batch is one of a few, because each needs a prepared statement. The server warns
    about a batch with more than ten partitions or 5 KiB. A batch within one partition is a single write, and
    may have any number of rows.

    Args:
        rows: The values of each row, packed. Their order is kept.
        counts: Numbers of rows that a batch may have, descending. A row that fits no such batch is alone.
        most: The most bytes in a batch.
    """
    sizes = (ROW_BYTES + sum([len(value) for value in row if value]) for row in rows)
    ends = list(accumulate(sizes, initial=0))
    start = 0
    while start < len(rows):
        fitting = (
            count
            for count in counts
            if start + count < len(ends) and ends[start + count] - ends[start] <= most
        )
        count = next(fitting, 1)
        yield rows[start : start + count]
        start += count


def pack_batch(
    text: str, at: int, rows: Iterable[Iterable[bytes | None]], routing: bytes | None
) -> Statement:
    """Return the statement of a batch whose values are packed.

    Args:
        text: A batch with one timestamp.
        at: The timestamp.
        rows: The values of each row.
        routing: The routing key.
    """
    values = [LONG.pack(at), *chain.from_iterable(rows)]
    return Statement(cql=text, values=values, packed=True, level="write", routing=routing)

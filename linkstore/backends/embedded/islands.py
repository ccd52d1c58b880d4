"""Detection of documents that an index built by several threads has lost.

Two threads that add similar documents at the same time can link them only to each other. No search then
reaches them, not even a search for the document itself. With two threads this happens to about one
document in 3,000, with 32 threads to one in 150, and with one thread to none. Such documents are found in
the saved file, by traversing its graph once from the entry node; the caller then adds them again with one
thread. (A few documents that the traversal reaches are still missed by searches: with two threads none was
seen, with 8 threads one for every 30 lost.)

Layout: usearch 2 writes the matrix of vectors (two u32 for its shape, then the rows), a header of 64 bytes,
five u64 (number of nodes, links of a node above and at the base level, highest level, entry), the level of
each node as i16, then the nodes: key u64, level i16, and for each level a u32 count and u32 slots.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from linkstore.arrays import distinct
from linkstore.vectors import Bools, Ints

_MAGIC: Final = b"usearch"
_HEAD: Final = 64
_NODE_HEAD: Final = 10

Bytes = npt.NDArray[np.uint8]


class _Graph(NamedTuple):
    """The base level: the key of each node, its slots, which slots hold links, and the entry node's slot."""

    keys: Ints
    links: npt.NDArray[np.uint32]
    linked: Bools
    entry: int


def lost_keys(path: Path) -> Ints:
    """Return the keys of the documents in a saved index that no search can reach.

    Args:
        path: A file that usearch saved. If its layout is unknown, the result is empty.
    """
    graph = _read(np.memmap(path, np.uint8, "r").view(np.ndarray)) if path.stat().st_size else None
    if graph is None:
        return np.empty(0, np.int64)
    reached = _reached(graph)
    if reached.sum() * 2 < len(reached):  # the entry itself lies in the small, separated part
        reached = ~reached
    return graph.keys[~reached]


def _read(raw: Bytes) -> _Graph | None:
    rows, row_bytes = _numbers(raw, 0, 2, "<u4")
    at = 8 + rows * row_bytes
    if bytes(raw[at : at + len(_MAGIC)]) != _MAGIC:
        return None
    at += _HEAD
    size, upper, base, _, entry = _numbers(raw, at, 5, "<u8")
    if not size or size != rows or entry >= size:
        return None
    levels = np.frombuffer(raw, "<i2", size, at + 40).astype(np.int64)
    width = _NODE_HEAD + 4 + 4 * base
    starts = at + 40 + 2 * size + np.concatenate([[0], np.cumsum(width + levels * (4 + 4 * upper))])
    if starts[-1] != len(raw):
        return None
    nodes = np.lib.stride_tricks.sliding_window_view(raw, width)[starts[:-1]]
    keys = np.ascontiguousarray(nodes[:, :8]).view("<u8")[:, 0].astype(np.int64)
    numbers = np.ascontiguousarray(nodes[:, _NODE_HEAD:]).view("<u4")
    del nodes  # for millions of documents these arrays take most of the memory that a snapshot needs
    linked = np.arange(base) < numbers[:, :1]
    links = numbers[:, 1:]
    links[~linked] = 0
    return _Graph(keys, links, linked, entry) if links.max() < size else None


def _numbers(raw: Bytes, at: int, count: int, dtype: str) -> list[int]:
    size = count * np.dtype(dtype).itemsize
    if at + size > len(raw):
        return [0] * count
    found: Any = np.frombuffer(raw, dtype, count, at).tolist()
    return list(found)


def _reached(graph: _Graph) -> Bools:
    reached = np.zeros(len(graph.keys), np.bool_)
    reached[graph.entry] = True
    frontier = np.array([graph.entry])
    while len(frontier):
        links = graph.links[frontier][graph.linked[frontier]]
        fresh = distinct(links[~reached[links]].astype(np.int64))
        reached[fresh] = True
        frontier = fresh
    return reached

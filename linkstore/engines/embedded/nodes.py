"""Nodes of the index: int8 codes, one node for each distinct code, and the twins of a node.

Vectors as int8, as the approximate index holds them: a quarter of the bytes, half the time to build.

Which documents a node of the approximate index stands for.

Documents with the same code (the vector as the index holds it) share one node: equal documents, such as
empty pages or versions of a manual, cannot crowd a graph of neighbours, of which each keeps only 32. The node
has the key of the first of them; the others are its twins. Behind the graph, its file has the twins and the
mean that is subtracted from vectors (see :mod:`centring`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xxhash

from linkstore.core.arrays import Floats, Ints, expand_ranges

Codes = npt.NDArray[np.int8]
_LARGEST_CODE: Final = 127
_DEVIATIONS: Final = 8
"""Components are cut off at this multiple of the root mean square of the components of a unit vector."""


def quantize(vectors: Floats) -> Codes:
    """Quantize unit vectors to int8, in steps that are small enough for their dimension.

    The root mean square of the components of a unit vector of dimension d is 1/sqrt(d). If 127 always stood
    for 1, a step would be a fifth of that with 768 dimensions. (usearch's own conversion does so, and does
    not round.) So 127 stands for eight times the root mean square, but at most for 1.

    Args:
        vectors: One vector or several, of unit length.

    Returns:
        int8 of the same shape.
    """
    steps = _LARGEST_CODE * max(1.0, sqrt(vectors.shape[-1]) / _DEVIATIONS)
    scaled = np.rint(vectors * np.float32(steps))
    codes: Codes = np.clip(scaled, -_LARGEST_CODE, _LARGEST_CODE).astype(np.int8)
    return codes


Hashes = npt.NDArray[np.uint64]
_RECENT: Final = 1 << 14
_RECENT_SHARE: Final = 16
_CODES_AT_ONCE: Final = 1 << 14
_TAIL_MAGIC: Final = b"twins-01"


@dataclass(frozen=True, slots=True)
class Twins:
    """The documents without a node of their own.

    Args:
        nodes: (n,) the key of the node that stands for each, ascending.
        keys: (n,) their keys, ascending for each node.
    """

    nodes: Ints
    keys: Ints

    def __len__(self) -> int:
        return len(self.keys)

    def extended(self, nodes: Ints, keys: Ints) -> Twins:
        """Return these twins and further ones, whose keys are greater."""
        if not len(keys):
            return self
        both = np.concatenate((self.nodes, nodes))
        order = np.argsort(both, kind="stable")
        return Twins(both[order], np.concatenate((self.keys, keys))[order])

    def with_theirs(self, nodes: Ints) -> Ints:
        """Return the keys of nodes, and of all documents that these nodes stand for."""
        if not len(self):
            return nodes
        starts = np.searchsorted(self.nodes, nodes, "left")
        counts = np.searchsorted(self.nodes, nodes, "right") - starts
        return np.concatenate((nodes, self.keys[expand_ranges(starts, counts)]))

    def largest(self, count: int) -> Ints:
        """Return the keys of the nodes that stand for the most documents, at most ``count`` of them."""
        nodes, counts = np.unique(self.nodes, return_counts=True)
        return nodes[np.argsort(-counts, kind="stable")[:count]]

    def nodes_of(self, keys: Ints) -> Ints:
        """Return the node that stands for each document. A document that is not a twin has its own node."""
        order = np.argsort(self.keys)
        at = np.searchsorted(self.keys, keys, sorter=order)
        found = keys.copy()
        known = at < len(self)
        at = order[at[known]]
        found[known] = np.where(self.keys[at] == keys[known], self.nodes[at], keys[known])
        return found


NO_TWINS: Final = Twins(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The node of each code, by a hash of the code; the latest additions are kept apart.

    Args:
        hashes: (n,) ascending.
        nodes: (n,) their keys.
        recent: (m,) further hashes, ascending.
        recent_nodes: (m,) their keys.
    """

    hashes: Hashes
    nodes: Ints
    recent: Hashes
    recent_nodes: Ints

    @classmethod
    def of(cls, index: Any) -> CodeTable:
        """Make the table of a usearch index."""
        keys = np.asarray(index.keys, dtype=np.int64)
        parts = [keys[at : at + _CODES_AT_ONCE] for at in range(0, len(keys), _CODES_AT_ONCE)]
        hashes = [_hash_codes(get_codes(index, part)) for part in parts]
        nothing = np.empty(0, np.uint64), np.empty(0, np.int64)
        both = _sort_by_hash(np.concatenate([*hashes, nothing[0]]), keys)
        return cls(*both, *nothing)

    def placed(self, index: Any, keys: Ints, codes: Codes) -> tuple[Ints, CodeTable]:
        """Return the node for each new document (its own for a new code), and the table with the new nodes.

        A document whose code has the hash of another code gets a node of its own, beside the table.

        Args:
            index: The usearch index that the table is of.
            keys: (n,) their keys, ascending.
            codes: (n, d) their codes.
        """
        hashes, first, which = np.unique(_hash_codes(codes), return_index=True, return_inverse=True)
        nodes, known = self._find(hashes)
        nodes[~known] = keys[first[~known]]
        theirs = codes[first]
        theirs[known] = get_codes(index, nodes[known])
        same = (theirs[which] == codes).all(axis=1)
        return np.where(same, nodes[which], keys), self._extend(hashes[~known], nodes[~known])

    def _find(self, hashes: Hashes) -> tuple[Ints, npt.NDArray[np.bool_]]:
        found, known = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.bool_)
        for there, nodes in ((self.hashes, self.nodes), (self.recent, self.recent_nodes)):
            if len(there):
                at = np.minimum(np.searchsorted(there, hashes), len(there) - 1)
                same = there[at] == hashes
                found[same], known = nodes[at[same]], known | same
        return found, known

    def _extend(self, hashes: Hashes, nodes: Ints) -> CodeTable:
        recent = _sort_by_hash(
            np.concatenate((self.recent, hashes)), np.concatenate((self.recent_nodes, nodes))
        )
        if len(recent[0]) < max(_RECENT, len(self.hashes) // _RECENT_SHARE):
            return CodeTable(self.hashes, self.nodes, *recent)
        whole = _sort_by_hash(
            np.concatenate((self.hashes, recent[0])), np.concatenate((self.nodes, recent[1]))
        )
        return CodeTable(*whole, recent[0][:0], recent[1][:0])


def get_codes(index: Any, nodes: Ints) -> Codes:
    """Return the codes (n, d) of nodes of a usearch index."""
    if not len(nodes):
        return np.empty((0, index.ndim), np.int8)
    codes: Codes = np.asarray(index.get(nodes, np.int8)).reshape(len(nodes), -1)
    return codes


def append_tail(path: Path, centre: Floats, twins: Twins) -> None:
    """Append the mean and the twins to the file of an index, where usearch does not read them."""
    count = np.array([len(twins)], "<i8")
    parts = [twins.nodes.astype("<i8"), twins.keys.astype("<i8"), centre.astype("<f4"), count]
    with path.open("ab") as file:
        file.write(b"".join([*(part.tobytes() for part in parts), _TAIL_MAGIC]))


def read_tail(path: Path, dimension: int) -> tuple[Floats, Twins] | None:
    """Return the mean and the twins that follow an index, or None if they are missing."""
    size = path.stat().st_size
    ends = 4 * dimension + 8 + len(_TAIL_MAGIC)
    with path.open("rb") as file:
        file.seek(max(0, size - ends))
        found = file.read()
        if len(found) != ends or not found.endswith(_TAIL_MAGIC):
            return None
        count = int(np.frombuffer(found, "<i8", 1, 4 * dimension)[0])
        if not 0 <= 16 * count <= size - ends:
            return None
        file.seek(size - ends - 16 * count)
        twins = np.frombuffer(file.read(16 * count), "<i8").astype(np.int64)
    centre: Floats = np.frombuffer(found, "<f4", dimension).astype(np.float32)
    return centre, Twins(twins[:count], twins[count:])


def _hash_codes(codes: Codes) -> Hashes:
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(row) for row in np.ascontiguousarray(codes)), np.uint64, len(codes))


def _sort_by_hash(hashes: Hashes, nodes: Ints) -> tuple[Hashes, Ints]:
    order = np.argsort(hashes, kind="stable")
    return hashes[order], nodes[order]

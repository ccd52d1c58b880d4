"""Vectors for scoring and for the approximate index (usearch), which is derived from them.

Vectors in a file, row by row, for scoring without reading SQLite.

A file only grows, so new rows do not affect a reader that has mapped the first ones. The database has a
hash of each block of rows; the last block may be short.

Vectors less their mean, as the approximate index holds them.

Vectors of texts have a part in common, whatever the texts are about. A graph of neighbours then leads into
the largest subject of a store, and past documents of a small one, even for questions that these answer.
Without that part, subjects lie in different directions. ``benchmarks/among.py`` shows what is found.

Detection of documents that an index built by several threads has lost.

Two threads that add similar documents at the same time can link them only to each other. No search then
reaches them, not even a search for the document itself. With two threads this happens to about one
document in 3,000, with 32 threads to one in 150, and with one thread to none. Such documents are found in
the saved file, by traversing its graph once from the entry node; the caller then adds them again with one
thread. (A few documents that the traversal reaches are still missed by searches: with two threads none was
seen, with 8 threads one for every 30 lost.)

Layout: usearch 2 writes the matrix of vectors (two u32 for its shape, then the rows), a header of 64 bytes,
five u64 (number of nodes, links of a node above and at the base level, highest level, entry), the level of
each node as i16, then the nodes: key u64, level i16, and for each level a u32 count and u32 slots.

The approximate index: usearch's HNSW graph over distinct codes, in a file that can be deleted and rebuilt.

Method: Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs", TPAMI 2018. Its vectors are less their mean and int8, see
:mod:`centring` and :mod:`quantizing`; documents of one code share a node, see :mod:`nodes`. Its candidates
are scored again exactly.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from linkstore.core.arrays import Bools, Floats, Ints, sort_unique
from linkstore.embeddings.encoder import share_cpp_runtime
from linkstore.engines.embedded.location import has_digest, raise_if_short, sync_path, write_file
from linkstore.engines.embedded.mirror import Array
from linkstore.engines.embedded.nodes import (
    NO_TWINS,
    Codes,
    CodeTable,
    Twins,
    append_tail,
    get_codes,
    quantize,
    read_tail,
)
from linkstore.errors import BackendError

BLOCK_ROWS: Final = 4096


def write_rows(path: Path, rows: Callable[[int, int], Floats], start: int, stop: int) -> list[str]:
    """Write rows ``start`` to ``stop`` durably, and return the hashes of blocks from ``start``'s block on.

    Args:
        path: The file; created anew if ``start`` is 0.
        rows: Returns the rows between two numbers; called for each block from that of ``start`` on.
        start: How many rows the file already has.
        stop: How many rows the file has afterwards.
    """
    size = path.stat().st_size if start else 0
    try:
        digests = _write_blocks(path, rows, start, stop)
    except BaseException:
        with contextlib.suppress(OSError):  # the space may be needed for documents
            os.truncate(path, size)
        raise
    if not start:
        sync_path(path.parent)
    return digests


def _write_blocks(path: Path, rows: Callable[[int, int], Floats], start: int, stop: int) -> list[str]:
    digests = []
    with path.open("r+b" if start else "w+b") as file:
        for first in range(start // BLOCK_ROWS * BLOCK_ROWS, stop, BLOCK_ROWS):
            block = np.ascontiguousarray(rows(first, min(first + BLOCK_ROWS, stop)))
            digests.append(_hash_block(block))
            fresh = block[max(start - first, 0) :]
            file.seek((first + len(block) - len(fresh)) * block.shape[1] * block.itemsize)
            file.write(fresh.data)
        file.flush()
        os.fsync(file.fileno())
    return digests


def map_rows(path: Path, rows: int, dimension: int, digests: Sequence[str]) -> Floats | None:
    """Return the first rows as a read-only memory map, or None if the file does not match the hashes."""
    try:
        if not rows or path.stat().st_size < rows * dimension * 4:
            return None
        matrix = np.memmap(path, np.float32, "r", 0, (rows, dimension)).view(np.ndarray)
    except OSError as error:
        raise_if_short(error)
        return None
    starts = range(0, rows, BLOCK_ROWS)
    sound = len(starts) == len(digests) and all(
        _hash_block(matrix[s : s + BLOCK_ROWS]) == d for s, d in zip(starts, digests, strict=True)
    )
    return matrix if sound else None


def _hash_block(block: Array) -> str:
    return xxhash.xxh3_64_hexdigest(np.ascontiguousarray(block).data)


ASKED_SHARE: Final = 0.3
"""The share of the mean that is subtracted from a question. With the whole mean, the order differs too much
from that by similarity; in 100,000 pieces of text, 0.3 found the most, and 0.5 nearly as much."""


def subtract_centre(vectors: Floats, centre: Floats) -> Floats:
    """Subtract ``centre`` from vectors and scale them to unit length. A vector equal to it becomes zero.

    Args:
        vectors: One unit vector or several.
        centre: Of the same dimension.
    """
    moved = vectors - centre
    lengths = np.sqrt(np.vecdot(moved, moved))[..., None]
    units: Floats = np.divide(moved, lengths, out=np.zeros_like(moved), where=lengths > 0)
    return units


_INDEX_MAGIC: Final = b"usearch"
_HEAD: Final = 64
_NODE_HEAD: Final = 10

Bytes = npt.NDArray[np.uint8]


class _BaseGraph(NamedTuple):
    """The base level: the key of each node, its slots, which slots hold links, and the entry node's slot."""

    keys: Ints
    links: npt.NDArray[np.uint32]
    linked: Bools
    entry: int


def find_lost_keys(path: Path) -> Ints:
    """Return the keys of the documents in a saved index that no search can reach.

    Args:
        path: A file that usearch saved. If its layout is unknown, the result is empty.
    """
    graph = _parse_graph(np.memmap(path, np.uint8, "r").view(np.ndarray)) if path.stat().st_size else None
    if graph is None:
        return np.empty(0, np.int64)
    reached = _find_reached(graph)
    if reached.sum() * 2 < len(reached):  # the entry itself lies in the small, separated part
        reached = ~reached
    return graph.keys[~reached]


def _parse_graph(raw: Bytes) -> _BaseGraph | None:
    rows, row_bytes = _parse_numbers(raw, 0, 2, "<u4")
    at = 8 + rows * row_bytes
    if bytes(raw[at : at + len(_INDEX_MAGIC)]) != _INDEX_MAGIC:
        return None
    at += _HEAD
    size, upper, base, _, entry = _parse_numbers(raw, at, 5, "<u8")
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
    return _BaseGraph(keys, links, linked, entry) if links.max() < size else None


def _parse_numbers(raw: Bytes, at: int, count: int, dtype: str) -> list[int]:
    size = count * np.dtype(dtype).itemsize
    if at + size > len(raw):
        return [0] * count
    found: Any = np.frombuffer(raw, dtype, count, at).tolist()
    return list(found)


def _find_reached(graph: _BaseGraph) -> Bools:
    reached = np.zeros(len(graph.keys), np.bool_)
    reached[graph.entry] = True
    frontier = np.array([graph.entry])
    while len(frontier):
        links = graph.links[frontier][graph.linked[frontier]]
        fresh = sort_unique(links[~reached[links]].astype(np.int64))
        reached[fresh] = True
        frontier = fresh
    return reached


share_cpp_runtime()  # usearch is imported later, and only for a store that has an index
T = TypeVar("T")
PROPOSALS: Final = 128
"""The smallest number of candidates to score again; usearch visits at least as many anyway."""
EXPANSION_SEARCH: Final = 256
"""How many candidates a search of the graph keeps while it runs: see ``benchmarks/recall_text.py``."""
BATCH: Final = 2048
"""The number of documents that are added at a time, while searches of the same index wait."""
PARALLEL_FROM: Final = 256
"""Fewer documents than this are added by a single thread, which loses none: see ``islands``."""
LEAST_RECALL: Final = 0.96
"""An index that finds less than this of the ten nearest documents of a sample is not used. The contract
promises 0.98 (N-5); the estimate for an index that just meets that may be this low: see :mod:`recall`."""
_NODE_BYTES: Final = 1024
_LEAST_BYTES: Final = 48 << 20
"""How much memory usearch may allocate at once, for an index of any size: it allocates large blocks."""
_TERMINATED: Final = "Operation has been terminated"
"""The message of usearch's error after a signal handler has raised."""
WAIT_SECONDS: Final = 0.0005
"""The interval at which an addition checks whether earlier searches are done."""


class AnnIndex(Protocol):
    """An index that proposes candidates."""

    @property
    def covered(self) -> int:
        """The largest document key that the index covers."""
        ...

    def propose(self, vector: Floats, count: int, change: int) -> tuple[Ints, int] | None:
        """Propose candidates for the nearest documents up to some key.

        Return the keys of the probably nearest documents, those with one of ``count`` distinct codes, and
        the largest key that the index covers. Return None if the index is busy or finds too little, or if
        it is of a later change than ``change``, because it may then lack documents that existed at
        ``change``.
        """
        ...


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index mapped from a verified file; processes share its memory through the system's page cache.

    Args:
        index: The usearch index.
        covered: The largest document key that it covers.
        change: The change it is of; it lacks documents removed before.
        centre: What is subtracted from vectors; None while the index is empty.
        twins: The documents without a node of their own.
        table: The nodes by code, of an index that grows; None until the first addition.
        recall: How much it found of the ten nearest documents of a sample.
    """

    index: Any
    covered: int
    change: int
    centre: Floats | None = None
    twins: Twins = NO_TWINS
    table: CodeTable | None = None
    recall: float = 1.0

    @classmethod
    def load(
        cls, path: Path, digest: str, covered: int, change: int, *, recall: float = 1.0, view: bool = True
    ) -> SavedIndex | None:
        """Map a file, or read it into memory to add to it. Return None if its hash is not ``digest``."""
        loaded = _load(path, digest, view=view)
        if loaded is None:
            return None
        index, centre, twins = loaded
        return cls(index, covered, change, centre, twins, recall=recall)

    def __len__(self) -> int:
        return len(self.index) + len(self.twins)

    def propose(self, vector: Floats, count: int, change: int) -> tuple[Ints, int] | None:
        """Propose candidates as :class:`AnnIndex` says. A saved index is never busy."""
        if self.change > change or self.recall < LEAST_RECALL:
            return None
        return self.near(vector, count), self.covered

    def near(self, vector: Floats, count: int = PROPOSALS) -> Ints:
        """Return the keys of the probably nearest documents, those with one of ``count`` distinct codes."""
        return self.twins.with_theirs(_search_index(self.index, self.codes(vector, ASKED_SHARE), count))

    def with_documents(self, keys: Ints, rows: Floats, threads: int) -> SavedIndex:
        """Return this index with documents added, up to the last of their ascending keys."""
        codes = self.codes(rows)
        nodes, table = (self.table or CodeTable.of(self.index)).placed(self.index, keys, codes)
        own = nodes == keys
        _add_codes(self.index, keys[own], codes[own], threads)
        twins = self.twins.extended(nodes[~own], keys[~own])
        return replace(self, covered=int(keys[-1]), twins=twins, table=table)

    def codes(self, vectors: Floats, share: float = 1.0) -> Codes:
        """Return vectors as the index stores them, after subtracting ``share`` of the centre."""
        return quantize(vectors if self.centre is None else subtract_centre(vectors, share * self.centre))


class LiveIndex:
    """The index in the memory of a process that writes; it grows with the store between snapshots.

    Several searches may run at once, but not during an addition. An interrupted addition leaves an index
    in an undefined state. So an addition first removes the index and puts it back when the addition is done.
    After an interrupt the index is missing and is rebuilt. One thread at a time may extend, load or save it.

    Args:
        told: Called after each batch of an addition with the largest document key that the index covers.
    """

    def __init__(self, told: Callable[[int], None] | None = None) -> None:
        self._told = told
        self._current: SavedIndex | None = None
        self._searching: set[object] = set()
        self._lock = threading.RLock()

    def __len__(self) -> int:
        current = self._current
        return 0 if current is None else len(current)

    @property
    def covered(self) -> int:
        """The largest document key that the index covers."""
        current = self._current
        return 0 if current is None else current.covered

    def propose(self, vector: Floats, count: int, change: int) -> tuple[Ints, int] | None:
        """Propose candidates as :class:`AnnIndex` says. A live index is busy while documents are added."""
        return self.used(lambda index: index.propose(vector, count, change) if len(index) else None)

    def used(self, use: Callable[[SavedIndex], T]) -> T | None:
        """Return ``use(index)``, while nothing is added to the index. Return None if there is no index."""
        search = object()
        try:
            with self._lock:
                current = self._current
                if current is None:
                    return None
                self._searching.add(search)
            return use(current)
        finally:
            self._searching.discard(search)  # a call into C, which a signal cannot interrupt

    def start(self, dimension: int) -> None:
        """Begin with an empty index. For unit vectors, the inner product is the cosine."""
        from usearch.index import Index

        _require_memory(0)
        index = Index(ndim=dimension, metric="ip", dtype="i8", expansion_search=EXPANSION_SEARCH)
        self._current = SavedIndex(index, 0, 0)

    def load(self, path: Path, digest: str, covered: int, change: int, recall: float = 1.0) -> None:
        """Begin with the index in a file. Do nothing if the file's hash is not ``digest``."""
        loaded = SavedIndex.load(path, digest, covered, change, recall=recall, view=False)
        if loaded is not None:
            self._current = loaded

    def drop(self) -> None:
        """Discard the index."""
        self._current = None

    def extend(self, keys: Ints, vectors: Callable[[Ints], Floats], covered: int, change: int) -> None:
        """Add documents, a batch at a time.

        Args:
            keys: Keys of the documents that exist at ``change`` and that the index lacks, ascending.
            vectors: Looks up vectors by key.
            covered: The key up to which the index is complete afterwards.
            change: The change that the index is of afterwards.
        """
        sample = vectors(keys[:: -(-len(keys) // BATCH)]) if len(keys) and not len(self) else None
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            rows = vectors(batch)
            taken = self._take_away()
            if sample is not None:
                # The mean of documents would be the vector that most of them share, where they do.
                taken, sample = replace(taken, centre=np.unique(sample, axis=0).mean(axis=0)), None
            grown = taken.with_documents(batch, rows, threads=0 if len(batch) >= PARALLEL_FROM else 1)
            self._current = replace(grown, change=change)
            if self._told is not None:
                self._told(self.covered)
        if self._current is not None:
            self._current = replace(self._current, covered=covered, change=change)

    def judge(self, recall: float) -> None:
        """Record which share of the ten nearest documents the index found in a sample."""
        if self._current is not None:
            self._current = replace(self._current, recall=recall)

    def save(self, path: Path) -> str:
        """Write the index to a temporary file, rename the file, and return its hash."""

        def write(temporary: Path) -> None:
            self._write(temporary)
            lost = find_lost_keys(temporary)
            if len(lost):
                taken = self._take_away()
                codes = get_codes(taken.index, lost)
                taken.index.remove(lost)
                _add_codes(taken.index, lost, codes, threads=1)
                self._current = taken
                self._write(temporary)
            if self._current is not None and self._current.centre is not None:
                append_tail(temporary, self._current.centre, self._current.twins)

        return write_file(path, write)

    def _take_away(self) -> SavedIndex:
        """Remove the index from this object, wait until no search runs in it, and return it."""
        with self._lock:
            taken, self._current = self._current, None
        while self._searching:
            time.sleep(WAIT_SECONDS)
        if taken is None:
            raise BackendError("the index in memory was dropped while it was extended")
        return taken

    def _write(self, path: Path) -> None:
        try:
            self._current.index.save(str(path))  # type: ignore[union-attr]
        except RuntimeError as error:  # usearch raises no other; here it means that the disk is full
            raise OSError(f"{path}: {error}") from error


def _add_codes(index: Any, keys: Ints, codes: Codes, threads: int) -> None:
    if not len(keys):
        return
    _require_memory(2 * index.memory_usage + len(codes) * (codes.shape[1] + _NODE_BYTES))
    try:
        index.add(keys, codes, threads=threads)
    except RuntimeError as error:  # usearch raises no other
        _raise_if_interrupted(error)
        raise MemoryError(f"usearch: {error}") from error  # keys are new, so the cause is a lack of memory


def _require_memory(size: int) -> None:
    """Raise MemoryError if this many bytes are not available: usearch would end the process.

    The bytes are requested from the system, as usearch requests them. The heap may have room when the
    system has none left.
    """
    try:
        mmap.mmap(-1, size + _LEAST_BYTES).close()
    except OSError as error:
        raise MemoryError(f"an index needs {size + _LEAST_BYTES:,} bytes of memory: {error}") from error


def _load(path: Path, digest: str, *, view: bool) -> tuple[Any, Floats, Twins] | None:
    """Load the index in a file, with its centre and its twins. Return None if the file is not usable."""
    if not has_digest(path, digest):
        return None
    try:
        return _restore_index(path, view=view)
    except (OSError, RuntimeError) as error:  # usearch raises RuntimeError
        if isinstance(error, RuntimeError):
            _raise_if_interrupted(error)
        if path.exists():
            raise
        return None  # another process has taken two more snapshots since


def _restore_index(path: Path, *, view: bool) -> tuple[Any, Floats, Twins] | None:
    from usearch.compiled import ScalarKind
    from usearch.index import Index

    _require_memory(0 if view else 2 * path.stat().st_size)
    index: Any = Index.restore(str(path), view=view)
    if index is None or index.dtype != ScalarKind.I8:  # with other scalars, it would give wrong answers
        return None
    tail = read_tail(path, index.ndim)
    if tail is None:
        return None
    index.expansion_search = EXPANSION_SEARCH
    return index, *tail


def _search_index(index: Any, codes: Codes, count: int) -> Ints:
    if not len(index):
        return np.empty(0, np.int64)
    try:
        found = index.search(codes, min(count, len(index)))
    except RuntimeError as error:
        _raise_if_interrupted(error)
        raise
    return np.asarray(found.keys, dtype=np.int64)


def _raise_if_interrupted(error: RuntimeError) -> None:
    """Raise KeyboardInterrupt if usearch was interrupted by a signal.

    In the main thread usearch runs the handlers of pending signals. If a handler raises, usearch stops,
    drops the exception and raises its own error. The type is lost, so this assumes the most frequent one:
    KeyboardInterrupt, from Ctrl-C.
    """
    if str(error) == _TERMINATED:
        raise KeyboardInterrupt("a signal handler raised while the index was in use") from error

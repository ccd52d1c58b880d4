"""The approximate index: usearch's HNSW graph over distinct codes, in a file that can be deleted and rebuilt.

Method: Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs", TPAMI 2018. Its candidates are scored again exactly.

**Codes.** A code is a vector less the mean of all, as int8: a quarter of the bytes, half the time to build.
Vectors of texts have a part in common, whatever the texts are about. A graph of neighbours then leads into
the largest subject of a store, and past documents of a small one, even for questions that these answer.
Without that part, subjects lie in different directions: ``benchmarks/among.py`` shows what is found.

**Nodes.** Documents with the same code share one node: equal documents, such as empty pages or versions of a
manual, cannot crowd a graph of neighbours, of which each keeps only 32. The node has the key of the first of
them; the others are its twins. Behind the graph, its file has the twins and the mean.

**Lost documents.** Two threads that add similar documents at the same time can link them only to each other.
No search then reaches them, not even a search for the document itself. With two threads this happens to about
one document in 3,000, with 32 threads to one in 150, and with one thread to none. Such documents are found
in the saved file, by traversing its graph once from the entry node, and added again with one thread. (A few
documents that the traversal reaches are still missed by searches: with two threads none was seen, with 8
threads one for every 30 lost.)

**Measured recall.** A graph of neighbours may be blind for vectors that nobody has thought of: thousands that
are nearly equal, or few dimensions. Whatever the reason, what is found shows it. So every index is measured
when it is written. If it finds too little, searches of a large store keep more candidates; if they still find
too little, it is not used: searches then compare with all documents. The
questions are documents and what lies between two of them, among these the vectors that most documents share:
what a graph lacks lies around them. All documents are compared with each question, which takes a hundredth of
the time of building the index. Those that are nearer than the tenth that the index found, and that it did not
find, are its misses.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from linkstore.core.arrays import Bools, Floats, Ints, match_equal, sort_unique
from linkstore.embeddings.encoder import share_cpp_runtime
from linkstore.engines.embedded.files import Array, Bytes, append_arrays, map_bytes, read_arrays, write_file
from linkstore.engines.embedded.mirror import Mirror

share_cpp_runtime()  # usearch is imported later, and only for a store that has an index
Codes = npt.NDArray[np.int8]
_LARGEST_CODE: Final = 127
_DEVIATIONS: Final = 8
"""Components are cut off at this multiple of the root mean square of the components of a unit vector."""
_CODES_AT_ONCE: Final = 1 << 14
ASKED_SHARE: Final = 0.3
"""The share of the mean that is subtracted from a question. With the whole mean, the order differs too much
from that by similarity; in 100,000 pieces of text, 0.3 found the most, and 0.5 nearly as much."""
_INDEX_MAGIC: Final = b"usearch"
_HEAD: Final = 64
_NODE_HEAD: Final = 10
PROPOSALS: Final = 128
"""The smallest number of candidates to score again; usearch visits at least as many anyway."""
EXPANSION_SEARCH: Final = 256
"""How many candidates a search of the graph keeps while it runs: see ``benchmarks/recall_text.py``."""
WIDE_SEARCH: Final = 2048
"""The same where that finds too little, as among versions of the same texts with other names."""
WIDE_FROM: Final = 100_000
"""In a store of fewer documents, comparing with all takes no longer than such a search."""
BATCH: Final = 2048
"""The number of documents that are added at a time."""
PARALLEL_FROM: Final = 256
"""Fewer documents than this are added by a single thread, which loses none."""
LEAST_RECALL: Final = 0.96
"""An index that finds less than this of the ten nearest documents of a sample is not used. The contract
promises 0.98 (N-5); the estimate for an index that just meets that may be this low."""
_NODE_BYTES: Final = 1024
_LEAST_BYTES: Final = 48 << 20
"""How much memory usearch may allocate at once, for an index of any size: it allocates large blocks."""
_TERMINATED: Final = "Operation has been terminated"
"""The message of usearch's error after a signal handler has raised."""
NEAREST: Final = 10
QUESTIONS: Final = 64
"""The number of documents whose nearest documents are searched for; and of pairs of documents."""
_BLOCK: Final = 1 << 14
_ROUNDING: Final = 1e-5
"""A document that is nearer by no more than this may be equally near: sums are rounded differently."""


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

    def extend(self, nodes: Ints, keys: Ints) -> Twins:
        """Return these twins and further ones, whose keys are greater."""
        if not len(keys):
            return self
        both = np.concatenate((self.nodes, nodes))
        order = np.argsort(both, kind="stable")
        return Twins(both[order], np.concatenate((self.keys, keys))[order])

    def with_theirs(self, nodes: Ints) -> Ints:
        """Return the keys of nodes, and of all documents that these nodes stand for."""
        _, twins = match_equal(nodes, self.nodes)
        return np.concatenate((nodes, self.keys[twins]))

    def largest(self, count: int) -> Ints:
        """Return the keys of the nodes that stand for the most documents, at most ``count`` of them."""
        nodes, counts = np.unique(self.nodes, return_counts=True)
        return nodes[np.argsort(-counts, kind="stable")[:count]]

    def nodes_of(self, keys: Ints) -> Ints:
        """Return the node for each document. A document that is not a twin has its own node."""
        of = dict(zip(self.keys.tolist(), self.nodes.tolist(), strict=True))
        return np.array([of.get(key, key) for key in keys.tolist()], np.int64)


_NO_KEYS: Final = np.empty(0, np.int64)
NO_TWINS: Final = Twins(_NO_KEYS, _NO_KEYS)


def get_codes(index: Any, nodes: Ints) -> Codes:
    """Return the codes (n, d) of nodes of a usearch index."""
    if not len(nodes):
        return np.empty((0, index.ndim), np.int8)
    codes: Codes = np.asarray(index.get(nodes, np.int8)).reshape(len(nodes), -1)
    return codes


def _hash_codes(codes: Codes) -> list[bytes]:
    """Return the XXH3-128 of each code (n, d): two of a billion share one with a probability of 1e-21."""
    return [xxhash.xxh3_128_digest(row.data) for row in np.ascontiguousarray(codes)]


def _list_nodes(index: Any) -> dict[bytes, int]:
    """Return the node of each code of a usearch index, by the hash of the code."""
    keys = np.asarray(index.keys, dtype=np.int64)
    parts = (keys[at : at + _CODES_AT_ONCE] for at in range(0, len(keys), _CODES_AT_ONCE))
    hashes = chain.from_iterable(_hash_codes(get_codes(index, part)) for part in parts)
    return dict(zip(hashes, keys.tolist(), strict=True))


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


class _BaseGraph(NamedTuple):
    """The base level: the key of each node, its slots, which slots hold links, and the entry node's slot."""

    keys: Ints
    links: npt.NDArray[np.uint32]
    linked: Bools
    entry: int


def find_lost_keys(saved: Bytes) -> Ints:
    """Return the keys in a saved index that no search can reach; none if its layout is unknown."""
    graph = _parse_graph(saved)
    if graph is None:
        return _NO_KEYS
    reached = _find_reached(graph)
    if reached.sum() * 2 < len(reached):  # the entry itself lies in the small, separated part
        reached = ~reached
    return graph.keys[~reached]


def _parse_graph(raw: Bytes) -> _BaseGraph | None:
    rows, row_bytes = np.frombuffer(raw, "<u4", 2).tolist()
    at = 8 + rows * row_bytes
    if bytes(raw[at : at + len(_INDEX_MAGIC)]) != _INDEX_MAGIC:
        return None
    at += _HEAD
    size, upper, base, _, entry = np.frombuffer(raw, "<u8", 5, at).tolist()
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


@dataclass(frozen=True, slots=True)
class AnnIndex:
    """The approximate index: mapped from a verified file for searches, or in memory to add documents to it.

    Processes share the memory of a mapped file through the system's page cache.

    Args:
        index: The usearch index.
        covered: The largest document key that it covers.
        centre: (d,) what is subtracted from vectors; zeros while the index is empty.
        twins: The documents without a node of their own.
        raw: The mapped file, which must not be unmapped while the index is used.
    """

    index: Any
    centre: Floats
    covered: int = 0
    twins: Twins = NO_TWINS
    raw: Bytes | None = None

    @classmethod
    def make(cls, dimension: int) -> AnnIndex:
        """Make an empty index in memory. For unit vectors, the inner product is the cosine."""
        usearch = _import_usearch(0)
        index = usearch.Index(ndim=dimension, metric="ip", dtype="i8", expansion_search=EXPANSION_SEARCH)
        return cls(index, np.zeros(dimension, np.float32))

    @classmethod
    def load(cls, raw: Bytes, covered: int, *, view: bool = True) -> tuple[AnnIndex, dict[str, Array]]:
        """Search a mapped file, or read its graph into memory to add to it.

        Return the index and what else was saved with it.
        """
        usearch = _import_usearch(0 if view else 2 * len(raw))
        try:
            index = usearch.Index.restore(raw, view=view)
        except RuntimeError as error:  # usearch raises no other
            _raise_if_interrupted(error)
            raise
        index.expansion_search = EXPANSION_SEARCH
        arrays = read_arrays(raw)
        twins = Twins(arrays["twin_nodes"], arrays["twin_keys"])
        return cls(index, arrays["centre"], covered, twins, raw), arrays

    def near(self, vector: Floats, count: int = PROPOSALS) -> Ints:
        """Return the keys of the probably nearest documents, those with one of ``count`` distinct codes."""
        if not len(self.index):
            return _NO_KEYS
        try:
            matches = self.index.search(self.codes(vector, ASKED_SHARE), min(count, len(self.index)))
        except RuntimeError as error:
            _raise_if_interrupted(error)
            raise
        return self.twins.with_theirs(np.asarray(matches.keys, dtype=np.int64))

    def codes(self, vectors: Floats, share: float = 1.0) -> Codes:
        """Return vectors as the index stores them, after subtracting ``share`` of the centre."""
        return quantize(subtract_centre(vectors, share * self.centre))

    def extend(self, keys: Ints, vectors: Callable[[Ints], Floats], covered: int) -> AnnIndex:
        """Return this index with documents added. This one, which shares the graph, is not to be used again.

        Args:
            keys: Keys of the documents that the index lacks, ascending.
            vectors: Looks up vectors by key.
            covered: The key up to which the index is complete afterwards.
        """
        grown = self
        if len(keys) and not len(self.index):
            # The mean of documents would be the vector that most of them share, where they do.
            # (``numpy.unique`` compares rows by Python code, and raises TypeError if it is interrupted.)
            sample = vectors(keys[:: -(-len(keys) // BATCH)])
            sample = sample[np.lexsort(sample.T[::-1])]
            distinct = np.append(True, (sample[1:] != sample[:-1]).any(axis=1))
            grown = replace(grown, centre=sample[distinct].mean(axis=0))
        nodes_by_code = _list_nodes(grown.index) if len(keys) else {}
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            codes = grown.codes(vectors(batch))
            nodes = np.array(list(map(nodes_by_code.setdefault, _hash_codes(codes), batch.tolist())))
            own = nodes == batch
            _add_codes(grown.index, batch[own], codes[own], threads=0 if len(batch) >= PARALLEL_FROM else 1)
            grown = replace(grown, twins=grown.twins.extend(nodes[~own], batch[~own]))
        return replace(grown, covered=covered)

    def without_removed(self, living: Ints) -> AnnIndex:
        """Return this index without the twins that were removed.

        A document that was updated and kept its vector is a twin of its earlier version, whose node stays.

        Args:
            living: Keys of the documents that exist.
        """
        kept = np.isin(self.twins.keys, living)
        return replace(self, twins=Twins(self.twins.nodes[kept], self.twins.keys[kept]))

    def count_unused(self, living: Ints) -> int:
        """Count the nodes of removed documents that have no twins."""
        nodes = np.asarray(self.index.keys, dtype=np.int64)
        used = np.isin(nodes, living) | np.isin(nodes, self.twins.nodes)
        return int(np.count_nonzero(~used))

    def save(self, folder: Path, columns: Mapping[str, Iterable[Array]]) -> str:
        """Write the index, and columns behind it, to a file, and return the file's hash, which names it."""

        def write(temporary: Path) -> None:
            self._write(temporary)
            if self.mend(map_bytes(temporary)):
                self._write(temporary)
            twins = {"twin_nodes": [self.twins.nodes], "twin_keys": [self.twins.keys]}
            append_arrays(temporary, {"centre": [self.centre], **twins, **columns})

        return write_file(folder, write)

    def mend(self, saved: Bytes) -> bool:
        """Add again the documents that no search can reach in a saved index, and say whether any were."""
        lost = find_lost_keys(saved)
        if len(lost):
            codes = get_codes(self.index, lost)
            self.index.remove(lost)
            _add_codes(self.index, lost, codes, threads=1)
        return bool(len(lost))

    def copy(self) -> AnnIndex:
        """Return a copy, to add documents to while this one is searched."""
        _require_memory(self.index.memory_usage)
        copy = self.index.copy()
        copy.expansion_search = EXPANSION_SEARCH
        return replace(self, index=copy)

    def _write(self, path: Path) -> None:
        try:
            self.index.save(str(path))
        except RuntimeError as error:  # usearch raises no other; here it means that the disk is full
            raise OSError(errno.ENOSPC, str(error), str(path)) from error


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


def _import_usearch(size: int) -> Any:
    """Import usearch, which takes memory itself, if there is memory for it and then for an index."""
    _require_memory(size)
    from usearch import index

    _require_memory(size)
    return index


def _raise_if_interrupted(error: RuntimeError) -> None:
    """Raise KeyboardInterrupt if usearch was interrupted by a signal.

    In the main thread usearch runs the handlers of pending signals. If a handler raises, usearch stops,
    drops the exception and raises its own error. The type is lost, so this assumes the most frequent one:
    KeyboardInterrupt, from Ctrl-C.
    """
    if str(error) == _TERMINATED:
        raise KeyboardInterrupt("a signal handler raised while the index was in use") from error


def estimate_recall(index: AnnIndex, mirror: Mirror) -> float:
    """Estimate the share of the ten nearest documents that the index finds.

    Args:
        index: It may have documents that have been removed.
        mirror: Of the documents that it covers.
    """
    random = np.random.default_rng(index.covered)
    rows = mirror.find_living()
    rows = rows[: np.searchsorted(mirror.keys.take(rows), index.covered, "right")]
    asked = _draw_questions(index, mirror, rows, random)
    if len(rows) <= NEAREST or not len(asked):
        return 1.0
    nearest = [_find_nearer(index, mirror, question) for question in asked]
    tenth = np.array([similarity for similarity, _ in nearest])
    missed = -np.array([nearer for _, nearer in nearest])
    for start in range(0, len(rows), _BLOCK):
        scores = asked @ mirror.vectors.take(rows[start : start + _BLOCK]).T
        missed += np.count_nonzero(scores > tenth[:, None] + _ROUNDING, axis=1)
    return float(1 - np.clip(missed, 0, NEAREST).mean() / NEAREST)


def choose_expansion(index: AnnIndex, mirror: Mirror) -> tuple[int, float]:
    """Have an index keep as many candidates as it needs; return how many, and what it finds then.

    Args:
        index: As in :func:`estimate_recall`, as is the mirror.
        mirror: Of the documents that it covers.
    """
    for expansion in (EXPANSION_SEARCH, WIDE_SEARCH):
        index.index.expansion_search = expansion
        recall = estimate_recall(index, mirror)
        if recall >= LEAST_RECALL or mirror.living < WIDE_FROM:
            break
    return expansion, recall


def _draw_questions(index: AnnIndex, mirror: Mirror, rows: Ints, random: np.random.Generator) -> Floats:
    """Return vectors of documents with distinct nodes, and unit vectors halfway between pairs of them."""
    nodes = np.asarray(index.index.keys, dtype=np.int64)
    drawn = random.choice(nodes, min(len(nodes), 4 * QUESTIONS), replace=False)
    at, shared = (
        positions[present & np.isin(positions, rows)]
        for positions, present in map(mirror.keys.find, (drawn, index.twins.largest(QUESTIONS // 2)))
    )
    vectors = mirror.vectors.take(at[: 3 * QUESTIONS])
    alone, left, right = (vectors[start::3] for start in range(3))
    if len(shared):
        left[: len(left) // 2] = mirror.vectors.take(np.resize(shared, len(left) // 2))
    between = left[: len(right)] + right
    lengths = np.sqrt(np.vecdot(between, between))
    kept = lengths > _ROUNDING
    asked: Floats = np.concatenate((alone, between[kept] / lengths[kept, None])).astype(np.float32)
    return asked


def _find_nearer(index: AnnIndex, mirror: Mirror, question: Floats) -> tuple[float, int]:
    """Return the similarity of the tenth document found (-2 if fewer are), and how many are nearer."""
    rows, present = mirror.keys.find(index.near(question))
    rows = rows[present]
    rows = rows[mirror.alive[rows]]
    scores = mirror.vectors.take(rows) @ question
    tenth = float(np.partition(scores, -NEAREST)[-NEAREST]) if len(scores) >= NEAREST else -2.0
    return tenth, int(np.count_nonzero(scores > tenth + _ROUNDING))

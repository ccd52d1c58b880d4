"""The approximate index: usearch's HNSW graph over document keys, as a file that can be thrown away.

Method: Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs", TPAMI 2018. What it proposes is scored again exactly.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from linkstore.backends.embedded.columns import Column
from linkstore.backends.embedded.files import matches, write_file
from linkstore.backends.embedded.islands import lost_keys
from linkstore.embeddings.cpp_runtime import share_cpp_runtime
from linkstore.vectors import Floats, Ints

share_cpp_runtime()
from usearch.index import Index  # noqa: E402 - must come after the line above

PROPOSALS: Final = 64
"""How many candidates are taken for re-scoring at least; usearch looks at as many anyway."""
EXPANSION_SEARCH: Final = 96
BATCH: Final = 2048
"""How many documents are added while searches of the same index wait."""
PARALLEL_FROM: Final = 256
"""Fewer documents than this are added by one thread, which loses none: see ``islands``."""
PATIENCE_SECONDS: Final = 0.02


class AnnIndex(Protocol):
    """What proposes candidates."""

    @property
    def covered(self) -> int:
        """The largest document key in it."""
        ...

    @property
    def change(self) -> int:
        """The change it was brought up to: it lacks documents removed before."""
        ...

    def propose(self, vector: Floats, count: int) -> tuple[Ints, int] | None:
        """Keys of documents that are probably the ``count`` nearest of those up to a key, and that key.

        None when it is busy.
        """
        ...


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index mapped from a verified file, shared with all processes by the system's cache."""

    index: Any
    covered: int
    change: int

    @classmethod
    def load(cls, path: Path, digest: str, covered: int, change: int) -> SavedIndex | None:
        """Map a file of ours; None if it is not what was written."""
        index = _load(path, digest, view=True)
        return None if index is None else cls(index, covered, change)

    def propose(self, vector: Floats, count: int) -> tuple[Ints, int] | None:
        """See :class:`AnnIndex`; never busy."""
        return _search(self.index, vector, count), self.covered


class LiveIndex:
    """The index in the memory of a process that writes: it grows with the store between snapshots."""

    def __init__(self) -> None:
        self._index: Any | None = None
        self._lock = threading.Lock()
        self.covered = 0
        self.change = 0

    def __len__(self) -> int:
        return 0 if self._index is None else len(self._index)

    def propose(self, vector: Floats, count: int) -> tuple[Ints, int] | None:
        """See :class:`AnnIndex`; busy while documents are added."""
        if self._index is None or not self._lock.acquire(timeout=PATIENCE_SECONDS):
            return None
        try:
            return (_search(self._index, vector, count), self.covered) if len(self) else None
        finally:
            self._lock.release()

    def start(self, dimension: int) -> None:
        """Begin with an empty index of half-precision vectors; on unit vectors inner product is cosine."""
        with self._lock:
            self._index = Index(ndim=dimension, metric="ip", dtype="f16", expansion_search=EXPANSION_SEARCH)
            self.covered = 0

    def load(self, path: Path, digest: str, covered: int, change: int) -> None:
        """Begin with what a file holds, unless it is not what was written."""
        index = _load(path, digest, view=False)
        if index is not None:
            with self._lock:
                self._index, self.covered, self.change = index, covered, change

    def extend(self, vectors: Column, keys: Ints, covered: int, change: int) -> None:
        """Add the documents that are there at ``change``, a batch at a time, up to key ``covered``."""
        self.change = change
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            rows = vectors.take(batch)
            with self._lock:
                self._index.add(batch, rows, threads=0 if len(batch) >= PARALLEL_FROM else 1)  # type: ignore[union-attr]
                self.covered = int(batch[-1])
        self.covered = covered

    def save(self, path: Path, vectors: Column) -> str:
        """Write the index beside and rename it; returns its hash.

        Args:
            path: Where it ends up.
            vectors: Of all documents, by key, to add those again that were lost.
        """

        def write(temporary: Path) -> None:
            self._write(temporary)
            lost = lost_keys(temporary)
            if len(lost):
                with self._lock:
                    self._index.remove(lost)  # type: ignore[union-attr]
                    self._index.add(lost, vectors.take(lost), threads=1)  # type: ignore[union-attr]
                self._write(temporary)

        return write_file(path, write)

    def _write(self, path: Path) -> None:
        try:
            self._index.save(str(path))  # type: ignore[union-attr]
        except RuntimeError as error:  # usearch raises no other; here it means that the disk is full
            raise OSError(f"{path}: {error}") from error


def _load(path: Path, digest: str, *, view: bool) -> Any | None:
    if not matches(path, digest):
        return None
    index: Any = Index.restore(str(path), view=view)
    if index is not None:
        index.expansion_search = EXPANSION_SEARCH
    return index


def _search(index: Any, vector: Floats, count: int) -> Ints:
    found = index.search(vector, min(count, len(index)))
    return np.asarray(found.keys, dtype=np.int64)

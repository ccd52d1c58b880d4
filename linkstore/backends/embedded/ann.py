"""The approximate index: usearch's HNSW graph over document keys, as a file that can be thrown away.

Method: Y. Malkov and D. Yashunin, "Efficient and robust approximate nearest neighbor search using
hierarchical navigable small world graphs", TPAMI 2018. What it proposes is scored again exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from usearch.index import Index

from linkstore.backends.embedded.columns import Column
from linkstore.backends.embedded.files import matches, write_file
from linkstore.vectors import Floats, Ints

PROPOSALS: Final = 64
"""How many candidates are taken for re-scoring at least; usearch looks at as many anyway."""
EXPANSION_SEARCH: Final = 96
BATCH: Final = 8192


def new_index(dimension: int) -> Any:
    """An empty index of half-precision vectors; unit vectors make inner product cosine."""
    return Index(
        ndim=dimension,
        metric="ip",
        dtype="f16",
        expansion_search=EXPANSION_SEARCH,
    )


def load_index(path: Path, digest: str, *, view: bool) -> Any | None:
    """An index from a file of ours, memory-mapped or in memory; None if it is not what was written."""
    if not matches(path, digest):
        return None
    index: Any = Index.restore(str(path), view=view)
    if index is not None:
        index.expansion_search = EXPANSION_SEARCH
    return index


def extend(index: Any, vectors: Column, keys: Ints) -> None:
    """Add documents to an index."""
    for start in range(0, len(keys), BATCH):
        batch = keys[start : start + BATCH]
        index.add(batch, vectors.take(batch))


def save_index(index: Any, path: Path) -> str:
    """Write an index beside and rename it; returns its hash."""
    return write_file(path, lambda temporary: index.save(str(temporary)))


def propose(index: Any, vector: Floats, count: int) -> Ints:
    """Keys of documents that are probably the ``count`` nearest."""
    found = index.search(vector, min(count, len(index)))
    return np.asarray(found.keys, dtype=np.int64)

"""How much of the ten nearest documents an approximate index finds, measured on a sample.

A graph of neighbours may be blind for vectors that nobody has thought of: thousands that are nearly equal, or
few dimensions. Whatever the reason, what is found shows it. So every index is measured when it is
written, and one that finds too little is not used: searches then compare with all documents.

The questions are documents and what lies between two of them, among these the vectors that most documents
share: what a graph lacks lies around them. A sample of the documents is compared with
each question. Those of them that are nearer than the tenth that the index found, and that it did not find,
are its misses, and stand for as many times more as the sample is smaller than the store.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from linkstore.core.arrays import Floats, Ints
from linkstore.engines.embedded.mirror import Mirror, Stamp
from linkstore.engines.embedded.vectors import SavedIndex

NEAREST: Final = 10
QUESTIONS: Final = 64
"""The number of documents whose nearest documents are searched for; and of pairs of documents."""
MOST_COMPARED: Final = 1 << 17
"""The most documents that a question is compared with."""
_BLOCK: Final = 1 << 14
_ROUNDING: Final = 1e-5
"""A document that is nearer by no more than this may be equally near: sums are rounded differently."""


def estimate_recall(index: SavedIndex, mirror: Mirror, stamp: Stamp) -> float:
    """Estimate the share of the ten nearest documents that the index finds.

    Args:
        index: It may have documents that do not exist at ``stamp``.
        mirror: Of the documents that it covers.
        stamp: The state of the store.
    """
    random = np.random.default_rng(index.covered)
    rows = mirror.all_visible(stamp)
    rows = rows[: np.searchsorted(mirror.keys.take(rows), index.covered, "right")]
    asked = _draw_questions(index, mirror, rows, random)
    if len(rows) <= NEAREST or not len(asked):
        return 1.0
    found = [_find_nearer(index, mirror, stamp, question) for question in asked]
    tenth = np.array([similarity for similarity, _ in found])
    sample = (
        rows if len(rows) <= MOST_COMPARED else np.sort(random.choice(rows, MOST_COMPARED, replace=False))
    )
    nearer = np.zeros(len(asked))
    for start in range(0, len(sample), _BLOCK):
        scores = asked @ mirror.vectors.take(sample[start : start + _BLOCK]).T
        nearer += np.count_nonzero(scores > tenth[:, None] + _ROUNDING, axis=1)
    nearer -= [np.count_nonzero(np.isin(rows_found, sample)) for _, rows_found in found]
    missed = np.clip(nearer * (len(rows) / len(sample)), 0, NEAREST)
    return float(1 - missed.mean() / NEAREST)


def _draw_questions(index: SavedIndex, mirror: Mirror, rows: Ints, random: np.random.Generator) -> Floats:
    """Return vectors of documents with distinct nodes, and unit vectors halfway between pairs of them."""
    nodes = np.asarray(index.index.keys, dtype=np.int64)
    drawn = random.choice(nodes, min(len(nodes), 4 * QUESTIONS), replace=False)
    at, shared = (
        found[known & np.isin(found, rows)]
        for found, known in map(mirror.keys.find, (drawn, index.twins.largest(QUESTIONS // 2)))
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


def _find_nearer(index: SavedIndex, mirror: Mirror, stamp: Stamp, question: Floats) -> tuple[float, Ints]:
    """Return the similarity of the tenth document found (-2 if fewer are), and the rows of nearer ones."""
    rows, known = mirror.keys.find(index.near(question))
    rows = rows[known]
    visible = mirror.visible(rows, stamp)
    rows = rows if visible is None else rows[visible]
    scores = mirror.vectors.take(rows) @ question
    tenth = float(np.partition(scores, -NEAREST)[-NEAREST]) if len(scores) >= NEAREST else -2.0
    return tenth, rows[scores > tenth + _ROUNDING]

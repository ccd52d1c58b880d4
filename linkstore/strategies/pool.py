"""The pool of candidates that MMR picks from."""

from __future__ import annotations

import numpy as np

from linkstore.arrays import contained
from linkstore.strategies.trail import NO_REFS, NO_SCORES
from linkstore.vectors import Floats, Ints, similarities


class Pool:
    """Candidates with their relevance and their largest similarity to what was picked.

    Args:
        lambda_mult: From 0, most diverse, to 1, most similar.
    """

    def __init__(self, lambda_mult: float) -> None:
        self._lambda = np.float32(lambda_mult)
        self._vectors: Floats = np.empty((0, 0), dtype=np.float32)
        self._relevance: Floats = NO_SCORES
        self._redundancy: Floats = NO_SCORES
        self._picked: Floats = np.empty((0, 0), dtype=np.float32)
        self.positions: Ints = NO_REFS
        self.returned: list[tuple[int, float]] = []
        self.passed_over = 0
        self.crowded = 0

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def scores(self) -> Floats:
        """(n,) MMR score of each candidate, given what was picked so far."""
        scores = self._lambda * self._relevance - (1 - self._lambda) * self._redundancy
        return scores.astype(np.float32, copy=False)

    def add(self, positions: Ints, relevance: Floats, vectors: Floats) -> None:
        """Add candidates: positions in the trail, relevance (n,), unit vectors (n, d)."""
        redundancy = np.zeros(len(positions), dtype=np.float32)
        if len(self._picked):
            redundancy = np.max([similarities(vectors, picked) for picked in self._picked], axis=0)
        self.positions = np.concatenate((self.positions, positions))
        self._relevance = np.concatenate((self._relevance, relevance))
        self._redundancy = np.concatenate((self._redundancy, redundancy))
        self._vectors = np.concatenate((self._vectors, vectors)) if len(self._vectors) else vectors

    def drop(self, positions: Ints) -> None:
        """Remove candidates by their positions in the trail."""
        self._keep(~contained(self.positions, positions))

    def pick(self, at: int, *, returned: bool, crowded: bool = False) -> None:
        """Remove candidate number ``at``. If it is returned, others like it lose score.

        Args:
            at: The number of the candidate.
            returned: Whether it is returned, or only walked through.
            crowded: Whether it is not returned because enough of its page are.
        """
        vector = self._vectors[at]
        if returned:
            self.returned.append((int(self.positions[at]), float(self.scores[at])))
            alike = similarities(self._vectors, vector)
            self._redundancy = np.maximum(self._redundancy, alike) if len(self._picked) else alike
            self._picked = np.concatenate((self._picked, vector[None])) if len(self._picked) else vector[None]
        elif crowded:
            self.crowded += 1
        else:
            self.passed_over += 1
        self._keep(np.arange(len(self)) != at)

    def _keep(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self.positions = self.positions[kept]
        self._relevance = self._relevance[kept]
        self._redundancy = self._redundancy[kept]
        self._vectors = self._vectors[kept]

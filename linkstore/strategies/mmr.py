"""Maximal marginal relevance over links: each pick brings its neighbours into the pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkstore.core.arguments import require_at_least, require_within
from linkstore.core.arrays import Floats, Ints, cosine_similarities, is_member, sort_unique
from linkstore.core.hits import Hits
from linkstore.core.plans import Plan, Vectors, ask, rank_refs
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.first_stage import find_seeds
from linkstore.strategies.results import (
    find_pages,
    make_hits,
    report_none_found,
    report_none_returned,
    select_passing,
)
from linkstore.strategies.traversal import NO_REFS, NO_SCORES, Trail, apply_beam, limit_nodes, make_hop


class CandidatePool:
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
            redundancy = np.max([cosine_similarities(vectors, picked) for picked in self._picked], axis=0)
        self.positions = np.concatenate((self.positions, positions))
        self._relevance = np.concatenate((self._relevance, relevance))
        self._redundancy = np.concatenate((self._redundancy, redundancy))
        self._vectors = np.concatenate((self._vectors, vectors)) if len(self._vectors) else vectors

    def drop(self, positions: Ints) -> None:
        """Remove candidates by their positions in the trail."""
        self._keep(~is_member(self.positions, positions))

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
            alike = cosine_similarities(self._vectors, vector)
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mmr(Traversing):
    """Pick ``k`` documents one by one, each similar to the query and unlike those picked before.

    The pool starts with the ``fetch_k`` nearest. Whenever a document is picked whose depth is
    less than ``depth``, the members of its link groups join the pool. A candidate's score is
    ``lambda_mult * similarity - (1 - lambda_mult) * (largest similarity to a picked document)``,
    with similarity damped by link weights as in :class:`Eager`. Hits come in the order picked.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        depth: Maximum number of hops from a seed, 0 for plain MMR. Default 2.
        fetch_k: How many documents to start from, found by similarity, 0 to start from
            ``initial_roots`` or ``initial_links`` alone. Default 100.
        lambda_mult: From 0, most diverse, to 1, most similar. Default 0.5.
        score_threshold: Stop when the best score is below this value. Default none.
    """

    depth: int = 2
    fetch_k: int = 100
    lambda_mult: float = 0.5
    score_threshold: float = float("-inf")

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, depth=self.depth, fetch_k=self.fetch_k)
        require_within(0, 1, lambda_mult=self.lambda_mult)
        require_within(-math.inf, math.inf, score_threshold=self.score_threshold)

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan seeds and their vectors, then for each pick one hop and the vectors of what it reached."""
        trail, pool = Trail(), CandidatePool(self.lambda_mult)
        documents, highest = yield from find_seeds(trail, self.fetch_k, question, self)
        documents = yield from limit_nodes(trail, documents, 0, self)
        if not len(documents):
            return report_none_found(trail, question, self.fetch_k, self, highest)
        positions = trail.add(documents)
        pool.add(positions, trail.score[positions], (yield from ask(Vectors(refs=documents.refs))))
        yield from self._pick(trail, pool, question)
        return (yield from self._make_result(trail, pool, question))

    def _pick(self, trail: Trail, pool: CandidatePool, question: Question) -> Plan[None]:
        """Move up to ``k`` documents from the pool to the returned ones, following links on the way."""
        picked: list[int] = []
        while len(pool.returned) < self.k and len(pool):
            at = int((yield from rank_refs(trail.refs[pool.positions], pool.scores, 1))[0])
            if pool.scores[at] < self.score_threshold:
                trail.cut("min_similarity", len(pool), None, f"score_threshold {self.score_threshold}")
                return
            position = int(pool.positions[at])
            passes = yield from select_passing(trail, np.array([position]), question)
            room = not len(passes) or (yield from self._has_room(trail, pool, position))
            pool.pick(at, returned=bool(len(passes)) and room, crowded=not room)
            picked.append(position)
            if trail.depth[position] < self.depth and len(pool.returned) < self.k:
                yield from self._expand(trail, pool, picked, question)

    def _has_room(self, trail: Trail, pool: CandidatePool, position: int) -> Plan[bool]:
        """Say whether fewer than ``per_page`` documents of the candidate's page are returned already."""
        if self.per_page is None or len(pool.returned) < self.per_page:
            return True
        picked = np.array([*(other for other, _ in pool.returned), position])
        pages = yield from find_pages(trail.refs[picked])
        return int((pages[:-1] == pages[-1]).sum()) < self.per_page

    def _expand(self, trail: Trail, pool: CandidatePool, picked: list[int], question: Question) -> Plan[None]:
        """Add the neighbours of the document picked last to the pool.

        A candidate that was known by a longer way is added anew by the shorter one.
        """
        depth = int(trail.depth[picked[-1]]) + 1
        settled = np.concatenate((trail.refs[trail.depth <= depth], trail.refs[picked]))
        documents = yield from make_hop(
            trail, np.array(picked[-1:]), question, self, exclude=sort_unique(settled)
        )
        documents = yield from limit_nodes(trail, documents, depth, self)
        if not len(documents):
            return
        before = trail.refs
        positions = yield from apply_beam(trail, trail.add(documents, depth), self)
        pool.drop(np.flatnonzero(is_member(before, trail.refs[positions])))
        vectors = yield from ask(Vectors(refs=trail.refs[positions]))
        pool.add(positions, trail.score[positions], vectors)

    def _make_result(self, trail: Trail, pool: CandidatePool, question: Question) -> Plan[Hits]:
        trail.cut("filter", pool.passed_over, None, "excluded by result_filter")
        trail.cut("per_page", pool.crowded, None, f"more than {self.per_page} of one page")
        if not pool.returned:
            return report_none_returned(trail, self, "result_filter or score_threshold")
        positions = np.array([position for position, _ in pool.returned])
        scores = np.array([score for _, score in pool.returned], dtype=np.float32)
        relevance = np.float32(self.lambda_mult) * trail.score[positions]
        parts = {"relevance": relevance, "redundancy": scores - relevance}
        return (yield from make_hits(trail, positions, self, question, scores, parts))

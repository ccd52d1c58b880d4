"""Maximal marginal relevance over links: each pick brings its neighbours into the pool.

Source: J. Carbonell and J. Goldstein, "The use of MMR, diversity-based reranking for reordering
documents and producing summaries", SIGIR 1998; extended over links as in LangChain's former
GraphVectorStore, with depth counted in links followed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkstore.arguments import require_at_least, require_within
from linkstore.arrays import contained, distinct
from linkstore.hits import Hits
from linkstore.order import ranked
from linkstore.plans import Plan, Vectors
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.pages import pages_of
from linkstore.strategies.paths import hits_of
from linkstore.strategies.pool import Pool
from linkstore.strategies.results import none_found, none_returned, passing
from linkstore.strategies.trail import Trail
from linkstore.strategies.walk import carried, hop, seeds, within_nodes
from linkstore.vectors import Floats


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

    @property
    def hops(self) -> int:
        """See :attr:`Strategy.hops`."""
        return self.depth

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan seeds and their vectors, then for each pick one hop and the vectors of what it reached."""
        trail, pool = Trail(), Pool(self.lambda_mult)
        start = yield from seeds(trail, self.fetch_k, question, self)
        found = yield from within_nodes(trail, start.found, 0, self)
        if not len(found):
            return none_found(trail, question, self.fetch_k, self, start.best)
        positions = trail.add(found)
        pool.add(positions, trail.score[positions], (yield Vectors(refs=found.refs)))
        yield from self._pick(trail, pool, question)
        return (yield from self._make_result(trail, pool, question))

    def _pick(self, trail: Trail, pool: Pool, question: Question) -> Plan[None]:
        """Move up to ``k`` documents from the pool to the returned ones, following links on the way."""
        picked: list[int] = []
        while len(pool.returned) < self.k and len(pool):
            at = int((yield from ranked(trail.refs[pool.positions], pool.scores, 1))[0])
            if pool.scores[at] < self.score_threshold:
                trail.cut("floor", len(pool), None, f"score_threshold {self.score_threshold}")
                return
            position = int(pool.positions[at])
            passes = yield from passing(trail, np.array([position]), question)
            room = not len(passes) or (yield from self._has_room(trail, pool, position))
            pool.pick(at, returned=bool(len(passes)) and room, crowded=not room)
            picked.append(position)
            if trail.depth[position] < self.depth and len(pool.returned) < self.k:
                yield from self._expand(trail, pool, picked, question)

    def _has_room(self, trail: Trail, pool: Pool, position: int) -> Plan[bool]:
        """Say whether fewer than ``per_page`` documents of the candidate's page are returned already."""
        if self.per_page is None or len(pool.returned) < self.per_page:
            return True
        picked = np.array([*(other for other, _ in pool.returned), position])
        pages = yield from pages_of(trail.refs[picked])
        return int((pages[:-1] == pages[-1]).sum()) < self.per_page

    def _expand(self, trail: Trail, pool: Pool, picked: list[int], question: Question) -> Plan[None]:
        """Add the neighbours of the document picked last to the pool.

        A candidate that was known by a longer way is added anew by the shorter one.
        """
        depth = int(trail.depth[picked[-1]]) + 1
        settled = np.concatenate((trail.refs[trail.depth <= depth], trail.refs[picked]))
        hopped = yield from hop(
            trail, np.array(picked[-1:]), question, self, exclude=distinct(settled), best=self.beam
        )
        found = yield from within_nodes(trail, hopped.found, depth, self)
        if not len(found):
            return
        before = trail.refs
        positions = yield from carried(trail, trail.add(found, depth), self)
        pool.drop(np.flatnonzero(contained(before, trail.refs[positions])))
        vectors: Floats = yield Vectors(refs=trail.refs[positions])
        pool.add(positions, trail.score[positions], vectors)

    def _make_result(self, trail: Trail, pool: Pool, question: Question) -> Plan[Hits]:
        trail.cut("filter", pool.passed_over, None, "excluded by result_filter")
        trail.cut("per_page", pool.crowded, None, f"more than {self.per_page} of one page")
        if not pool.returned:
            return none_returned(trail, self, "result_filter or score_threshold")
        positions = np.array([position for position, _ in pool.returned])
        scores = np.array([score for _, score in pool.returned], dtype=np.float32)
        relevance = np.float32(self.lambda_mult) * trail.score[positions]
        parts = {"relevance": relevance, "redundancy": scores - relevance}
        return (yield from hits_of(trail, positions, self, question, scores, parts))

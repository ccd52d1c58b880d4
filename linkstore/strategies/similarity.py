"""Plain k-NN search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.errors import StrategyError
from linkstore.hits import Hits
from linkstore.plans import Nearest, Plan
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.paths import hits_of
from linkstore.strategies.results import first_found
from linkstore.strategies.trail import Found, Trail


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Similarity(Strategy):
    """The ``k`` documents most similar to the query. No link is followed.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
    """

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan one fetch of the nearest, one of their texts."""
        if question.roots or question.links:
            raise StrategyError("Similarity does not take initial_roots or initial_links; use Eager(depth=0)")
        condition = question.seed_filter & question.result_filter
        trail = Trail()

        def nearest(k: int) -> Nearest:
            return Nearest(vector=question.vector, k=k, filter=condition)

        near, kept = yield from first_found(trail, nearest, self.k, self.per_page)
        refs, similarity = near.refs[kept], near.similarity[kept]
        if not len(refs):
            narrowed = question.filtered or not condition.always
            reason = "no document passes the filter" if narrowed else "the store is empty"
            return Hits(hits=(), reason=reason, strategy=str(self))
        found = Found(refs=refs, similarity=similarity, weight=np.ones(len(refs), dtype=np.float32))
        return (yield from hits_of(trail, trail.add(found), self, question))

"""Plain search by words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.errors import StrategyError
from linkstore.hits import Hits
from linkstore.lexical import POSTINGS, question_terms
from linkstore.plans import Lexical, Plan, Vectors
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.firststage import cut_words
from linkstore.strategies.paths import hits_of
from linkstore.strategies.results import first_found
from linkstore.strategies.trail import Found, Trail
from linkstore.vectors import Floats, similarities


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Words(Strategy):
    """The ``k`` documents that match the query's words best, by BM25. No link is followed.

    A hit's score is its BM25, as :mod:`linkstore.lexical` defines it. On a backend without lexical search
    it raises CapabilityError.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
    """

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan one fetch by words, one of their vectors, one of their texts."""
        if question.roots or question.links:
            raise StrategyError("Words does not take initial_roots or initial_links; use Eager(depth=0)")
        asked, more = question_terms(question.text)
        if not asked:
            reason = "the query has no words to look up: it is a vector or contains only stop words"
            return Hits(hits=(), reason=reason, strategy=str(self))
        condition = question.seed_filter & question.result_filter
        trail = Trail()

        def matching(k: int) -> Lexical:
            return Lexical(terms=asked, k=k, filter=condition)

        found, kept = yield from first_found(trail, matching, self.k, self.per_page)
        cut_words(trail, more, found)
        if not len(found.refs):
            # The filter of the whole search hides documents from all that is said, this reason included.
            passing = "" if condition.always else " and passes the filter"
            reason = f"no document contains a word of the query{passing}"
            if found.sampled:
                reason += f", of the about {POSTINGS:,} that were looked at"
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        refs, score = found.refs[kept], found.score[kept]
        vectors: Floats = yield Vectors(refs=refs)
        similarity = similarities(vectors, question.vector)
        weight = np.ones(len(refs), dtype=np.float32)
        positions = trail.add(Found(refs=refs, similarity=similarity, weight=weight))
        return (yield from hits_of(trail, positions, self, question, score, {"words": score}))

"""What of all that a search reached is returned, and why nothing is."""

from __future__ import annotations

import numpy as np

from linkstore.hits import Cut, Hits
from linkstore.order import ranked
from linkstore.plans import Matching, Plan
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.trail import Trail
from linkstore.vectors import Bools, Floats, Ints


def _empty_reason(
    question: Question, k: int, controls: Traversing, best: float | None, cuts: list[Cut]
) -> str:
    """Why a search for ``k`` documents to start from found none."""
    if best is not None:
        return f"no document reaches min_similarity {controls.min_similarity}; the best has {best:.4f}"
    if k == 0:
        start = "no document was to be found by similarity, and no root or link leads to one"
        return "; ".join([start, *(str(cut) for cut in cuts)])
    if question.filtered or not question.seed_filter.always:
        return "no document passes the filter"
    return "the store is empty"


def none_found(trail: Trail, question: Question, k: int, controls: Traversing, best: float | None) -> Hits:
    """What a search gives that found no document to start from, of ``k``; ``best`` is the top similarity."""
    reason = _empty_reason(question, k, controls, best, trail.cuts)
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(controls))


def passing(trail: Trail, positions: Ints, question: Question) -> Plan[Ints]:
    """Those of the positions whose documents may be returned."""
    if question.result_filter.always or not len(positions):
        return positions
    passes: Bools = yield Matching(refs=trail.refs[positions], filter=question.result_filter)
    return positions[passes]


def returned(trail: Trail, scores: Floats, k: int, question: Question) -> Plan[Ints]:
    """Positions of the ``k`` best that may be returned, best first.

    Args:
        trail: Of the search; it is told what is left out.
        scores: (n,) of its documents.
        k: How many at most.
        question: Whose ``result_filter`` holds.
    """
    allowed = yield from passing(trail, np.arange(len(trail)), question)
    trail.cut("filter", len(trail) - len(allowed), None, "reached, but result_filter excludes them")
    order = yield from ranked(trail.refs[allowed], scores[allowed], k)
    trail.cut("k", len(allowed) - len(order), None, f"ranked below the first {k}")
    return allowed[order]


def none_returned(trail: Trail, strategy: Traversing) -> Hits:
    """What a search gives of whose documents none may be returned."""
    reason = f"none of the {len(trail)} documents reached passes result_filter"
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(strategy))

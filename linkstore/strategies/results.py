"""Selects the documents reached that are returned, and explains why there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkstore.arguments import MOST
from linkstore.display import amount
from linkstore.hits import Cut, Hits
from linkstore.order import ranked
from linkstore.plans import Fetch, Matching, Plan
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.pages import SPREAD, spread
from linkstore.strategies.trail import Trail
from linkstore.vectors import Bools, Floats, Ints


def _empty_reason(
    question: Question, k: int, controls: Traversing, best: float | None, cuts: list[Cut]
) -> str:
    """Explain why a search for ``k`` documents to start from found none."""
    if best is not None:
        return f"no document reaches min_similarity {controls.floor}; the best has {best:.4f}"
    if k == 0:
        start = "start_k is 0, and no root or link leads to a document"
        return "; ".join([start, *(str(cut) for cut in cuts)])
    if question.filtered or not question.seed_filter.always:
        return "no document passes the filter"
    return "the store is empty"


def none_found(trail: Trail, question: Question, k: int, controls: Traversing, best: float | None) -> Hits:
    """Return a result without hits if no document to start from is found. ``best`` is the top similarity."""
    reason = _empty_reason(question, k, controls, best, trail.cuts)
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(controls))


def passing(trail: Trail, positions: Ints, question: Question) -> Plan[Ints]:
    """Return the positions whose documents may be returned."""
    if question.result_filter.always or not len(positions):
        return positions
    passes: Bools = yield Matching(refs=trail.refs[positions], filter=question.result_filter)
    return positions[passes]


def returned(
    trail: Trail, scores: Floats, k: int, question: Question, per_page: int | None = None
) -> Plan[Ints]:
    """Select the positions of the ``k`` best documents that may be returned, best first.

    Args:
        trail: The trail of the search, which records what is left out.
        scores: (n,) scores of its documents.
        k: Maximum number of positions.
        question: The question with the ``result_filter``.
        per_page: Maximum number of one page, or None for any number.
    """
    allowed = yield from passing(trail, np.arange(len(trail)), question)
    trail.cut("filter", len(trail) - len(allowed), None, "excluded by result_filter")
    refs = trail.refs[allowed]
    order = yield from ranked(refs, scores[allowed], k if per_page is None else len(refs))
    if per_page is not None:
        kept = yield from spread(refs[order], k, per_page)
        passed = passed_over(kept, len(order), k)
        trail.cut("per_page", passed, None, f"more than {per_page} of one page")
        trail.cut("k", len(allowed) - len(kept) - passed, None, f"ranked below the first {k}")
        return allowed[order[kept]]
    trail.cut("k", len(allowed) - len(order), None, f"ranked below the first {k}")
    return allowed[order]


def passed_over(kept: Ints, ranked: int, k: int) -> int:
    """Count the ranked documents that are skipped before the last one kept.

    If fewer than ``k`` were kept, all skipped documents count.
    """
    return (int(kept[-1]) + 1 if len(kept) == k else ranked) - len(kept)


def first_found(
    trail: Trail, ask: Callable[[int], Fetch], k: int, per_page: int | None
) -> Plan[tuple[Any, Ints]]:
    """Fetch the best documents, and return the answer and the positions in it of those to return.

    With ``per_page``, more and more documents are fetched until ``k`` of enough pages are among them.

    Args:
        trail: The trail of the search, which records what is left out.
        ask: Makes the fetch of a number of documents. Its answer has ``refs``, best first.
        k: Maximum number of documents to return.
        per_page: Maximum number of one page, or None for any number.
    """
    if per_page is None:
        answer = yield ask(k)
        return answer, np.arange(len(answer.refs))
    wanted = min(SPREAD * k, MOST)
    while True:
        answer = yield ask(wanted)
        kept = yield from spread(answer.refs, k, per_page)
        if len(kept) == k or len(answer.refs) < wanted:
            passed = passed_over(kept, len(answer.refs), k)
            trail.cut("per_page", passed, None, f"more than {per_page} of one page")
            return answer, kept
        wanted = min(SPREAD * wanted, MOST)


def none_returned(trail: Trail, strategy: Traversing, wanted: str = "result_filter") -> Hits:
    """Return the result of a search that may not return any of the documents reached."""
    reason = f"of {amount(len(trail), 'document')} reached, none passes {wanted}"
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(strategy))

"""Ranks documents of superseded pages after the pages that take their place.

Such a document names these pages in its metadata. A page whose documents are not among the hits is
represented by its first document, whose id is the name of the page.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter
from typing import Final

from linkstore.core.hits import Hit, Hits, get_page

SUPERSEDED_BY: Final = "okf_superseded_by"
"""The metadata key for the pages that take the place of a document's own."""


def find_missing_successors(hits: Hits) -> tuple[str, ...]:
    """Return the ids of the successors of the hits' pages, without those of pages with hits."""
    pages = {get_page(hit.document) for hit in hits}
    return tuple(sorted({name for hit in hits for name in _list_successors(hit)} - pages))


def rank_after_successors(hits: Hits, fetched: Hits, k: int) -> Hits:
    """Return at most ``k`` hits, with superseded pages after their successors.

    A document goes behind the first of them, with a score just below, and a fetched one takes the place and
    the score of the first document that it supersedes. Contributions say so as ``superseded``. Other
    documents keep their order. Where there are too many, documents that were superseded go first.

    Args:
        hits: Best first.
        fetched: The successors that are not among them.
        k: Maximum number of hits.
    """
    ordered = list(hits.hits)
    for hit in fetched:
        page = get_page(hit.document)
        places = (at for at, other in enumerate(ordered) if page in _list_successors(other))
        at = next(places, len(ordered))
        if at < len(ordered):
            ordered.insert(at, _set_score(hit, max(hit.score, ordered[at].score)))
    for hit in reversed(hits.hits):
        names = _list_successors(hit)
        place = next(place for place, other in enumerate(ordered) if other is hit)
        at = next((at for at, other in enumerate(ordered) if get_page(other.document) in names), -1)
        if at >= 0 and get_page(hit.document) not in _list_successors(ordered[at]):
            moved = _set_score(hit, min(hit.score, nextafter(ordered[at].score, -inf)))
            del ordered[place]
            ordered.insert(max(at, place), moved)
    superseded = [at for at, hit in enumerate(ordered) if _list_successors(hit)]
    for at in reversed(superseded[max(0, len(superseded) - max(0, len(ordered) - k)) :]):
        del ordered[at]
    return replace(hits, hits=tuple(ordered[:k]))


def _set_score(hit: Hit, score: float) -> Hit:
    parts = {**hit.contributions, "superseded": score - hit.score}
    return hit if score == hit.score else replace(hit, score=score, contributions=parts)


def _list_successors(hit: Hit) -> frozenset[str]:
    named = hit.document.metadata.get(SUPERSEDED_BY)
    names = named if isinstance(named, list) else ()
    return frozenset(name for name in names if isinstance(name, str))

"""Follows links breadth first: seeds, then their link groups hop by hop, then one ranking of all."""

from __future__ import annotations

from dataclasses import dataclass

from linkstore.core.arguments import require_at_least
from linkstore.core.hits import Hits
from linkstore.core.plans import Plan
from linkstore.strategies.base import DEFAULT_SEEDS, Question, Traversing
from linkstore.strategies.first_stage import find_seeds
from linkstore.strategies.results import make_best_hits, report_none_found
from linkstore.strategies.traversal import Trail, apply_beam, limit_nodes, make_hop


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Eager(Traversing):
    """Follow links of the ``start_k`` nearest documents for ``depth`` hops, and rank all documents reached.

    Every document reached is scored by its similarity to the query, damped by the weights of the
    links that led to it: ``(1 + similarity) * weight - 1``.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        start_k: Number of documents to start from, found by similarity. Default 4.
        depth: Number of hops, 0 for plain search. Default 1.
    """

    start_k: int = DEFAULT_SEEDS
    depth: int = 1

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, depth=self.depth)

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan seeds, ``depth`` hops of two fetches each, one ranking, one fetch of texts."""
        trail = Trail()
        documents, highest = yield from find_seeds(trail, self.start_k, question, self)
        frontier = trail.add((yield from limit_nodes(trail, documents, 0, self)))
        if not len(trail):
            return report_none_found(trail, question, self.start_k, self, highest)
        for depth in range(1, self.depth + 1):
            frontier = yield from apply_beam(trail, frontier, self)
            documents = yield from make_hop(trail, frontier, question, self, exclude=trail.refs)
            frontier = trail.add((yield from limit_nodes(trail, documents, depth, self)), depth)
            if not len(frontier):
                break
        return (yield from make_best_hits(trail, self, question, trail.score))

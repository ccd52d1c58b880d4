"""Rank documents by personalised PageRank around the first-stage results."""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.arguments import require_at_least, require_within
from linkstore.arrays import contained
from linkstore.hits import Hits
from linkstore.order import ranked
from linkstore.plans import Plan
from linkstore.strategies.asked import asked
from linkstore.strategies.base import Question, Traversing, Walk
from linkstore.strategies.firststage import FirstStage, first_stage
from linkstore.strategies.named import NAMES, Asked
from linkstore.strategies.pages import evidence, faded, pages_of, standing
from linkstore.strategies.paths import hits_of
from linkstore.strategies.reranking import Judge, Reranker, reranked
from linkstore.strategies.results import none_found, none_returned, returned
from linkstore.strategies.surroundings import surroundings
from linkstore.strategies.trail import Trail
from linkstore.strategies.walk import within_nodes
from linkstore.strategies.walkrank import Doubles, walked
from linkstore.vectors import Floats, Ints

TRUST: Final[Mapping[str, float]] = {"section": 0.05, "mention": 0.15}
"""Default weights of kinds that lead to answers less often than hyperlinks; other kinds count 1."""

PAGE_POOL: Final = 100
"""Number of best documents, before page evidence, whose pages are looked up, besides the first stage."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PageRank(Traversing):
    """Personalised PageRank around the documents found by similarity, by words and by names.

    A first stage joins dense and lexical search. A random walk starts from its best ``start_k`` documents,
    from the documents whose names the query contains, and from ``initial_roots`` and ``initial_links``. It
    follows links one hop in both directions, and jumps back to a start in proportion to how well it matches.
    The score of a document is its share of the walk, plus a small part of its first-stage score. Chunks of
    one page share their evidence: a document gains if other chunks of its page match too, and loses if a
    chunk of the same page is better. A score is from 0 to 1, the sum of ``walk``, ``meaning``, ``words`` and
    ``page`` in :attr:`~linkstore.hits.Hit.contributions`.

    If the backend has no lexical search, the first stage uses only similarity, and ``explain()`` says so.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        start_k: Number of first-stage documents that the walk starts from. Default 16.
        direction: As for every traversal. Default both.
        kinds: As for every traversal. None, the default, follows all kinds with weight 1, except those in
            :data:`TRUST`.
        pool: Number of documents that each search of the first stage returns. Default 100.
        lexical: Weight of the search by words, where the search by similarity has weight 1. Default 1.
            A weight of 0 disables it.
        damping: Probability that the walk follows a link, from 0 to 1. Default 0.6.
        sharpness: Power to which first-stage scores are raised for jumps. Default 20.
        decay: Factor by which each start weighs less than the one before, from 0 to 1. Default 0.65.
        backward: Weight of a link followed against its direction, above 0 to 1. Default 0.25.
        first_stage_weight: Weight of the first-stage score, where the walk has weight 1. Default 0.1.
        walk_power: Power to which a document's share of the walk is raised, above 0 to 1. A smaller power
            makes the shares more equal. Default 0.5.
        page_weight: How much a document's score gains if other chunks of its page match too. Default 1.
        page_fade: Factor for the score of the second chunk of a page, and again for each further chunk, above
            0 to 1. Default 0.7. A chunk that scores x times as much as the best of its page has the factor
            times the square root of x. With 1 and a ``page_weight`` of 0, pages do not matter.
        named: Maximum number of starts whose names the query contains. Default 5.
        named_kinds: Kinds of link whose tags are names. Default ``("mention", "heading")``.
        named_cap: A name that more documents than this have is ignored. Default 3.
        reranker: Function that scores the texts of the first hits for the query. Default none.
        rerank: Weight of the reranker's score, where the other parts together have weight 1. Default 1.
        rerank_k: Number of hits that the reranker scores. Default 20.
    """

    start_k: int = 16
    direction: Walk = "both"
    pool: int = 100
    lexical: float = 1.0
    damping: float = 0.6
    sharpness: float = 20.0
    decay: float = 0.65
    backward: float = 0.25
    first_stage_weight: float = 0.1
    walk_power: float = 0.5
    page_weight: float = 1.0
    page_fade: float = 0.7
    named: int = 5
    named_kinds: tuple[str, ...] = NAMES
    named_cap: int = 3
    reranker: Reranker | None = None
    rerank: float = 1.0
    rerank_k: int = 20

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, named=self.named)
        require_at_least(1, pool=self.pool, named_cap=self.named_cap)
        require_at_least(1, rerank_k=self.rerank_k)
        require_within(0, 100, lexical=self.lexical, sharpness=self.sharpness)
        require_within(0, 100, first_stage_weight=self.first_stage_weight)
        require_within(0, 100, rerank=self.rerank, page_weight=self.page_weight)
        require_within(0, 1, damping=self.damping, decay=self.decay)
        require_within(1e-6, 1, backward=self.backward, walk_power=self.walk_power)
        require_within(1e-6, 1, page_fade=self.page_fade)

    def weight_of(self, kind: str) -> float:
        """Return the weight of a kind of link, from 0 (not followed) to 1."""
        return TRUST.get(kind, 1.0) if self.kinds is None else Traversing.weight_of(self, kind)

    @property
    def hops(self) -> int:
        """See :attr:`Strategy.hops`."""
        return 1

    @property
    def kinds_named(self) -> frozenset[str]:
        """See :attr:`Strategy.kinds_named`: those in ``kinds``, and in ``named_kinds`` where it was set."""
        others = frozenset() if self.named_kinds == NAMES else frozenset(self.named_kinds)
        return frozenset(self.kinds or ()) | others

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, the documents that the query names, one hop around both, one walk."""
        trail = Trail()
        stage = yield from first_stage(trail, question, self, self.pool, self.lexical)
        own = yield from asked(
            trail, question, self, self.named_kinds, self.named, min(self.named_cap, self.hub_cap)
        )
        known = stage.joined(own.found)
        if not len(known):
            return none_found(trail, question, self.pool, self, stage.highest)
        seeds = known.refs[(yield from ranked(known.refs, stage.scores_of(known), self.start_k))]
        starting = contained(known.refs, np.concatenate((seeds, own.found.refs)))
        frontier = trail.add((yield from within_nodes(trail, known.take(starting), 0, self)))
        around = yield from surroundings(trail, frontier, question, self, self.backward)
        fresh = around.found.take(~contained(around.found.refs, trail.refs))
        trail.add((yield from within_nodes(trail, fresh, 1, self)))
        rest = known.take(~contained(known.refs, trail.refs))
        trail.add((yield from within_nodes(trail, rest, 0, self)), 0)
        teleport = self._make_teleport(trail, stage, seeds, own)
        time = yield from walked(
            trail.refs, around.source, around.target, around.weight, teleport, self.damping
        )
        return (yield from self._rank(trail, stage, time, question))

    def judged(self, question: Question, hits: Hits) -> Generator[Judge, Sequence[float], Hits]:
        """Rerank the hits, if the strategy has a reranker."""
        if self.reranker is None or not hits:
            return hits
        return (yield from reranked(hits, question.text, self.reranker, self.rerank, self.rerank_k, self.k))

    def _make_teleport(self, trail: Trail, stage: FirstStage, seeds: Ints, own: Asked) -> Doubles:
        """Return the (n,) share of jumps to each start.

        Seeds have a share by match and rank, other starts by how surely they are named.
        """
        teleport = stage.scores(trail.refs, trail.similarity).astype(np.float64) ** self.sharpness
        for rank, ref in enumerate(seeds.tolist()):
            teleport[trail.refs == ref] *= self.decay**rank
        teleport[~contained(trail.refs, np.concatenate((seeds, own.found.refs)))] = 0
        teleport += (teleport.max(initial=0) or 1.0) * own.shares(trail.refs)
        if not teleport.any():
            teleport[:] = 1.0  # nothing matches at all
        return teleport

    def _rank(
        self,
        trail: Trail,
        stage: FirstStage,
        time: Doubles,
        question: Question,
    ) -> Plan[Hits]:
        parts = yield from self._add_page_evidence(trail, stage, self._make_parts(trail, stage, time))
        scores = _sum(parts)
        k = self.k if self.reranker is None else max(self.k, self.rerank_k)
        chosen = yield from returned(trail, scores, k, question, self.per_page)
        if not len(chosen):
            return none_returned(trail, self)
        taken = {name: part[chosen] for name, part in parts.items()}
        return (yield from hits_of(trail, chosen, self, question, scores[chosen], taken))

    def _add_page_evidence(
        self, trail: Trail, stage: FirstStage, parts: dict[str, Floats]
    ) -> Plan[dict[str, Floats]]:
        """Return the parts of scores, with ``page``, which other chunks of the same page add or take."""
        if not self.page_weight and self.page_fade == 1:
            return parts
        own = _sum(parts)
        asked = np.zeros(len(trail), dtype=np.bool_)
        asked[(yield from ranked(trail.refs, own, PAGE_POOL))] = True
        found = contained(trail.refs, stage.refs)
        at = np.flatnonzero(asked | found)
        pages = yield from pages_of(trail.refs[at])
        matches = np.where(found[at], stage.scores(trail.refs[at], trail.similarity[at]), np.float32(0))
        factor = np.ones(len(trail), dtype=np.float32)
        factor[at] += np.float32(self.page_weight) * evidence(pages, matches)
        whole = factor.max()
        place = yield from standing(trail.refs[at], pages, own[at])
        factor[at] *= faded(pages, own[at], place, self.page_fade)
        scaled = {name: part / whole for name, part in parts.items()}
        return {**scaled, "page": own * factor / whole - _sum(scaled)}

    def _make_parts(self, trail: Trail, stage: FirstStage, time: Doubles) -> dict[str, Floats]:
        """Return the parts of scores, (n,) each: the walk, and meaning and words of the first stage."""
        whole = np.float32(1 + self.first_stage_weight)
        walk = ((time / time.max()) ** self.walk_power).astype(np.float32) / whole
        share = np.float32(self.first_stage_weight) / whole
        words = share * stage.by_words(trail.refs)
        meaning = share * stage.scores(trail.refs, trail.similarity) - words
        return {"walk": walk, "meaning": meaning, "words": words}


def _sum(parts: Mapping[str, Floats]) -> Floats:
    """Return (n,) the sum of parts, added in their order."""
    return functools.reduce(np.add, parts.values())

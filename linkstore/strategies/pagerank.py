"""The default strategy: personalised PageRank around the results of the first stage.

Source: T. Haveliwala, "Topic-Sensitive PageRank", WWW 2002, with the teleport on documents of the question
in the place of a topic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import omit_none, require_at_least, require_within
from linkstore.core.arrays import Floats, Ints, find_positions, is_member
from linkstore.core.calls import Operation
from linkstore.core.hits import Hits
from linkstore.core.plans import Plan, number_equals, rank_refs
from linkstore.strategies.base import (
    HopDirection,
    Question,
    Reranker,
    Strategy,
    Traversing,
    check_reranker,
    rerank_hits,
)
from linkstore.strategies.first_stage import (
    FirstStage,
    find_doubt,
    find_question_targets,
    run_first_stage,
)
from linkstore.strategies.names import NAMING_KINDS
from linkstore.strategies.results import find_pages, make_best_hits, report_none_found
from linkstore.strategies.traversal import Edges, FoundDocuments, Trail, apply_beam, limit_nodes, make_hop

Doubles = npt.NDArray[np.float64]
PAGERANK_ROUNDS: Final = 40
"""Number of power iterations; at the default damping of 0.6, the remaining change is below 1e-8."""
SHARES: Final = 2.0**52
"""The number of shares of a walker's time: as many as a float64 counts exactly, with one bit to spare."""
EVIDENCE_POWER: Final = 3.0
"""Power of the first-stage scores that are added: the many weak matches of long pages hardly count."""
MOST_CHUNKS: Final = 20
"""Maximum number of chunks of a page that are added."""
TRUST: Final[Mapping[str, float]] = {"section": 0.05, "mention": 0.15}
"""Default weights of kinds that lead to answers less often than hyperlinks; other kinds count 1."""

PAGE_POOL: Final = 100
"""Number of best documents, before page evidence, whose pages are looked up, besides the first stage."""


def compute_pagerank(
    source: Ints,
    target: Ints,
    weight: Doubles,
    teleport: Doubles,
    damping: float,
    rounds: int = PAGERANK_ROUNDS,
) -> Doubles:
    """Compute the share of time at each node of a walker who follows edges by weight or jumps back.

    Shares are counted in whole :data:`SHARES`, whose sums are exact, and other sums are made in the order of
    their terms; so the result does not depend on how an engine numbers nodes and edges.

    Args:
        source: (m,) nodes that edges leave, with numbers from 0 to n - 1.
        target: (m,) nodes they lead to.
        weight: (m,) greater than 0.
        teleport: (n,) where a jump lands, by share. Some are greater than 0.
        damping: How likely an edge is followed, from 0 to 1. From a node without edges the walker jumps.
        rounds: Number of power iterations. Default 40.

    Returns:
        (n,) that sum to 1, but for rounding.
    """
    count = len(teleport)
    jump = teleport / np.sort(teleport).sum()
    order = np.lexsort((weight, source))
    source, target, weight = source[order], target[order], weight[order]
    leaving = np.bincount(source, weight, minlength=count)
    share = weight / leaving[source] if len(source) else weight
    stuck = leaving == 0
    jumped = (1 - damping) * SHARES * jump
    at: Doubles = np.rint(SHARES * jump)
    for _ in range(rounds):
        followed = np.bincount(target, np.rint(share * at[source]), minlength=count)
        at = np.rint(jumped + damping * (followed + at[stuck].sum() * jump))
    return at / SHARES


def weigh_both_ways(trail: Trail, edges: Edges, backward: float) -> tuple[Ints, Ints, Doubles]:
    """Return the edges of a walk: positions in the trail, and weights, each edge once, the strongest.

    A link is an edge in both directions. Against its direction it counts ``backward`` times as much. A link
    group that leads to n documents divides its weight among them. Edges that leave the trail are left out.

    Args:
        trail: The trail of the search.
        edges: From positions in the trail to documents.
        backward: Greater than 0.
    """
    weight = edges.strength.astype(np.float64) * edges.weight / edges.size
    place = np.argsort(trail.refs)
    positions = find_positions(edges.target, trail.refs[place])
    left, arrived = edges.source, place[positions]
    other = (positions >= 0) & (left != arrived) & (weight > 0)
    left, arrived, weight = left[other], arrived[other], weight[other]
    forward = edges.forward[other]
    source, target = np.concatenate((left, arrived)), np.concatenate((arrived, left))
    weight = np.concatenate(
        (weight * np.where(forward, 1.0, backward), weight * np.where(forward, backward, 1.0))
    )
    order = np.lexsort((-weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    new = np.ones(len(source), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[new], target[new], weight[new]


def sum_page_evidence(pages: Ints, matches: Floats) -> Floats:
    """Return (n,) how well the other chunks of each document's page match: the sum without the best one.

    Args:
        pages: (n,) the page of each document.
        matches: (n,) first-stage scores in [0, 1], 0 for documents that the first stage did not find.
    """
    strength = matches.astype(np.float64) ** EVIDENCE_POWER
    order = np.lexsort((-strength, pages))
    place = number_equals(pages[order])
    counted = strength[order] * ((place >= 1) & (place <= MOST_CHUNKS))
    return np.bincount(pages[order], counted)[pages].astype(np.float32)


def compute_page_fading(pages: Ints, scores: Floats, place: Ints, fade: float) -> Floats:
    """Return (n,) factors for the scores of chunks: ``(fade * sqrt(score / best of the page)) ** place``.

    So a chunk that matches almost as well as the best one of its page keeps more than a weak one.

    Args:
        pages: (n,) the page of each document.
        scores: (n,) of the documents, at least 0.
        place: (n,) see :func:`rank_within_pages`.
        fade: Factor for a second chunk that is as good as the first.
    """
    best = np.zeros(int(pages.max(initial=-1)) + 1, dtype=np.float32)
    np.maximum.at(best, pages, scores)
    part = scores / np.maximum(best, np.finfo(np.float32).tiny)[pages]
    factor: Floats = (np.float32(fade) * np.sqrt(part)) ** place.astype(np.float32)
    return factor


def rank_within_pages(refs: Ints, pages: Ints, scores: Floats) -> Plan[Ints]:
    """Return the (n,) place of each document among those of its page, from 0, by score, then id."""
    order = yield from rank_refs(refs, scores, len(refs))
    order = order[np.argsort(pages[order], kind="stable")]
    place = np.empty(len(refs), dtype=np.int64)
    place[order] = number_equals(pages[order])
    return place


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PageRank(Traversing):
    """Personalised PageRank around the documents found by similarity, by words and by names.

    A first stage joins dense and lexical search. A random walk starts from its best ``start_k`` documents,
    from the documents whose names the query contains, and from ``initial_roots`` and ``initial_links``. It
    follows links in both directions, ``depth`` hops around its starts, and jumps back to a start in
    proportion to how well it matches. The score of a document is its share of the walk, plus a small part of
    its first-stage score. Chunks of one page share their evidence: a document gains if other chunks of its
    page match too, and loses if a chunk of the same page is better. A score is from 0 to 1, the sum of
    ``walk``, ``meaning``, ``words`` and ``page`` in :attr:`~linkstore.core.hits.Hit.contributions`.

    If the backend has no lexical search, the first stage uses only similarity, and ``explain()`` says so.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        start_k: Number of first-stage documents that the walk starts from. Default 16.
        direction: As for every traversal. Default both.
        kinds: As for every traversal. None, the default, follows all kinds with weight 1, except those in
            :data:`TRUST`.
        depth: Number of hops around the starts that the walk may go. Default 1. Each further hop follows the
            links of the ``beam`` best documents of the one before, as long as ``max_nodes`` allows.
        seconds: After so many seconds no further hop begins. Default 2.
        pool: Number of documents that each search of the first stage returns. Default 100.
        lexical: Weight of the search by words, where the search by similarity has weight 1; 0 disables it.
            None, the default, takes that of the store (:attr:`LinkStore.lexical_weight
            <linkstore.LinkStore.lexical_weight>`).
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
        reranker: Scores the texts of the first hits for the query: a function, or a cross-encoder or document
            compressor of LangChain. Default none.
        rerank: Weight of the reranker's score, where the other parts together have weight 1. Default 1.
        rerank_k: Number of hits that the reranker scores. Default 20.
    """

    start_k: int = 16
    direction: HopDirection = "both"
    depth: int = 1
    seconds: float = 2.0
    pool: int = 100
    lexical: float | None = None
    damping: float = 0.6
    sharpness: float = 20.0
    decay: float = 0.65
    backward: float = 0.25
    first_stage_weight: float = 0.1
    walk_power: float = 0.5
    page_weight: float = 1.0
    page_fade: float = 0.7
    named: int = 5
    named_kinds: tuple[str, ...] = NAMING_KINDS
    named_cap: int = 3
    reranker: Reranker | None = None
    rerank: float = 1.0
    rerank_k: int = 20

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, named=self.named)
        require_at_least(1, depth=self.depth)
        require_within(0, math.inf, seconds=self.seconds)
        require_at_least(1, pool=self.pool, named_cap=self.named_cap)
        require_at_least(1, rerank_k=self.rerank_k)
        require_within(0, 100, **omit_none(lexical=self.lexical), sharpness=self.sharpness)
        require_within(0, 100, first_stage_weight=self.first_stage_weight)
        require_within(0, 100, rerank=self.rerank, page_weight=self.page_weight)
        require_within(0, 1, damping=self.damping, decay=self.decay)
        require_within(1e-6, 1, backward=self.backward, walk_power=self.walk_power)
        require_within(1e-6, 1, page_fade=self.page_fade)
        if self.reranker is not None:
            check_reranker(self.reranker)

    def weight_of(self, kind: str) -> float:
        """Return the weight of a kind of link, from 0 (not followed) to 1."""
        return TRUST.get(kind, 1.0) if self.kinds is None else Traversing.weight_of(self, kind)

    @property
    def hops(self) -> int:
        """See :attr:`Strategy.hops`."""
        return self.depth

    @property
    def kinds_named(self) -> frozenset[str]:
        """See :attr:`Strategy.kinds_named`: those in ``kinds``, and in ``named_kinds`` where it was set."""
        others = frozenset() if self.named_kinds == NAMING_KINDS else frozenset(self.named_kinds)
        return frozenset(self.kinds or ()) | others

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, the documents that the query names, ``depth`` hops around both, one walk."""
        began = perf_counter()
        trail = Trail()
        stage = yield from run_first_stage(trail, question, self, self.pool, self.lexical)
        cap = min(self.named_cap, self.hub_cap)
        own, meant = yield from find_question_targets(
            trail, question, self, stage, self.named_kinds, self.named, cap, rare=cap
        )
        documents = stage.join(own)
        yield from find_doubt(trail, stage, question, self, meant)
        if not len(documents):
            return report_none_found(trail, question, self.pool, self, stage.highest)
        seeds = documents.refs[
            (yield from rank_refs(documents.refs, stage.scores_of(documents), self.start_k))
        ]
        starting = is_member(documents.refs, np.concatenate((seeds, own.refs)))
        frontier = trail.add((yield from limit_nodes(trail, documents.take(starting), 0, self)))
        hops: list[Edges] = []
        for depth in range(1, self.depth + 1):
            if depth > 1 and perf_counter() - began > self.seconds:
                trail.cut("beam", len(frontier), depth - 1, f"not followed: {self.seconds:g} s have passed")
                break
            if depth > 1:
                frontier = yield from apply_beam(trail, frontier, self)
            around = yield from make_hop(trail, frontier, question, self)
            hops.append(around.edges)
            fresh = around.take(~is_member(around.refs, trail.refs))
            frontier = trail.add((yield from limit_nodes(trail, fresh, depth, self)), depth)
            if not len(frontier):
                break
        rest = documents.take(~is_member(documents.refs, trail.refs))
        trail.add((yield from limit_nodes(trail, rest, 0, self)), 0)
        teleport = self._make_teleport(trail, stage, seeds, own)
        edges = weigh_both_ways(trail, Edges.concatenate(hops), self.backward)
        time = compute_pagerank(*edges, teleport, self.damping)
        return (yield from self._rank(trail, stage, time, question))

    def apply_reranker(self, question: Question, hits: Hits) -> Operation[Hits]:
        """Rerank the hits, if the strategy has a reranker."""
        if self.reranker is None or not hits:
            return hits
        return (
            yield from rerank_hits(hits, question.text, self.reranker, self.rerank, self.rerank_k, self.k)
        )

    def _make_teleport(self, trail: Trail, stage: FirstStage, seeds: Ints, own: FoundDocuments) -> Doubles:
        """Return the (n,) share of jumps to each start.

        Seeds have a share by match and rank, other starts by how surely they are named.
        """
        teleport = stage.scores(trail.refs, trail.similarity).astype(np.float64) ** self.sharpness
        for rank, ref in enumerate(seeds.tolist()):
            teleport[trail.refs == ref] *= self.decay**rank
        teleport[~is_member(trail.refs, np.concatenate((seeds, own.refs)))] = 0
        by_ref = np.argsort(own.refs)
        at = find_positions(trail.refs, own.refs[by_ref])
        named = np.where(at >= 0, own.weight[by_ref[at]], 0) if len(own) else 0
        teleport += (teleport.max(initial=0) or 1.0) * named
        if not teleport.any():
            teleport[:] = 1.0  # nothing matches at all
        return teleport

    def _rank(self, trail: Trail, stage: FirstStage, time: Doubles, question: Question) -> Plan[Hits]:
        parts = yield from self._add_page_evidence(trail, stage, self._make_parts(trail, stage, time))
        scores = _sum_parts(parts)
        k = self.k if self.reranker is None else max(self.k, self.rerank_k)
        return (yield from make_best_hits(trail, self, question, scores, parts, k))

    def _add_page_evidence(
        self, trail: Trail, stage: FirstStage, parts: dict[str, Floats]
    ) -> Plan[dict[str, Floats]]:
        """Return the parts of scores, with ``page``, which other chunks of the same page add or take."""
        if not self.page_weight and self.page_fade == 1:
            return parts
        own = _sum_parts(parts)
        asked = np.zeros(len(trail), dtype=np.bool_)
        asked[(yield from rank_refs(trail.refs, own, PAGE_POOL))] = True
        in_stage = is_member(trail.refs, stage.refs)
        at = np.flatnonzero(asked | in_stage)
        pages = yield from find_pages(trail.refs[at])
        matches = np.where(in_stage[at], stage.scores(trail.refs[at], trail.similarity[at]), np.float32(0))
        factor = np.ones(len(trail), dtype=np.float32)
        factor[at] += np.float32(self.page_weight) * sum_page_evidence(pages, matches)
        whole = factor.max()
        place = yield from rank_within_pages(trail.refs[at], pages, own[at])
        factor[at] *= compute_page_fading(pages, own[at], place, self.page_fade)
        scaled = {name: part / whole for name, part in parts.items()}
        return {**scaled, "page": own * factor / whole - _sum_parts(scaled)}

    def _make_parts(self, trail: Trail, stage: FirstStage, time: Doubles) -> dict[str, Floats]:
        """Return the parts of scores, (n,) each: the walk, and meaning and words of the first stage."""
        whole = np.float32(1 + self.first_stage_weight)
        walk = ((time / time.max()) ** self.walk_power).astype(np.float32) / whole
        share = np.float32(self.first_stage_weight) / whole
        words = share * stage.by_words(trail.refs)
        meaning = share * stage.scores(trail.refs, trail.similarity) - words
        return {"walk": walk, "meaning": meaning, "words": words}


def _sum_parts(parts: Mapping[str, Floats]) -> Floats:
    """Return (n,) the sum of parts, added in their order."""
    return functools.reduce(np.add, parts.values())


DEFAULT_STRATEGY: Final[Strategy] = PageRank()
"""The default strategy: it ranks best over all sets of docs/benchmarks.md."""

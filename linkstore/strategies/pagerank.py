"""The default strategy: personalised PageRank around the results of the first stage.

Source: T. Haveliwala, "Topic-Sensitive PageRank", WWW 2002, with the teleport on documents of the question
in the place of a topic.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import omit_none, require_at_least, require_within
from linkstore.core.arrays import Floats, Ints, find_positions, is_member, mark_first, sort_integers
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
from linkstore.strategies.first_stage import FirstStage, find_doubt, find_question_targets, run_first_stage
from linkstore.strategies.resolver import NAMING_KINDS
from linkstore.strategies.results import find_pages, make_best_hits, report_none_found
from linkstore.strategies.traversal import (
    NO_EDGES,
    Edges,
    FoundDocuments,
    Trail,
    apply_beam,
    limit_nodes,
    make_hop,
)

Doubles = npt.NDArray[np.float64]

# The constants of the ranking were chosen together on the sets of docs/benchmarks.md, for the best recall
# over all of them. docs/decisions/0020-ranking.md says what else was tried, and what it gave.
POOL: Final = 100
"""Number of documents that each search of the first stage returns, or half of ``k`` if that is more. With 200
no set gained."""
DAMPING: Final = 0.6
"""Probability that the walk follows a link; from 0.4 to 0.8, recall moves by about a point."""
SHARPNESS: Final = 20.0
"""Power to which first-stage scores are raised for jumps, so that the first hits depend on few starts.
From 8 to 20, recall moves by about a point."""
DECAY: Final = 0.65
"""Factor by which each start weighs less than the one before. 0.5 gains where the answer is behind one link,
and costs as much on other sets."""
BACKWARD: Final = 0.25
"""Weight of a link followed against its direction."""
NAMED_WEIGHT: Final = 1.0
"""Weight of jumps to a surely named document, where the best seed has weight 1. With 1.5, R@2 gains some
points, and R@5 none."""
FIRST_STAGE_WEIGHT: Final = 0.1
"""Weight of the first-stage score, where the walk has weight 1."""
WALK_POWER: Final = 0.5
"""Power to which a document's share of the walk is raised, so that later documents still differ."""
PAGE_WEIGHT: Final = 1.0
"""How much a document's score gains if other chunks of its page match too."""
PAGE_FADE: Final = 0.7
"""Factor for the score of the second chunk of a page, and again for each further one: see
:func:`compute_page_fading`."""
NAMED_CAP: Final = 3
"""A name that more documents than this have says too little of any."""
SECONDS: Final = 2.0
"""After so many seconds no further hop begins: as long as one waits for an answer."""
RERANK_WEIGHT: Final = 1.0
"""Weight of the reranker's score, where the other parts together have weight 1."""
RERANKED: Final = 20
"""Number of hits that the reranker scores: a cross-encoder reads so many in about a second."""
PAGERANK_ROUNDS: Final = 40
"""Number of power iterations; at a damping of 0.6, the remaining change is below 1e-8."""
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
    order = np.argsort(weight)
    leaving = np.bincount(source[order], weight[order], minlength=count)
    share = weight / leaving[source]
    stuck = np.flatnonzero(leaving == 0)
    jumped = (1 - damping) * SHARES * jump
    at: Doubles = np.rint(SHARES * jump)
    for _ in range(rounds):
        moved = share * at[source]
        followed = np.bincount(target, np.rint(moved, out=moved), minlength=count)
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
    count = len(trail)
    order, pairs = sort_integers(source * count + target, count * count)
    first = np.flatnonzero(mark_first(pairs))
    return pairs[first] // count, pairs[first] % count, np.maximum.reduceat(weight[order], first)


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
            links of the ``beam`` best documents of the one before, as long as ``max_nodes`` and
            :data:`SECONDS` allow. With 0, the first stage ranks alone, without links, names and pages.
        lexical: Weight of the search by words, where the search by similarity has weight 1; 0 disables it.
            None, the default, takes that of the store (:attr:`LinkStore.lexical_weight
            <linkstore.LinkStore.lexical_weight>`).
        named: Maximum number of starts whose names the query contains. Default 5.
        reranker: Scores the texts of the first :data:`RERANKED` hits for the query: a function, or a
            cross-encoder or document compressor of LangChain. Default none.
    """

    start_k: int = 16
    direction: HopDirection = "both"
    depth: int = 1
    lexical: float | None = None
    named: int = 5
    reranker: Reranker | None = None

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, depth=self.depth, named=self.named)
        require_within(0, 100, **omit_none(lexical=self.lexical))
        if self.reranker is not None:
            check_reranker(self.reranker)

    def weight_of(self, kind: str) -> float:
        """Return the weight of a kind of link, from 0 (not followed) to 1."""
        return TRUST.get(kind, 1.0) if self.kinds is None else Traversing.weight_of(self, kind)

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, the documents that the query names, ``depth`` hops around both, one walk."""
        began = perf_counter()
        trail = Trail()
        pool = max(POOL, self.k // 2)
        stage = yield from run_first_stage(trail, question, self, pool, self.lexical)
        cap, named = min(NAMED_CAP, self.hub_cap), self.named if self.depth else 0
        own, meant = yield from find_question_targets(
            trail, question, self, stage, NAMING_KINDS, named, cap, rare=cap
        )
        documents = stage.join(own)
        yield from find_doubt(trail, stage, question, self, meant)
        if not len(documents):
            return report_none_found(trail, question, pool, self, stage.highest)
        first = stage.scores(documents.refs, documents.similarity)
        seeds = documents.refs[(yield from rank_refs(documents.refs, first, self.start_k))]
        starting = is_member(documents.refs, np.concatenate((seeds, own.refs)))
        frontier = trail.add((yield from limit_nodes(trail, documents.take(starting), 0, self)))
        hops = [NO_EDGES]
        for depth in range(1, self.depth + 1):
            if depth > 1 and perf_counter() - began > SECONDS:
                trail.cut("beam", len(frontier), depth - 1, f"not followed: {SECONDS:g} s have passed")
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
        matches = stage.scores(trail.refs, trail.similarity)
        teleport = self._make_teleport(trail, matches, seeds, own)
        edges = weigh_both_ways(trail, Edges.concatenate(hops), BACKWARD)
        time = compute_pagerank(*edges, teleport, DAMPING)
        parts = self._make_parts(matches, stage.by_words(trail.refs), time)
        if self.depth:
            parts = yield from self._add_page_evidence(trail, stage, matches, parts)
        k = self.k if self.reranker is None else max(self.k, RERANKED)
        return (yield from make_best_hits(trail, self, question, _sum_parts(parts), parts, k))

    def apply_reranker(self, question: Question, hits: Hits) -> Operation[Hits]:
        """Rerank the hits, if the strategy has a reranker."""
        if self.reranker is None or not hits:
            return hits
        return (yield from rerank_hits(hits, question.text, self.reranker, RERANK_WEIGHT, RERANKED, self.k))

    def _make_teleport(self, trail: Trail, matches: Floats, seeds: Ints, own: FoundDocuments) -> Doubles:
        """Return the (n,) share of jumps to each start.

        Seeds have a share by match and rank, other starts by how surely they are named.
        """
        teleport = matches.astype(np.float64) ** SHARPNESS
        place = np.argsort(trail.refs)
        at = find_positions(seeds, trail.refs[place])
        decay = np.array(list(map(DECAY.__pow__, range(len(seeds)))))
        teleport[place[at[at >= 0]]] *= decay[at >= 0]
        teleport[~is_member(trail.refs, np.concatenate((seeds, own.refs)))] = 0
        by_ref = np.argsort(own.refs)
        at = find_positions(trail.refs, own.refs[by_ref])
        named = np.where(at >= 0, own.weight[by_ref[at]], 0) if len(own) else 0
        teleport += (teleport.max(initial=0) or 1.0) * NAMED_WEIGHT * named
        if not teleport.any():
            teleport[:] = 1.0  # nothing matches at all
        return teleport

    def _add_page_evidence(
        self, trail: Trail, stage: FirstStage, matches: Floats, parts: dict[str, Floats]
    ) -> Plan[dict[str, Floats]]:
        """Return the parts of scores, with ``page``, which other chunks of the same page add or take."""
        own = _sum_parts(parts)
        asked = np.zeros(len(trail), dtype=np.bool_)
        asked[(yield from rank_refs(trail.refs, own, PAGE_POOL))] = True
        in_stage = is_member(trail.refs, stage.refs)
        at = np.flatnonzero(asked | in_stage)
        pages = yield from find_pages(trail.refs[at])
        matching = np.where(in_stage[at], matches[at], np.float32(0))
        factor = np.ones(len(trail), dtype=np.float32)
        factor[at] += np.float32(PAGE_WEIGHT) * sum_page_evidence(pages, matching)
        whole = factor.max()
        place = yield from rank_within_pages(trail.refs[at], pages, own[at])
        factor[at] *= compute_page_fading(pages, own[at], place, PAGE_FADE)
        scaled = {name: part / whole for name, part in parts.items()}
        return {**scaled, "page": own * factor / whole - _sum_parts(scaled)}

    def _make_parts(self, matches: Floats, by_words: Floats, time: Doubles) -> dict[str, Floats]:
        """Return the parts of scores, (n,) each: the walk, and meaning and words of the first stage."""
        whole = np.float32(1 + FIRST_STAGE_WEIGHT)
        walk = ((time / time.max()) ** WALK_POWER).astype(np.float32) / whole
        share = np.float32(FIRST_STAGE_WEIGHT) / whole
        words = share * by_words
        meaning = share * matches - words
        return {"walk": walk, "meaning": meaning, "words": words}


def _sum_parts(parts: Mapping[str, Floats]) -> Floats:
    """Return (n,) the sum of parts, added in their order."""
    return functools.reduce(np.add, parts.values())


DEFAULT_STRATEGY: Final[Strategy] = PageRank()
"""The default strategy: it ranks best over all sets of docs/benchmarks.md."""

"""Rank what lies around the best documents by how often a walker from the question would meet it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkstore.hits import Hits
from linkstore.order import ranked
from linkstore.plans import Names, Plan
from linkstore.strategies.base import (
    DEFAULT_LIMIT,
    Question,
    Traversing,
    Walk,
    require_at_least,
    require_within,
)
from linkstore.strategies.firststage import FirstStage, first_stage
from linkstore.strategies.named import Named, named
from linkstore.strategies.paths import hits_of
from linkstore.strategies.surroundings import Surroundings, surroundings
from linkstore.strategies.trail import Found, Trail
from linkstore.strategies.walk import empty_reason, passing, within_nodes
from linkstore.strategies.walkrank import Doubles, personalised
from linkstore.vectors import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRank(Traversing):
    """Personalised PageRank around the documents that meaning, words and names find.

    A first stage joins dense and lexical search. Its best ``k`` documents, and those whose titles the
    query names, are where a walker starts; it follows links one hop, both ways, and jumps back to
    documents by how well they match. A document's score is its share of the walker's time, with a
    little of the first stage.

    Args:
        k: How many documents the walk starts from; default 16.
        limit: How many hits to return at most; default 50.
        pool: How many documents each search of the first stage gives; default 100.
        lexical: How much words count beside meaning; 0 leaves them out; default 1.
        damping: How likely the walker follows a link, from 0 to 1; default 0.6.
        sharpness: The power of first-stage scores that jumps go by; default 12.
        decay: Each start counts this much less than the one before, from 0 to 1; default 0.65.
        backward: How much a link counts against its direction, above 0 to 1; default 0.5.
        first: How much the first stage counts beside the walk; default 0.1.
        evenness: The power of the walker's share that scores go by, above 0 to 1; default 0.7.
        named: How many documents that the query names join the start; default 5.
        named_cap: A title that more documents bear names none of them; default 3.
    """

    k: int = 16
    direction: Walk = "both"
    limit: int = DEFAULT_LIMIT
    pool: int = 100
    lexical: float = 1.0
    damping: float = 0.6
    sharpness: float = 12.0
    decay: float = 0.65
    backward: float = 0.5
    first: float = 0.1
    evenness: float = 0.7
    named: int = 5
    named_cap: int = 3

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, k=self.k, named=self.named)
        require_at_least(1, limit=self.limit, pool=self.pool, named_cap=self.named_cap)
        require_within(0, 100, lexical=self.lexical, sharpness=self.sharpness, first=self.first)
        require_within(0, 1, damping=self.damping, decay=self.decay)
        require_within(1e-6, 1, backward=self.backward, evenness=self.evenness)

    def limited(self, k: int) -> PageRank:
        """The same search, returning at most ``k`` hits."""
        return replace(self, limit=k)

    def plan(self, question: Question) -> Plan[Hits]:
        """The first stage, the documents named, one hop around both, one walk."""
        trail = Trail()
        condition = question.filter & question.seed_filter
        stage = yield from first_stage(trail, question, condition, self.pool, self.lexical)
        names = yield from named(question, self.named, self.named_cap)
        start = _start(stage, names)
        if not len(start):
            reason = empty_reason(question, self.pool, self, None, trail.cuts)
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        trail.add((yield from within_nodes(trail, start, 0, self)))
        first = stage.scores(trail.refs, trail.similarity)
        seeds = yield from self._seeds(trail, first)
        frontier = np.union1d(seeds, np.flatnonzero(np.isin(trail.refs, names.refs)))
        around = yield from surroundings(trail, frontier, question, self, self.backward)
        fresh = around.found.take(~np.isin(around.found.refs, trail.refs))
        trail.add((yield from within_nodes(trail, fresh, 1, self)))
        scores = yield from self._scores(trail, stage, seeds, names, around)
        return (yield from self._ranked(trail, scores, question))

    def _seeds(self, trail: Trail, first: Floats) -> Plan[Ints]:
        """Positions of the best of the first stage, best first."""
        order = yield from ranked(trail.refs, first, self.k)
        above = trail.similarity[order] >= np.float32(self.min_similarity)
        trail.cut("floor", int((~above).sum()), 0, f"min_similarity {self.min_similarity}")
        return order[above]

    def _scores(
        self, trail: Trail, stage: FirstStage, seeds: Ints, names: Named, around: Surroundings
    ) -> Plan[Floats]:
        """(n,) scores of the trail: the walk's share and a little of the first stage."""
        first = stage.scores(trail.refs, trail.similarity)
        teleport = first.astype(np.float64) ** self.sharpness
        teleport[seeds] *= self.decay ** np.arange(len(seeds))
        rest = np.ones(len(trail), dtype=np.bool_)
        rest[seeds] = False
        rest[np.isin(trail.refs, np.concatenate((names.refs, around.source, around.target)))] = False
        teleport[rest] = 0  # where no link was followed
        most = teleport.max(initial=0) or 1.0
        for ref, share in zip(names.refs.tolist(), names.share.tolist(), strict=True):
            teleport[trail.refs == ref] += most * share
        time = yield from _walked(trail, around, teleport, self.damping)
        scores = (time / time.max()) ** self.evenness + self.first * first
        whole: Floats = (scores / (1 + self.first)).astype(np.float32)
        return whole

    def _ranked(self, trail: Trail, scores: Floats, question: Question) -> Plan[Hits]:
        allowed = yield from passing(trail, np.arange(len(trail)), question)
        trail.cut("filter", len(trail) - len(allowed), None, "reached, but result_filter excludes them")
        order = yield from ranked(trail.refs[allowed], scores[allowed], self.limit)
        trail.cut("limit", len(allowed) - len(order), None, f"ranked below limit {self.limit}")
        if not len(order):
            reason = f"none of the {len(trail)} documents reached passes result_filter"
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        chosen = allowed[order]
        return (yield from hits_of(trail, chosen, self, question, scores[chosen]))


def _start(stage: FirstStage, names: Named) -> Found:
    """The documents of the first stage and those named, each once."""
    refs = np.concatenate((stage.refs, names.refs))
    unique, at = np.unique(refs, return_index=True)
    similarity = np.concatenate((stage.similarity, names.similarity))[at]
    return Found(refs=unique, similarity=similarity, weight=np.ones(len(unique), dtype=np.float32))


def _walked(trail: Trail, around: Surroundings, teleport: Doubles, damping: float) -> Plan[Doubles]:
    """The walker's share at each position; documents are numbered by id, so that all engines add alike."""
    names: list[str] = yield Names(refs=trail.refs)
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    number = np.empty(len(names), dtype=np.int64)
    number[by_name] = np.arange(len(names))
    place = np.argsort(trail.refs)
    ordered = trail.refs[place]

    def numbers(refs: Ints) -> Ints:
        at = np.minimum(np.searchsorted(ordered, refs), len(ordered) - 1)
        return np.where(ordered[at] == refs, number[place[at]], -1)

    source, target = numbers(around.source), numbers(around.target)
    known = (source >= 0) & (target >= 0)
    source, target, weight = source[known], target[known], around.weight[known]
    order = np.lexsort((target, source))
    time = personalised(source[order], target[order], weight[order], teleport[by_name], damping)
    return time[number]

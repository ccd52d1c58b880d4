"""Answers as chains: a few paths of links, by how well their documents match on average.

Source: the path beam of PropRAG (arXiv 2504.18070, "Beam Search Over Proposition Paths") without its
propositions and its language model: paths of documents, scored by the mean of their documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkstore.hits import Hits
from linkstore.order import ranked
from linkstore.plans import Plan
from linkstore.strategies.asked import asked
from linkstore.strategies.base import DEFAULT_LIMIT, Question, Traversing, require_at_least, require_within
from linkstore.strategies.chains import Chains
from linkstore.strategies.firststage import FirstStage, first_stage
from linkstore.strategies.named import NAMES, Asked
from linkstore.strategies.paths import arrived_hits
from linkstore.strategies.results import none_found, none_returned, returned
from linkstore.strategies.trail import Found, Trail
from linkstore.strategies.walk import hop, within_nodes
from linkstore.vectors import Floats, Ints

DEFAULT_PATHS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PathBeam(Traversing):
    """Follow the few paths whose documents match best on average, and return them as chains.

    A first stage joins dense and lexical search, as in :class:`PageRank`. Its best ``k`` documents and
    those the query names start a path each. Each hop prolongs the ``beam`` best paths by what their last
    documents link to, and keeps the ``beam`` best of those. A path's score is the mean score of its
    documents, and a document's the best of those of the paths it lies on, itself alone included.

    Args:
        k: How many documents start a path; default 8.
        depth: How many links a path may have; default 2.
        beam: How many paths are kept at each length; default 4.
        limit: How many hits to return at most; default 50.
        pool: How many documents each search of the first stage gives; default 100.
        lexical: How much words count beside meaning; 0 leaves them out; default 1.
        named: How many documents that the query names start a path; default 5.
        named_kinds: Kinds of link whose tags are names; default ``("mention", "heading")``.
        named_cap: A name that more documents bear names none of them; default 3.
    """

    k: int = 8
    depth: int = 2
    beam: int = DEFAULT_PATHS
    limit: int = DEFAULT_LIMIT
    pool: int = 100
    lexical: float = 1.0
    named: int = 5
    named_kinds: tuple[str, ...] = NAMES
    named_cap: int = 3

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, k=self.k, depth=self.depth, named=self.named)
        require_at_least(1, limit=self.limit, pool=self.pool, named_cap=self.named_cap)
        require_within(0, 100, lexical=self.lexical)

    def limited(self, k: int) -> PathBeam:
        """The same search, returning at most ``k`` hits."""
        return replace(self, limit=k)

    def plan(self, question: Question) -> Plan[Hits]:
        """The first stage, what the query leads to itself, ``depth`` hops, one ranking."""
        trail, chains = Trail(), Chains()
        stage = yield from first_stage(trail, question, self, self.pool, self.lexical)
        own = yield from asked(
            trail, question, self, self.named_kinds, self.named, min(self.named_cap, self.hub_cap)
        )
        match = _Match(stage, own)
        trail.add((yield from within_nodes(trail, stage.joined(own.found), 0, self)))
        if not len(trail):
            return none_found(trail, question, self.pool, self, stage.highest)
        seeds = yield from ranked(trail.refs, match.scores(trail), self.k)
        ends = np.union1d(seeds, np.flatnonzero(np.isin(trail.refs, own.found.refs)))
        yield from chains.start(trail, ends, match.scores(trail))
        for depth in range(1, self.depth + 1):
            ends = yield from self._best(trail, chains, ends)
            found = yield from self._next(trail, chains, ends, depth, question)
            ends = yield from chains.prolong(trail, found.edges, match.scores(trail))
            if not len(ends):
                break
        return (yield from self._ranked(trail, chains, match.scores(trail), question))

    def _best(self, trail: Trail, chains: Chains, ends: Ints) -> Plan[Ints]:
        """The ends of the ``beam`` best of the paths that lead to ``ends``."""
        order = yield from ranked(trail.refs[ends], chains.means(ends), self.beam)
        return ends[order]

    def _next(self, trail: Trail, chains: Chains, ends: Ints, depth: int, question: Question) -> Plan[Found]:
        """Where links lead from the ends of paths; the trail takes in the documents it does not know."""
        passed = np.sort(trail.refs[np.flatnonzero(chains.held)])
        hopped = yield from hop(trail, ends, question, self, exclude=passed)
        found = hopped.found
        fresh = found.take(~np.isin(found.refs, trail.refs))
        trail.add((yield from within_nodes(trail, fresh, depth, self)), depth)
        return found

    def _ranked(self, trail: Trail, chains: Chains, alone: Floats, question: Question) -> Plan[Hits]:
        scores = alone.copy()
        ends = np.flatnonzero(chains.held)
        scores[ends] = np.maximum(alone[ends], chains.means(ends))
        chosen = yield from returned(trail, scores, self.limit, question)
        if not len(chosen):
            return none_returned(trail, self)
        parts: dict[str, Floats] = {"document": alone[chosen], "path": scores[chosen] - alone[chosen]}
        return (
            yield from arrived_hits(trail, chosen, self, question, chains.arrivals, scores[chosen], parts)
        )


@dataclass(frozen=True, slots=True)
class _Match:
    """How well documents match by themselves; those that the query names do so by their share at least."""

    stage: FirstStage
    own: Asked

    def scores(self, trail: Trail) -> Floats:
        """(n,) scores of the trail's documents, in [0, 1]."""
        scores = self.stage.scores(trail.refs, trail.similarity)
        return np.maximum(scores, self.own.shares(trail.refs))

"""Every chain of links that leads to a document. Those where independent chains meet rank first."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from linkstore.arguments import require_at_least, require_within
from linkstore.arrays import contained
from linkstore.filters import Condition
from linkstore.hits import Chain, Hits, Triple
from linkstore.order import ranked
from linkstore.plans import Documents, Plan, Stored
from linkstore.strategies.base import DEFAULT_SEEDS, Question, Traversing
from linkstore.strategies.chains import MOST, Edge, Way, Ways, edges_of, independent, ways_of
from linkstore.strategies.firststage import FirstStage, first_stage
from linkstore.strategies.linkdata import data_in, labels_in
from linkstore.strategies.paths import hits_of
from linkstore.strategies.results import none_found, none_returned, returned
from linkstore.strategies.trail import NO_REFS, Trail
from linkstore.strategies.walk import Crossing, carried, hop, unlinked, with_own, within_nodes
from linkstore.vectors import Floats, Ints

ROOT: Final = 1.0
"""How well a start matches that the caller named; of others the first stage says it, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllPaths(Traversing):
    """Follow links to ``depth``, and return every chain that led to a document, as typed triples.

    Documents where several independent chains meet rank above those with one. Two chains to a document are
    independent if the sets of link kinds that they follow differ, and they share no document other than the
    one they lead to and, if they start from the same document, that one. So the answer to a question about
    two relations is the document where both arrive::

        drug —[BELONGS_TO]→ class —[GOVERNED_BY]→ regulation
        drug —[HAS_APPROVAL]→ approval —[IN_JURISDICTION]→ jurisdiction —[ENFORCES]→ regulation

    A search starts from the ``start_k`` best documents of a first stage that joins dense and lexical search,
    and from ``initial_roots`` and ``initial_links``. A score is the sum of four
    :attr:`~linkstore.hits.Hit.contributions`: ``meeting``, 1 for each independent chain after the first;
    ``start``, half of how well the documents match that the independent chains start from, from 0 to 1 (1 for
    roots), times the weights of the links on the way, on average; ``meaning`` and ``words``, half of how well
    the document itself matches.

    Where the backend has no lexical search, meaning alone makes the first stage. ``explain()`` says so.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        start_k: How many documents of the first stage to start from. Default 4.
        depth: Maximum number of links in a chain. Default 3.
        chains: Maximum number of chains of each hit. Default 8. Among the chains to one document that have
            the same length and the same kinds, only this many are considered, the strongest.
        pool: How many documents each search of the first stage gives. Default 100.
        lexical: Weight of words relative to meaning, where 0 leaves them out. Default 1.
    """

    start_k: int = DEFAULT_SEEDS
    depth: int = 3
    chains: int = 8
    pool: int = 100
    lexical: float = 1.0

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, depth=self.depth)
        require_at_least(1, chains=self.chains, pool=self.pool)
        require_within(0, 100, lexical=self.lexical)

    @property
    def hops(self) -> int:
        """See :attr:`Strategy.hops`."""
        return self.depth

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, ``depth`` hops that do not exclude what is known, the chains, one ranking."""
        trail = Trail()
        stage = yield from first_stage(trail, question, self, self.pool, self.lexical)
        best = yield from ranked(stage.refs, stage.scores(stage.refs, stage.similarity), self.start_k)
        found = unlinked(stage.refs[best], stage.similarity[best])
        starting = yield from with_own(trail, found, question, self)
        trail.add((yield from within_nodes(trail, starting, 0, self)))
        if not len(trail):
            best_similarity = stage.highest if self.start_k else None
            return none_found(trail, question, self.start_k, self, best_similarity)
        starts = _starts(trail, stage, found.refs)
        crossings = yield from self._follow_crossings(trail, question)
        edges = yield from edges_of(trail, crossings)
        ways = yield from ways_of(trail, starts, edges, self.depth, self.chains)
        trail.cut("paths", ways.unmade, None, f"links that would make more than {MOST:,} chains")
        return (yield from self._rank(trail, stage, starts, ways, question))

    def _follow_crossings(self, trail: Trail, question: Question) -> Plan[list[Crossing]]:
        """Follow links hop by hop. Documents that are known already are reached again."""
        crossings: list[Crossing] = []
        frontier = np.arange(len(trail))
        for depth in range(1, self.depth + 1):
            frontier = yield from carried(trail, frontier, self)
            hopped = yield from hop(trail, frontier, question, self, exclude=NO_REFS)
            crossings += hopped.crossings
            found = hopped.found
            fresh = found.take(~contained(found.refs, trail.refs))
            frontier = trail.add((yield from within_nodes(trail, fresh, depth, self)))
            if not len(frontier):
                break
        return crossings

    def _rank(
        self, trail: Trail, stage: FirstStage, starts: Mapping[int, float], ways: Ways, question: Question
    ) -> Plan[Hits]:
        met = {position: independent(to) for position, to in ways.to.items()}
        parts = _parts(trail, stage, starts, met)
        scores = functools.reduce(np.add, parts.values())
        # Twice the part of chains: the other parts add up to at most 1, so they only decide among equals.
        chosen = yield from returned(trail, scores + parts["meeting"], self.k, question, self.per_page)
        if not len(chosen):
            return none_returned(trail, self)
        shown = self._choose_shown(trail, chosen, ways, met)
        taken = {name: part[chosen] for name, part in parts.items()}
        hits = yield from hits_of(trail, chosen, self, question, scores[chosen], taken)
        chains = yield from _chains(trail, shown, met, question.link_filter)
        with_chains = (replace(hit, chains=chains[at]) for hit, at in zip(hits, chosen.tolist(), strict=True))
        return replace(hits, hits=tuple(with_chains))

    def _choose_shown(
        self, trail: Trail, chosen: Ints, ways: Ways, met: Mapping[int, list[Way]]
    ) -> dict[int, list[Way]]:
        """Choose the chains to show for each document that is returned, the independent ones first."""
        shown: dict[int, list[Way]] = {}
        left_out = 0
        for at in chosen.tolist():
            first = met.get(at, [])
            ordered = [*first, *(way for way in ways.to.get(at, ()) if way not in first)]
            shown[at] = ordered[: self.chains]
            left_out += len(ordered) - len(shown[at])
        trail.cut("paths", left_out, None, f"chains past the first {self.chains} of a document")
        return shown


def _starts(trail: Trail, stage: FirstStage, found: Ints) -> dict[int, float]:
    """Return how well each start matches.

    Args:
        trail: Holds only the starts yet.
        stage: The first stage.
        found: The refs of the starts that come from the first stage.
    """
    match = stage.scores(trail.refs, trail.similarity)
    match[~contained(trail.refs, found)] = ROOT
    return dict(enumerate((match * trail.weight).tolist()))


def _parts(
    trail: Trail, stage: FirstStage, starts: Mapping[int, float], met: Mapping[int, list[Way]]
) -> dict[str, Floats]:
    """Return the parts of the scores, (n,) each."""
    meeting, start = np.zeros((2, len(trail)), dtype=np.float32)
    start[list(starts)] = list(starts.values())
    for position, ways in met.items():
        meeting[position] = len(ways) - 1
        start[position] = max(float(start[position]), sum(way.strength for way in ways) / len(ways))
    half = np.float32(0.5)
    words = half * stage.by_words(trail.refs)
    meaning = half * stage.scores(trail.refs, trail.similarity) - words
    return {"meeting": meeting, "start": half * start, "meaning": meaning, "words": words}


def _chains(
    trail: Trail, shown: Mapping[int, list[Way]], met: Mapping[int, list[Way]], condition: Condition
) -> Plan[dict[int, tuple[Chain, ...]]]:
    """Make the chains of each position, with the labels and data that documents give to their links."""
    involved = sorted({at for ways in shown.values() for way in ways for at in way.positions})
    stored: list[Stored] = yield Documents(refs=trail.refs[involved])
    ids = {at: one.id for at, one in zip(involved, stored, strict=True)}
    labels = {at: labels_in(one.metadata) for at, one in zip(involved, stored, strict=True)}
    data = {at: data_in(one.metadata, condition) for at, one in zip(involved, stored, strict=True)}

    def triple(edge: Edge) -> Triple:
        subject, object_ = (edge.source, edge.target) if edge.forward else (edge.target, edge.source)
        link = (edge.kind, edge.tag)
        label = labels[subject].get(link) or labels[object_].get(link)
        told = data[subject].get(link)
        return Triple(subject=ids[subject], kind=edge.kind, object=ids[object_], label=label, data=told)

    return {
        position: tuple(
            Chain(ids[way.positions[0]], tuple(map(triple, way.edges)), way in met[position]) for way in ways
        )
        for position, ways in shown.items()
    }

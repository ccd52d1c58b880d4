"""What links join the answers of questions, and what they would bring to dense search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkstore.evaluation.profiles import HUB_CAP, GoldEdges, GoldProfile
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.running import require_gold
from linkstore.plans import Candidates, Find, Groups, Members, Memberships, Nearest, Plan, Reached, Side
from linkstore.store import LinkStore
from linkstore.strategies.base import SIDES
from linkstore.strategies.trail import NO_REFS
from linkstore.vectors import Floats, Ints, unit_vector

ALL: Final = "all"
"""Stands for all kinds of link together."""
_FIRST: Final = 5
"""What dense search does not have among so many is missed."""
_STARTS: Final = 10
"""Within reach is what one link joins to one of so many."""

Edge = tuple[int, int]


def gold_profile(store: LinkStore, questions: Sequence[GoldQuestion]) -> GoldProfile:
    """Ask each question of dense search, and look at the links of its gold documents.

    Raises:
        EvaluationError: If a gold document is not in the store.
    """
    require_gold(store, questions)
    tally = _Tally()
    for question in questions:
        vector = unit_vector(store.embeddings.embed_query(question.question))
        tally.add(store.backend.run(store.backend.answer(_looked_at(question, vector))))
    return tally.profile(len(questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What there is to say of one question.

    Args:
        gold: Its gold documents.
        edges: By kind, the documents that links join: pairs, the smaller ref first, one of them gold.
        missed: Gold documents that dense search does not have among its first.
        within_reach: Of these, those that a link joins to one of the starts.
    """

    gold: frozenset[int]
    edges: Mapping[str, frozenset[Edge]]
    missed: frozenset[int]
    within_reach: frozenset[int]


@dataclass(slots=True)
class _Tally:
    """Counts over questions."""

    recalls: list[float] = field(default_factory=list)
    missed: int = 0
    within_reach: int = 0
    gold: int = 0
    edges: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    joining: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    linked: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, one: _Looked) -> None:
        self.recalls.append(1 - len(one.missed) / len(one.gold))
        self.missed += len(one.missed)
        self.within_reach += len(one.within_reach)
        if len(one.gold) < 2:
            return
        self.gold += len(one.gold)
        for kind, edges in one.edges.items():
            joining = {edge for edge in edges if one.gold.issuperset(edge)}
            self.edges[kind] += len(edges)
            self.joining[kind] += len(joining)
            self.linked[kind] += len({ref for edge in joining for ref in edge})

    def profile(self, questions: int) -> GoldProfile:
        return GoldProfile(
            questions=questions,
            recall_at_5=float(np.mean(self.recalls)),
            missed=self.missed,
            within_reach=self.within_reach,
            kinds={
                kind: GoldEdges(
                    edges=self.edges[kind],
                    joining=self.joining[kind],
                    gold=self.gold,
                    linked=self.linked[kind],
                )
                for kind in sorted(self.edges, key=lambda kind: (kind != ALL, kind))
            },
        )


def _looked_at(question: GoldQuestion, vector: Floats) -> Plan[_Looked]:
    found: Candidates = yield Find(ids=question.gold)
    near: Candidates = yield Nearest(vector=vector, k=_STARTS)
    gold = frozenset(found.refs.tolist())
    edges = yield from _edges(found.refs, vector)
    missed = gold.difference(near.refs[:_FIRST].tolist())
    starts = frozenset(near.refs.tolist())
    reached = {ref for edge in edges[ALL] if starts.intersection(edge) for ref in edge}
    return _Looked(gold=gold, edges=edges, missed=missed, within_reach=missed & reached)


def _edges(refs: Ints, vector: Floats) -> Plan[dict[str, frozenset[Edge]]]:
    """By kind, and for all kinds, the pairs of one of ``refs`` and a document that a link joins it to."""
    edges: defaultdict[str, set[Edge]] = defaultdict(set)
    for leave, arrive in SIDES["both"]:
        yield from _one_way(refs, vector, leave, arrive, edges)
    whole = frozenset[Edge]().union(*edges.values())
    return {kind: frozenset(pairs) for kind, pairs in edges.items()} | {ALL: whole}


def _one_way(
    refs: Ints, vector: Floats, leave: Side, arrive: Side, edges: defaultdict[str, set[Edge]]
) -> Plan[None]:
    """Add the pairs that one direction joins."""
    own: Memberships = yield Groups(refs=refs, side=leave)
    groups, place = np.unique(own.group, return_inverse=True)
    reached: Reached = yield Members(
        groups=groups, side=arrive, vector=vector, take=HUB_CAP, cap=HUB_CAP, exclude=NO_REFS
    )
    members: defaultdict[int, list[int]] = defaultdict(list)
    for group, ref in zip(reached.group.tolist(), reached.refs.tolist(), strict=True):
        members[group].append(ref)
    sources = refs[own.document].tolist()
    for source, group, kind in zip(sources, place.tolist(), own.kind.tolist(), strict=True):
        pairs = {(min(source, ref), max(source, ref)) for ref in members[group] if ref != source}
        edges[own.kinds[kind]] |= pairs

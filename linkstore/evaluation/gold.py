"""Finds the links that join the answers of a question, and how much they can add to dense search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkstore.evaluation.profiles import HUB_CAP, GoldEdges, GoldProfile
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.units import GoldUnits
from linkstore.plans import (
    Candidates,
    Find,
    Groups,
    Ids,
    Members,
    Memberships,
    Nearest,
    Plan,
    Reached,
    Side,
)
from linkstore.store import LinkStore
from linkstore.strategies.base import SIDES
from linkstore.strategies.trail import NO_REFS
from linkstore.vectors import Floats, Ints, unit_vector

ALL: Final = "all"
"""Stands for all kinds of link together."""
_FIRST: Final = 5
"""A gold document is missed if it is not among this many results of dense search."""
_STARTS: Final = 10
"""A gold document is within reach if one link joins it to one of this many results."""

Edge = tuple[int, int]


def gold_profile(store: LinkStore, questions: Sequence[GoldQuestion], units: GoldUnits) -> GoldProfile:
    """Search for each question by similarity, and examine the links of its gold answers.

    Args:
        store: Where the documents are.
        questions: Questions with their answers.
        units: The documents of each answer.
    """
    tally = _Tally()
    for question in questions:
        answers = [units.documents[answer] for answer in question.gold]
        vector = unit_vector(store.embeddings.embed_query(question.question))
        tally.add(store.backend.run(store.backend.answer(_looked_at(answers, vector))))
    return tally.profile(len(questions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The answers of one question, and the links that join them.

    Args:
        answers: How many gold answers it has.
        answer: For each document of an answer, the number of that answer.
        edges: By kind, the documents that links join: pairs, the smaller ref first, one of them gold and the
            other not of the same answer.
        missed: Answers of which dense search has no document among its first.
        within_reach: Of these, those with a document that a link joins to one of the starts.
    """

    answers: int
    answer: Mapping[int, int]
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
        self.recalls.append(1 - len(one.missed) / one.answers)
        self.missed += len(one.missed)
        self.within_reach += len(one.within_reach)
        if one.answers < 2:
            return
        self.gold += one.answers
        for kind, edges in one.edges.items():
            joining = {edge for edge in edges if one.answer.keys() >= set(edge)}
            self.edges[kind] += len(edges)
            self.joining[kind] += len(joining)
            self.linked[kind] += len({one.answer[ref] for edge in joining for ref in edge})

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


def _looked_at(answers: Sequence[frozenset[str]], vector: Floats) -> Plan[_Looked]:
    number = {id: at for at, ids in enumerate(answers) for id in sorted(ids)}
    found: Candidates = yield Find(ids=tuple(number))
    ids: list[str] = yield Ids(refs=found.refs)
    answer = {ref: number[id] for ref, id in zip(found.refs.tolist(), ids, strict=True)}
    near: Candidates = yield Nearest(vector=vector, k=_STARTS)
    edges = yield from _edges(found.refs, vector)
    edges = {kind: _between(pairs, answer) for kind, pairs in edges.items()}
    missed = set(range(len(answers))) - _answers(near.refs[:_FIRST].tolist(), answer)
    starts = frozenset(near.refs.tolist())
    reached = {ref for edge in edges[ALL] if starts.intersection(edge) for ref in edge}
    return _Looked(
        answers=len(answers),
        answer=answer,
        edges=edges,
        missed=frozenset(missed),
        within_reach=frozenset(missed & _answers(reached, answer)),
    )


def _answers(refs: Iterable[int], answer: Mapping[int, int]) -> set[int]:
    return {answer[ref] for ref in refs if ref in answer}


def _between(pairs: frozenset[Edge], answer: Mapping[int, int]) -> frozenset[Edge]:
    """Return the pairs that do not stay within one answer."""
    return frozenset((one, other) for one, other in pairs if answer.get(one) != answer.get(other))


def _edges(refs: Ints, vector: Floats) -> Plan[dict[str, frozenset[Edge]]]:
    """Return the pairs of each of ``refs`` and a document linked to it, by kind and for all kinds."""
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

"""The links around a few documents, as the edges of a graph to walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.plans import Groups, Members, Memberships, Plan, Reached
from linkstore.strategies.base import SIDES, Question, Traversing
from linkstore.strategies.trail import NO_REFS, Departures, Edges, Found, Trail, merged
from linkstore.strategies.walk import departures_of, note_cuts
from linkstore.strategies.walkrank import Doubles
from linkstore.vectors import Ints, ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What lies around the frontier.

    Args:
        found: Documents that links lead to, some of which may be of the frontier.
        source: (m,) documents that edges leave.
        target: (m,) documents they lead to.
        weight: (m,) how strong each edge is.
    """

    found: Found
    source: Ints
    target: Ints
    weight: Doubles


def surroundings(
    trail: Trail, frontier: Ints, question: Question, controls: Traversing, backward: float
) -> Plan[Surroundings]:
    """Follow the link groups of the frontier one hop, and keep who is joined with whom.

    A link is an edge both ways; against its direction it counts ``backward`` times as much. A link group
    that leads to n documents divides its weight among them.

    Args:
        trail: Of the search.
        frontier: Positions in the trail.
        question: What is asked.
        controls: How links are followed.
        backward: Greater than 0.
    """
    parts: list[Edges] = []
    reached: list[Reached] = []
    joined: list[tuple[Ints, Ints, Doubles]] = []
    for leave, arrive in SIDES[controls.direction]:
        left: Memberships = yield Groups(refs=trail.refs[frontier], side=leave, kinds=controls.followed)
        departures = departures_of(trail, frontier, left, controls)
        groups = np.unique(left.group)
        answer: Reached = yield Members(
            groups=groups,
            side=arrive,
            vector=question.vector,
            take=controls.adjacent_k,
            cap=controls.hub_cap,
            exclude=NO_REFS,
            filter=question.filter & question.hop_filter,
        )
        yield from note_cuts(trail, groups, answer, 1, controls)
        source, target, weight = _joined(trail, departures, groups, answer)
        there, back = (1.0, backward) if leave == "out" else (backward, 1.0)
        joined += [(source, target, weight * there), (target, source, weight * back)]
        parts.append(departures.join(groups, answer))
        reached.append(answer)
    source, target, weight = _strongest(*map(np.concatenate, zip(*joined, strict=True)))
    found = merged(tuple(parts), tuple(reached))
    return Surroundings(found=found, source=source, target=target, weight=weight)


def _joined(
    trail: Trail, departures: Departures, groups: Ints, answer: Reached
) -> tuple[Ints, Ints, Doubles]:
    """Every document that leaves through a group with every other that the group leads to."""
    order = np.argsort(departures.group, kind="stable")
    through = departures.group[order]
    arrived = groups[answer.group]
    starts = np.searchsorted(through, arrived)
    counts = np.searchsorted(through, arrived, side="right") - starts
    leaving = order[ranges(starts, counts)]
    arriving = np.repeat(np.arange(len(arrived)), counts)
    source, target = trail.refs[departures.source[leaving]], answer.refs[arriving]
    sizes = answer.sizes[answer.group[arriving]].astype(np.float64)
    weight = departures.strength[leaving].astype(np.float64) * answer.weight[arriving] / sizes
    other = (source != target) & (weight > 0)
    return source[other], target[other], weight[other]


def _strongest(source: Ints, target: Ints, weight: Doubles) -> tuple[Ints, Ints, Doubles]:
    """Each edge once, with its largest weight."""
    order = np.lexsort((-weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    new = np.ones(len(source), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[new], target[new], weight[new]

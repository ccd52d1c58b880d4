"""The links around a few documents, as the edges of a graph to walk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.arrays import equals
from linkstore.plans import Plan, Reached
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.trail import NO_REFS, Departures, Found, Trail
from linkstore.strategies.walk import hop
from linkstore.strategies.walkrank import Doubles
from linkstore.vectors import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The links around the frontier.

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
    """Follow the link groups of the frontier one hop, and return the edges.

    A link is an edge in both directions. Against its direction it counts ``backward`` times as much. A link
    group that leads to n documents divides its weight among them.

    Args:
        trail: The trail of the search.
        frontier: Positions in the trail.
        question: The question.
        controls: How links are followed.
        backward: Greater than 0.
    """
    hopped = yield from hop(trail, frontier, question, controls, exclude=NO_REFS)
    joined: list[tuple[Ints, Ints, Doubles]] = []
    for one in hopped.crossings:
        source, target, weight = _joined(trail, one.departures, one.groups, one.answer)
        there, back = (1.0, backward) if one.leave == "out" else (backward, 1.0)
        joined += [(source, target, weight * there), (target, source, weight * back)]
    source, target, weight = _strongest(*map(np.concatenate, zip(*joined, strict=True)))
    return Surroundings(found=hopped.found, source=source, target=target, weight=weight)


def _joined(
    trail: Trail, departures: Departures, groups: Ints, answer: Reached
) -> tuple[Ints, Ints, Doubles]:
    """Join every document that leaves through a group with every other that the group leads to."""
    order = np.argsort(departures.group, kind="stable")
    arriving, left = equals(groups[answer.group], departures.group[order])
    leaving = order[left]
    source, target = trail.refs[departures.source[leaving]], answer.refs[arriving]
    sizes = answer.sizes[answer.group[arriving]].astype(np.float64)
    weight = departures.strength[leaving].astype(np.float64) * answer.weight[arriving] / sizes
    other = (source != target) & (weight > 0)
    return source[other], target[other], weight[other]


def _strongest(source: Ints, target: Ints, weight: Doubles) -> tuple[Ints, Ints, Doubles]:
    """Return each edge once, with its largest weight."""
    order = np.lexsort((-weight, target, source))
    source, target, weight = source[order], target[order], weight[order]
    new = np.ones(len(source), dtype=np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[new], target[new], weight[new]

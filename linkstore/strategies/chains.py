"""Every chain of links from where a search starts to what it reached, and which of them are independent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.arrays import distinct, equals, located
from linkstore.plans import Ids, Plan, Tags
from linkstore.strategies.trail import Trail
from linkstore.strategies.walk import Crossing
from linkstore.vectors import Floats, Ints

MOST: Final = 10_000
"""How many chains one search makes at most, before it stops making longer ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A link between two documents of a trail.

    Args:
        source: Position in the trail of the document that was left.
        target: Position of the document arrived at.
        kind: Of the link.
        tag: Of the link.
        forward: Whether it was followed in its direction.
        weight: Product of the weights of both links and of the kind.
    """

    source: int
    target: int
    kind: str
    tag: str
    forward: bool
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A chain of edges.

    Args:
        positions: The positions of its documents, from the start, one more than edges.
        edges: In order.
        strength: How well its start matches the question, times its weight: in [0, 1].
        rank: What ways are ordered by: stronger, then shorter ones, then by the ids and links on the way.
    """

    positions: tuple[int, ...]
    edges: tuple[Edge, ...]
    strength: float
    rank: tuple[object, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of link that the chain follows."""
        return frozenset(edge.kind for edge in self.edges)

    def is_independent_of(self, other: Way) -> bool:
        """Say whether two chains are independent.

        They are if they follow different kinds, and have no document in common except their start and end.
        """
        common = set(self.positions[:-1]) & set(other.positions[:-1])
        shared_start = {self.positions[0]} & {other.positions[0]}
        return self.kinds != other.kinds and common <= shared_start


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """All ways of a trail.

    Args:
        to: For each position that was reached by links, the ways to it, strongest first.
        unmade: How many ways were not made longer because there were too many.
    """

    to: Mapping[int, Sequence[Way]]
    unmade: int


def edges_of(trail: Trail, crossings: Sequence[Crossing]) -> Plan[list[Edge]]:
    """Return the links followed between documents of the trail: one for each pair and kind."""
    columns = [_joined(trail, crossing) for crossing in crossings]
    groups = distinct(np.concatenate([group for _, _, group, _ in columns])) if columns else None
    if groups is None or not len(groups):
        return []
    named: list[tuple[str, str]] = yield Tags(groups=groups)
    best: dict[tuple[int, int, str], Edge] = {}
    for crossing, (source, target, group, weight) in zip(crossings, columns, strict=True):
        at = np.searchsorted(groups, group).tolist()
        forward = crossing.leave == "out"
        for row in zip(source.tolist(), target.tolist(), at, weight.tolist(), strict=True):
            kind, tag = named[row[2]]
            edge = Edge(source=row[0], target=row[1], kind=kind, tag=tag, forward=forward, weight=row[3])
            key = edge.source, edge.target, kind
            if key not in best or _preference(edge) < _preference(best[key]):
                best[key] = edge
    return list(best.values())


def _preference(edge: Edge) -> tuple[float, bool, str]:
    return -edge.weight, not edge.forward, edge.tag


def _joined(trail: Trail, crossing: Crossing) -> tuple[Ints, Ints, Ints, Floats]:
    """Join departures with arrivals.

    Returns (m,) positions left and arrived at, link groups and weights.
    """
    left, reached = crossing.departures, crossing.answer
    order = np.argsort(left.group, kind="stable")
    arriving, at = equals(crossing.groups[reached.group], left.group[order])
    leaving = order[at]
    source = left.source[leaving]
    by_ref = np.argsort(trail.refs)
    place = located(reached.refs[arriving], trail.refs[by_ref])
    target = np.where(place >= 0, by_ref[place], -1)
    path = trail.weight[source]
    whole = left.strength[leaving] * reached.weight[arriving]
    weight = np.divide(whole, path, out=np.zeros_like(whole), where=path > 0)
    kept = (target >= 0) & (target != source)
    return source[kept], target[kept], left.group[leaving][kept], weight[kept]


def ways_of(
    trail: Trail, starts: Mapping[int, float], edges: Sequence[Edge], depth: int, keep: int
) -> Plan[Ways]:
    """Find the ways of at most ``depth`` edges from the starts of a search.

    No way meets a document twice.

    Args:
        trail: The trail of the search.
        starts: Positions of its starts, and how well each matches the question, from 0 to 1.
        edges: The edges between its documents.
        depth: The maximum number of edges of a way.
        keep: How many ways to one document are kept that have the same length and kinds, the strongest.
    """
    ids: list[str] = yield Ids(refs=trail.refs)
    leaving: dict[int, list[Edge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: (-edge.weight, ids[edge.target], edge.kind)):
        leaving[edge.source].append(edge)
    ends = [_start(at, starts[at], ids) for at in sorted(starts, key=ids.__getitem__)]
    found: dict[int, list[Way]] = defaultdict(list)
    made = unmade = 0
    for _ in range(depth):
        longer: list[Way] = []
        for way in ends:
            following = [edge for edge in leaving[way.positions[-1]] if edge.target not in way.positions]
            room = max(0, MOST - made)
            longer += [_extended(way, edge, ids) for edge in following[:room]]
            unmade += max(0, len(following) - room)
            made += min(room, len(following))
        ends = _strongest(longer, keep)
        if not ends:
            break
        for way in ends:
            found[way.positions[-1]].append(way)
    to = {position: sorted(ways, key=lambda way: way.rank) for position, ways in found.items()}
    return Ways(to=to, unmade=unmade)


def _start(at: int, strength: float, ids: Sequence[str]) -> Way:
    return Way(positions=(at,), edges=(), strength=strength, rank=(-strength, 0, (ids[at],)))


def _extended(way: Way, edge: Edge, ids: Sequence[str]) -> Way:
    positions, edges = (*way.positions, edge.target), (*way.edges, edge)
    strength = way.strength * edge.weight
    passed = tuple(ids[at] for at in positions)
    links = tuple((each.kind, each.tag) for each in edges)
    rank = (-strength, len(edges), passed, links)
    return Way(positions=positions, edges=edges, strength=strength, rank=rank)


def _strongest(ways: Iterable[Way], keep: int) -> list[Way]:
    """Return the ``keep`` strongest ways to each document for each set of kinds, in order of rank."""
    kept: list[Way] = []
    counts: dict[tuple[int, frozenset[str]], int] = defaultdict(int)
    for way in sorted(ways, key=lambda way: way.rank):
        key = way.positions[-1], way.kinds
        counts[key] += 1
        if counts[key] <= keep:
            kept.append(way)
    return kept


def independent(ways: Sequence[Way]) -> list[Way]:
    """Select ways that are independent of each other, one by one from the strongest on."""
    chosen: list[Way] = []
    for way in ways:
        if all(way.is_independent_of(other) for other in chosen):
            chosen.append(way)
    return chosen

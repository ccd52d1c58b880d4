"""The path that led to each document of a trail.

Of several ways to a document the shortest wins (hops are taken one by one, so it is the one that
reached it first), then the one that gives the document the highest score, then the one whose previous
document has the highest score, then the smallest id of that document, then the smallest kind and tag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.arrays import contained, distinct, equals
from linkstore.plans import Ids, Plan, Tags
from linkstore.strategies.trail import QUERY, Edges, Trail
from linkstore.vectors import Floats, Ints


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a document was reached: from which position of the trail, by which kind and tag."""

    source: int
    kind: str
    tag: str


@dataclass(frozen=True, slots=True)
class Ways:
    """Ways to documents, one in each row, each column of shape (n,).

    Args:
        position: Where to, in the trail.
        group: Through which link group.
        source: From which position.
        weight: Of the path.
        score: Of the document before.
    """

    position: Ints
    group: Ints
    source: Ints
    weight: Floats
    score: Floats

    def take(self, rows: Ints) -> Ways:
        """Return only the chosen ways."""
        return Ways(
            self.position[rows], self.group[rows], self.source[rows], self.weight[rows], self.score[rows]
        )


def arrivals_at(trail: Trail, positions: Ints) -> Plan[dict[int, Arrival]]:
    """Return how each position, and each on the way to it, was reached.

    Plain seeds have no entry.
    """
    arrivals: dict[int, Arrival] = {}
    wanted = set(positions.tolist())
    for layer in range(len(trail.layers) - 1, -1, -1):
        here = sorted(position for position in wanted if trail.layer[position] == layer)
        edges = trail.layers[layer].edges
        if not here or not edges:
            continue
        found = yield from settled(_best_ways(trail, np.array(here), edges), trail)
        arrivals.update(found)
        wanted.update(arrival.source for arrival in found.values() if arrival.source != QUERY)
    return arrivals


def _best_ways(trail: Trail, here: Ints, edges: tuple[Edges, ...]) -> Ways:
    """Find the ways that give each position the highest weight, from the best scored document before."""
    ways = ways_to(trail, here, edges)
    ways = ways.take(np.lexsort((-ways.score, -ways.weight, ways.position)))
    first = np.searchsorted(ways.position, ways.position)
    as_good = (ways.weight == ways.weight[first]) & (ways.score == ways.score[first])
    return ways.take(np.flatnonzero(as_good))


def ways_to(trail: Trail, here: Ints, edges: tuple[Edges, ...]) -> Ways:
    """Return every way through ``edges`` to the positions ``here``."""
    parts = [_ways(trail, here, part) for part in edges]
    return Ways(*(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)))


def _columns(ways: Ways) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    return ways.position, ways.group, ways.source, ways.weight, ways.score


def _ways(trail: Trail, here: Ints, edges: Edges) -> Ways:
    """Return every way through ``edges`` to the positions ``here``, joining arrivals with departures."""
    here = here[np.argsort(trail.refs[here])]
    arriving = np.flatnonzero(contained(edges.in_ref, trail.refs[here]))
    departures = np.argsort(edges.out_group, kind="stable")
    arrived, left = equals(edges.in_group[arriving], edges.out_group[departures])
    arriving, leaving = arriving[arrived], departures[left]
    source = edges.out_source[leaving]
    return Ways(
        position=here[np.searchsorted(trail.refs[here], edges.in_ref[arriving])],
        group=edges.in_group[arriving],
        source=source,
        weight=edges.out_strength[leaving] * edges.in_weight[arriving],
        score=np.where(source == QUERY, np.float32(0), trail.score[source]),
    )


def settled(ways: Ways, trail: Trail) -> Plan[dict[int, Arrival]]:
    """Choose among equally good ways by id, then by kind and tag."""
    tags: list[tuple[str, str]] = yield Tags(groups=ways.group)
    ids = yield from _ids_where_tied(ways, trail)
    best: dict[int, tuple[str, tuple[str, str], int]] = {}
    for position, source, tag in zip(ways.position.tolist(), ways.source.tolist(), tags, strict=True):
        way = (ids.get(source, ""), tag, source)
        if position not in best or way < best[position]:
            best[position] = way
    return {position: Arrival(source, *tag) for position, (_, tag, source) in best.items()}


def _ids_where_tied(ways: Ways, trail: Trail) -> Plan[dict[int, str]]:
    """Fetch ids of previous documents where several are equally good for the same position."""
    differ = (ways.position[1:] == ways.position[:-1]) & (ways.source[1:] != ways.source[:-1])
    tied = contained(ways.position, ways.position[1:][differ])
    sources = [source for source in distinct(ways.source[tied]).tolist() if source != QUERY]
    if not sources:
        return {}
    ids: list[str] = yield Ids(refs=trail.refs[sources])
    return dict(zip(sources, ids, strict=True))

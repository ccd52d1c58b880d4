"""The plan of the shortest paths between two documents.

Links are followed from both ends, a hop at a time, from the end with fewer documents to go on from. A path
that is not known yet has a link between two documents from which none was followed, so it has at least as
many links as hops were made, and one more. The search ends when ``k`` known paths are no longer than that,
because no link is shorter than 1. Among known links, paths are found by Yen's algorithm, with the distances
to the end as the estimates of A*.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints
from linkstore.core.display import format_count
from linkstore.core.graph_answer import ShortestPaths
from linkstore.core.hits import Chain, Triple
from linkstore.core.links import SUGGESTED
from linkstore.core.plans import Plan
from linkstore.errors import QueryError
from linkstore.strategies.base import HOP_SIDES, Question
from linkstore.strategies.resolver import resolve_name
from linkstore.strategies.results import LinkTexts
from linkstore.strategies.traversal import follow_links

DEFAULT_MAX_NODES: Final = 10_000
DEFAULT_HUB_CAP: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestPathSettings:
    """What a plan needs beside the two documents.

    Args:
        vector: (d,) any unit vector.
        type_field: The metadata field that holds types.
        k: How many paths.
        max_nodes: How many documents are looked at.
        hub_cap: Link groups with more documents are not followed.
        max_depth: How many links a path may have; None: any number.
    """

    vector: Floats
    type_field: str
    k: int
    max_nodes: int
    hub_cap: int
    max_depth: int | None


@dataclass(frozen=True, slots=True, order=True)
class _Link:
    """A link between two documents, by id; of several, the smallest counts."""

    length: float
    kind: str
    tag: str
    subject: str
    object: str


Path = tuple[str, ...]
Adjacency = Mapping[str, Mapping[str, _Link]]


def find_shortest_paths(start: str, end: str, settings: ShortestPathSettings) -> Plan[ShortestPaths]:
    """Plan the search for paths between two documents, by their ids or names.

    Raises:
        QueryError: If no document has one of the names, or several may be meant, or both mean the same.
    """
    ids: list[str] = []
    for name in (start, end):
        resolution = yield from resolve_name(name, settings.vector, type_field=settings.type_field)
        if resolution.document is None:
            raise QueryError(resolution.explain(name, "search for it", settings.type_field))
        ids.append(resolution.document.id)
    if ids[0] == ids[1]:
        raise QueryError(
            f"{start[:200]!r} and {end[:200]!r} are the same document, [{ids[0]}]; name another one"
        )
    search = _Search(ids[0], ids[1], settings)
    paths = yield from search.find()
    return (yield from search.describe(paths))


class _Search:
    """One search while it goes on."""

    def __init__(self, start: str, end: str, settings: ShortestPathSettings) -> None:
        self._start, self._end = start, end
        self._settings = settings
        self._links: dict[str, dict[str, _Link]] = {start: {}, end: {}}
        self._refs: dict[str, int] = {}
        self._followed: set[str] = set()
        self._seen: tuple[set[str], set[str]] = ({start}, {end})
        self._frontier: list[list[str]] = [[start], [end]]
        self._hubs = 0
        self._limits: list[str] = []

    def find(self) -> Plan[list[Path]]:
        """Return the paths, the shortest first."""
        both = yield from plans.ask(plans.Find(ids=(self._start, self._end)))
        ids = yield from plans.ask(plans.Ids(refs=both.refs))
        self._refs = dict(zip(ids, both.refs.tolist(), strict=True))
        paths: list[Path] = []
        hops = 0
        while all(self._frontier):
            side = int(len(self._frontier[1]) < len(self._frontier[0]))
            yield from self._expand(side)
            hops += 1
            if not self._seen[0].isdisjoint(self._seen[1]):
                paths = list(_find_simple_paths(self._links, self._start, self._end, self._settings.k))
                if len(paths) == self._settings.k and measure(self._links, paths[-1]) <= hops + 1:
                    break
            if sum(map(len, self._seen)) > self._settings.max_nodes:
                self._limits.append(
                    f"more than max_nodes={self._settings.max_nodes:,} documents are near both"
                )
                break
        else:
            paths = list(_find_simple_paths(self._links, self._start, self._end, self._settings.k))
        return paths

    def _expand(self, side: int) -> Plan[None]:
        """Follow the links of the documents reached last from one end."""
        fresh = [id for id in self._frontier[side] if id not in self._followed]
        refs = np.array([self._refs[id] for id in fresh], dtype=np.int64)
        for leave, _ in HOP_SIDES["both"] if fresh else ():
            yield from self._follow(fresh, refs, leave)
        self._followed.update(fresh)
        seen = self._seen[side]
        reached = {other for id in self._frontier[side] for other in self._links[id]} - seen
        seen |= reached
        self._frontier[side] = sorted(reached)

    def _follow(self, ids: Sequence[str], refs: Ints, leave: plans.Side) -> Plan[None]:
        cap = self._settings.hub_cap
        hop = yield from follow_links(
            refs, leave, weigh=lambda kind: float(kind != SUGGESTED), take=cap, cap=cap
        )
        self._hubs += int(np.count_nonzero(hop.reached.sizes > cap))
        edges = hop.edges.take((hop.edges.path_weight > 0) & (hop.edges.target != refs[hop.edges.source]))
        once, place = np.unique(edges.target, return_inverse=True)
        targets = yield from plans.ask(plans.Ids(refs=once))
        groups, group = np.unique(edges.group, return_inverse=True)
        tags = yield from plans.ask(plans.Tags(groups=groups))
        self._refs |= zip(targets, once.tolist(), strict=True)
        lengths = 1.0 / edges.path_weight.astype(np.float64)
        columns = (edges.source, place, group, edges.forward, lengths)
        for source, target, of_tag, forward, length in zip(*(c.tolist() for c in columns), strict=True):
            here, there = ids[int(source)], targets[int(target)]
            subject, object_ = (here, there) if forward else (there, here)
            kind, tag = tags[of_tag]
            link = _Link(length, kind, tag, subject, object_)
            for source_id, other in ((here, there), (there, here)):
                own = self._links.setdefault(source_id, {})
                own[other] = min(link, own.get(other, link))

    def describe(self, paths: Sequence[Path]) -> Plan[ShortestPaths]:
        """Return the paths as chains, with the labels and data of their links."""
        most = self._settings.max_depth
        if most is not None and any(len(path) - 1 > most for path in paths):
            self._limits.append(f"paths of more than max_depth={most} links are left out")
            paths = [path for path in paths if len(path) - 1 <= most]
        if self._hubs:
            hubs = format_count(self._hubs, "link group")
            self._limits.append(
                f"{hubs} with more than hub_cap={self._settings.hub_cap:,} documents not followed"
            )
        refs = sorted({self._refs[id] for path in paths for id in path})
        stored = yield from plans.ask(plans.Documents(refs=np.array(refs, dtype=np.int64)))
        texts = LinkTexts(dict(zip(refs, stored, strict=True)), Question(vector=self._settings.vector))
        return ShortestPaths(
            start=self._start,
            end=self._end,
            chains=tuple(self._make_chain(path, texts) for path in paths),
            lengths=tuple(measure(self._links, path) for path in paths),
            limits=tuple(self._limits),
        )

    def _make_chain(self, path: Path, texts: LinkTexts) -> Chain:
        triples = []
        for here, there in pairwise(path):
            link = self._links[here][there]
            tag, subject, object_ = (link.kind, link.tag), self._refs[link.subject], self._refs[link.object]
            triples.append(
                Triple(
                    subject=link.subject,
                    kind=link.kind,
                    object=link.object,
                    label=texts.label(tag, subject, object_),
                    data=texts.data(tag, subject),
                )
            )
        return Chain(path[0], tuple(triples))


def measure(links: Adjacency, path: Path) -> float:
    """Return the length of a path."""
    return sum(links[here][there].length for here, there in pairwise(path))


def _find_simple_paths(links: Adjacency, start: str, end: str, k: int) -> Iterator[Path]:
    """Yield the ``k`` shortest paths that pass no document twice, by Yen's algorithm."""
    distance = _measure_distances(links, end)
    first = _find_path(links, (start,), end, distance, ())
    if first is None:
        return
    yielded: list[Path] = []
    made, waiting = {first}, [(measure(links, first), first)]
    while waiting and len(yielded) < k:
        _, path = heapq.heappop(waiting)
        yielded.append(path)
        yield path
        for at in range(len(path) - 1):
            root = path[: at + 1]
            taken = {other[at + 1] for other in yielded if other[: at + 1] == root}
            spur = _find_path(links, root, end, distance, taken)
            if spur is not None and spur not in made:
                made.add(spur)
                heapq.heappush(waiting, (measure(links, spur), spur))


def _measure_distances(links: Adjacency, end: str) -> dict[str, float]:
    """Return the distance to the end of each document from which it can be reached."""
    distance: dict[str, float] = {}
    waiting = [(0.0, end)]
    while waiting:
        length, id = heapq.heappop(waiting)
        if id in distance:
            continue
        distance[id] = length
        for other, link in links[id].items():
            if other not in distance:
                heapq.heappush(waiting, (length + link.length, other))
    return distance


def _find_path(
    links: Adjacency, root: Path, end: str, distance: Mapping[str, float], taken: Collection[str]
) -> Path | None:
    """Return the shortest path that begins with ``root`` and goes on to none of ``taken``, or None."""
    passed = set(root)
    before: dict[str, str] = {}
    waiting = [(distance.get(root[-1], 0.0), 0.0, root[-1], "")]
    while waiting:
        _, length, id, source = heapq.heappop(waiting)
        if id in before:
            continue
        before[id] = source
        if id == end:
            way = [id]
            while way[-1] != root[-1]:
                way.append(before[way[-1]])
            return (*root[:-1], *reversed(way))
        for other, link in links[id].items():
            barred = other in passed or other in before or (id == root[-1] and other in taken)
            if not barred and other in distance:
                further = length + link.length
                heapq.heappush(waiting, (further + distance[other], further, other, id))
    return None

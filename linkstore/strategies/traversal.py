"""Hops along links: the edges of one hop, as a table, and all that a search has reached.

Here alone, the link groups that documents leave through are joined with the documents that these groups lead
to. Strategies, neighbours, the tools, the reader and the compiler are functions over the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, Required, TypedDict, TypeVar, Unpack

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import (
    Bools,
    Floats,
    Ints,
    damp_similarity,
    find_positions,
    join_equal,
    mark_first,
    sort_unique,
)
from linkstore.core.calls import answer_plan
from linkstore.core.display import format_count
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.hits import Cut
from linkstore.core.plans import Plan, Side, rank_refs, sort_by_group
from linkstore.errors import StrategyError
from linkstore.strategies.base import HOP_SIDES, Question, Strategy, Traversing

T = TypeVar("T")
NO_REFS: Ints = np.empty(0, dtype=np.int64)
NO_SCORES: Floats = np.empty(0, dtype=np.float32)
QUERY: Final = -1
"""The position that stands for the query itself as the source of a link."""
MAX_SHOWN_HUBS: Final = 5
EXCLUDED_LINKS: Final = "links that link_filter excludes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """Links between documents, one in each row: from a source through a link group to a target.

    Args:
        source: (m,) whose link leaves: positions in what was left, or :data:`QUERY`.
        target: (m,) whose link arrives: documents, or positions in a trail.
        group: (m,) the link group that both links belong to: kind and tag.
        strength: (m,) weight of the path up to the group, with the weight of the link that leaves.
        weight: (m,) weight of the link that arrives.
        forward: (m,) whether the links were followed in their direction.
        similarity: (m,) of the target to the question.
        size: (m,) how many documents the group has on the side of the target.
    """

    source: Ints
    target: Ints
    group: Ints
    strength: Floats
    weight: Floats
    forward: Bools
    similarity: Floats
    size: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def path_weight(self) -> Floats:
        """(m,) weight of the whole path to the target."""
        return self.strength * self.weight

    def take(self, rows: Ints | Bools) -> Edges:
        """Return only the chosen rows."""
        return Edges(**{name: getattr(self, name)[rows] for name in _COLUMNS})

    @classmethod
    def concatenate(cls, parts: Sequence[Edges]) -> Edges:
        """Return the rows of several tables, at least one, in one."""
        if len(parts) == 1:
            return parts[0]
        return cls(**{name: np.concatenate(list(map(attrgetter(name), parts))) for name in _COLUMNS})


_COLUMNS: Final = tuple(field.name for field in fields(Edges))
NO_EDGES: Final = Edges(
    source=NO_REFS,
    target=NO_REFS,
    group=NO_REFS,
    strength=NO_SCORES,
    weight=NO_SCORES,
    forward=np.empty(0, dtype=np.bool_),
    similarity=NO_SCORES,
    size=NO_REFS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One direction of a hop.

    Args:
        edges: The links that were followed.
        source: (n,) the source of each link that leaves, even if it leads nowhere.
        group: (n,) its link group.
        groups: (g,) the link groups, each once, ascending.
        reached: The answer for ``groups``.
        excluded: How many links that leave the filter on links excluded.
    """

    edges: Edges
    source: Ints
    group: Ints
    groups: Ints
    reached: plans.ReachedMembers
    excluded: int = 0

    @property
    def size(self) -> Ints:
        """(n,) how many documents each group has on the other side, counted to at most ``cap`` + 1."""
        return self.reached.sizes[np.searchsorted(self.groups, self.group)]


class Arrival(TypedDict, total=False):
    """How a hop arrives: see :class:`~linkstore.core.plans.Members`."""

    take: Required[int]
    cap: Required[int]
    vector: Floats | None
    exclude: Ints
    filter: Condition


def follow_links(
    refs: Ints,
    leave: Side,
    *,
    source: Ints | None = None,
    kinds: frozenset[str] | None = None,
    weigh: Callable[[str], float] = lambda _: 1.0,
    strength: Floats | None = None,
    links: Condition = EVERYTHING,
    **arrival: Unpack[Arrival],
) -> Plan[Hop]:
    """Follow the links of documents to other documents, in one direction.

    Args:
        refs: (n,) the documents.
        leave: The side of link groups on which the documents are.
        source: (n,) the sources of their edges; None: positions in ``refs``.
        kinds: Kinds of link to follow; None: all.
        weigh: Returns the weight of a kind, 0 for one that is not followed.
        strength: (n,) weight of the path to each document; None: 1.
        links: What the data of links must pass. Only links that point are tested.
        arrival: Which documents of each link group are wanted.
    """
    tested = links if leave == "out" else EVERYTHING
    left = yield from plans.ask(plans.Groups(refs=refs, side=leave, kinds=kinds, links=tested))
    weights = np.array(list(map(weigh, left.kinds)), dtype=np.float32)[left.kind]
    path = np.ones(len(refs), dtype=np.float32) if strength is None else strength
    rows = weights > 0
    hop = yield from follow_groups(
        left.group[rows],
        "in" if leave == "out" else "out",
        (path[left.document] * weights * left.weight)[rows],
        links,
        source=left.document[rows] if source is None else source[left.document[rows]],
        **arrival,
    )
    return replace(hop, excluded=left.filtered)


def follow_groups(
    group: Ints,
    arrive: Side,
    strength: Floats | None = None,
    links: Condition = EVERYTHING,
    *,
    source: Ints | None = None,
    **arrival: Unpack[Arrival],
) -> Plan[Hop]:
    """Follow link groups to the documents on one side of them.

    Args:
        group: (n,) link groups, such as those that documents leave through.
        arrive: The side of the documents that are wanted.
        strength: (n,) weight of the path to each; None: 1.
        links: See :func:`follow_links`, as for ``arrival``.
        source: (n,) the sources of the edges; None: positions in ``group``.
        arrival: Which documents of each link group are wanted.
    """
    source = np.arange(len(group)) if source is None else source
    strength = np.ones(len(group), dtype=np.float32) if strength is None else strength
    groups = sort_unique(group)
    tested = links if arrive == "out" else EVERYTHING
    reached = yield from plans.ask(plans.Members(groups=groups, side=arrive, links=tested, **arrival))
    leaving, arriving = join_equal(group, groups[reached.group])
    edges = Edges(
        source=source[leaving],
        target=reached.refs[arriving],
        group=group[leaving],
        strength=strength[leaving],
        weight=reached.weight[arriving],
        forward=np.full(len(leaving), arrive == "in"),
        similarity=reached.similarity[arriving],
        size=reached.sizes[reached.group[arriving]],
    )
    return Hop(edges=edges, source=source, group=group, groups=groups, reached=reached)


def follow_tags(tags: Sequence[tuple[str, str]], arrive: Side, **arrival: Unpack[Arrival]) -> Plan[Hop]:
    """Follow link groups, by (kind, tag), to the documents on one side: see :func:`follow_groups`.

    The sources of the edges are positions in ``tags``. Those that no document has are left out.
    """
    groups = yield from plans.ask(plans.Resolve(tags=tuple(tags)))
    there = np.flatnonzero(groups >= 0)
    return (yield from follow_groups(groups[there], arrive, source=there, **arrival))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocuments:
    """Documents found by one step of a search, each once.

    Args:
        refs: (n,) documents.
        similarity: (n,) to the question.
        weight: (n,) product of link and kind weights along the best path.
        edges: How they were reached, from positions in the trail to documents; none for those found by
            similarity or by id.
    """

    refs: Ints
    similarity: Floats
    weight: Floats
    edges: Edges = NO_EDGES

    @property
    def score(self) -> Floats:
        """(n,) similarity damped by the weight of the path, in [-1, 1]."""
        return damp_similarity(self.similarity, self.weight)

    def __len__(self) -> int:
        return len(self.refs)

    def take(self, chosen: Ints | Bools) -> FoundDocuments:
        """Return only the chosen documents."""
        return FoundDocuments(
            refs=self.refs[chosen],
            similarity=self.similarity[chosen],
            weight=self.weight[chosen],
            edges=self.edges,
        )

    @classmethod
    def from_refs(cls, refs: Ints, similarity: Floats, edges: Edges = NO_EDGES) -> FoundDocuments:
        """Return documents whose path weighs nothing, as if no link led to them, each once, ascending."""
        unique, first = np.unique(refs, return_index=True)
        weight = np.ones(len(unique), dtype=np.float32)
        return cls(refs=unique, similarity=similarity[first], weight=weight, edges=edges)

    @classmethod
    def from_edges(cls, edges: Edges) -> FoundDocuments:
        """Return the documents that edges lead to, each once, with the weight of its best path, ascending."""
        weight = edges.path_weight
        order, keys = sort_by_group(edges.target, weight)
        best = order[mark_first(keys >> 32)]
        return cls(
            refs=edges.target[best], similarity=edges.similarity[best], weight=weight[best], edges=edges
        )


class Trail:
    """The documents that one search reached so far, the links to them, and the cuts."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self.doubt: str | None = None
        self.least_similarity: float | None = None
        self.refs: Ints = NO_REFS
        self.similarity: Floats = NO_SCORES
        self.weight: Floats = NO_SCORES
        self.score: Floats = NO_SCORES
        self.depth: Ints = NO_REFS
        self.edges: list[Edges] = []

    def __len__(self) -> int:
        return len(self.refs)

    def add(self, found: FoundDocuments, depth: int = 0) -> Ints:
        """Append documents, and return their positions in the trail.

        Args:
            found: The documents reached. Edges that lead elsewhere get the target -1.
            depth: The number of hops.
        """
        positions = np.arange(len(self.refs), len(self.refs) + len(found.refs))
        self.refs = np.concatenate((self.refs, found.refs))
        self.similarity = np.concatenate((self.similarity, found.similarity))
        self.weight = np.concatenate((self.weight, found.weight))
        self.score = np.concatenate((self.score, found.score))
        self.depth = np.concatenate((self.depth, np.full(len(positions), depth)))
        if len(found) and len(found.edges):
            order = np.argsort(found.refs)
            at = find_positions(found.edges.target, found.refs[order])
            self.edges.append(replace(found.edges, target=np.where(at < 0, -1, positions[order[at]])))
        return positions

    def cut(self, reason: str, count: int, depth: int | None, detail: str) -> None:
        """Record what was left out, unless the count is 0."""
        if count:
            self.cuts.append(Cut(reason=reason, count=count, depth=depth, detail=detail))


def make_hop(
    trail: Trail, frontier: Ints, question: Question, controls: Traversing, *, exclude: Ints = NO_REFS
) -> Plan[FoundDocuments]:
    """Follow the links of the frontier one hop, and record what was left out.

    Args:
        trail: The trail of the search.
        frontier: Positions in the trail.
        question: The question.
        controls: How links are followed.
        exclude: Documents that are not wanted again.
    """
    depth = int(trail.depth[frontier].max(initial=0)) + 1
    parts: list[Edges] = []
    for leave, _ in HOP_SIDES[controls.direction]:
        hop = yield from follow_links(
            trail.refs[frontier],
            leave,
            source=frontier,
            kinds=controls.followed,
            weigh=controls.weight_of,
            strength=trail.weight[frontier],
            links=question.link_filter,
            vector=question.vector,
            take=controls.adjacent_k,
            cap=controls.hub_cap,
            exclude=exclude,
            filter=question.hop_filter,
        )
        yield from record_cuts(trail, hop, depth, controls)
        parts.append(hop.edges)
    return FoundDocuments.from_edges(Edges.concatenate(parts))


def record_cuts(trail: Trail, hop: Hop, depth: int, controls: Traversing) -> Plan[None]:
    """Record the hubs not followed, and everything that the filters of the stage left out."""
    stage = "hop_filter" if depth else "seed_filter"
    trail.cut("filter", hop.excluded, depth, EXCLUDED_LINKS)
    trail.cut("filter", hop.reached.filtered, depth, f"members of link groups that {stage} excludes")
    trail.cut("filter", hop.reached.filtered_links, depth, EXCLUDED_LINKS)
    hubs = hop.groups[hop.reached.sizes > controls.hub_cap]
    if len(hubs):
        tags = yield from plans.ask(plans.Tags(groups=hubs))
        shown = ", ".join(f"{kind} {tag}" for kind, tag in sorted(tags)[:MAX_SHOWN_HUBS])
        more = "" if len(hubs) <= MAX_SHOWN_HUBS else f" and {len(hubs) - MAX_SHOWN_HUBS} more"
        trail.cut("hub", len(hubs), depth, f"more than hub_cap {controls.hub_cap} members: {shown}{more}")


def limit_nodes(
    trail: Trail, found: FoundDocuments, depth: int, controls: Traversing
) -> Plan[FoundDocuments]:
    """Return the best documents found at ``depth``, as many as still fit under ``max_nodes``."""
    room = controls.max_nodes - len(trail)
    if len(found) <= room:
        return found
    chosen = yield from rank_refs(found.refs, found.score, room)
    trail.cut("max_nodes", len(found) - room, depth, f"max_nodes {controls.max_nodes}")
    return found.take(chosen)


def apply_beam(trail: Trail, positions: Ints, controls: Traversing) -> Plan[Ints]:
    """Return the frontier of the next hop: the best of ``positions``, at most ``beam``."""
    if len(positions) <= controls.beam:
        return positions
    chosen = yield from rank_refs(trail.refs[positions], trail.score[positions], controls.beam)
    depth = int(trail.depth[positions[0]])
    trail.cut("beam", len(positions) - controls.beam, depth, f"not followed: beam {controls.beam}")
    return positions[chosen]


def check_depth(strategy: Strategy, hops: int, max_depth: int) -> None:
    """Raise if a strategy follows more links in a row than a store allows.

    Raises:
        StrategyError: If ``hops`` is more than ``max_depth``. The message names both.
    """
    if hops > max_depth:
        raise StrategyError(
            f"{strategy} follows up to {format_count(hops, 'link')} in a row, but this store has "
            f"max_depth={max_depth}; ask for a depth of at most {max_depth}"
        )


def limit_depth(plan: Plan[T], strategy: Strategy, max_depth: int) -> Plan[T]:
    """Run the plan of a strategy, which ends with an error where it would follow more links than allowed.

    The settings of linkstore's own strategies are checked before they run. This counts the links that any
    plan follows.
    """
    return answer_plan(plan, _DepthLimit(strategy, max_depth).answer)


class _DepthLimit:
    """How many links lead to what a plan has found.

    A link group is as far from the start as the nearest document that was found in it, and the documents that
    it leads to are one link further.
    """

    def __init__(self, strategy: Strategy, max_depth: int) -> None:
        self._strategy = strategy
        self._max_depth = max_depth
        self._documents: dict[int, int] = {}
        self._groups: dict[int, int] = {}

    def answer(self, fetch: plans.Fetch[Any]) -> Plan[Any]:
        """Pass a fetch on, unless it follows one link more than allowed."""
        if isinstance(fetch, plans.Members):
            depth = max((self._groups.get(group, -1) for group in fetch.groups.tolist()), default=-1) + 1
            check_depth(self._strategy, depth, self._max_depth)
        answer = yield from plans.ask(fetch)
        self._learn(fetch, answer)
        return answer

    def _learn(self, fetch: plans.Fetch[Any], answer: Any) -> None:
        """Record how far away is what an answer contains."""
        match fetch:
            case plans.Nearest() | plans.Find() | plans.Lexical():
                _record_depths(self._documents, answer.refs, repeat(0))
            case plans.Resolve():  # the query itself names these groups: their documents are starts
                _record_depths(self._groups, answer, repeat(-1))
            case plans.Groups():
                left = fetch.refs[answer.document].tolist()
                _record_depths(self._groups, answer.group, (self._documents.get(ref, -1) for ref in left))
            case plans.Members():
                through = fetch.groups[answer.group].tolist()
                depths = (self._groups.get(group, -1) + 1 for group in through)
                _record_depths(self._documents, answer.refs, depths)
            case _:
                pass


def _record_depths(known: dict[int, int], refs: Ints, depths: Iterable[int]) -> None:
    for ref, depth in zip(refs.tolist(), depths, strict=False):
        known[ref] = min(depth, known.get(ref, depth))

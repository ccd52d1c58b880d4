"""The parts that traversing plans are made of: starts, hops, and the trail of what each reached.

The trail of a search, which records what each hop reached, and by which links.

The parts that traversing plans are made of: where to start, and one hop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints, damp_similarity, is_member, sort_unique
from linkstore.core.hits import Cut
from linkstore.core.links import Link
from linkstore.core.plans import (
    Candidates,
    Find,
    Groups,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    Side,
    Tags,
    rank_refs,
)
from linkstore.strategies.base import HOP_SIDES, Question, Traversing

NO_REFS: Ints = np.empty(0, dtype=np.int64)
NO_SCORES: Floats = np.empty(0, dtype=np.float32)
QUERY: Final = -1
"""The position that stands for the query itself as the source of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """The links one hop followed through link groups, unjoined.

    Args:
        out_group: (m,) link groups left through.
        out_source: (m,) positions in the trail of the documents that left.
        out_strength: (m,) weight of the path up to the group.
        in_group: (n,) link groups arrived through.
        in_ref: (n,) documents arrived at.
        in_weight: (n,) weight of the links arrived through.
        in_strength: (n,) weight of the best path through the group.
    """

    out_group: Ints
    out_source: Ints
    out_strength: Floats
    in_group: Ints
    in_ref: Ints
    in_weight: Floats
    in_strength: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDocuments:
    """Documents found by one step of a search, each once.

    Args:
        refs: (n,) documents.
        similarity: (n,) to the question.
        weight: (n,) product of link and kind weights along the best path.
        edges: How they were reached, empty for those found by similarity or by id.
    """

    refs: Ints
    similarity: Floats
    weight: Floats
    edges: tuple[Edges, ...] = ()

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


class Trail:
    """All that one search reached so far, and what it left out. Lives as long as its plan runs."""

    def __init__(self) -> None:
        self.layers: list[FoundDocuments] = []
        self.cuts: list[Cut] = []
        self.refs: Ints = NO_REFS
        self.similarity: Floats = NO_SCORES
        self.weight: Floats = NO_SCORES
        self.score: Floats = NO_SCORES
        self.depth: Ints = NO_REFS
        self.layer: Ints = NO_REFS

    def __len__(self) -> int:
        return len(self.refs)

    def add(self, found: FoundDocuments, depth: int | None = None) -> Ints:
        """Append a layer, and return the positions of its documents in the trail.

        Args:
            found: The documents reached.
            depth: The number of hops. Default: the number of layers before.
        """
        start, layer = len(self.refs), len(self.layers)
        self.layers.append(found)
        self.refs = np.concatenate((self.refs, found.refs))
        self.similarity = np.concatenate((self.similarity, found.similarity))
        self.weight = np.concatenate((self.weight, found.weight))
        self.score = np.concatenate((self.score, found.score))
        self.depth = np.concatenate((self.depth, np.full(len(found), layer if depth is None else depth)))
        self.layer = np.concatenate((self.layer, np.full(len(found), layer)))
        return np.arange(start, len(self.refs))

    def cut(self, reason: str, count: int, depth: int | None, detail: str) -> None:
        """Note what was left out. Nothing is noted for a count of 0."""
        if count:
            self.cuts.append(Cut(reason=reason, count=count, depth=depth, detail=detail))


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """The links by which one hop leaves the frontier.

    Args:
        group: (m,) link groups left through.
        source: (m,) positions in the trail of the documents that leave.
        strength: (m,) weight of the path up to the group.
    """

    group: Ints
    source: Ints
    strength: Floats

    def best(self, groups: Ints) -> Floats:
        """Return the (g,) weight of the best path to each of ``groups``.

        The groups ascend, and include all that the hop leaves through.
        """
        best = np.zeros(len(groups), dtype=np.float32)
        np.maximum.at(best, np.searchsorted(groups, self.group), self.strength)
        return best

    def join(self, groups: Ints, reached: ReachedMembers) -> Edges:
        """Return the links that the hop followed, by a join with the documents that link groups led to."""
        return Edges(
            out_group=self.group,
            out_source=self.source,
            out_strength=self.strength,
            in_group=groups[reached.group],
            in_ref=reached.refs,
            in_weight=reached.weight,
            in_strength=self.best(groups)[reached.group] * reached.weight,
        )


def merge_reached(edges: tuple[Edges, ...], reached: tuple[ReachedMembers, ...]) -> FoundDocuments:
    """Return the documents that one hop reached, each once, with the weight of its best path."""
    refs = np.concatenate([part.refs for part in reached])
    if not len(refs):
        return FoundDocuments(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES, edges=edges)
    similarity = np.concatenate([part.similarity for part in reached])
    strength = np.concatenate([part.in_strength for part in edges])
    order = np.lexsort((-strength, refs))
    ordered = refs[order]
    best = order[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return FoundDocuments(refs=refs[best], similarity=similarity[best], weight=strength[best], edges=edges)


MAX_SHOWN_HUBS = 5
EXCLUDED_LINKS_NOTE = "links that link_filter excludes"


@dataclass(frozen=True, slots=True)
class SearchStart:
    """The starting points of a search (by similarity, by id or by link) and the best similarity seen."""

    found: FoundDocuments
    best: float | None


def find_seeds(trail: Trail, k: int, question: Question, controls: Traversing) -> Plan[SearchStart]:
    """Find the documents a search starts from: the ``k`` nearest, the named roots, the linked ones."""
    near: Candidates = yield Nearest(vector=question.vector, k=k, filter=question.seed_filter)
    above = near.similarity >= np.float32(controls.floor)
    trail.cut("floor", int((~above).sum()), 0, f"min_similarity {controls.floor}")
    found = make_unlinked(near.refs[above], near.similarity[above])
    best = float(near.similarity[0]) if len(near.refs) else None
    return SearchStart((yield from add_own_starts(trail, found, question, controls)), best)


def add_own_starts(
    trail: Trail, found: FoundDocuments, question: Question, controls: Traversing
) -> Plan[FoundDocuments]:
    """Add the roots of the question and the targets of its own links to the documents found."""
    plain = found
    if question.roots:
        roots = yield from fetch_roots(trail, question)
        plain = make_unlinked(
            np.concatenate((plain.refs, roots.refs)), np.concatenate((plain.similarity, roots.similarity))
        )
    if not question.links:
        return plain
    arrived = yield from fetch_linked(trail, plain.refs, question, controls)
    return _unite_found(plain, arrived)


def make_unlinked(refs: Ints, similarity: Floats) -> FoundDocuments:
    """Return documents that no link led to, each once."""
    unique, first = np.unique(refs, return_index=True)
    return FoundDocuments(
        refs=unique, similarity=similarity[first], weight=np.ones(len(unique), dtype=np.float32)
    )


def fetch_roots(trail: Trail, question: Question) -> Plan[Candidates]:
    """Fetch the roots that the question names by id."""
    found: Candidates = yield Find(ids=question.roots, vector=question.vector, filter=question.seed_filter)
    trail.cut("filter", found.filtered, 0, "initial_roots that seed_filter excludes")
    missing = len(set(question.roots)) - len(found.refs) - found.filtered
    trail.cut("missing", missing, 0, "initial_roots that are not in the store")
    return found


def fetch_linked(trail: Trail, known: Ints, question: Question, controls: Traversing) -> Plan[FoundDocuments]:
    """Fetch the documents that the question's own links lead to, except the known ones."""
    edges, reached = [], []
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    for leave, arrive in HOP_SIDES[controls.direction]:
        usable = [
            link
            for link in question.links
            if (link.leads_out if leave == "out" else link.leads_in) and controls.weight_of(link.kind) > 0
        ]
        tags = tuple((link.kind, link.tag) for link in usable)
        refs: Ints = yield Resolve(tags=tags)
        groups = sort_unique(refs[refs >= 0])
        answer: ReachedMembers = yield Members(
            groups=groups,
            side=arrive,
            vector=question.vector,
            take=controls.adjacent_k,
            cap=controls.hub_cap,
            exclude=known,
            filter=question.seed_filter,
            links=question.links_on(arrive),
        )
        yield from note_cuts(trail, groups, answer, 0, controls)
        asked.update(tags)
        peopled = is_member(refs, groups[answer.sizes > 0])
        answered.update(tag for tag, leads in zip(tags, peopled, strict=True) if leads)
        reached.append(answer)
        edges.append(_depart_from_query(usable, refs, controls).join(groups, answer))
    trail.cut("missing", len(asked - answered), 0, "initial_links that lead to no document")
    return merge_reached(tuple(edges), tuple(reached))


def _depart_from_query(usable: list[Link], refs: Ints, controls: Traversing) -> Departures:
    """Return the question's links, as departures from the query as if it were a document with these links."""
    weights = np.array([link.weight * controls.weight_of(link.kind) for link in usable], dtype=np.float32)
    known = refs >= 0
    return Departures(group=refs[known], source=np.full(int(known.sum()), QUERY), strength=weights[known])


def _unite_found(plain: FoundDocuments, linked: FoundDocuments) -> FoundDocuments:
    return FoundDocuments(
        refs=np.concatenate((plain.refs, linked.refs)),
        similarity=np.concatenate((plain.similarity, linked.similarity)),
        weight=np.concatenate((plain.weight, linked.weight)),
        edges=linked.edges,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """One direction of a hop: from one side of link groups to the other.

    Args:
        leave: The side of the frontier documents.
        departures: The memberships by which the frontier was left.
        groups: (g,) the link groups, ascending.
        answer: The documents they led to.
    """

    leave: Side
    departures: Departures
    groups: Ints
    answer: ReachedMembers

    @property
    def edges(self) -> Edges:
        """The links that were followed."""
        return self.departures.join(self.groups, self.answer)


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop, each way that is followed."""

    crossings: tuple[Crossing, ...]

    @property
    def found(self) -> FoundDocuments:
        """The documents that all ways led to."""
        return merge_reached(
            tuple(one.edges for one in self.crossings), tuple(one.answer for one in self.crossings)
        )


def make_hop(
    trail: Trail,
    frontier: Ints,
    question: Question,
    controls: Traversing,
    *,
    exclude: Ints,
    best: int | None = None,
) -> Plan[Hop]:
    """Follow the link groups of the frontier (positions in the trail) one hop.

    Args:
        trail: The trail of the search.
        frontier: Positions in the trail.
        question: The question.
        controls: How links are followed.
        exclude: Documents that are not wanted again.
        best: How many of those found, the best by score, will be fetched further, or None for all.
    """
    depth = int(trail.depth[frontier].max(initial=0)) + 1
    crossed = []
    for leave, arrive in HOP_SIDES[controls.direction]:
        left: Memberships = yield Groups(
            refs=trail.refs[frontier],
            side=leave,
            kinds=controls.followed,
            links=question.links_on(leave),
        )
        trail.cut("filter", left.filtered, depth, EXCLUDED_LINKS_NOTE)
        departures = find_departures(trail, frontier, left, controls)
        groups = sort_unique(left.group)
        answer: ReachedMembers = yield Members(
            groups=groups,
            side=arrive,
            vector=question.vector,
            take=controls.adjacent_k,
            cap=controls.hub_cap,
            exclude=exclude,
            filter=question.hop_filter,
            links=question.links_on(arrive),
            strength=departures.best(groups),
            best=best,
        )
        yield from note_cuts(trail, groups, answer, depth, controls)
        crossed.append(Crossing(leave=leave, departures=departures, groups=groups, answer=answer))
    return Hop(tuple(crossed))


def find_departures(trail: Trail, frontier: Ints, left: Memberships, controls: Traversing) -> Departures:
    """Return the link groups of the frontier, and how it leaves through them."""
    kind_weights = np.array([controls.weight_of(kind) for kind in left.kinds], dtype=np.float32)
    return Departures(
        group=left.group,
        source=frontier[left.document],
        strength=trail.weight[frontier][left.document] * kind_weights[left.kind] * left.weight,
    )


def note_cuts(
    trail: Trail, groups: Ints, reached: ReachedMembers, depth: int, controls: Traversing
) -> Plan[None]:
    """Note which hubs were not followed, and what the filters of the stage left out."""
    stage = "hop_filter" if depth else "seed_filter"
    trail.cut("filter", reached.filtered, depth, f"members of link groups that {stage} excludes")
    trail.cut("filter", reached.filtered_links, depth, EXCLUDED_LINKS_NOTE)
    hubs = groups[reached.sizes > controls.hub_cap]
    if len(hubs):
        tags: list[tuple[str, str]] = yield Tags(groups=hubs)
        shown = ", ".join(f"{kind} {tag}" for kind, tag in sorted(tags)[:MAX_SHOWN_HUBS])
        more = "" if len(hubs) <= MAX_SHOWN_HUBS else f" and {len(hubs) - MAX_SHOWN_HUBS} more"
        trail.cut("hub", len(hubs), depth, f"more than hub_cap {controls.hub_cap} members: {shown}{more}")


def limit_nodes(
    trail: Trail, found: FoundDocuments, depth: int, controls: Traversing
) -> Plan[FoundDocuments]:
    """Return the best of what was found at ``depth`` that still fits under ``max_nodes``."""
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

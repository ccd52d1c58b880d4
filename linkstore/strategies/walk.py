"""The parts that traversing plans are made of: where to start, and one hop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.arrays import contained, distinct
from linkstore.links import Link
from linkstore.order import ranked
from linkstore.plans import (
    Candidates,
    Find,
    Groups,
    Members,
    Memberships,
    Nearest,
    Plan,
    Reached,
    Resolve,
    Side,
    Tags,
)
from linkstore.strategies.base import SIDES, Question, Traversing
from linkstore.strategies.trail import QUERY, Departures, Edges, Found, Trail, merged
from linkstore.vectors import Floats, Ints

SHOWN_HUBS = 5
EXCLUDED_LINKS = "links that link_filter excludes"


@dataclass(frozen=True, slots=True)
class Start:
    """The starting points of a search (by similarity, by id or by link) and the best similarity seen."""

    found: Found
    best: float | None


def seeds(trail: Trail, k: int, question: Question, controls: Traversing) -> Plan[Start]:
    """Find the documents a search starts from: the ``k`` nearest, the named roots, the linked ones."""
    near: Candidates = yield Nearest(vector=question.vector, k=k, filter=question.seed_filter)
    above = near.similarity >= np.float32(controls.floor)
    trail.cut("floor", int((~above).sum()), 0, f"min_similarity {controls.floor}")
    found = unlinked(near.refs[above], near.similarity[above])
    best = float(near.similarity[0]) if len(near.refs) else None
    return Start((yield from with_own(trail, found, question, controls)), best)


def with_own(trail: Trail, found: Found, question: Question, controls: Traversing) -> Plan[Found]:
    """Add the roots of the question and the targets of its own links to the documents found."""
    plain = found
    if question.roots:
        roots = yield from rooted(trail, question)
        plain = unlinked(
            np.concatenate((plain.refs, roots.refs)), np.concatenate((plain.similarity, roots.similarity))
        )
    if not question.links:
        return plain
    arrived = yield from linked(trail, plain.refs, question, controls)
    return _union(plain, arrived)


def unlinked(refs: Ints, similarity: Floats) -> Found:
    """Return documents that no link led to, each once."""
    unique, first = np.unique(refs, return_index=True)
    return Found(refs=unique, similarity=similarity[first], weight=np.ones(len(unique), dtype=np.float32))


def rooted(trail: Trail, question: Question) -> Plan[Candidates]:
    """Fetch the roots that the question names by id."""
    found: Candidates = yield Find(ids=question.roots, vector=question.vector, filter=question.seed_filter)
    trail.cut("filter", found.filtered, 0, "initial_roots that seed_filter excludes")
    missing = len(set(question.roots)) - len(found.refs) - found.filtered
    trail.cut("missing", missing, 0, "initial_roots that are not in the store")
    return found


def linked(trail: Trail, known: Ints, question: Question, controls: Traversing) -> Plan[Found]:
    """Fetch the documents that the question's own links lead to, except the known ones."""
    edges, reached = [], []
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    for leave, arrive in SIDES[controls.direction]:
        usable = [
            link
            for link in question.links
            if (link.leads_out if leave == "out" else link.leads_in) and controls.weight_of(link.kind) > 0
        ]
        tags = tuple((link.kind, link.tag) for link in usable)
        refs: Ints = yield Resolve(tags=tags)
        groups = distinct(refs[refs >= 0])
        answer: Reached = yield Members(
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
        peopled = contained(refs, groups[answer.sizes > 0])
        answered.update(tag for tag, leads in zip(tags, peopled, strict=True) if leads)
        reached.append(answer)
        edges.append(_asked(usable, refs, controls).join(groups, answer))
    trail.cut("missing", len(asked - answered), 0, "initial_links that lead to no document")
    return merged(tuple(edges), tuple(reached))


def _asked(usable: list[Link], refs: Ints, controls: Traversing) -> Departures:
    """Return the question's links, as departures from the query as if it were a document with these links."""
    weights = np.array([link.weight * controls.weight_of(link.kind) for link in usable], dtype=np.float32)
    known = refs >= 0
    return Departures(group=refs[known], source=np.full(int(known.sum()), QUERY), strength=weights[known])


def _union(plain: Found, linked: Found) -> Found:
    return Found(
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
    answer: Reached

    @property
    def edges(self) -> Edges:
        """The links that were followed."""
        return self.departures.join(self.groups, self.answer)


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop, each way that is followed."""

    crossings: tuple[Crossing, ...]

    @property
    def found(self) -> Found:
        """The documents that all ways led to."""
        return merged(tuple(one.edges for one in self.crossings), tuple(one.answer for one in self.crossings))


def hop(
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
    for leave, arrive in SIDES[controls.direction]:
        left: Memberships = yield Groups(
            refs=trail.refs[frontier],
            side=leave,
            kinds=controls.followed,
            links=question.links_on(leave),
        )
        trail.cut("filter", left.filtered, depth, EXCLUDED_LINKS)
        departures = departures_of(trail, frontier, left, controls)
        groups = distinct(left.group)
        answer: Reached = yield Members(
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


def departures_of(trail: Trail, frontier: Ints, left: Memberships, controls: Traversing) -> Departures:
    """Return the link groups of the frontier, and how it leaves through them."""
    kind_weights = np.array([controls.weight_of(kind) for kind in left.kinds], dtype=np.float32)
    return Departures(
        group=left.group,
        source=frontier[left.document],
        strength=trail.weight[frontier][left.document] * kind_weights[left.kind] * left.weight,
    )


def note_cuts(trail: Trail, groups: Ints, reached: Reached, depth: int, controls: Traversing) -> Plan[None]:
    """Note which hubs were not followed, and what the filters of the stage left out."""
    stage = "hop_filter" if depth else "seed_filter"
    trail.cut("filter", reached.filtered, depth, f"members of link groups that {stage} excludes")
    trail.cut("filter", reached.filtered_links, depth, EXCLUDED_LINKS)
    hubs = groups[reached.sizes > controls.hub_cap]
    if len(hubs):
        tags: list[tuple[str, str]] = yield Tags(groups=hubs)
        shown = ", ".join(f"{kind} {tag}" for kind, tag in sorted(tags)[:SHOWN_HUBS])
        more = "" if len(hubs) <= SHOWN_HUBS else f" and {len(hubs) - SHOWN_HUBS} more"
        trail.cut("hub", len(hubs), depth, f"more than hub_cap {controls.hub_cap} members: {shown}{more}")


def within_nodes(trail: Trail, found: Found, depth: int, controls: Traversing) -> Plan[Found]:
    """Return the best of what was found at ``depth`` that still fits under ``max_nodes``."""
    room = controls.max_nodes - len(trail)
    if len(found) <= room:
        return found
    chosen = yield from ranked(found.refs, found.score, room)
    trail.cut("max_nodes", len(found) - room, depth, f"max_nodes {controls.max_nodes}")
    return found.take(chosen)


def carried(trail: Trail, positions: Ints, controls: Traversing) -> Plan[Ints]:
    """Return the frontier of the next hop: the best of ``positions``, at most ``beam``."""
    if len(positions) <= controls.beam:
        return positions
    chosen = yield from ranked(trail.refs[positions], trail.score[positions], controls.beam)
    depth = int(trail.depth[positions[0]])
    trail.cut("beam", len(positions) - controls.beam, depth, f"not followed: beam {controls.beam}")
    return positions[chosen]

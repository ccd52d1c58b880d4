"""The surroundings of candidates: what they require, the links among them, and what is pinned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkstore.core.arrays import Floats, Ints, match_equal
from linkstore.core.filters import Condition
from linkstore.core.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Side,
    StoredDocument,
    Tags,
)

MOST_REQUIRED: Final = 20
"""A link of a requirement that leads to more documents than this is not followed."""
MOST_HOPS: Final = 32
"""Requirements of requirements are followed so far."""
MOST_PINNED: Final = 1000
"""Maximum number of pinned documents."""
_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A link between two documents.

    Args:
        source: The id of the document it leaves.
        target: The id of the document it leads to.
        kind: Its kind.
    """

    source: str
    target: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of the candidates.

    Args:
        documents: Documents that candidates require, by id; candidates that were found among them.
        requires: For each document the ids of those it requires.
        unresolved: For each document the requirements that lead nowhere, or to too many, in words.
        unfinished: Documents whose requirements were not followed to the end.
        links: Who lies on which link group.
    """

    documents: Mapping[str, StoredDocument] = field(default_factory=dict)
    requires: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unresolved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unfinished: frozenset[str] = frozenset()
    links: LinkMemberships = field(default_factory=lambda: LinkMemberships())


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMemberships:
    """The memberships of documents in link groups, one row each; documents by their position in ``names``.

    Args:
        names: Ids.
        kinds: The kinds of links that occur.
        leaving: (document, group, kind) of the side that links leave, each of shape (n,).
        arriving: The same of the side that they lead to.
    """

    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    leaving: tuple[Ints, Ints, Ints] = (_NONE, _NONE, _NONE)
    arriving: tuple[Ints, Ints, Ints] = (_NONE, _NONE, _NONE)

    def among(self, chosen: Collection[str]) -> list[Edge]:
        """Return the links between some of the documents, without those of a document to itself."""
        wanted = np.array([name in chosen for name in self.names], dtype=np.bool_)
        source, left, kind = _select_rows(self.leaving, wanted)
        target, arrived, _ = _select_rows(self.arriving, wanted)
        order = np.argsort(arrived, kind="stable")
        at, to = match_equal(left, arrived[order])
        pairs = zip(source[at].tolist(), target[order[to]].tolist(), kind[at].tolist(), strict=True)
        return [
            Edge(source=self.names[one], target=self.names[other], kind=self.kinds[number])
            for one, other, number in sorted(set(pairs))
            if one != other
        ]

    def centrality(self) -> dict[str, float]:
        """Return how many links among the documents lead to each, as a share of the highest such number."""
        _, groups, _ = self.leaving
        documents, arrived, _ = self.arriving
        if not len(groups) or not len(arrived):
            return {}
        known, counts = np.unique(groups, return_counts=True)
        at = np.minimum(np.searchsorted(known, arrived), len(known) - 1)
        led = np.where(known[at] == arrived, counts[at], 0)
        total = np.bincount(documents, led, minlength=len(self.names))
        most = float(total.max()) or 1.0
        return dict(zip(self.names, (total / most).tolist(), strict=True))


def _select_rows(
    side: tuple[Ints, Ints, Ints], wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[Ints]:
    kept = wanted[side[0]] if len(side[0]) else np.empty(0, dtype=np.bool_)
    return [column[kept] for column in side]


def find_pinned(condition: Condition, vector: Floats) -> Plan[list[StoredDocument]]:
    """Return all documents that pass a condition, by id, at most :data:`MOST_PINNED` and one more.

    Args:
        condition: What pinned documents have in common.
        vector: Any unit vector of the store's dimension.
    """
    found: Candidates = yield Nearest(vector=vector, k=MOST_PINNED + 1, filter=condition)
    documents: list[StoredDocument] = yield Documents(refs=found.refs)
    return sorted(documents, key=lambda one: one.id)


def find_surroundings(
    ids: Sequence[str], requires: frozenset[str], kinds: frozenset[str], vector: Floats
) -> Plan[Surroundings]:
    """Follow requirements to their end, and look up the links among all documents.

    Args:
        ids: The candidates.
        requires: Kinds of link that lead to what a document requires.
        kinds: Kinds of link to look up.
        vector: Any unit vector of the store's dimension.
    """
    found: Candidates = yield Find(ids=tuple(ids))
    followed = (
        yield from _follow_requirements(found.refs, requires, vector) if requires else _Requirements().ended()
    )
    refs = np.union1d(found.refs, np.array(sorted(followed.refs), dtype=np.int64))
    names: list[str] = yield Ids(refs=refs)
    name = dict(zip(refs.tolist(), names, strict=True))
    fresh = np.setdiff1d(refs, found.refs)
    stored: list[StoredDocument] = (yield Documents(refs=fresh)) if len(fresh) else []
    links = yield from _read_links(refs, names, kinds)
    return Surroundings(
        documents={one.id: one for one in stored},
        requires={
            name[ref]: frozenset(name[other] for other in others) for ref, others in followed.needs.items()
        },
        unresolved={name[ref]: tuple(sorted(texts)) for ref, texts in followed.unresolved.items()},
        unfinished=frozenset(name[ref] for ref in followed.unfinished),
        links=links,
    )


@dataclass(slots=True)
class _Requirements:
    """The requirements that were followed, by refs."""

    refs: set[int] = field(default_factory=set)
    needs: dict[int, set[int]] = field(default_factory=dict)
    unresolved: dict[int, set[str]] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)

    def ended(self) -> Plan[_Requirements]:
        """Return itself, as a plan that asks for nothing."""
        yield from ()
        return self


def _follow_requirements(start: Ints, kinds: frozenset[str], vector: Floats) -> Plan[_Requirements]:
    followed = _Requirements()
    seen = set(start.tolist())
    frontier = start
    for _ in range(MOST_HOPS):
        own: Memberships = yield Groups(refs=frontier, side="out", kinds=kinds)
        groups, place = np.unique(own.group, return_inverse=True)
        if not len(groups):
            return followed
        reached: ReachedMembers = yield Members(
            groups=groups, side="in", vector=vector, take=MOST_REQUIRED, cap=MOST_REQUIRED, exclude=_NONE
        )
        tags: list[tuple[str, str]] = yield Tags(groups=groups)
        members: dict[int, list[int]] = {}
        for group, ref in zip(reached.group.tolist(), reached.refs.tolist(), strict=True):
            members.setdefault(group, []).append(ref)
        for ref, group in zip(frontier[own.document].tolist(), place.tolist(), strict=True):
            _note_requirement(followed, ref, members.get(group, []), tags[group], int(reached.sizes[group]))
        fresh = {ref for refs in members.values() for ref in refs} - seen
        seen |= fresh
        followed.refs |= fresh
        frontier = np.array(sorted(fresh), dtype=np.int64)
        if not len(frontier):
            return followed
    followed.unfinished.update(frontier.tolist())
    return followed


def _note_requirement(
    followed: _Requirements, ref: int, led_to: list[int], tag: tuple[str, str], size: int
) -> None:
    others = {one for one in led_to if one != ref}
    if others:
        followed.needs.setdefault(ref, set()).update(others)
    elif not led_to:
        why = "more than 20 documents" if size > MOST_REQUIRED else "no document"
        followed.unresolved.setdefault(ref, set()).add(f"{tag[0]} {tag[1]!r} leads to {why}")


def _read_links(refs: Ints, names: Sequence[str], kinds: frozenset[str]) -> Plan[LinkMemberships]:
    sides: dict[Side, Memberships] = {}
    for side in ("out", "in"):
        sides[side] = yield Groups(refs=refs, side=side, kinds=kinds)
    every = tuple(sorted({kind for one in sides.values() for kind in one.kinds}))
    number = {kind: at for at, kind in enumerate(every)}
    leaving, arriving = (
        (one.document, one.group, np.array([number[kind] for kind in one.kinds], dtype=np.int64)[one.kind])
        for one in (sides["out"], sides["in"])
    )
    return LinkMemberships(names=tuple(names), kinds=every, leaving=leaving, arriving=arriving)

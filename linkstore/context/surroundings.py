"""The surroundings of candidates: requirements, links among them, and pinned documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from linkstore.context.ordering import First, find_first
from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints, is_member, join_equal
from linkstore.core.filters import Condition
from linkstore.core.hits import Hit, Path, PathStep
from linkstore.core.plans import Plan
from linkstore.store.documents import as_document
from linkstore.strategies.traversal import NO_REFS, follow_links

MOST_REQUIRED: Final = 20
"""A link that leads to more documents than this is not followed. In a search for what the best hits build
upon, neither is one that more documents than this have."""
MOST_HOPS: Final = 32
"""Requirements of requirements are followed so far."""
_BEYOND: Final = ""
"""Stands for a document further away than that; it is the id of none."""
MOST_EXTENDED: Final = 16
"""Number of best hits of which those that links led to are followed further."""
DEPENDENCY_SHARE: Final = 0.6
"""How much of its score a document hands on, as the walk of the default search does."""
SEQUENCE_KINDS: Final = frozenset({"next", "next_turn"})
"""Kinds of link that say what comes next, and not what builds upon what."""
TOPIC_KINDS: Final = frozenset(
    {"section", "heading", "keyword", "entity", "mentions", "tag", "category", "name", "suggested"}
)
"""Kinds of link that say what documents have in common, or where they stand."""
MOST_PINNED: Final = 1000
"""Maximum number of pinned documents."""


class PrecedenceEdge(NamedTuple):
    """A link between two documents: their ids, and its kind."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of the candidates.

    Args:
        documents: Documents that candidates require, by id, up to :data:`MOST_HOPS` links away.
        requires: For each document the ids of those it requires.
        unresolved: For each document the requirements that lead nowhere, or to too many, in words.
        links: The links among all of them, sorted, without those of a document to itself.
    """

    documents: Mapping[str, plans.StoredDocument] = field(default_factory=dict)
    requires: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unresolved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: tuple[PrecedenceEdge, ...] = ()

    def links_among(self, chosen: Collection[str]) -> list[PrecedenceEdge]:
        """Return the links between some of the documents."""
        return [edge for edge in self.links if edge.source in chosen and edge.target in chosen]

    def centrality(self, kinds: Collection[str]) -> dict[str, float]:
        """Return how many links of these kinds lead to each document, as a share of the highest number."""
        total = Counter(edge.target for edge in self.links if edge.kind in kinds)
        return {name: number / max(total.values()) for name, number in total.items()}


def find_pinned(condition: Condition, vector: Floats) -> Plan[list[plans.StoredDocument]]:
    """Return all documents that pass a condition, by id, at most :data:`MOST_PINNED` and one more.

    Args:
        condition: What pinned documents have in common.
        vector: Any unit vector of the store's dimension.
    """
    candidates = yield from plans.ask(plans.Nearest(vector=vector, k=MOST_PINNED + 1, filter=condition))
    documents = yield from plans.ask(plans.Documents(refs=candidates.refs))
    return sorted(documents, key=lambda document: document.id)


def find_dependencies(hits: Sequence[Hit], precedence: Mapping[str, First]) -> Plan[list[Hit]]:
    """Return the hits with what the best of them build upon, one link further, by shares of their scores.

    A search follows links one hop from where it starts, so only documents that it reached by a link lead
    further. Each divides a share of its score among all that it leads to. What many link to, as the pages of
    a site do to its contents, is no dependency of any.

    Args:
        hits: Best first.
        precedence: Which end of a link is read first, by kind; the other end builds upon it. A document
            builds upon those that its links of other kinds lead to, but for :data:`TOPIC_KINDS`, and for
            groups of which it is on both sides.
    """
    best = [hit for hit in hits[:MOST_EXTENDED] if hit.depth]
    candidates = yield from plans.ask(plans.Find(ids=tuple(str(hit.document.id) for hit in best)))
    ids = yield from plans.ask(plans.Ids(refs=candidates.refs))
    by_id = {str(hit.document.id): hit for hit in best}
    ranked = {str(hit.document.id): hit for hit in hits}
    leaving_groups = yield from plans.ask(plans.Groups(refs=candidates.refs, side="out"))
    arriving_groups = yield from plans.ask(plans.Groups(refs=candidates.refs, side="in"))
    shared = _list_pairs(leaving_groups) & _list_pairs(arriving_groups)
    sides: tuple[tuple[plans.Side, First, Sequence[str]], ...] = (
        ("out", "target", leaving_groups.kinds),
        ("in", "source", arriving_groups.kinds),
    )
    for side, end, there in sides:
        kinds = frozenset(kind for kind in there if _get_basis(kind, precedence) == end)
        if not kinds:
            continue
        hop = yield from follow_links(
            candidates.refs, side, kinds=kinds, take=MOST_REQUIRED, cap=MOST_REQUIRED
        )
        leaving = np.bincount(hop.source, minlength=len(ids))
        pointing = yield from plans.ask(
            plans.Members(groups=hop.groups, side=side, take=1, cap=MOST_REQUIRED)
        )
        common = hop.groups[pointing.sizes > MOST_REQUIRED]
        stored = yield from plans.ask(plans.Documents(refs=hop.edges.target))
        tags = yield from plans.ask(plans.Tags(groups=hop.edges.group))
        for at, (document, (kind, tag)) in enumerate(zip(stored, tags, strict=True)):
            if hop.edges.group[at] in common or (hop.edges.source[at], hop.edges.group[at]) in shared:
                continue
            left = by_id[ids[hop.edges.source[at]]]
            share = DEPENDENCY_SHARE / (leaving[hop.edges.source[at]] * max(1, hop.edges.size[at]))
            score = float(left.score * share)
            before = ranked.get(document.id)
            if score > (before.score if before else 0.0):
                step = PathStep(id=document.id, url=document.metadata.get("url"), kind=kind, tag=tag)
                ranked[document.id] = Hit(
                    document=as_document(document),
                    score=score,
                    similarity=before.similarity if before else 0.0,
                    depth=left.depth + 1,
                    path=Path((*left.path, step)),
                    contributions={"link": score},
                )
    return sorted(ranked.values(), key=lambda hit: (-hit.score, str(hit.document.id)))


def _list_pairs(memberships: plans.Memberships) -> set[tuple[int, int]]:
    return set(zip(memberships.document.tolist(), memberships.group.tolist(), strict=True))


def _get_basis(kind: str, precedence: Mapping[str, First]) -> First | None:
    """Return the end of a link of this kind upon which the other end builds."""
    if kind in SEQUENCE_KINDS or kind in TOPIC_KINDS:
        return None
    return find_first(kind, precedence) or "target"


def find_surroundings(ids: Sequence[str], requires: frozenset[str]) -> Plan[Surroundings]:
    """Follow requirements to their end, and look up the links among all documents.

    Args:
        ids: The candidates.
        requires: Kinds of link that lead to what a document requires.
    """
    candidates = yield from plans.ask(plans.Find(ids=tuple(ids)))
    start = candidates.refs if requires else NO_REFS
    needs, unresolved, reached = yield from _follow_requirements(start, requires)
    refs = np.union1d(candidates.refs, reached)
    names = yield from plans.ask(plans.Ids(refs=refs))
    name = dict(zip(refs.tolist(), names, strict=True))
    fresh = np.setdiff1d(refs, candidates.refs)
    stored: list[plans.StoredDocument] = (
        (yield from plans.ask(plans.Documents(refs=fresh))) if len(fresh) else []
    )
    links = yield from _read_links(refs, names)
    return Surroundings(
        documents={document.id: document for document in stored},
        requires={
            name[ref]: frozenset(name.get(other, _BEYOND) for other in others)
            for ref, others in needs.items()
        },
        unresolved={name[ref]: tuple(sorted(texts)) for ref, texts in unresolved.items()},
        links=links,
    )


def _follow_requirements(
    start: Ints, kinds: frozenset[str]
) -> Plan[tuple[dict[int, set[int]], dict[int, set[str]], Ints]]:
    """Follow requirements from documents, :data:`MOST_HOPS` links far.

    Returns:
        By refs: for each what it requires, for each what leads nowhere, and all whose own are known.
    """
    needs: dict[int, set[int]] = {}
    unresolved: dict[int, set[str]] = {}
    seen = set(start.tolist())
    frontier = start
    for _ in range(MOST_HOPS):
        if not len(frontier):
            break
        hop = yield from follow_links(frontier, "out", kinds=kinds, take=MOST_REQUIRED, cap=MOST_REQUIRED)
        reached = hop.edges.target.tolist()
        for ref, other in zip(frontier[hop.edges.source].tolist(), reached, strict=True):
            if other != ref:
                needs.setdefault(ref, set()).add(other)
        nowhere = ~is_member(hop.group, hop.edges.group)
        tags = yield from plans.ask(plans.Tags(groups=hop.group[nowhere]))
        left, sizes = frontier[hop.source[nowhere]].tolist(), hop.size[nowhere].tolist()
        for ref, (kind, tag), size in zip(left, tags, sizes, strict=True):
            why = f"more than {MOST_REQUIRED} documents" if size > MOST_REQUIRED else "no document"
            unresolved.setdefault(ref, set()).add(f"{kind} {tag!r} leads to {why}")
        frontier = np.array(sorted(set(reached) - seen), dtype=np.int64)
        seen |= set(reached)
    return needs, unresolved, np.array(sorted(seen - set(frontier.tolist())), dtype=np.int64)


def _read_links(refs: Ints, names: Sequence[str]) -> Plan[tuple[PrecedenceEdge, ...]]:
    leaving = yield from plans.ask(plans.Groups(refs=refs, side="out"))
    arriving = yield from plans.ask(plans.Groups(refs=refs, side="in"))
    left, arrived = join_equal(leaving.group, arriving.group)
    ends = np.stack((leaving.document[left], arriving.document[arrived], leaving.kind[left]))
    distinct: list[list[int]] = np.unique(ends[:, ends[0] != ends[1]], axis=1).T.tolist()
    return tuple(
        sorted(
            PrecedenceEdge(names[source], names[other], leaving.kinds[kind])
            for source, other, kind in distinct
        )
    )

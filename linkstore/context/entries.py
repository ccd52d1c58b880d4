"""The candidates of a context with their properties: cost, value, strength, requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from langchain_core.documents import Document

from linkstore.context.compiled import Role
from linkstore.context.duplicates import likeness
from linkstore.context.settings import Settings
from linkstore.context.surroundings import HOPS, Surroundings
from linkstore.context.value import Evidence
from linkstore.errors import StrategyError
from linkstore.hits import Hit, Hits
from linkstore.plans import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A document that is in a context or may be.

    Args:
        document: As stored.
        role: Why it is considered.
        cost: In tokens, with header and separator.
        value: See :class:`~linkstore.context.value.Value`; 0 for documents that were not found.
        strength: As a memory.
        rank: Its place among the hits, from 1.
        hit: How it was found.
    """

    document: Document
    role: Role
    cost: int
    value: float
    strength: float
    rank: int | None
    hit: Hit | None

    @property
    def id(self) -> str:
        """The id of the document."""
        return str(self.document.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """All entries, and how they depend on each other.

    Args:
        by_id: Pinned ones first, then those found by rank, then those required by id.
        same: For each entry that says the same as another, the one that stands for it.
        overlaps: For each document that begins with the end of another, that other.
        requires: For each entry all that must be taken with it, by what stands for it.
        refused: Entries that cannot be taken, with the reason.
        unreadable: Entries with a field on their strength that cannot be read, with what is wrong.
    """

    by_id: Mapping[str, Entry]
    same: Mapping[str, str] = field(default_factory=dict)
    overlaps: Mapping[str, str] = field(default_factory=dict)
    requires: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def repeats_of(self, name: str) -> tuple[str, ...]:
        """Return the entries that an entry stands for, because they say the same."""
        return tuple(other for other, kept in self.same.items() if kept == name)


def entries_of(
    settings: Settings, hits: Hits, pinned: Sequence[Stored], around: Surroundings, now: datetime
) -> Entries:
    """Value and count all candidates, merge those that say the same, and close requirements.

    Args:
        settings: Of the compiler.
        hits: What was found.
        pinned: What is always in.
        around: What they require.
        now: The time of the question.
    """
    listed = list(_listed(hits, pinned, around))
    costs = settings.counter.count([settings.head_of(one) + one.page_content for one, _, _ in listed])
    separator = settings.separator_cost
    strengths, unreadable = _strengths(settings, [document for document, _, _ in listed], around, now)
    values = _values(settings, hits, [document for document, _, _ in listed], costs, strengths)
    by_id = {
        str(document.id): Entry(
            document=document,
            role=role,
            cost=cost + separator,
            value=values.get(str(document.id), 0.0),
            strength=strength,
            rank=rank,
            hit=None if rank is None else hits[rank - 1],
        )
        for (document, role, rank), cost, strength in zip(listed, costs, strengths, strict=True)
    }
    same, overlaps = _alike(by_id)
    requires, refused = _closed(by_id, same, around)
    return Entries(
        by_id=by_id,
        same=same,
        overlaps=overlaps,
        requires=requires,
        refused=refused,
        unreadable=unreadable,
    )


def _listed(
    hits: Hits, pinned: Sequence[Stored], around: Surroundings
) -> Iterable[tuple[Document, Role, int | None]]:
    ranks: dict[str, int] = {}
    for rank, hit in enumerate(hits, 1):
        ranks.setdefault(str(hit.document.id), rank)
    always = {one.id for one in pinned}
    for one in pinned:
        yield _as_document(one), "pinned", ranks.get(one.id)
    for name, rank in ranks.items():
        if name not in always:
            yield hits[rank - 1].document, "found", rank
    for name in sorted(around.documents.keys() - always - ranks.keys()):
        yield _as_document(around.documents[name]), "required", None


def _as_document(stored: Stored) -> Document:
    return Document(id=stored.id, page_content=stored.text, metadata=stored.metadata)


def _strengths(
    settings: Settings, documents: Sequence[Document], around: Surroundings, now: datetime
) -> tuple[list[float], dict[str, str]]:
    """Return the strength of each document, 1 where its fields cannot be read, with what is wrong."""
    centrality = around.links.centrality()
    strengths: list[float] = []
    unreadable: dict[str, str] = {}
    for one in documents:
        name = str(one.id)
        try:
            strengths.append(
                settings.decay.strength_of(
                    name, one.metadata, now, centrality.get(name, 0.0), settings.last_access
                )
            )
        except StrategyError as error:
            strengths.append(1.0)
            unreadable[name] = f"{error}; it does not fade"
    return strengths, unreadable


def _values(
    settings: Settings,
    hits: Hits,
    documents: Sequence[Document],
    costs: Sequence[int],
    strengths: Sequence[float],
) -> dict[str, float]:
    if not hits:
        return {}
    known = {str(one.id): at for at, one in enumerate(documents)}
    at = [known[str(hit.document.id)] for hit in hits]
    walks = any("walk" in hit.contributions for hit in hits)
    evidence = Evidence(
        rank=np.arange(1, len(hits) + 1, dtype=np.float64),
        score=np.array([hit.score for hit in hits], dtype=np.float64),
        similarity=np.array([hit.similarity for hit in hits], dtype=np.float64),
        walk=np.array(
            [hit.contributions.get("walk", 0.0) if walks else hit.score for hit in hits], dtype=np.float64
        ),
        tokens=np.array([costs[one] for one in at], dtype=np.float64),
        strength=np.array([strengths[one] for one in at], dtype=np.float64),
    )
    values = settings.value.of(evidence).tolist()
    return {str(hit.document.id): float(value) for hit, value in zip(hits, values, strict=True)}


def _alike(by_id: Mapping[str, Entry]) -> tuple[dict[str, str], dict[str, str]]:
    """Find what says the same, and what overlaps. What is pinned is never left out for another."""
    names = list(by_id)
    found = likeness([entry.document.page_content for entry in by_id.values()])
    same = {
        names[second]: names[first]
        for second, first in found.same.items()
        if by_id[names[second]].role != "pinned"
    }
    return same, {names[second]: names[first] for second, first in found.follows.items()}


def _closed(
    by_id: Mapping[str, Entry], same: Mapping[str, str], around: Surroundings
) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
    """Return all requirements of each entry, direct or not, and entries whose requirements have no end."""
    direct: dict[str, set[str]] = {}
    for name, others in around.requires.items():
        kept = same.get(name, name)
        direct.setdefault(kept, set()).update(same.get(other, other) for other in others)
    endless = {same.get(name, name) for name in around.unfinished}
    requires: dict[str, frozenset[str]] = {}
    refused: dict[str, str] = {}
    for name in by_id:
        if name in same:
            continue
        found = _reached(name, direct)
        if found & endless or not found <= by_id.keys():
            refused[name] = f"what it requires is more than {HOPS} links away, or was removed meanwhile"
        elif len(found) > 1:
            requires[name] = frozenset(found - {name})
    return requires, refused


def _reached(start: str, direct: Mapping[str, Iterable[str]]) -> set[str]:
    seen = {start}
    stack = [start]
    while stack:
        for other in direct.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen

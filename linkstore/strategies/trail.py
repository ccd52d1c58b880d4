"""The trail of a search, which records what each hop reached, and by which links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.hits import Cut
from linkstore.plans import Reached
from linkstore.vectors import Bools, Floats, Ints, damped

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
class Found:
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
        return damped(self.similarity, self.weight)

    def __len__(self) -> int:
        return len(self.refs)

    def take(self, chosen: Ints | Bools) -> Found:
        """Return only the chosen documents."""
        return Found(
            refs=self.refs[chosen],
            similarity=self.similarity[chosen],
            weight=self.weight[chosen],
            edges=self.edges,
        )


class Trail:
    """All that one search reached so far, and what it left out. Lives as long as its plan runs."""

    def __init__(self) -> None:
        self.layers: list[Found] = []
        self.cuts: list[Cut] = []
        self.refs: Ints = NO_REFS
        self.similarity: Floats = NO_SCORES
        self.weight: Floats = NO_SCORES
        self.score: Floats = NO_SCORES
        self.depth: Ints = NO_REFS
        self.layer: Ints = NO_REFS

    def __len__(self) -> int:
        return len(self.refs)

    def add(self, found: Found, depth: int | None = None) -> Ints:
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

    def join(self, groups: Ints, reached: Reached) -> Edges:
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


def merged(edges: tuple[Edges, ...], reached: tuple[Reached, ...]) -> Found:
    """Return the documents that one hop reached, each once, with the weight of its best path."""
    refs = np.concatenate([part.refs for part in reached])
    if not len(refs):
        return Found(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES, edges=edges)
    similarity = np.concatenate([part.similarity for part in reached])
    strength = np.concatenate([part.in_strength for part in edges])
    order = np.lexsort((-strength, refs))
    ordered = refs[order]
    best = order[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return Found(refs=refs[best], similarity=similarity[best], weight=strength[best], edges=edges)

"""From a trail to hits: the way to each document, then its text.

Of several ways to a document the shortest wins (hops are taken one by one, so it is the one that
reached it first), then the one that gives it the highest score, then the one whose last document
before it scores best, then the smallest id of that document, then the smallest kind and tag.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from langchain_core.documents import Document

from linkstore.hits import Hit, Hits, Path, Step
from linkstore.links import LINKS_KEY
from linkstore.plans import Documents, Names, Plan, Stored, Tags
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.trail import Edges, Trail
from linkstore.strategies.walk import QUERY
from linkstore.vectors import Floats, Ints, contained


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a document was reached: from which position of the trail, by which kind and tag."""

    source: int
    kind: str
    tag: str


@dataclass(frozen=True, slots=True)
class _Option:
    """One way to a document, as numbers."""

    weight: float
    source_score: float
    source: int
    group: int


def hits_of(
    trail: Trail, positions: Ints, strategy: Strategy, question: Question, scores: Floats | None = None
) -> Plan[Hits]:
    """Hits for the given positions of the trail, in that order, with their paths and texts.

    Args:
        trail: What the search reached.
        positions: What to return, best first.
        strategy: For the explanation.
        question: For the labels of its own links.
        scores: (n,) scores to report; default the trail's.
    """
    arrivals = yield from arrivals_at(trail, positions)
    involved = _involved(positions.tolist(), arrivals)
    stored: list[Stored] = yield Documents(refs=trail.refs[involved])
    documents = dict(zip(involved, stored, strict=True))
    if scores is None:
        scores = trail.score[positions]
    steps = _Steps(documents, arrivals, question)
    hits = tuple(
        _hit(trail, position, score, documents[position], steps.path(position))
        for position, score in zip(positions.tolist(), scores.tolist(), strict=True)
    )
    return Hits(hits=hits, cuts=tuple(trail.cuts), strategy=str(strategy))


def arrivals_at(trail: Trail, positions: Ints) -> Plan[dict[int, Arrival]]:
    """For each position, and each on the way to it, how it was reached; none for plain seeds."""
    arrivals: dict[int, Arrival] = {}
    wanted = set(positions.tolist())
    for layer in range(len(trail.layers) - 1, -1, -1):
        here = sorted(position for position in wanted if trail.layer[position] == layer)
        edges = trail.layers[layer].edges
        if not here or not edges:
            continue
        found = yield from _settle(_options(trail, here, edges), trail)
        arrivals.update(found)
        wanted.update(arrival.source for arrival in found.values() if arrival.source != QUERY)
    return arrivals


def _options(trail: Trail, here: list[int], edges: tuple[Edges, ...]) -> dict[int, list[_Option]]:
    """The best ways to each position by weight and by the score of the document before it."""
    position_of = dict(zip(trail.refs[here].tolist(), here, strict=True))
    options: dict[int, list[_Option]] = {}
    for part in edges:
        arriving = np.flatnonzero(contained(part.in_ref, trail.refs[here]))
        leaving = _leaving(part, part.in_group[arriving])
        rows = zip(
            part.in_ref[arriving].tolist(),
            part.in_group[arriving].tolist(),
            part.in_weight[arriving].tolist(),
            strict=True,
        )
        for ref, group, weight in rows:
            known = options.setdefault(position_of[ref], [])
            for source, strength in leaving.get(group, ()):
                score = 0.0 if source == QUERY else float(trail.score[source])
                _keep(known, _Option(strength * weight, score, source, group))
    return {position: ways for position, ways in options.items() if ways}


def _leaving(part: Edges, groups: Ints) -> dict[int, list[tuple[int, float]]]:
    rows = np.flatnonzero(contained(part.out_group, groups))
    leaving: dict[int, list[tuple[int, float]]] = {}
    for group, source, strength in zip(
        part.out_group[rows].tolist(),
        part.out_source[rows].tolist(),
        part.out_strength[rows].tolist(),
        strict=True,
    ):
        leaving.setdefault(group, []).append((source, strength))
    return leaving


def _keep(known: list[_Option], option: _Option) -> None:
    """Keep the option if none is better; drop those it beats."""
    if known:
        mine, best = (option.weight, option.source_score), (known[0].weight, known[0].source_score)
        if mine < best:
            return
        if mine > best:
            known.clear()
    known.append(option)


def _settle(options: dict[int, list[_Option]], trail: Trail) -> Plan[dict[int, Arrival]]:
    """Choose among equal ways by id, then by kind and tag."""
    groups = np.unique(np.array([way.group for ways in options.values() for way in ways], dtype=np.int64))
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    tag_of = dict(zip(groups.tolist(), tags, strict=True))
    tied = {way.source for ways in options.values() if len({w.source for w in ways}) > 1 for way in ways}
    names: list[str] = (yield Names(refs=trail.refs[sorted(tied)])) if tied else []
    name_of = dict(zip(sorted(tied), names, strict=True))
    arrivals = {}
    for position, ways in options.items():
        best = min(ways, key=lambda way: (name_of.get(way.source, ""), tag_of[way.group]))
        arrivals[position] = Arrival(best.source, *tag_of[best.group])
    return arrivals


def _involved(positions: Iterable[int], arrivals: dict[int, Arrival]) -> list[int]:
    """Every position on a path, each once."""
    involved: dict[int, None] = {}
    for position in positions:
        at: int | None = position
        while at is not None and at != QUERY and at not in involved:
            involved[at] = None
            at = arrivals[at].source if at in arrivals else None
    return list(involved)


def _hit(trail: Trail, position: int, score: float, stored: Stored, path: Path) -> Hit:
    return Hit(
        document=Document(id=stored.id, page_content=stored.text, metadata=stored.metadata),
        score=score,
        similarity=float(trail.similarity[position]),
        depth=int(trail.depth[position]),
        path=path,
    )


class _Steps:
    """Makes the steps of paths, which hits share, once each."""

    def __init__(
        self, documents: dict[int, Stored], arrivals: dict[int, Arrival], question: Question
    ) -> None:
        self._documents = documents
        self._arrivals = arrivals
        self._steps: dict[int, Step] = {}
        self._labels: dict[int, dict[tuple[str, str], str]] = {
            QUERY: {(link.kind, link.tag): link.label for link in question.links if link.label}
        }

    def path(self, position: int) -> Path:
        """The way to a position."""
        steps = [self._step(position)]
        while (arrival := self._arrivals.get(position)) and arrival.source != QUERY:
            position = arrival.source
            steps.append(self._step(position))
        return Path(tuple(reversed(steps)))

    def _step(self, position: int) -> Step:
        step = self._steps.get(position)
        if step is None:
            step = self._steps[position] = self._made(position)
        return step

    def _made(self, position: int) -> Step:
        stored, arrival = self._documents[position], self._arrivals.get(position)
        url = stored.metadata.get("url")
        url = url if isinstance(url, str) else None
        if arrival is None:
            return Step(id=stored.id, url=url)
        # The author of a link names it; where a link was followed backwards, that is its target.
        link = (arrival.kind, arrival.tag)
        label = self._labels_of(arrival.source).get(link) or self._labels_of(position).get(link)
        return Step(id=stored.id, url=url, kind=arrival.kind, tag=arrival.tag, label=label)

    def _labels_of(self, position: int) -> dict[tuple[str, str], str]:
        labels = self._labels.get(position)
        if labels is None:
            labels = self._labels[position] = labels_in(self._documents[position].metadata)
        return labels


def labels_in(metadata: dict[str, Any]) -> dict[tuple[str, str], str]:
    """The first label that a document's links give to each (kind, tag)."""
    labels: dict[tuple[str, str], str] = {}
    for link in metadata.get(LINKS_KEY) or ():
        label = link.get("label")
        if label:
            labels.setdefault((link["kind"], link["tag"]), label)
    return labels

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
from linkstore.vectors import Floats, Ints


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
    named = {(link.kind, link.tag): link.label for link in question.links}
    hits = tuple(
        _hit(trail, position, float(score), documents, arrivals, named)
        for position, score in zip(positions.tolist(), scores, strict=True)
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
        arriving = np.flatnonzero(np.isin(part.in_ref, trail.refs[here]))
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
    rows = np.flatnonzero(np.isin(part.out_group, groups))
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


def _hit(
    trail: Trail,
    position: int,
    score: float,
    documents: dict[int, Stored],
    arrivals: dict[int, Arrival],
    named: dict[tuple[str, str], str | None],
) -> Hit:
    stored = documents[position]
    return Hit(
        document=Document(id=stored.id, page_content=stored.text, metadata=stored.metadata),
        score=score,
        similarity=float(trail.similarity[position]),
        depth=int(trail.depth[position]),
        path=_path(position, documents, arrivals, named),
    )


def _path(
    position: int,
    documents: dict[int, Stored],
    arrivals: dict[int, Arrival],
    named: dict[tuple[str, str], str | None],
) -> Path:
    steps: list[Step] = []
    at: int | None = position
    while at is not None and at != QUERY:
        arrival = arrivals.get(at)
        stored = documents[at]
        url = stored.metadata.get("url")
        steps.append(
            Step(
                id=stored.id,
                url=url if isinstance(url, str) else None,
                kind=arrival.kind if arrival else None,
                tag=arrival.tag if arrival else None,
                label=_label(arrival, stored, documents, named) if arrival else None,
            )
        )
        at = arrival.source if arrival else None
    return Path(tuple(reversed(steps)))


def _label(
    arrival: Arrival,
    target: Stored,
    documents: dict[int, Stored],
    named: dict[tuple[str, str], str | None],
) -> str | None:
    """The label of a followed link: its author's, else that of the document it led to."""
    if arrival.source == QUERY:
        own = named.get((arrival.kind, arrival.tag))
    else:
        own = label_in(documents[arrival.source].metadata, arrival.kind, arrival.tag)
    return own or label_in(target.metadata, arrival.kind, arrival.tag)


def label_in(metadata: dict[str, Any], kind: str, tag: str) -> str | None:
    """The first label that a document's links give to (kind, tag)."""
    for link in metadata.get(LINKS_KEY) or ():
        if link.get("tag") == tag and link.get("kind") == kind and link.get("label"):
            return str(link["label"])
    return None

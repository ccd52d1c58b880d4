"""Makes hits from a trail: the path to each document, then its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from langchain_core.documents import Document

from linkstore.filters import EVERYTHING
from linkstore.hits import Hit, Hits, Path, Step
from linkstore.plans import Documents, Plan, Stored
from linkstore.strategies.arrivals import Arrival, arrivals_at
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.linkdata import Data, Tag, data_in, labels_in, pointing_data
from linkstore.strategies.trail import QUERY, Trail
from linkstore.vectors import Floats, Ints


def hits_of(
    trail: Trail,
    positions: Ints,
    strategy: Strategy,
    question: Question,
    scores: Floats | None = None,
    parts: Mapping[str, Floats] | None = None,
) -> Plan[Hits]:
    """Make hits for the given positions of the trail, in that order, with their paths and texts.

    Args:
        trail: What the search reached.
        positions: What to return, best first.
        strategy: For the explanation.
        question: For the labels of its own links.
        scores: (n,) scores to report. Default: those of the trail.
        parts: The parts of the scores, (n,) each. Default: the similarity, and what the weights of links
            take from it.
    """
    arrivals = yield from arrivals_at(trail, positions)
    return (yield from arrived_hits(trail, positions, strategy, question, arrivals, scores, parts))


def arrived_hits(
    trail: Trail,
    positions: Ints,
    strategy: Strategy,
    question: Question,
    arrivals: dict[int, Arrival],
    scores: Floats | None = None,
    parts: Mapping[str, Floats] | None = None,
) -> Plan[Hits]:
    """Make hits as :func:`hits_of`, given how each position was reached."""
    involved = _involved(positions.tolist(), arrivals)
    stored: list[Stored] = yield Documents(refs=trail.refs[involved])
    documents = dict(zip(involved, stored, strict=True))
    if scores is None:
        scores = trail.score[positions]
    if parts is None:
        similarity = trail.similarity[positions]
        parts = {"similarity": similarity, "links": scores - similarity}
    contributions = _rows(parts, len(positions))
    steps = _Steps(documents, arrivals, question)
    hits = tuple(
        _hit(trail, position, score, documents[position], steps.path(position), made)
        for position, score, made in zip(positions.tolist(), scores.tolist(), contributions, strict=True)
    )
    return Hits(hits=hits, cuts=tuple(trail.cuts), strategy=str(strategy))


def _involved(positions: Iterable[int], arrivals: dict[int, Arrival]) -> list[int]:
    """Return every position on a path, each once."""
    involved: dict[int, None] = {}
    for position in positions:
        at: int | None = position
        while at is not None and at != QUERY and at not in involved:
            involved[at] = None
            at = arrivals[at].source if at in arrivals else None
    return list(involved)


def _rows(parts: Mapping[str, Floats], count: int) -> list[dict[str, float]]:
    """Return, for each of ``count`` hits, the parts that are not 0."""
    columns = {name: column.tolist() for name, column in parts.items()}
    return [{name: column[row] for name, column in columns.items() if column[row]} for row in range(count)]


def _hit(
    trail: Trail,
    position: int,
    score: float,
    stored: Stored,
    path: Path,
    contributions: dict[str, float],
) -> Hit:
    return Hit(
        document=Document(id=stored.id, page_content=stored.text, metadata=stored.metadata),
        score=score,
        similarity=float(trail.similarity[position]),
        depth=len(path) - 1,
        path=path,
        contributions=contributions,
    )


class _Steps:
    """Steps of paths, each made once and shared by hits."""

    def __init__(
        self, documents: dict[int, Stored], arrivals: dict[int, Arrival], question: Question
    ) -> None:
        self._documents = documents
        self._arrivals = arrivals
        self._condition = question.link_filter
        self._steps: dict[int, Step] = {}
        self._labels = {QUERY: {(link.kind, link.tag): link.label for link in question.links if link.label}}
        self._data = {QUERY: pointing_data(question.links, EVERYTHING)}

    def path(self, position: int) -> Path:
        """Return the path to a position."""
        steps = [self._step(position)]
        while (arrival := self._arrivals.get(position)) and arrival.source != QUERY:
            position = arrival.source
            steps.append(self._step(position))
        return Path(tuple(reversed(steps)))

    def _step(self, position: int) -> Step:
        step = self._steps.get(position)
        if step is None:
            step = self._steps[position] = self._make_step(position)
        return step

    def _make_step(self, position: int) -> Step:
        stored, arrival = self._documents[position], self._arrivals.get(position)
        url = stored.metadata.get("url")
        url = url if isinstance(url, str) else None
        if arrival is None:
            return Step(id=stored.id, url=url)
        # The author of a link names it; where a link was followed backwards, that is its target.
        link, ends = (arrival.kind, arrival.tag), (arrival.source, position)
        label = next((label for end in ends if (label := self._find_labels(end).get(link))), None)
        data = next((of[link] for end in ends if link in (of := self._find_data(end))), None)
        return Step(id=stored.id, url=url, kind=arrival.kind, tag=arrival.tag, label=label, data=data)

    def _find_labels(self, position: int) -> dict[Tag, str]:
        labels = self._labels.get(position)
        if labels is None:
            labels = self._labels[position] = labels_in(self._documents[position].metadata)
        return labels

    def _find_data(self, position: int) -> dict[Tag, Data]:
        data = self._data.get(position)
        if data is None:
            data = self._data[position] = data_in(self._documents[position].metadata, self._condition)
        return data

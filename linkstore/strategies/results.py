"""From a trail to hits: the path that led to each document, its text, and which hits are returned.

Chunks of one page: the page of each document, and the joint evidence of a page's chunks.

Selects the documents reached that are returned, and explains why there are none.

The path that led to each document of a trail.

Of several ways to a document the shortest wins (hops are taken one by one, so it is the one that
reached it first), then the one that gives the document the highest score, then the one whose previous
document has the highest score, then the smallest id of that document, then the smallest kind and tag.

Labels and data of the links on paths and chains, as the documents have them.

Makes hits from a trail: the path to each document, then its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from langchain_core.documents import Document

from linkstore.core.arguments import MAX_SETTING
from linkstore.core.arrays import Bools, Floats, Ints, is_member, match_equal, sort_unique
from linkstore.core.display import format_count
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.hits import Cut, Hit, Hits, Path, Step
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.plans import (
    Documents,
    Fetch,
    Groups,
    Ids,
    Matching,
    Memberships,
    Plan,
    StoredDocument,
    Tags,
    number_equals,
    rank_refs,
)
from linkstore.strategies.base import Question, Strategy, Traversing
from linkstore.strategies.traversal import QUERY, Edges, Trail

SECTION_KINDS: Final = frozenset({"section"})
"""The kind of link that names a chunk by its page and section: ``/guide#install``."""
EVIDENCE_POWER: Final = 3.0
"""Power of the first-stage scores that are added: the many weak matches of long pages hardly count."""
MOST_CHUNKS: Final = 20
"""Maximum number of chunks of a page that are added."""
PAGE_LOOKUP_FACTOR: Final = 4
"""Pages are looked up for this many times ``k`` documents, then for this many times more, and so on."""


def find_pages(refs: Ints) -> Plan[Ints]:
    """Return the (n,) number of each document's page. A document without a page is a page of its own.

    An incoming ``section`` link names a chunk. Its page is the tag up to the ``#``. Numbers follow the order
    of the names, so they are the same on every engine.

    Args:
        refs: (n,) documents.
    """
    named: Memberships = yield Groups(refs=refs, side="in", kinds=SECTION_KINDS)
    groups, at = np.unique(named.group, return_inverse=True)
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    names = [tag.partition("#")[0] for _, tag in tags]
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    numbers = np.array([number[name] for name in names], dtype=np.int64)
    pages = len(number) + np.arange(len(refs))
    np.minimum.at(pages, named.document, numbers[at])
    return pages


def sum_page_evidence(pages: Ints, matches: Floats) -> Floats:
    """Return (n,) how well the other chunks of each document's page match: the sum without the best one.

    Args:
        pages: (n,) the page of each document.
        matches: (n,) first-stage scores in [0, 1], 0 for documents that the first stage did not find.
    """
    strength = matches.astype(np.float64) ** EVIDENCE_POWER
    order = np.lexsort((-strength, pages))
    place = number_equals(pages[order])
    counted = strength[order] * ((place >= 1) & (place <= MOST_CHUNKS))
    return np.bincount(pages[order], counted)[pages].astype(np.float32)


def limit_per_page(refs: Ints, k: int, per_page: int) -> Plan[Ints]:
    """Select the first ``k`` of ranked documents with at most ``per_page`` of one page.

    Returns their (m,) positions in order. Looks up the pages of only as many documents as needed to find
    ``k``.

    Args:
        refs: (n,) documents, best first.
        k: Maximum number of positions.
        per_page: Maximum number of one page.
    """
    looked = PAGE_LOOKUP_FACTOR * k
    while True:
        pages = yield from find_pages(refs[:looked])
        order = np.argsort(pages, kind="stable")
        place = np.empty(len(pages), dtype=np.int64)
        place[order] = number_equals(pages[order])
        kept = np.flatnonzero(place < per_page)
        if len(kept) >= k or looked >= len(refs):
            return kept[:k]
        looked *= PAGE_LOOKUP_FACTOR


def compute_page_fading(pages: Ints, scores: Floats, place: Ints, fade: float) -> Floats:
    """Return (n,) factors for the scores of chunks: ``(fade * sqrt(score / best of the page)) ** place``.

    So a chunk that matches almost as well as the best one of its page keeps more than a weak one.

    Args:
        pages: (n,) the page of each document.
        scores: (n,) of the documents, at least 0.
        place: (n,) see :func:`rank_within_pages`.
        fade: Factor for a second chunk that is as good as the first.
    """
    best = np.zeros(int(pages.max(initial=-1)) + 1, dtype=np.float32)
    np.maximum.at(best, pages, scores)
    part = scores / np.maximum(best, np.finfo(np.float32).tiny)[pages]
    factor: Floats = (np.float32(fade) * np.sqrt(part)) ** place.astype(np.float32)
    return factor


def rank_within_pages(refs: Ints, pages: Ints, scores: Floats) -> Plan[Ints]:
    """Return the (n,) place of each document among those of its page, from 0, by score, then id."""
    order = yield from rank_refs(refs, scores, len(refs))
    order = order[np.argsort(pages[order], kind="stable")]
    place = np.empty(len(refs), dtype=np.int64)
    place[order] = number_equals(pages[order])
    return place


def _explain_none_found(
    question: Question, k: int, controls: Traversing, best: float | None, cuts: list[Cut]
) -> str:
    """Explain why a search for ``k`` documents to start from found none."""
    if best is not None:
        return f"no document reaches min_similarity {controls.floor}; the best has {best:.4f}"
    if k == 0:
        start = "start_k is 0, and no root or link leads to a document"
        return "; ".join([start, *(str(cut) for cut in cuts)])
    if question.filtered or not question.seed_filter.always:
        return "no document passes the filter"
    return "the store is empty"


def report_none_found(
    trail: Trail, question: Question, k: int, controls: Traversing, best: float | None
) -> Hits:
    """Return a result without hits if no document to start from is found. ``best`` is the top similarity."""
    reason = _explain_none_found(question, k, controls, best, trail.cuts)
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(controls))


def select_passing(trail: Trail, positions: Ints, question: Question) -> Plan[Ints]:
    """Return the positions whose documents may be returned."""
    if question.result_filter.always or not len(positions):
        return positions
    passes: Bools = yield Matching(refs=trail.refs[positions], filter=question.result_filter)
    return positions[passes]


def select_returned(
    trail: Trail, scores: Floats, k: int, question: Question, per_page: int | None = None
) -> Plan[Ints]:
    """Select the positions of the ``k`` best documents that may be returned, best first.

    Args:
        trail: The trail of the search, which records what is left out.
        scores: (n,) scores of its documents.
        k: Maximum number of positions.
        question: The question with the ``result_filter``.
        per_page: Maximum number of one page, or None for any number.
    """
    allowed = yield from select_passing(trail, np.arange(len(trail)), question)
    trail.cut("filter", len(trail) - len(allowed), None, "excluded by result_filter")
    refs = trail.refs[allowed]
    order = yield from rank_refs(refs, scores[allowed], k if per_page is None else len(refs))
    if per_page is not None:
        kept = yield from limit_per_page(refs[order], k, per_page)
        passed = count_passed_over(kept, len(order), k)
        trail.cut("per_page", passed, None, f"more than {per_page} of one page")
        trail.cut("k", len(allowed) - len(kept) - passed, None, f"ranked below the first {k}")
        return allowed[order[kept]]
    trail.cut("k", len(allowed) - len(order), None, f"ranked below the first {k}")
    return allowed[order]


def count_passed_over(kept: Ints, ranked: int, k: int) -> int:
    """Count the ranked documents that are skipped before the last one kept.

    If fewer than ``k`` were kept, all skipped documents count.
    """
    return (int(kept[-1]) + 1 if len(kept) == k else ranked) - len(kept)


def fetch_first_returned(
    trail: Trail, ask: Callable[[int], Fetch], k: int, per_page: int | None
) -> Plan[tuple[Any, Ints]]:
    """Fetch the best documents, and return the answer and the positions in it of those to return.

    With ``per_page``, more and more documents are fetched until ``k`` of enough pages are among them.

    Args:
        trail: The trail of the search, which records what is left out.
        ask: Makes the fetch of a number of documents. Its answer has ``refs``, best first.
        k: Maximum number of documents to return.
        per_page: Maximum number of one page, or None for any number.
    """
    if per_page is None:
        answer = yield ask(k)
        return answer, np.arange(len(answer.refs))
    wanted = min(PAGE_LOOKUP_FACTOR * k, MAX_SETTING)
    while True:
        answer = yield ask(wanted)
        kept = yield from limit_per_page(answer.refs, k, per_page)
        if len(kept) == k or len(answer.refs) < wanted:
            passed = count_passed_over(kept, len(answer.refs), k)
            trail.cut("per_page", passed, None, f"more than {per_page} of one page")
            return answer, kept
        wanted = min(PAGE_LOOKUP_FACTOR * wanted, MAX_SETTING)


def report_none_returned(trail: Trail, strategy: Traversing, wanted: str = "result_filter") -> Hits:
    """Return the result of a search that may not return any of the documents reached."""
    reason = f"of {format_count(len(trail), 'document')} reached, none passes {wanted}"
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(strategy))


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a document was reached: from which position of the trail, by which kind and tag."""

    source: int
    kind: str
    tag: str


@dataclass(frozen=True, slots=True)
class ArrivalWays:
    """Ways to documents, one in each row, each column of shape (n,).

    Args:
        position: Where to, in the trail.
        group: Through which link group.
        source: From which position.
        weight: Of the path.
        score: Of the document before.
    """

    position: Ints
    group: Ints
    source: Ints
    weight: Floats
    score: Floats

    def take(self, rows: Ints) -> ArrivalWays:
        """Return only the chosen ways."""
        return ArrivalWays(
            self.position[rows], self.group[rows], self.source[rows], self.weight[rows], self.score[rows]
        )


def find_arrivals(trail: Trail, positions: Ints) -> Plan[dict[int, Arrival]]:
    """Return how each position, and each on the way to it, was reached.

    Plain seeds have no entry.
    """
    arrivals: dict[int, Arrival] = {}
    wanted = set(positions.tolist())
    for layer in range(len(trail.layers) - 1, -1, -1):
        here = sorted(position for position in wanted if trail.layer[position] == layer)
        edges = trail.layers[layer].edges
        if not here or not edges:
            continue
        found = yield from choose_arrivals(_find_best_ways(trail, np.array(here), edges), trail)
        arrivals.update(found)
        wanted.update(arrival.source for arrival in found.values() if arrival.source != QUERY)
    return arrivals


def _find_best_ways(trail: Trail, here: Ints, edges: tuple[Edges, ...]) -> ArrivalWays:
    """Find the ways that give each position the highest weight, from the best scored document before."""
    ways = find_ways(trail, here, edges)
    ways = ways.take(np.lexsort((-ways.score, -ways.weight, ways.position)))
    first = np.searchsorted(ways.position, ways.position)
    as_good = (ways.weight == ways.weight[first]) & (ways.score == ways.score[first])
    return ways.take(np.flatnonzero(as_good))


def find_ways(trail: Trail, here: Ints, edges: tuple[Edges, ...]) -> ArrivalWays:
    """Return every way through ``edges`` to the positions ``here``."""
    parts = [_join_ways(trail, here, part) for part in edges]
    return ArrivalWays(*(np.concatenate(columns) for columns in zip(*map(_list_columns, parts), strict=True)))


def _list_columns(ways: ArrivalWays) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    return ways.position, ways.group, ways.source, ways.weight, ways.score


def _join_ways(trail: Trail, here: Ints, edges: Edges) -> ArrivalWays:
    """Return every way through ``edges`` to the positions ``here``, joining arrivals with departures."""
    here = here[np.argsort(trail.refs[here])]
    arriving = np.flatnonzero(is_member(edges.in_ref, trail.refs[here]))
    departures = np.argsort(edges.out_group, kind="stable")
    arrived, left = match_equal(edges.in_group[arriving], edges.out_group[departures])
    arriving, leaving = arriving[arrived], departures[left]
    source = edges.out_source[leaving]
    return ArrivalWays(
        position=here[np.searchsorted(trail.refs[here], edges.in_ref[arriving])],
        group=edges.in_group[arriving],
        source=source,
        weight=edges.out_strength[leaving] * edges.in_weight[arriving],
        score=np.where(source == QUERY, np.float32(0), trail.score[source]),
    )


def choose_arrivals(ways: ArrivalWays, trail: Trail) -> Plan[dict[int, Arrival]]:
    """Choose among equally good ways by id, then by kind and tag."""
    tags: list[tuple[str, str]] = yield Tags(groups=ways.group)
    ids = yield from _fetch_tied_ids(ways, trail)
    best: dict[int, tuple[str, tuple[str, str], int]] = {}
    for position, source, tag in zip(ways.position.tolist(), ways.source.tolist(), tags, strict=True):
        way = (ids.get(source, ""), tag, source)
        if position not in best or way < best[position]:
            best[position] = way
    return {position: Arrival(source, *tag) for position, (_, tag, source) in best.items()}


def _fetch_tied_ids(ways: ArrivalWays, trail: Trail) -> Plan[dict[int, str]]:
    """Fetch ids of previous documents where several are equally good for the same position."""
    differ = (ways.position[1:] == ways.position[:-1]) & (ways.source[1:] != ways.source[:-1])
    tied = is_member(ways.position, ways.position[1:][differ])
    sources = [source for source in sort_unique(ways.source[tied]).tolist() if source != QUERY]
    if not sources:
        return {}
    ids: list[str] = yield Ids(refs=trail.refs[sources])
    return dict(zip(sources, ids, strict=True))


Tag = tuple[str, str]
LinkData = Mapping[str, Any] | None


def collect_labels(metadata: Mapping[str, Any]) -> dict[Tag, str]:
    """Return the first label that a document's links give to each (kind, tag)."""
    labels: dict[Tag, str] = {}
    for link in metadata.get(LINKS_KEY) or ():
        label = link.get("label")
        if label:
            labels.setdefault((link["kind"], link["tag"]), label)
    return labels


def collect_data(metadata: Mapping[str, Any], condition: Condition) -> dict[Tag, LinkData]:
    """Return the data of a document's outgoing links, for each (kind, tag) the first that passes.

    The result is empty for a document whose links have no data.
    """
    if not any(link.get("data") for link in metadata.get(LINKS_KEY) or ()):
        return {}
    return collect_pointing_data(parse_links({LINKS_KEY: metadata[LINKS_KEY]}), condition)


def collect_pointing_data(links: Iterable[Link], condition: Condition) -> dict[Tag, LinkData]:
    """Return the data of outgoing links: see :func:`collect_data`."""
    data: dict[Tag, LinkData] = {}
    for link in links:
        if link.leads_out and condition.matches(link.data or {}):
            data.setdefault((link.kind, link.tag), link.data)
    return data


def make_hits(
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
    arrivals = yield from find_arrivals(trail, positions)
    return (yield from make_arrived_hits(trail, positions, strategy, question, arrivals, scores, parts))


def make_arrived_hits(
    trail: Trail,
    positions: Ints,
    strategy: Strategy,
    question: Question,
    arrivals: dict[int, Arrival],
    scores: Floats | None = None,
    parts: Mapping[str, Floats] | None = None,
) -> Plan[Hits]:
    """Make hits as :func:`make_hits`, given how each position was reached."""
    involved = _list_involved(positions.tolist(), arrivals)
    stored: list[StoredDocument] = yield Documents(refs=trail.refs[involved])
    documents = dict(zip(involved, stored, strict=True))
    if scores is None:
        scores = trail.score[positions]
    if parts is None:
        similarity = trail.similarity[positions]
        parts = {"similarity": similarity, "links": scores - similarity}
    contributions = _list_contributions(parts, len(positions))
    steps = _PathBuilder(documents, arrivals, question)
    hits = tuple(
        _make_hit(trail, position, score, documents[position], steps.path(position), made)
        for position, score, made in zip(positions.tolist(), scores.tolist(), contributions, strict=True)
    )
    return Hits(hits=hits, cuts=tuple(trail.cuts), strategy=str(strategy))


def _list_involved(positions: Iterable[int], arrivals: dict[int, Arrival]) -> list[int]:
    """Return every position on a path, each once."""
    involved: dict[int, None] = {}
    for position in positions:
        at: int | None = position
        while at is not None and at != QUERY and at not in involved:
            involved[at] = None
            at = arrivals[at].source if at in arrivals else None
    return list(involved)


def _list_contributions(parts: Mapping[str, Floats], count: int) -> list[dict[str, float]]:
    """Return, for each of ``count`` hits, the parts that are not 0."""
    columns = {name: column.tolist() for name, column in parts.items()}
    return [{name: column[row] for name, column in columns.items() if column[row]} for row in range(count)]


def _make_hit(
    trail: Trail,
    position: int,
    score: float,
    stored: StoredDocument,
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


class _PathBuilder:
    """Steps of paths, each made once and shared by hits."""

    def __init__(
        self, documents: dict[int, StoredDocument], arrivals: dict[int, Arrival], question: Question
    ) -> None:
        self._documents = documents
        self._arrivals = arrivals
        self._condition = question.link_filter
        self._steps: dict[int, Step] = {}
        self._labels = {QUERY: {(link.kind, link.tag): link.label for link in question.links if link.label}}
        self._data = {QUERY: collect_pointing_data(question.links, EVERYTHING)}

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
            labels = self._labels[position] = collect_labels(self._documents[position].metadata)
        return labels

    def _find_data(self, position: int) -> dict[Tag, LinkData]:
        data = self._data.get(position)
        if data is None:
            data = self._data[position] = collect_data(self._documents[position].metadata, self._condition)
        return data

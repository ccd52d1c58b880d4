"""From a trail to hits: the documents to return, the path that led to each, and its text.

Of several ways to a document the shortest wins (hops are taken one by one, so it is the one that
reached it first), then the one that gives the document the highest score, then the one whose previous
document has the highest score, then the smallest id of that document, then the smallest kind and tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from linkstore.core import plans
from linkstore.core.arguments import MAX_SETTING
from linkstore.core.arrays import Floats, Ints, is_member, sort_unique
from linkstore.core.display import format_count
from linkstore.core.documents import make_document
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.hits import Hit, Hits, Path, PathStep
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.plans import Plan, number_equals, rank_refs
from linkstore.strategies.base import Question, Strategy, Traversing
from linkstore.strategies.traversal import QUERY, Edges, Trail

RankedT = TypeVar("RankedT", plans.Candidates, plans.LexicalMatches)
SECTION_KINDS: Final = frozenset({"section"})
"""The kind of link that names a chunk by its page and section: ``/guide#install``."""
PAGE_LOOKUP_FACTOR: Final = 4
"""Pages are looked up for this many times ``k`` documents, then for this many times more, and so on."""

_GET_PART: Final = itemgetter(1)
_GET_SOURCE: Final = attrgetter("source")
_PLAIN_FIELDS: Final = 3
"""A stored link with no more fields has neither a label nor data."""

Tag = tuple[str, str]
LinkData = Mapping[str, Any] | None


def find_pages(refs: Ints) -> Plan[Ints]:
    """Return the (n,) number of each document's page. A document without a page is a page of its own.

    An incoming ``section`` link names a chunk. Its page is the tag up to the ``#``. Numbers follow the order
    of the names, so they are the same on every engine.

    Args:
        refs: (n,) documents.
    """
    named = yield from plans.ask(plans.Groups(refs=refs, side="in", kinds=SECTION_KINDS))
    groups, at = np.unique(named.group, return_inverse=True)
    tags = yield from plans.ask(plans.Tags(groups=groups))
    names = [tag.partition("#")[0] for _, tag in tags]
    number = dict(zip(sorted(set(names)), count()))
    numbers = np.array(list(map(number.__getitem__, names)), dtype=np.int64)
    pages = len(number) + np.arange(len(refs))
    np.minimum.at(pages, named.document, numbers[at])
    return pages


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


def report_none_found(
    trail: Trail, question: Question, k: int, controls: Traversing, best: float | None
) -> Hits:
    """Return a result without hits, as none of ``k`` documents to start from is found, and say why.

    ``best`` is the highest similarity of any document.
    """
    if best is not None:
        reason = f"no document reaches min_similarity {controls.threshold}; the best has {best:.4f}"
    elif k == 0:
        reason = "; ".join(["start_k is 0, and no root or link leads to a document", *map(str, trail.cuts)])
    elif question.filtered or not question.seed_filter.always:
        reason = "no document passes the filter"
    else:
        reason = "the store is empty"
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(controls))


def select_passing(trail: Trail, positions: Ints, question: Question) -> Plan[Ints]:
    """Return the positions whose documents may be returned."""
    if question.result_filter.always or not len(positions):
        return positions
    passes = yield from plans.ask(plans.Matching(refs=trail.refs[positions], filter=question.result_filter))
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
    trail: Trail, make_fetch: Callable[[int], plans.Fetch[RankedT]], k: int, per_page: int | None
) -> Plan[tuple[RankedT, Ints]]:
    """Fetch the best documents, and return the answer and the positions in it of those to return.

    With ``per_page``, more and more documents are fetched until ``k`` of enough pages are among them.

    Args:
        trail: The trail of the search, which records what is left out.
        make_fetch: Makes the fetch of a number of documents. Its answer has ``refs``, best first.
        k: Maximum number of documents to return.
        per_page: Maximum number of one page, or None for any number.
    """
    if per_page is None:
        answer = yield from plans.ask(make_fetch(k))
        return answer, np.arange(len(answer.refs))
    wanted = min(PAGE_LOOKUP_FACTOR * k, MAX_SETTING)
    while True:
        answer = yield from plans.ask(make_fetch(wanted))
        kept = yield from limit_per_page(answer.refs, k, per_page)
        if len(kept) == k or len(answer.refs) < wanted:
            passed = count_passed_over(kept, len(answer.refs), k)
            trail.cut("per_page", passed, None, f"more than {per_page} of one page")
            return answer, kept
        wanted = min(PAGE_LOOKUP_FACTOR * wanted, MAX_SETTING)


def report_none_returned(trail: Trail, strategy: Strategy, wanted: str = "result_filter") -> Hits:
    """Return the result of a search that may not return any of the documents reached."""
    reason = f"of {format_count(len(trail), 'document')} reached, none passes {wanted}"
    return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(strategy))


class HitArrival(NamedTuple):
    """How a document was reached: from a position of the trail, by a kind and a tag. The least one counts.

    The id of the source is only there where several sources are equally good.
    """

    source_id: str
    kind: str
    tag: str
    source: int


def find_arrivals(trail: Trail, positions: Ints) -> Plan[dict[int, HitArrival]]:
    """Return how each position, and each on the way to it, was reached.

    Plain seeds have no entry.
    """
    arrivals: dict[int, HitArrival] = {}
    wanted = np.zeros(len(trail) + 1, dtype=np.bool_)  # the last one stands for -1, what is not in the trail
    wanted[positions] = True
    for edges in reversed(trail.edges):  # links lead to documents that were added later
        rows = np.flatnonzero(wanted[edges.target])
        if len(rows):
            chosen = yield from _choose_arrivals(trail, edges.take(_select_best(trail, edges, rows)))
            wanted[list(map(_GET_SOURCE, chosen.values()))] = True
            wanted[QUERY] = False
            arrivals |= chosen
    return arrivals


def _select_best(trail: Trail, edges: Edges, rows: Ints) -> Ints:
    """Return the rows that give each target the highest weight, from the best scored document before."""
    source, target = edges.source[rows], edges.target[rows]
    weight = edges.strength[rows] * edges.weight[rows]
    score = np.where(source == QUERY, np.float32(0), trail.score[source])
    order = np.lexsort((-score, -weight, target))
    target, weight, score = target[order], weight[order], score[order]
    first = np.searchsorted(target, target)
    best: Ints = rows[order[(weight == weight[first]) & (score == score[first])]]
    return best


def _choose_arrivals(trail: Trail, edges: Edges) -> Plan[dict[int, HitArrival]]:
    """Choose among equally good edges, by target, by the id of the source, then by kind and tag.

    Ids are fetched only where edges to the same target have several sources.
    """
    tags = yield from plans.ask(plans.Tags(groups=edges.group))
    differ = (edges.target[1:] == edges.target[:-1]) & (edges.source[1:] != edges.source[:-1])
    tied = sort_unique(edges.source[is_member(edges.target, edges.target[1:][differ])])
    tied = tied[tied != QUERY]
    source_ids: list[str] = (yield from plans.ask(plans.Ids(refs=trail.refs[tied]))) if len(tied) else []
    ids = dict(zip(tied.tolist(), source_ids, strict=True))
    best: dict[int, HitArrival] = {}
    for position, source, tag in zip(edges.target.tolist(), edges.source.tolist(), tags, strict=True):
        arrival = HitArrival(ids.get(source, ""), *tag, source)
        if position not in best or arrival < best[position]:
            best[position] = arrival
    return best


class LinkTexts:
    """The labels and data that documents give to their links, read once for each document.

    Args:
        documents: The documents, by position in the trail.
        question: Its links are those of the position :data:`QUERY`; its ``link_filter`` selects data.
    """

    def __init__(self, documents: Mapping[int, plans.StoredDocument], question: Question) -> None:
        self._labels: dict[tuple[int, Tag], str] = {}
        self._data: dict[int, dict[Tag, LinkData]] = {}
        for end, document in documents.items():
            for link in document.metadata.get(LINKS_KEY) or ():
                if len(link) > _PLAIN_FIELDS:
                    if link.get("label"):
                        self._labels.setdefault((end, (link["kind"], link["tag"])), link["label"])
                    if link.get("data") and end not in self._data:
                        links = parse_links(document.metadata)
                        self._data[end] = _collect_data(links, question.link_filter)
        if question.links:
            own = ((link.kind, link.tag, link.label) for link in question.links)
            self._labels |= {(QUERY, (kind, tag)): label for kind, tag, label in own if label}
            self._data[QUERY] = _collect_data(question.links, EVERYTHING)

    def label(self, link: Tag, *ends: int) -> str | None:
        """Return the label of a link, as the first of its ends has it that has one."""
        for end in ends:
            if label := self._labels.get((end, link)):
                return label
        return None

    def data(self, link: Tag, *ends: int) -> LinkData:
        """Return the data of a link, as the first of its ends has it from which the link leads out."""
        for end in ends:
            if link in self._data.get(end, ()):
                return self._data[end][link]
        return None


def _collect_data(links: Iterable[Link], condition: Condition) -> dict[Tag, LinkData]:
    """Return the data of outgoing links, for each (kind, tag) the first that passes."""
    data: dict[Tag, LinkData] = {}
    for link in links:
        if link.leads_out and condition.matches(link.data or {}):
            data.setdefault((link.kind, link.tag), link.data)
    return data


def make_best_hits(
    trail: Trail,
    strategy: Strategy,
    question: Question,
    scores: Floats,
    parts: Mapping[str, Floats] | None = None,
    k: int | None = None,
) -> Plan[Hits]:
    """Make hits of the ``k`` best documents of the trail that may be returned: see :func:`make_hits`.

    Args:
        trail: What the search reached.
        strategy: Says how many documents of one page, and by default how many, are returned.
        question: The question with the ``result_filter``.
        scores: (n,) scores of the documents of the trail.
        parts: The parts of the scores, (n,) each. Default: the similarity, and what links take from it.
        k: Maximum number of hits. Default: that of the strategy.
    """
    chosen = yield from select_returned(
        trail, scores, strategy.k if k is None else k, question, strategy.per_page
    )
    if not len(chosen):
        return report_none_returned(trail, strategy)
    taken = None if parts is None else {name: part[chosen] for name, part in parts.items()}
    return (yield from make_hits(trail, chosen, strategy, question, scores[chosen], taken))


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
    paths = _list_paths(positions, arrivals)
    involved = list(dict.fromkeys(chain.from_iterable(paths)))
    stored = yield from plans.ask(plans.Documents(refs=trail.refs[involved]))
    documents = dict(zip(involved, stored, strict=True))
    texts = LinkTexts(documents, question)
    steps = {at: _make_step(documents[at], at, arrivals.get(at), texts) for at in involved}
    if scores is None:
        scores = trail.score[positions]
    similarity = trail.similarity[positions]
    if parts is None:
        parts = {"similarity": similarity, "links": scores - similarity}
    shares = zip(*map(np.ndarray.tolist, parts.values()), strict=True)
    hits = []
    for path, score, alike, share in zip(paths, scores.tolist(), similarity.tolist(), shares, strict=True):
        document = documents[path[0]]
        hit = Hit(
            document=make_document(document.id, document.text, document.metadata),
            score=score,
            similarity=alike,
            depth=len(path) - 1,
            path=Path(tuple(map(steps.__getitem__, reversed(path)))),
            contributions=dict(filter(_GET_PART, zip(parts, share, strict=True))),
        )
        hits.append(hit)
    return Hits(
        hits=tuple(hits),
        cuts=tuple(trail.cuts),
        doubt=trail.doubt,
        least_similarity=trail.least_similarity,
        strategy=str(strategy),
    )


def _list_paths(positions: Ints, arrivals: Mapping[int, HitArrival]) -> list[list[int]]:
    """Return the positions on the path to each position, from there back to the start."""
    paths = []
    for position in positions.tolist():
        path = [position]
        while (arrival := arrivals.get(path[-1])) and arrival.source != QUERY:
            path.append(arrival.source)
        paths.append(path)
    return paths


def _make_step(
    stored: plans.StoredDocument, at: int, arrival: HitArrival | None, texts: LinkTexts
) -> PathStep:
    url = stored.metadata.get("url")
    url = url if isinstance(url, str) else None
    if arrival is None:
        return PathStep(id=stored.id, url=url)
    # The author of a link names it; where a link was followed backwards, that is its target.
    link, ends = (arrival.kind, arrival.tag), (arrival.source, at)
    label, data = texts.label(link, *ends), texts.data(link, *ends)
    return PathStep(id=stored.id, url=url, kind=arrival.kind, tag=arrival.tag, label=label, data=data)

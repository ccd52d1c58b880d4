"""Plans request data, backends answer, drivers wait.

A *plan* is a generator that yields fetches, receives their answers and returns a result. A
backend's *operation* is a generator that yields whatever its engine waits for. :mod:`linkstore.core.calls`
joins the two into one operation and drives it; nothing else waits.

Filters in fetches apply to one stage of a search. The filter of the whole search is the scope that the
reader is opened for: documents outside the scope appear in no answer and no count.

Documents and link groups are numbers in fetches and answers, called refs. A ref is valid for one
reader while it is open; ``Ids`` and ``Tags`` return the ids and tags.

The one order of results: score descending, then id.

Ids are requested only where scores tie, so that engines with many documents need not look up
ids that decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints, mark_first, sort_integers
from linkstore.core.calls import answer_plan, drive
from linkstore.core.filters import EVERYTHING, Condition

A = TypeVar("A")
T = TypeVar("T")
Side = Literal["out", "in"]
"""The two sides of a link group: documents that point at its tag, and documents that the tag leads to."""
Ranking = Generator[Ints, list[str], Ints]
"""Yields positions whose ids it needs, receives the ids, returns positions in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Documents with their similarity to the question.

    Args:
        refs: (n,) documents.
        similarity: (n,) in [-1, 1].
        filtered: Number of documents that the filter excluded, if known.
    """

    refs: Ints
    similarity: Floats
    filtered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memberships:
    """One entry for each pair of a document and a link group it belongs to.

    Args:
        document: (m,) positions in the fetch's ``refs``.
        group: (m,) link groups.
        kind: (m,) positions in ``kinds``.
        weight: (m,) weights of the documents' links.
        kinds: The kinds that occur.
        filtered: Number of such pairs that the condition on links excluded.
    """

    document: Ints
    group: Ints
    kind: Ints
    weight: Floats
    kinds: tuple[str, ...]
    filtered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedMembers:
    """Members of link groups, by group in the order asked, then similarity descending, then id.

    Args:
        group: (m,) positions in the fetch's ``groups``.
        refs: (m,) documents.
        similarity: (m,) similarity to the question.
        weight: (m,) weights of the documents' links.
        sizes: (g,) documents on that side of each group, counted to at most cap + 1.
        filtered: Number of members that the filter excluded.
        filtered_links: Number of pairs of a group and a member that the condition on links excluded.
    """

    group: Ints
    refs: Ints
    similarity: Floats
    weight: Floats
    sizes: Ints
    filtered: int = 0
    filtered_links: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalMatches:
    """Documents that match words, best first, then by id.

    Args:
        refs: (n,) documents.
        score: (n,) BM25, greater than 0.
        left_out: Words that were not looked up because too many documents contain them.
        sampled: Words of which only some documents were looked at, a random sample of
            about :data:`linkstore.core.lexical.POSTINGS`.
        document_frequency: How many documents of the scope have each of the words that were looked up;
            of a word that more than :data:`~linkstore.core.lexical.POSTINGS` have, perhaps only one more
            than these.
        documents: How many documents the scope has, for the rarity of a word; perhaps not up to date.
    """

    refs: Ints
    score: Floats
    left_out: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()
    document_frequency: Mapping[str, int] = field(default_factory=dict)
    documents: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A stored document; ``metadata`` is a copy that the receiver may change."""

    id: str
    text: str
    metadata: dict[str, Any]


class Fetch(Generic[A]):
    """What a strategy can request, with the type of its answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(Fetch[Candidates]):
    """The ``k`` documents most similar to ``vector`` (d,) that pass ``filter``."""

    vector: Floats
    k: int
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Find(Fetch[Candidates]):
    """The documents with these ids that pass ``filter``, in the order asked.

    Without a vector their similarity is 0.
    """

    ids: tuple[str, ...]
    vector: Floats | None = None
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(Fetch[Memberships]):
    """The link groups of ``kinds`` (None: all) that each document belongs to on one side.

    Only links whose data pass ``links`` count; a link without data has those of an empty object.
    """

    refs: Ints
    side: Side
    kinds: frozenset[str] | None = None
    links: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve(Fetch[Ints]):
    """The refs (g,) of link groups by (kind, tag), -1 for one that is not there."""

    tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(Fetch[ReachedMembers]):
    """Of each link group, the ``take`` documents on ``side`` most similar to ``vector``.

    Without a vector their similarity is 0, so those with the smallest ids are taken.

    A group with more than ``cap`` documents on that side, counted before ``filter`` and ``links``, is a hub:
    it contributes no documents. ``exclude`` lists documents to leave out. The answer has only documents with
    a link to the group, on that side, whose data pass ``links``.

    A backend may choose the ``take`` documents by estimates of their similarity, as it may find the nearest.
    """

    groups: Ints
    side: Side
    vector: Floats | None = None
    take: int
    cap: int
    exclude: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    filter: Condition = EVERYTHING
    links: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical(Fetch[LexicalMatches]):
    """The ``k`` documents that match words best, by BM25, and pass ``filter``.

    :mod:`linkstore.core.lexical` defines words and scores. A backend that cannot search by words
    raises CapabilityError in the plan, which may catch it and continue.
    """

    terms: tuple[str, ...]
    k: int
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching(Fetch[Bools]):
    """Which of the documents pass ``filter``: bool of shape (n,)."""

    refs: Ints
    filter: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors(Fetch[Floats]):
    """The stored unit vectors of documents: float32 of shape (n, d)."""

    refs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids(Fetch[list[str]]):
    """The ids of documents."""

    refs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags(Fetch[list[tuple[str, str]]]):
    """The (kind, tag) of link groups."""

    groups: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents(Fetch[list[StoredDocument]]):
    """Id, text and metadata of documents."""

    refs: Ints


Plan = Generator[Fetch[Any], Any, T]
"""Yields fetches, receives their answers, returns a result."""
EngineOperation = Generator[Any, Any, T]
"""Yields requests that only one engine understands, receives the responses, returns an answer."""


def ask(fetch: Fetch[A]) -> Plan[A]:
    """Return the answer to a fetch, as a plan."""
    answer: A = yield fetch
    return answer


def read_documents(ids: Iterable[str]) -> Plan[list[StoredDocument]]:
    """Return the documents with these ids, each once, in the order asked. Those not stored are left out."""
    candidates = yield from ask(Find(ids=tuple(ids)))
    return (yield from ask(Documents(refs=candidates.refs)))


def select_stored(ids: Iterable[str]) -> Plan[list[str]]:
    """Return the ids that are stored, each once, in the order asked."""
    candidates = yield from ask(Find(ids=tuple(ids)))
    return (yield from ask(Ids(refs=candidates.refs)))


def rank_best(scores: Floats, take: int) -> Ranking:
    """Return the positions of the ``take`` best scores, in order; yield positions whose ids are needed."""
    if take <= 0:
        return np.empty(0, dtype=np.int64)
    chosen = np.arange(len(scores))
    if take < len(scores):  # those that tie with the last one may be better
        chosen = np.flatnonzero(scores >= np.partition(scores, len(scores) - take)[len(scores) - take])
    chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
    tied = mark_ties(scores[chosen])
    if tied.any():
        ids = yield chosen[tied]
        chosen = _break_ties(chosen, tied, ids, -scores[chosen])
    return chosen[:take]


def rank_by_group(groups: Ints, scores: Floats) -> Ranking:
    """Return positions ordered by group, then score descending, then id."""
    order, keys = sort_by_group(groups, scores)
    tied = mark_ties(keys)
    if tied.any():
        ids = yield order[tied]
        order = _break_ties(order, tied, ids, -scores[order], groups[order])
    return order


def sort_by_group(groups: Ints, scores: Floats) -> tuple[Ints, Ints]:
    """Return positions by group, then score descending, and keys of group << 32 and score, ascending."""
    return sort_integers((groups << 32) + _invert_scores(scores), int(groups.max(initial=0) + 1) << 32)


def select_by_group(groups: Ints, scores: Floats, take: int, ids: Callable[[Ints], list[str]]) -> Ints:
    """Return the positions of the ``take`` best of each group, in the order of :func:`rank_by_group`.

    Args:
        groups: (n,) group of each entry.
        scores: (n,) score of each entry.
        take: How many of a group.
        ids: Looks up the ids of positions.
    """
    order = drive(rank_by_group(groups, scores), ids)
    ordered = groups[order]
    kept = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ordered[take:], ordered[: max(0, len(order) - take)], out=kept[take:])
    return order[kept]


def rank_refs(refs: Ints, scores: Floats, take: int) -> Plan[Ints]:
    """Return the positions of the ``take`` best of ``refs``, in order, as a plan."""
    return answer_plan(rank_best(scores, take), lambda positions: ask(Ids(refs=refs[positions])))


def mark_ties(ordered: Floats | Ints) -> Bools:
    """Mark which entries of an ordered array equal a neighbour."""
    equal = ordered[1:] == ordered[:-1]
    tied = np.zeros(len(ordered), dtype=np.bool_)
    tied[1:] |= equal
    tied[:-1] |= equal
    return tied


def number_equals(ordered: Ints) -> Ints:
    """Return (n,) the place of each entry, from 0, among its equals, which stand side by side."""
    at = np.arange(len(ordered))
    return at - np.maximum.accumulate(np.where(mark_first(ordered), at, 0))


def _invert_scores(scores: Floats) -> Ints:
    """Return whole numbers below 2^32 that ascend exactly as the scores descend.

    One sort of whole numbers is several times faster than a sort by two keys.
    """
    bits = (0.0 - scores).astype(np.float32).view(np.int32)
    return (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64) + (1 << 31)


def _break_ties(order: Ints, tied: Bools, ids: list[str], *keys: Floats | Ints) -> Ints:
    """Return positions in the order of the keys, the last one first, and then of the ids of those tied."""
    rank = np.zeros(len(order), dtype=np.int64)
    by_id = sorted(range(len(ids)), key=ids.__getitem__)
    rank[np.flatnonzero(tied)[by_id]] = np.arange(len(ids))
    return order[np.lexsort((rank, *keys))]

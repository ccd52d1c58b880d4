"""Plans request data, backends answer, drivers wait.

A *plan* is a generator that yields fetches, receives their answers and returns a result. A
backend's *operation* is a generator that yields whatever its engine waits for. :mod:`linkstore.drivers`
joins the two into one operation and drives it; nothing else waits.

Filters in fetches apply to one stage of a search. The filter of the whole search is the scope that the
reader is opened for: documents outside the scope appear in no answer and no count.

Documents and link groups are numbers in fetches and answers, called refs. A ref is valid for one
reader while it is open; ``Ids`` and ``Tags`` return the ids and tags.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from linkstore.filters import EVERYTHING, Condition
from linkstore.vectors import Floats, Ints

T = TypeVar("T")
Side = Literal["out", "in"]
"""The two sides of a link group: documents that point at its tag, and documents that the tag leads to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The ``k`` documents most similar to ``vector`` (d,) that pass ``filter``: Candidates."""

    vector: Floats
    k: int
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The documents with these ids that pass ``filter``, in the order asked: Candidates.

    Without a vector their similarity is 0.
    """

    ids: tuple[str, ...]
    vector: Floats | None = None
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The link groups of ``kinds`` (None: all) that each document belongs to on one side: Memberships.

    Only links whose data pass ``links`` count; a link without data has those of an empty object.
    """

    refs: Ints
    side: Side
    kinds: frozenset[str] | None = None
    links: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """The refs (g,) of link groups by (kind, tag), -1 for one that is not there: Ints."""

    tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Of each link group, the ``take`` documents on ``side`` most similar to ``vector``: Reached.

    A group with more than ``cap`` documents on that side, counted before ``filter`` and ``links``, is a hub:
    it contributes no documents. ``exclude`` lists documents to leave out. The answer has only documents with
    a link to the group, on that side, whose data pass ``links``.

    ``best`` says that the plan uses only the ``best`` documents by score: the answer is exact for them, and
    the similarities of others may be estimates that rank below them. The score is the similarity damped by a
    weight, as in :func:`linkstore.vectors.damped`: the weight of the path to the group (``strength``, (g,))
    times the weight of the document's link.
    """

    groups: Ints
    side: Side
    vector: Floats
    take: int
    cap: int
    exclude: Ints
    filter: Condition = EVERYTHING
    links: Condition = EVERYTHING
    strength: Floats | None = None
    best: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """The ``k`` documents that match words best, by BM25, and pass ``filter``: Worded.

    :mod:`linkstore.lexical` defines words and scores. A backend that cannot search by words
    raises CapabilityError in the plan, which may catch it and continue.
    """

    terms: tuple[str, ...]
    k: int
    filter: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Which of the documents pass ``filter``: bool of shape (n,)."""

    refs: Ints
    filter: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The stored unit vectors of documents: float32 of shape (n, d)."""

    refs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The ids of documents: list of str."""

    refs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """The (kind, tag) of link groups: list of pairs."""

    groups: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """Id, text and metadata of documents: list of Stored."""

    refs: Ints


Fetch = Nearest | Find | Groups | Resolve | Members | Lexical | Matching | Vectors | Ids | Tags | Documents
"""Every request that a strategy can make."""


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
class Reached:
    """Members of link groups, by group in the order asked, then similarity descending, then id.

    Args:
        group: (m,) positions in the fetch's ``groups``.
        refs: (m,) documents.
        similarity: (m,) similarity to the question; beyond the ``best``, estimates in no particular order.
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
class Worded:
    """Documents that match words, best first, then by id.

    Args:
        refs: (n,) documents.
        score: (n,) BM25, greater than 0.
        left_out: Words that were not looked up because too many documents contain them.
        sampled: Words of which only some documents were looked at, a random sample of
            about :data:`linkstore.lexical.POSTINGS`.
    """

    refs: Ints
    score: Floats
    left_out: tuple[str, ...] = ()
    sampled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A stored document; ``metadata`` is a copy that the receiver may change."""

    id: str
    text: str
    metadata: dict[str, Any]


Plan = Generator[Fetch, Any, T]
"""Yields fetches, receives their answers, returns a result."""
Operation = Generator[Any, Any, T]
"""Yields requests to the storage engine, receives the responses, returns an answer."""

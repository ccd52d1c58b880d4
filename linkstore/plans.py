"""Plans ask for data, backends answer, drivers wait.

A *plan* is a generator that yields fetches, receives their answers and returns a result. A
backend's *operation* is a generator that yields whatever its engine waits for. :mod:`linkstore.drivers`
joins the two into one operation and drives it; nothing else waits.

Filters in fetches tighten one stage of a search. What holds for all of it is the scope that the reader is
opened for: documents outside it do not exist, in no answer and no count.

Numbers in fetches and answers, called refs, stand for documents and link groups. They are the
reader's own, valid while it is open; ids and tags are asked for by ``Names`` and ``Tags``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from linkstore.filters import EVERYTHING, Condition
from linkstore.vectors import Floats, Ints

T = TypeVar("T")
Side = Literal["out", "in"]
"""The two sides of a link group: documents that point at its tag, documents it points at."""


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
    """On which link groups of ``kinds`` (None: all) each document lies, on one side: Memberships."""

    refs: Ints
    side: Side
    kinds: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """The refs (g,) of link groups by (kind, tag), -1 for one that is not there: Ints."""

    tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Of each link group, the ``take`` documents on ``side`` most similar to ``vector``: Reached.

    A group with more than ``cap`` documents on that side, counted before ``filter``, is a hub:
    it gives none. ``exclude`` are documents that are not wanted again.

    With ``best`` the plan asks further about the ``best`` documents by score alone: about those the
    answer is exact, and the similarities of others may be estimates that rank below them. The score
    is the similarity damped by a weight, as in :func:`linkstore.vectors.damped`: that of the way to the group
    (``strength``, (g,)) times that of the document's link.
    """

    groups: Ints
    side: Side
    vector: Floats
    take: int
    cap: int
    exclude: Ints
    filter: Condition = EVERYTHING
    strength: Floats | None = None
    best: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """The ``k`` documents that match words best, by BM25, and pass ``filter``: Worded.

    What words are and how they score is :mod:`linkstore.lexical`'s. A backend that cannot search by words
    has CapabilityError raised in the plan, which may go on without.
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
class Names:
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


Fetch = Nearest | Find | Groups | Resolve | Members | Lexical | Matching | Vectors | Names | Tags | Documents
"""All that a strategy can ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Documents with their similarity to the question.

    Args:
        refs: (n,) documents.
        similarity: (n,) in [-1, 1].
        filtered: How many were left out by the filter, where that is known.
    """

    refs: Ints
    similarity: Floats
    filtered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memberships:
    """One entry for each document and link group it lies on.

    Args:
        document: (m,) positions in the fetch's ``refs``.
        group: (m,) link groups.
        kind: (m,) positions in ``kinds``.
        weight: (m,) weights of the documents' links.
        kinds: The kinds that occur.
    """

    document: Ints
    group: Ints
    kind: Ints
    weight: Floats
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Members of link groups, by group in the order asked, then similarity descending, then id.

    Args:
        group: (m,) positions in the fetch's ``groups``.
        refs: (m,) documents.
        similarity: (m,) to the question; estimates, and in no order, beyond the ``best``.
        weight: (m,) weights of the documents' links.
        sizes: (g,) documents on that side of each group, counted to at most cap + 1.
        filtered: How many members the filter left out.
    """

    group: Ints
    refs: Ints
    similarity: Floats
    weight: Floats
    sizes: Ints
    filtered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """Documents that match words, best first, then by id.

    Args:
        refs: (n,) documents.
        score: (n,) BM25, greater than 0.
        left_out: Words that were not looked up because too many documents have them.
    """

    refs: Ints
    score: Floats
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A document as it lies in the store; ``metadata`` is the receiver's own copy."""

    id: str
    text: str
    metadata: dict[str, Any]


Plan = Generator[Fetch, Any, T]
"""Yields fetches, receives their answers, returns a result."""
Operation = Generator[Any, Any, T]
"""Yields what a backend's engine waits for, receives what came of it, returns an answer."""

"""What queries about links return: documents with the chains that led to them, and shortest paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none
from linkstore.core.hits import Chain, Items


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphHit:
    """A document that a query leads to.

    Args:
        document: As stored.
        chains: One for each branch that leads to it, a shortest one of that branch; the shortest first.
        count: How many documents the step of ``order_by`` leads to; None without one.
    """

    document: Document
    chains: tuple[Chain, ...] = ()
    count: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as plain JSON, without the text of its document."""
        chains = [[triple.to_dict() for triple in chain] for chain in self.chains]
        hit = {"id": self.document.id, "metadata": dict(self.document.metadata), "chains": chains}
        return hit | omit_none(count=self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAnswer(Items[GraphHit]):
    """The answer to a :class:`~linkstore.core.graph_query.GraphQuery`; its items are its hits.

    Args:
        hits: The documents in order, as many as the query's limit allows; none where it returns something
            else.
        total: How many documents are results, beyond the limit too.
        values: Different values of the field, in order, at most the limit.
        groups: Values of the field with the number of results that have each, the most first.
        distinct: How many different values there are, beyond the limit too.
        starts: For each start that was named, the id of the document that it means.
        limits: Which limits were reached, in words, so that results may be missing.
        reason: Why there is no result: which step became empty, and what there is instead. None if there
            are results.
    """

    hits: tuple[GraphHit, ...] = ()
    total: int = 0
    values: tuple[Any, ...] = ()
    groups: tuple[tuple[Any, int], ...] = ()
    distinct: int = 0
    starts: Mapping[str, str]
    limits: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def _items(self) -> tuple[GraphHit, ...]:
        return self.hits

    @property
    def complete(self) -> bool:
        """Whether no limit on nodes or time was reached, so that ``total`` is exact."""
        return not self.limits

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the hits."""
        return tuple(str(hit.document.id) for hit in self.hits)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON, without the texts of documents."""
        return {
            "total": self.total,
            "hits": [hit.to_dict() for hit in self.hits],
            "values": list(self.values),
            "groups": [{"value": value, "count": count} for value, count in self.groups],
            "distinct": self.distinct,
            "starts": dict(self.starts),
            "limits": list(self.limits),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The document that a name means.

    Args:
        document: The document, if just one may be meant.
        candidates: Otherwise those of which one may be meant, by id.
        grade: How the name is that of the document or of the candidates, in words; empty without one.
    """

    document: Document | None = None
    candidates: tuple[Document, ...] = ()
    grade: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortestPaths(Items[Chain]):
    """The shortest paths between two documents; its items are the chains.

    Args:
        start: The id of the first document.
        end: The id of the last one.
        chains: The paths, the shortest first.
        lengths: The length of each: the sum of the lengths of its links, which are 1 divided by their
            weights.
        limits: Which limits were reached, in words, so that there may be shorter paths.
    """

    start: str
    end: str
    chains: tuple[Chain, ...] = ()
    lengths: tuple[float, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def _items(self) -> tuple[Chain, ...]:
        return self.chains

    def to_dict(self) -> dict[str, Any]:
        """Return the paths as plain JSON."""
        paths = [
            {
                "length": length,
                "documents": list(chain.documents),
                "links": [link.to_dict() for link in chain],
            }
            for chain, length in zip(self.chains, self.lengths, strict=True)
        ]
        return {"start": self.start, "end": self.end, "paths": paths, "limits": list(self.limits)}

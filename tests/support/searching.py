"""Searching small stores on the oracle: what the tests of strategies share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.probe import DIMENSION, QUERY_VECTOR
from oracle import OracleBackend

from linkstore.core.filters import Condition, Filter, parse_filter
from linkstore.core.hits import Hits
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.strategies import Question, Strategy


def store(*records: Record) -> Callable[..., Hits]:
    """Fill an oracle; returns its search: of a strategy, a filter, and the fields of a question."""
    backend = OracleBackend()
    backend.run(backend.claim(Manifest(embedding="e", dimension=DIMENSION)))
    backend.run(backend.write(WriteBatch(put=records)))

    def search(strategy: Strategy, filter: Filter | Condition | None = None, **question: Any) -> Hits:
        asked = Question(**{"vector": QUERY_VECTOR, "filtered": filter is not None, **question})
        return backend.run(backend.answer(strategy.plan(asked), parse_filter(filter)))

    return search


def ids(hits: Hits) -> list[str]:
    return [hit.document.id for hit in hits]


def paths(hits: Hits) -> dict[str, str]:
    return {hit.document.id: str(hit.path) for hit in hits}


def cuts(hits: Hits) -> list[tuple[str, int, int | None]]:
    return [(cut.reason, cut.count, cut.depth) for cut in hits.cuts]

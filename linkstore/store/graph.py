"""How a store answers queries about typed links and paths, and finds documents by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from time import monotonic
from typing import Any

from linkstore.core.arguments import require, require_at_least, require_within
from linkstore.core.arrays import make_unit_vector
from linkstore.core.calls import Operation, call_engine, call_plan
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.graph_answer import GraphAnswer, Lookup, ShortestPaths
from linkstore.core.graph_query import Branch as Branch
from linkstore.core.graph_query import GraphQuery as GraphQuery
from linkstore.core.graph_query import Step as Step
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import StrategyError
from linkstore.store.documents import as_document
from linkstore.store.misspellings import check_vocabulary
from linkstore.store.schema import TYPE_FIELD, VALID_FROM, VALID_UNTIL
from linkstore.store.schema_graph import read_schema
from linkstore.strategies.base import MAX_MATCH_NODES, MAX_MATCH_SECONDS
from linkstore.strategies.matching import MatchSettings, match_query
from linkstore.strategies.resolver import Resolution, resolve_name
from linkstore.strategies.shortest import (
    DEFAULT_HUB_CAP,
    DEFAULT_MAX_NODES,
    ShortestPathSettings,
    find_shortest_paths,
)


def find_document(backend: Backend, name: str, type: str | None, filter: Filter | None) -> Operation[Lookup]:
    """Find the document with a name: see :meth:`~linkstore.store.core.CoreStore.find`."""
    require(str, "an id or a name", name=name)
    resolution, _ = yield from look_up_name(backend, name, type, filter)
    document = resolution.document
    return Lookup(
        document=None if document is None else as_document(document),
        candidates=tuple(map(as_document, resolution.candidates)),
        grade=resolution.grade,
    )


def look_up_name(
    backend: Backend, name: str, type: str | None, filter: Filter | None
) -> Operation[tuple[Resolution, str]]:
    """Find what a name means within a filter: see :meth:`~linkstore.store.core.CoreStore.find`.

    Also return the field that holds types.
    """
    recorded = yield from read_schema(backend)
    type_field = recorded.schema.type_field if recorded else TYPE_FIELD
    condition = parse_filter(None if type is None else {type_field: type})
    yield from check_vocabulary(backend, Vocabulary(), [condition], filter)
    manifest = yield from call_engine(backend, backend.manifest())
    plan = resolve_name(name, make_unit_vector(manifest.dimension or 1), condition, type_field)
    return (yield from call_plan(backend, plan, parse_filter(filter))), type_field


def answer_query(
    backend: Backend,
    query: GraphQuery | Mapping[str, Any] | str,
    filter: Filter | None,
    max_depth: int | None,
    max_nodes: int = MAX_MATCH_NODES,
    seconds: float = MAX_MATCH_SECONDS,
    as_of: str | date | None = None,
) -> Operation[GraphAnswer]:
    """Answer a query within a filter: see :meth:`~linkstore.store.core.CoreStore.match`."""
    if isinstance(query, str):
        from linkstore.core.cypher import parse_cypher  # brings a parser

        query = parse_cypher(query)
    elif not isinstance(query, GraphQuery):
        query = GraphQuery.from_dict(query)
    if as_of is not None:
        query = replace(query, as_of=as_of.isoformat() if isinstance(as_of, date) else as_of)
    require_at_least(1, max_nodes=max_nodes)
    require_within(0, 86_400, seconds=seconds)
    scope = parse_filter(filter)
    if max_depth is not None and query.hops > max_depth:
        raise StrategyError(
            f"the query follows up to {query.hops} links in a row, and {max_depth} are allowed here; shorten"
            " its paths or repetitions"
        )
    recorded = yield from read_schema(backend)
    schema = recorded.schema if recorded else None
    conditions = [parse_filter(where) for where in query.filters]
    fields = frozenset[str]().union(*(condition.needed for condition in conditions))
    order_by = None if query.counted else query.order_by
    named = {name for name in (query.field, order_by) if name is not None}
    asked = Vocabulary(
        kinds=query.relations - (schema.kinds if schema else frozenset()), fields=fields | named
    )
    type_field = schema.type_field if schema else TYPE_FIELD
    typed = [parse_filter({type_field: name}) for name in sorted(query.types)]
    yield from check_vocabulary(backend, asked, [*conditions, *typed], filter)
    manifest = yield from call_engine(backend, backend.manifest())
    settings = MatchSettings(
        vector=make_unit_vector(manifest.dimension or 1),
        type_field=type_field,
        valid_from=schema.valid_from if schema else VALID_FROM,
        valid_until=schema.valid_until if schema else VALID_UNTIL,
        max_nodes=max_nodes,
        deadline=monotonic() + seconds,
    )
    return (yield from call_plan(backend, match_query(query, settings), scope))


def answer_paths(
    backend: Backend,
    start: str,
    end: str,
    k: int,
    filter: Filter | None,
    max_depth: int | None,
    max_nodes: int = DEFAULT_MAX_NODES,
    hub_cap: int = DEFAULT_HUB_CAP,
) -> Operation[ShortestPaths]:
    """Find paths within a filter: see :meth:`linkstore.store.linking.StoreLinks.paths`."""
    require(str, "the id or name of a document", start=start, end=end)
    require_at_least(1, k=k, max_nodes=max_nodes, hub_cap=hub_cap)
    scope = parse_filter(filter)
    manifest = yield from call_engine(backend, backend.manifest())
    recorded = yield from read_schema(backend)
    settings = ShortestPathSettings(
        vector=make_unit_vector(manifest.dimension or 1),
        type_field=recorded.schema.type_field if recorded else TYPE_FIELD,
        k=k,
        max_nodes=max_nodes,
        hub_cap=hub_cap,
        max_depth=max_depth,
    )
    return (yield from call_plan(backend, find_shortest_paths(start, end, settings), scope))

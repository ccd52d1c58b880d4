"""Carrying out a search: its question is embedded, its names are checked, its plan is run and reranked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np

from linkstore.core.arguments import quote_value
from linkstore.core.arrays import Floats, convert_numbers, normalize_vector
from linkstore.core.calls import call_engine, call_plan, run
from linkstore.core.filters import Condition, Filter, parse_filter
from linkstore.core.hits import Hits
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Candidates, Documents, Nearest, Operation, Plan, StoredDocument
from linkstore.core.vocabulary import (
    Vocabulary,
    collect_names,
    make_unknown_name_error,
    make_unknown_type_error,
)
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest
from linkstore.errors import EmbeddingError, FilterError
from linkstore.store.base import StoreBase
from linkstore.store.schema_graph import read_schema
from linkstore.store.search_arguments import (
    LINKS_SEARCH,
    SEARCH_ARGUMENTS,
    SearchArguments,
    check_argument_names,
    choose_strategy,
)
from linkstore.strategies.base import SearchOptions, Strategy
from linkstore.strategies.observers import count_reached, observe_search
from linkstore.strategies.traversal import check_depth, limit_depth

NAME_SAMPLE_SIZE: Final = 200
"""Number of documents that pass a filter from which names are suggested."""
_PLACEHOLDER_VECTOR: Final = normalize_vector([1.0])


class SearchMethods(StoreBase):
    """The search of a store that is no VectorStore of LangChain."""

    def search(self, query: str, **arguments: Unpack[SearchArguments]) -> Hits:
        """Search by a strategy, and return hits with their paths: see :meth:`linkstore.LinkStore.search`."""
        return run(self._search("search", query, arguments))

    def _search(self, method: str, query: str, arguments: Mapping[str, Any]) -> Operation[Hits]:
        check_argument_names(f"{method}()", arguments, SEARCH_ARGUMENTS[LINKS_SEARCH])
        options = dict(arguments)
        strategy = choose_strategy(options.pop("strategy", None), options.pop("k", None))
        return self._hits(query, strategy, SearchOptions(**options))

    def _hits(self, query: str | list[float], strategy: Strategy, options: SearchOptions) -> Operation[Hits]:
        """Search, and report it to the observers."""
        strategy = strategy.with_floor(self._floor)
        if not self._observers:
            return (yield from self._find_hits(query, strategy, options, None))
        question = query if isinstance(query, str) else ""
        search = partial(self._find_hits, query, strategy, options)
        return (yield from observe_search(self._observers, question, str(strategy), search))

    def _find_hits(
        self,
        query: str | list[float],
        strategy: Strategy,
        options: SearchOptions,
        reached: list[int] | None,
    ) -> Operation[Hits]:
        """Embed the query unless it is a vector, run the strategy's plan, and apply its reranker.

        Args:
            query: The question, or its vector.
            strategy: How to search.
            options: Filters and additional starting points.
            reached: If given, takes the number of documents that each step along links gave.

        Raises:
            StrategyError: If the strategy follows more links in a row than the store allows.
            EmbeddingError: If the query is neither a string nor a vector of the store's dimension.
            UnknownNameError: If no document has a name that the search asks for.
        """
        backend = self.backend
        yield from check_known_names(backend, strategy, options)
        text = query if isinstance(query, str) else ""
        given = None if isinstance(query, str) else _convert_question(query)
        question = options.question(_PLACEHOLDER_VECTOR, text)  # raise on an invalid link before embedding
        check_depth(strategy, strategy.hops, self._max_depth)
        vector = (yield from self._embedding.embed_query(text)) if given is None else given
        manifest: Manifest = yield call_engine(backend, backend.manifest())
        question = replace(question, vector=normalize_vector(vector, manifest.dimension))
        plan = limit_depth(strategy.plan(question), strategy, self._max_depth)
        if reached is not None:
            plan = count_reached(plan, reached)
        found: Hits = yield call_plan(backend, plan, options.scope)
        hits = yield from strategy.judged(question, found)
        if not hits or options.hop_filter is not None:
            yield from check_known_types(backend, options)
        return hits


def _convert_question(given: Any) -> Floats:
    """Return the vector of a question as float32 of shape ``(dimension,)``, not scaled.

    Raises:
        EmbeddingError: If it is not a sequence of numbers, such as the input of a whole chain.
    """
    try:
        vector = convert_numbers(given)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, np.float32)
    if vector.ndim != 1 or not vector.size:
        raise EmbeddingError(
            f"a question must be a string or a list of numbers, not {quote_value(given)[:200]}"
        )
    return vector


def check_known_names(backend: Backend, strategy: Strategy, options: SearchOptions) -> Operation[None]:
    """Check that the store has the kinds and fields that a search names. An empty store may lack any.

    The names are looked up in the whole store, but alternatives are suggested only from documents that the
    caller may see.

    Raises:
        UnknownNameError: For the first name that the store lacks, with the most similar one that it has.
    """
    asked = Vocabulary(
        kinds=strategy.kinds_named, fields=options.fields_needed, link_fields=options.link_fields_needed
    ).checkable
    if not asked:
        return
    missing = asked - (yield call_engine(backend, backend.vocabulary(asked.storable)))
    if missing and (yield call_engine(backend, backend.scan(None, 1))):
        raise make_unknown_name_error(
            missing, (yield from _suggest_names(backend, options.filter, missing.fields))
        )


def check_known_types(backend: Backend, options: SearchOptions) -> Operation[None]:
    """Check that the schema of the store, if it has one, has the document types that filters ask for.

    Raises:
        UnknownNameError: For the first type that the schema lacks, with the most similar one that it has.
    """
    asked = [pair for one in options.document_filters for pair in one.equalities]
    recorded = (yield from read_schema(backend)) if asked else None
    if recorded is not None:
        schema = recorded.schema
        for field, value in asked:
            if field == schema.type_field and isinstance(value, str) and value not in schema.types:
                raise make_unknown_type_error(value, schema.types)


def _suggest_names(
    backend: Backend, filter: Filter | Condition | None, missing: frozenset[str]
) -> Operation[Vocabulary]:
    """Return the names of documents that pass what remains of a filter without the missing fields.

    There are none to suggest if the filter's other conditions cannot be separated from these fields.
    """
    kept = filter
    if isinstance(filter, Mapping):
        kept = {name: value for name, value in filter.items() if name not in missing}
    scope = parse_filter(kept)
    if scope.needed & missing:
        return Vocabulary()
    if scope.always:
        everything: Vocabulary = yield call_engine(backend, backend.vocabulary())
        return everything
    manifest: Manifest = yield call_engine(backend, backend.manifest())
    direction = normalize_vector(np.ones(manifest.dimension or 1, dtype=np.float32))
    try:
        found: Vocabulary = yield call_plan(backend, _read_nearest_names(direction), scope)
    except FilterError:  # too many documents to search: there is nothing to suggest
        return Vocabulary()
    return found


def _read_nearest_names(direction: Floats) -> Plan[Vocabulary]:
    near: Candidates = yield Nearest(vector=direction, k=NAME_SAMPLE_SIZE)
    stored: list[StoredDocument] = yield Documents(refs=near.refs)
    found = Vocabulary()
    for one in stored:
        links = parse_links({LINKS_KEY: one.metadata.get(LINKS_KEY)}, one.id)
        found |= collect_names(one.metadata, links)
    return found

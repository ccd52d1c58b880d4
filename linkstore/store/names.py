"""Checks the names in a search: kinds and fields that the store does not have are errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from linkstore.backends.base import Backend, Manifest
from linkstore.errors import FilterError
from linkstore.filters import Condition, Filter, parse_filter
from linkstore.links import LINKS_KEY, links_in
from linkstore.plans import Candidates, Documents, Nearest, Operation, Plan, Stored
from linkstore.requests import Engine
from linkstore.schemacheck import recorded_schema
from linkstore.searchoptions import SearchOptions
from linkstore.strategies import Strategy
from linkstore.vectors import Floats, unit_vector
from linkstore.vocabulary import Vocabulary, names_in, unknown_name, unknown_type

SAMPLE: Final = 200
"""Number of documents that pass a filter from which names are suggested."""


def check_known(backend: Backend, strategy: Strategy, options: SearchOptions) -> Operation[None]:
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
    missing = asked - (yield Engine(backend.vocabulary(asked.storable)))
    if missing and (yield Engine(backend.scan(None, 1))):
        raise unknown_name(missing, (yield from _suggested(backend, options.filter, missing.fields)))


def check_types(backend: Backend, options: SearchOptions) -> Operation[None]:
    """Check that the schema of the store, if it has one, has the document types that filters ask for.

    Raises:
        UnknownNameError: For the first type that the schema lacks, with the most similar one that it has.
    """
    asked = [pair for one in options.conditions.of_documents for pair in one.equalities]
    recorded = (yield from recorded_schema(backend)) if asked else None
    if recorded is not None:
        schema = recorded.schema
        for field, value in asked:
            if field == schema.type_field and isinstance(value, str) and value not in schema.types:
                raise unknown_type(value, schema.types)


def _suggested(
    backend: Backend, filter: Filter | Condition | None, missing: frozenset[str]
) -> Operation[Vocabulary]:
    """Return the names of documents that pass what remains of a filter without the missing fields."""
    scope = _without(filter, missing)
    if scope is None:
        return Vocabulary()
    if scope.always:
        everything: Vocabulary = yield Engine(backend.vocabulary())
        return everything
    manifest: Manifest = yield Engine(backend.manifest())
    direction = unit_vector(np.ones(manifest.dimension or 1, dtype=np.float32))
    try:
        found: Vocabulary = yield Engine(backend.answer(_names_of_some(direction), scope))
    except FilterError:  # too many documents to search: there is nothing to suggest
        return Vocabulary()
    return found


def _without(filter: Filter | Condition | None, missing: frozenset[str]) -> Condition | None:
    """Return a filter without the missing fields.

    The result is None if the filter's other conditions cannot be separated from these fields.
    """
    kept = filter
    if isinstance(filter, Mapping):
        kept = {name: value for name, value in filter.items() if name not in missing}
    rest = parse_filter(kept)
    return None if rest.needed & missing else rest


def _names_of_some(direction: Floats) -> Plan[Vocabulary]:
    near: Candidates = yield Nearest(vector=direction, k=SAMPLE)
    stored: list[Stored] = yield Documents(refs=near.refs)
    found = Vocabulary()
    for one in stored:
        links = links_in({LINKS_KEY: one.metadata.get(LINKS_KEY)}, one.id)
        found |= names_in(one.metadata, links)
    return found

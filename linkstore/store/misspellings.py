"""Names and values in a search that no document has, and the ones probably meant.

A strategy with a misspelled kind, or a hop or link filter with a misspelled field, would return an answer
that looks ordinary, so it raises. A filter that nothing passes has no hits, and the reason says what no
document has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from linkstore.core.arguments import quote_value
from linkstore.core.arrays import normalize_vector
from linkstore.core.calls import Operation, call_engine, call_plan
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Documents, Nearest, Plan, StoredDocument, ask
from linkstore.core.vocabulary import (
    Vocabulary,
    collect_names,
    find_nearest_names,
    make_unknown_name_error,
    make_unknown_type_error,
)
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import FilterError, UnknownNameError
from linkstore.strategies.base import SearchOptions, Strategy

SAMPLE_SIZE: Final = 200
"""Number of documents that pass a filter from which names and values are suggested."""
MAX_LISTED_VALUES: Final = 5
"""How many values are listed, where none is like that of the filter."""
MAX_QUOTED: Final = 100
"""How many characters of a value."""


def check_known_names(backend: Backend, strategy: Strategy, options: SearchOptions) -> Operation[None]:
    """Check the store for the names without which a search would silently return less.

    These are kinds, the fields and types of ``hop_filter``, and the fields of ``link_filter``. An empty store
    may lack any. The names are looked up in the whole store, but alternatives are suggested only from
    documents that the caller may see.

    Raises:
        UnknownNameError: For the first name that the store lacks, with the most similar one that it has.
    """
    hop = options.template.hop_filter
    asked = Vocabulary(
        kinds=strategy.kinds_named, fields=hop.needed, link_fields=options.template.link_filter.needed
    )
    if asked:
        yield from check_vocabulary(backend, asked, [hop], options.filter)


def check_vocabulary(
    backend: Backend, asked: Vocabulary, conditions: Iterable[Condition], filter: Filter | None
) -> Operation[None]:
    """Check that the store has some names, and its schema the types in some conditions.

    Args:
        backend: The store.
        asked: The names.
        conditions: The conditions.
        filter: What the caller may see; other names and types are suggested only from there.

    Raises:
        UnknownNameError: For the first that is not there.
    """
    named = asked.checkable
    missing = named and named - (yield from call_engine(backend, backend.vocabulary(named.storable)))
    if missing and (yield from call_engine(backend, backend.scan(None, 1))):
        raise make_unknown_name_error(missing, (yield from _suggest_names(backend, filter, missing.fields)))
    equalities = [pair for condition in conditions for pair in condition.equalities]
    if not equalities:
        return
    from linkstore.store.schema_graph import read_schema  # late: most searches name no type

    if (recorded := (yield from read_schema(backend))) is not None:
        schema = recorded.schema
        for field, value in equalities:
            if field == schema.type_field and isinstance(value, str) and value not in schema.types:
                raise make_unknown_type_error(value, schema.types)


def describe_mistake(backend: Backend, options: SearchOptions) -> Operation[str]:
    """Say which field, type or value in the filters of a search no document has; "" if it may have each.

    ``filter`` may be an access rule, so no value of a document is told that does not pass it.
    """
    filters = (options.scope, options.template.seed_filter, options.template.result_filter)
    fields = frozenset[str]().union(*(condition.needed for condition in filters))
    try:
        yield from check_vocabulary(backend, Vocabulary(fields=fields), filters, options.filter)
    except UnknownNameError as error:
        return str(error)
    for own in (options.seed_filter, options.result_filter):
        if mistake := (yield from describe_unmet_values(backend, own, options.scope)):
            return mistake
    return ""


def describe_unmet_values(
    backend: Backend, filter: Filter | None, scope: Condition = EVERYTHING
) -> Operation[str]:
    """Describe a filter value that no document has with the other conditions, and list existing values.

    Args:
        backend: The store.
        filter: A filter that nothing passes, or "" is returned.
        scope: What the caller may see.
    """
    if not filter or not isinstance(filter, Mapping):
        return ""
    if (yield from _read_sample(backend, scope & parse_filter(filter), 1)):
        return ""
    for field, wanted in _list_wanted_values(filter):
        others = parse_filter({name: value for name, value in filter.items() if name != field})
        values = set[str]()
        for document in (yield from _read_sample(backend, scope & others, SAMPLE_SIZE)):
            stored = document.metadata.get(field, [])
            values.update(map(str, stored if isinstance(stored, list) else [stored]))
        if values:
            who = "no document" if others.always else "no document that passes the other conditions"
            return f"{who} has {_join_values(wanted)} in {field!r}; {_advise(wanted, values)}"
    return ""


def _advise(wanted: Iterable[Any], values: Collection[str]) -> str:
    nearest = [name for value in wanted for name in find_nearest_names(str(value), values)]
    if nearest:
        return f"did you mean {_join_values(nearest)}?"
    listed = ", ".join(map(quote_value, sorted(values)[:MAX_LISTED_VALUES]))
    more = len(values) - MAX_LISTED_VALUES
    return f"there are {listed} and {more} more" if more > 0 else f"there are {listed}"


def _join_values(values: Iterable[Any]) -> str:
    return " or ".join(quote_value(value)[:MAX_QUOTED] for value in values)


def _list_wanted_values(filter: Filter) -> Iterator[tuple[str, list[Any]]]:
    """Yield the fields of a filter that must have one of some values."""
    for name, value in filter.items():
        if name.startswith("$"):
            continue
        if not isinstance(value, Mapping):
            yield name, [value]
        elif "$eq" in value or "$contains" in value:
            yield name, [value.get("$eq", value.get("$contains"))]
        elif "$in" in value or "$all" in value:
            yield name, list(value.get("$in", value.get("$all", ())))


def _suggest_names(
    backend: Backend, filter: Filter | Condition | None, missing: frozenset[str]
) -> Operation[Vocabulary]:
    """Return the names of documents that pass the rest of a filter without the missing fields.

    There are none to suggest if the filter's other conditions cannot be separated from these fields.
    """
    kept = filter
    if isinstance(filter, Mapping):
        kept = {name: value for name, value in filter.items() if name not in missing}
    scope = parse_filter(kept)
    if scope.needed & missing:
        return Vocabulary()
    if scope.always:
        everything = yield from call_engine(backend, backend.vocabulary())
        return everything
    vocabulary = Vocabulary()
    for document in (yield from _read_sample(backend, scope, SAMPLE_SIZE)):
        links = parse_links({LINKS_KEY: document.metadata.get(LINKS_KEY)}, document.id)
        vocabulary |= collect_names(document.metadata, links)
    return vocabulary


def _read_sample(backend: Backend, scope: Condition, count: int) -> Operation[list[StoredDocument]]:
    """Return some documents that pass a filter; none if too many would have to be searched for them."""
    manifest = yield from call_engine(backend, backend.manifest())
    direction = normalize_vector(np.ones(manifest.dimension or 1, dtype=np.float32))

    def plan() -> Plan[list[StoredDocument]]:
        near = yield from ask(Nearest(vector=direction, k=count))
        stored = yield from ask(Documents(refs=near.refs))
        return stored

    try:
        documents = yield from call_plan(backend, plan(), scope)
    except FilterError:
        return []
    return documents

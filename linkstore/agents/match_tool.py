"""The tool ``match``: queries about typed links, and the description of a store that they need."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from linkstore.agents.cypher_schema import (
    fit_schema,
    list_arrows,
    quote,
    write_arrow,
    write_node,
)
from linkstore.agents.tool_answers import (
    ToolAnswer,
    ToolResult,
    ToolScope,
    make_empty_answer,
    make_results_answer,
)
from linkstore.core.arguments import quote_value
from linkstore.core.arrays import make_unit_vector
from linkstore.core.calls import Operation, call_engine
from linkstore.core.cypher import read_cypher
from linkstore.core.cypher_query import make_query
from linkstore.core.display import escape_unprintable, format_count
from linkstore.core.filters import parse_filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import GraphQuery
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Documents, Nearest, Plan, StoredDocument, ask
from linkstore.errors import FilterError, QueryError, UnknownNameError
from linkstore.store.graph import answer_query
from linkstore.store.schema import TYPE_FIELD
from linkstore.store.schema_graph import read_schema

MAX_TYPES: Final = 20
"""How many types a description has, and samples are read of."""
SAMPLE: Final = 60
"""How many documents of a type are read for their fields."""
MAX_FIELDS: Final = 6
MAX_VALUES: Final = 4
MAX_RELATIONS: Final = 60
_LONGEST_VALUE: Final = 30
_SHARED: Final = 2
"""A value that fewer documents have is no commonest one, but a name."""
_NOT_TOLD: Final = frozenset({LINKS_KEY, "url", "page", "source", "headings", "linkstore"})


def match(scope: ToolScope, query: str, as_of: str | None = None) -> Operation[ToolAnswer]:
    """Find what named things lead to by their relations, exactly, by a query in Cypher.

    Use it rather than $search for relations, fields and numbers of things, not for what a text says. Returns
    all that the query says, at most $results documents at once, with the complete number; or says which step
    became empty, and what there is instead. Changes nothing.$store

    Args:
        scope: Of the tools.
        query: MATCH with labels, names and relations; WHERE with properties, NOT and patterns; RETURN of one
            variable, its properties, or count of it; ORDER BY; LIMIT.
        as_of: The day on which all must be valid, as YYYY-MM-DD.

    Raises:
        QueryError: If the query is malformed, names what is not there, or a start may mean several documents.
        FilterError: If a filter is invalid.
        StrategyError: If it follows more links in a row than these tools may.
    """
    cypher = read_cypher(query, forgiving=True)
    recorded = yield from read_schema(scope.backend)
    if recorded is not None:
        cypher = fit_schema(cypher, recorded.schema)
    made = make_query(replace(cypher, limit=scope.limits.results if cypher.limit is None else cypher.limit))
    made = replace(made, as_of=as_of)
    try:
        answer = yield from answer_query(scope.backend, made, scope.filter, scope.ceiling)
    except UnknownNameError as error:
        raise QueryError(str(error)) from error
    remarks = [
        f"{quote_value(name)} was taken for [{id}]." for name, id in answer.starts.items() if name != id
    ]
    remarks += [f"Not complete: {limit_text}." for limit_text in answer.limits]
    return _format_answer(scope, made, answer, [escape_unprintable(remark) for remark in remarks])


def _format_answer(
    scope: ToolScope, query: GraphQuery, answer: GraphAnswer, remarks: Sequence[str]
) -> ToolAnswer:
    more = {"total": answer.total, "starts": dict(answer.starts), "complete": answer.complete}
    if not answer.total and query.returns != "count":
        remedies = [*remarks, "change what became empty, or search for the things by words"]
        return make_empty_answer(answer.reason or "nothing matches", remedies, **more)
    if query.returns == "documents":
        results = [
            ToolResult(
                document=hit.document,
                query="",
                width=scope.limits.snippet,
                chains=tuple(chain for chain in hit.chains if len(chain))[: scope.limits.chains],
            )
            for hit in answer
        ]
        heading = f"{len(results)} of {format_count(answer.total, 'result')}:"
        return make_results_answer(heading, results, remarks, **more)
    lines = [f"Count: {answer.total:,}."]
    lines += [f"Because: {escape_unprintable(answer.reason)}."] if answer.reason else []
    if query.field is not None:
        shown = len(answer.values) or len(answer.groups)
        lines.append(f"{shown} of {format_count(answer.distinct, 'value')} of {quote_value(query.field)}:")
        lines += [f"- {escape_unprintable(quote_value(value))}" for value in answer.values]
        lines += [f"- {escape_unprintable(quote_value(value))}: {count:,}" for value, count in answer.groups]
    data = {**answer.to_dict(), **more, "remarks": list(remarks)}
    return ToolAnswer(text="\n".join([*lines, *remarks]), data=data)


def describe_store(scope: ToolScope) -> Operation[tuple[str, str]]:
    """Describe the documents of a scope from its schema, or else its vocabulary, and from samples.

    Returns:
        Types with their fields and commonest values, relations as patterns, and the form of a query; and the
        types alone, a line each.
    """
    recorded = yield from read_schema(scope.backend)
    schema = recorded.schema if recorded else None
    manifest = yield from call_engine(scope.backend, scope.backend.manifest())
    types = sorted(schema.types)[:MAX_TYPES] if schema else [None]
    type_field = schema.type_field if schema else TYPE_FIELD
    samples: dict[str | None, list[StoredDocument]] = {}
    for type_name in types if manifest.dimension else ():
        try:
            plan = _read_sample(manifest.dimension or 1, type_field, type_name)
            samples[type_name] = yield from scope.answer(plan)
        except FilterError:  # a server that would have to look at too many
            samples[type_name] = []
    if schema is None:
        vocabulary = yield from call_engine(scope.backend, scope.backend.vocabulary())
        kinds = vocabulary.kinds if scope.filter is None else _collect_kinds(samples.get(None, ()))
        arrows = [(kind, "", "") for kind in sorted(kinds)]
        relations = ", ".join(kind for kind, _, _ in arrows[:MAX_RELATIONS])
    else:
        arrows = list_arrows(schema)
        relations = "; ".join(map(write_arrow, arrows[:MAX_RELATIONS]))
    described = [_describe_type(name, samples.get(name, ()), type_field) for name in types]
    lines = [f" Types and fields: {'; '.join(filter(None, described)) or 'none'}."]
    lines.append(f" Relations: {relations or 'none'}.")
    if arrows:
        kind, first, second = arrows[0]
        form = f"{write_node('', first, '<name>')}-[:{quote(kind)}]->{write_node('x', second)}"
        lines.append(f" Form: MATCH {form} RETURN x.")
    return escape_unprintable("".join(lines)), "\n".join(map(escape_unprintable, described))


def _read_sample(dimension: int, type_field: str, type: str | None) -> Plan[list[StoredDocument]]:
    condition = parse_filter(None if type is None else {type_field: type})
    near = yield from ask(Nearest(vector=make_unit_vector(dimension), k=SAMPLE, filter=condition))
    return (yield from ask(Documents(refs=near.refs)))


def _collect_kinds(documents: Iterable[StoredDocument]) -> frozenset[str]:
    links = (parse_links({LINKS_KEY: own.metadata.get(LINKS_KEY)}, own.id) for own in documents)
    return frozenset(link.kind for own in links for link in own)


def _describe_type(name: str | None, documents: Sequence[StoredDocument], type_field: str) -> str:
    """Describe a type by its fields, each with the values that documents of a sample share most."""
    values: dict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        for own, value in document.metadata.items():
            if own not in _NOT_TOLD and (own != type_field or name is None):
                for item in value if isinstance(value, list) else [value]:
                    values[own][json.dumps(item, ensure_ascii=False)] += 1
    order = sorted(values, key=lambda own: (-sum(values[own].values()), own))[:MAX_FIELDS]
    fields = [_describe_field(own, values[own]) for own in order]
    described = f" ({', '.join(fields)})" if fields else ""
    return f"{name or 'documents'}{described}"


def _describe_field(name: str, values: Counter[str]) -> str:
    shared = [
        value
        for value, count in values.most_common(MAX_VALUES)
        if count >= _SHARED and len(value) <= _LONGEST_VALUE
    ]
    more = "|…" if len(values) > len(shared) else ""
    return f"{name}={'|'.join(shared)}{more}" if shared else name

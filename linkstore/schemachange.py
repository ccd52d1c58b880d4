"""The schema of a store as a whole: setting it, and checking all documents."""

from __future__ import annotations

from typing import Final

from linkstore.arguments import require
from linkstore.backends.base import Backend, Record
from linkstore.errors import SchemaError
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.schema.graph import SHOWN, Reach, SchemaReport, TypedGraph
from linkstore.schema.model import Mode, Problem, Recorded, Schema, checked_mode
from linkstore.schemacheck import SCHEMA_NOTE, record_problems, recorded_schema, refusal

BATCH: Final = 500
"""How many documents are read at once."""


def set_schema(backend: Backend, schema: Schema | None, mode: Mode) -> Operation[SchemaReport | None]:
    """Record a schema once the stored documents were checked, or remove it if it is None.

    Raises:
        SchemaError: If the version is not higher than the recorded one, or in the mode ``strict`` if the
            schema does not allow all stored documents.
    """
    before: str | None = yield Engine(backend.note(SCHEMA_NOTE))
    if schema is None:
        yield from _noted(backend, None, before)
        return None
    checked_mode(mode)
    _check_version(schema, before)
    report = yield from check(backend, schema)
    yield from _accepted(backend, schema, mode, report)
    yield from _noted(backend, Recorded(schema=schema, mode=mode), before)
    return report


def check(backend: Backend, schema: Schema) -> Operation[SchemaReport]:
    """Hold all documents against a schema."""
    require(Schema, "a Schema", schema=schema)
    graph, problems = TypedGraph(schema.type_field), _Problems()
    records: list[Record] = yield Engine(backend.scan(None, BATCH))
    while records:
        for record in records:
            graph.add(record.id, record.metadata, record.links)
            problems.add(*schema.problems(record.id, record.metadata, record.links))
        records = yield Engine(backend.scan(records[-1].id, BATCH))
    for problem in graph.wrong_ends(schema):
        problems.add(problem)
    documents, links = graph.counts()
    return SchemaReport(
        problems=tuple(problems.first), count=problems.count, documents=documents, links=links
    )


def reach(backend: Backend, type: str, depth: int | None, type_field: str | None) -> Operation[Reach]:
    """Return which documents links lead to from those of a type."""
    recorded = yield from recorded_schema(backend)
    found = type_field or (recorded.schema.type_field if recorded else "type")
    graph = TypedGraph(found)
    records: list[Record] = yield Engine(backend.scan(None, BATCH))
    while records:
        for record in records:
            graph.add(record.id, record.metadata, record.links)
        records = yield Engine(backend.scan(records[-1].id, BATCH))
    return graph.reach(type, depth)


class _Problems:
    """The first problems, and how many there are."""

    def __init__(self) -> None:
        self.first: list[Problem] = []
        self.count = 0

    def add(self, *problems: Problem) -> None:
        self.first += problems[: SHOWN - len(self.first)]
        self.count += len(problems)


def _check_version(schema: Schema, before: str | None) -> None:
    recorded = Recorded.from_json(before).schema if before is not None else None
    if recorded is None or recorded == schema or schema.version > recorded.version:
        return
    raise SchemaError(
        f"the store has version {recorded.version} of its schema, so a version {schema.version} that differs"
        " cannot replace it: make the next one with store.schema().next(...)"
    )


def _accepted(backend: Backend, schema: Schema, mode: Mode, report: SchemaReport) -> Operation[None]:
    """Refuse, or record, the problems of stored documents with a schema."""
    if report.sound:
        return
    if mode == "strict":
        why = f"version {schema.version} of the schema does not fit the store in {report.count} places"
        raise refusal(report.problems, why)
    yield from record_problems(backend, report.problems)


def _noted(backend: Backend, recorded: Recorded | None, before: str | None) -> Operation[None]:
    value = recorded.to_json() if recorded else None
    if (yield Engine(backend.set_note(SCHEMA_NOTE, value, before))) != value:
        raise SchemaError(
            "another client set a schema at the same time; look at store.schema() and try again"
        )

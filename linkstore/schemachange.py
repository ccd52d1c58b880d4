"""The schema of a store as a whole: setting it, checking all documents, moving them to the next version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from linkstore.arguments import require
from linkstore.backends.base import Backend, Change, Record, Written
from linkstore.errors import SchemaError
from linkstore.links import LINKS_KEY, links_in
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.schema.graph import SHOWN, Reach, SchemaReport, TypedGraph
from linkstore.schema.model import Mode, Problem, Recorded, Schema, checked_mode
from linkstore.schemacheck import SCHEMA_NOTE, record_problems, recorded_schema, refusal

BATCH: Final = 500
"""How many documents are read, and written, at once."""
Names = Mapping[str, str]


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


def migrate(
    backend: Backend, schema: Schema, mode: Mode, *, kinds: Names, types: Names
) -> Operation[Written]:
    """Rename kinds and types in all documents that have them, then record the schema.

    Raises:
        SchemaError: As for :func:`set_schema`, for documents with the new names. Then nothing is written.
    """
    for names in (kinds, types):
        if both := sorted(set(names) & set(names.values())):
            raise SchemaError(f"{both[0]!r} is renamed, and is a new name too; migrate in two steps")
    before: str | None = yield Engine(backend.note(SCHEMA_NOTE))
    checked_mode(mode)
    _check_version(schema, before)
    report = yield from check(backend, schema, kinds, types)
    yield from _accepted(backend, schema, mode, report)
    updated = 0
    records: list[Record] = yield Engine(backend.scan(None, BATCH))
    while records:
        renamed = [_renamed(record, schema, kinds, types) for record in records]
        changed = [new for new, old in zip(renamed, records, strict=True) if new is not old]
        written: Written = yield Engine(backend.write(Change(put=changed)))
        updated += written.updated
        records = yield Engine(backend.scan(records[-1].id, BATCH))
    yield from _noted(backend, Recorded(schema=schema, mode=mode), before)
    return Written(updated=updated)


def check(
    backend: Backend, schema: Schema, kinds: Names | None = None, types: Names | None = None
) -> Operation[SchemaReport]:
    """Check all documents against a schema, as if kinds and types were renamed."""
    require(Schema, "a Schema", schema=schema)
    graph, problems = TypedGraph(schema.type_field), _Problems()
    records: list[Record] = yield Engine(backend.scan(None, BATCH))
    while records:
        for one in records:
            record = _renamed(one, schema, kinds or {}, types or {})
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


def _renamed(record: Record, schema: Schema, kinds: Names, types: Names) -> Record:
    """Return the record with new names of kinds and types, or the same object if it has none of the old."""
    metadata: dict[str, Any] = dict(record.metadata)
    own = schema.type_of(metadata)
    if own is not None and own in types:
        metadata[schema.type_field] = types[own]
    if any(link.kind in kinds for link in record.links):
        metadata[LINKS_KEY] = [
            {**link, "kind": kinds.get(link["kind"], link["kind"])} for link in metadata[LINKS_KEY]
        ]
    if metadata == record.metadata:
        return record
    return replace(record, metadata=metadata, links=links_in(metadata, record.id))

"""Checks documents against the schema of their store, before they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import orjson

from linkstore.arrays import distinct
from linkstore.backends.base import Backend, Manifest
from linkstore.errors import SchemaError
from linkstore.links import Link
from linkstore.plans import Candidates, Documents, Find, Members, Operation, Plan, Reached, Resolve, Stored
from linkstore.requests import Engine
from linkstore.schema.graph import missing_end
from linkstore.schema.model import Problem, Recorded, Schema
from linkstore.vectors import Ints, unit_vector

SCHEMA_NOTE: Final = "schema"
"""The note that holds the schema of a store."""
PROBLEMS_NOTE: Final = "schema problems"
"""The note that holds what the mode ``warn`` recorded."""
KEPT: Final = 1_000
"""How many recorded problems are kept, the last ones."""
_NAMED: Final = 5
_TRIES: Final = 20
Tag = tuple[str, str]


class Checked(Protocol):
    """The properties of a document that are checked."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata."""
        ...

    @property
    def links(self) -> tuple[Link, ...]:
        """Its links."""
        ...


@dataclass(frozen=True, slots=True)
class _Relinked:
    """A stored document with other links."""

    id: str
    metadata: Mapping[str, Any]
    links: tuple[Link, ...]


def recorded_schema(backend: Backend) -> Operation[Recorded | None]:
    """Return the schema of a store with its mode, or None without one."""
    text: str | None = yield Engine(backend.note(SCHEMA_NOTE))
    return None if text is None else Recorded.from_json(text)


def check_documents(backend: Backend, documents: Sequence[Checked]) -> Operation[None]:
    """Check documents that are about to be written together.

    Raises:
        SchemaError: In the mode ``strict``, if the schema does not allow one of them.
    """
    if not documents:
        return
    recorded = yield from recorded_schema(backend)
    if recorded is not None:
        problems = yield from problems_of(backend, recorded.schema, documents)
        yield from _refused_or_recorded(backend, recorded, problems)


def check_links(backend: Backend, links: Mapping[str, tuple[Link, ...]]) -> Operation[None]:
    """Check links that stored documents are about to get.

    Raises:
        SchemaError: In the mode ``strict``, if the schema does not allow one of them.
    """
    recorded = (yield from recorded_schema(backend)) if links else None
    if recorded is None:
        return
    stored: list[Stored] = yield Engine(backend.answer(_stored(tuple(links))))
    documents = [_Relinked(one.id, one.metadata, links[one.id]) for one in stored]
    problems = yield from problems_of(backend, recorded.schema, documents)
    yield from _refused_or_recorded(backend, recorded, problems)


def problems_of(backend: Backend, schema: Schema, documents: Sequence[Checked]) -> Operation[list[Problem]]:
    """Return the problems of documents that are written together, in their order."""
    entered = {(link.kind, link.tag) for one in documents for link in one.links if link.leads_in}
    leading = [link for one in documents for link in _leading(schema, one)]
    asked = sorted({(link.kind, link.tag) for link in leading} - entered)
    entered |= yield from _entered(backend, asked)
    found: list[Problem] = []
    for one in documents:
        found += schema.problems(one.id, one.metadata, one.links)
        missing = (link for link in _leading(schema, one) if (link.kind, link.tag) not in entered)
        found += (Problem(id=one.id, text=missing_end(link)) for link in missing)
    return found


def _leading(schema: Schema, document: Checked) -> Iterable[Link]:
    """Return the links of a document that must lead to another one, or none if its type is unknown."""
    own = schema.type_of(document.metadata)
    if own is None or own not in schema.types:
        return ()
    return (link for link in document.links if link.kind in schema.kinds and schema.leads_on(own, link))


def _entered(backend: Backend, tags: Collection[Tag]) -> Operation[set[Tag]]:
    """Return the tags that links of a stored document lead in from."""
    manifest: Manifest = yield Engine(backend.manifest())
    if not tags or manifest.dimension is None:
        return set()
    sizes: list[int] = yield Engine(backend.answer(_sizes(tuple(tags), manifest.dimension)))
    return {tag for tag, size in zip(tags, sizes, strict=True) if size}


def _sizes(tags: tuple[Tag, ...], dimension: int) -> Plan[list[int]]:
    """Count the documents that each tag leads to: none, or at least one."""
    refs: Ints = yield Resolve(tags=tags)
    groups = distinct(refs[refs >= 0])
    reached: Reached = yield Members(
        groups=groups,
        side="in",
        vector=unit_vector(np.ones(dimension, dtype=np.float32)),
        take=1,
        cap=0,
        exclude=np.empty(0, dtype=np.int64),
    )
    sizes = dict(zip(groups.tolist(), reached.sizes.tolist(), strict=True))
    return [sizes.get(ref, 0) for ref in refs.tolist()]


def _stored(ids: tuple[str, ...]) -> Plan[list[Stored]]:
    found: Candidates = yield Find(ids=ids)
    stored: list[Stored] = yield Documents(refs=found.refs)
    return stored


def _refused_or_recorded(
    backend: Backend, recorded: Recorded, problems: Sequence[Problem]
) -> Operation[None]:
    if not problems:
        return
    if recorded.mode == "strict":
        raise refusal(problems, f"version {recorded.schema.version} of the schema does not allow this")
    yield from record_problems(backend, problems)


def refusal(problems: Sequence[Problem], why: str) -> SchemaError:
    """Return the error for documents that a schema does not allow."""
    named = "; ".join(map(str, problems[:_NAMED]))
    more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
    told = [(problem.id, problem.text) for problem in problems]
    return SchemaError(
        f"{why}, and nothing was written: {named}{more}. Correct the documents or the schema", told
    )


def record_problems(backend: Backend, problems: Sequence[Problem]) -> Operation[None]:
    """Add problems to those that the store keeps, of which the last :data:`KEPT` stay."""
    for _ in range(_TRIES):
        text: str | None = yield Engine(backend.note(PROBLEMS_NOTE))
        known: list[list[str]] = orjson.loads(text) if text else []
        added = [[problem.id, problem.text] for problem in problems]
        kept = orjson.dumps([*known, *added][-KEPT:]).decode()
        if (yield Engine(backend.set_note(PROBLEMS_NOTE, kept, text))) == kept:
            return
    raise SchemaError(
        f"{len(problems)} problems with the schema could not be recorded, because other writers recorded some"
        f" during each of {_TRIES} tries; nothing was written, so write the documents again"
    )


def recorded_problems(backend: Backend) -> Operation[list[Problem]]:
    """Return the problems that the mode ``warn`` recorded, oldest first."""
    text: str | None = yield Engine(backend.note(PROBLEMS_NOTE))
    known: Iterable[tuple[str, str]] = orjson.loads(text) if text else ()
    return [Problem(id=id, text=told) for id, told in known]

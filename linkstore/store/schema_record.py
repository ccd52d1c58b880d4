"""The recorded schema of a store, and the state of its documents under it."""

from __future__ import annotations

from linkstore.core.calls import Operation, arun, run
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import SchemaError
from linkstore.store import schema_graph
from linkstore.store.schema import Mode, Problem, Schema
from linkstore.store.schema_graph import Reach, SchemaReport


class StoreSchema:
    """The schema of a store: ``store.schema``."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def get(self) -> Schema | None:
        """Return the schema that the store records, or None without one."""
        return run(self._read())

    async def aget(self) -> Schema | None:
        """Return the schema that the store records: see :meth:`get`."""
        return await arun(self._read())

    def set(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema in the store. From then on every client checks what it writes.

        All stored documents are checked first. The time and memory grow with the size of the store. Writes
        that other clients have begun meanwhile are not checked.

        Args:
            schema: The schema. None removes the recorded one. To replace a schema, raise its version:
                ``store.schema.get().next(relations=...)``.
            mode: ``"strict"`` refuses whole calls that write documents which the schema does not allow.
                ``"warn"`` writes them, and records the problems: see :meth:`problems`.

        Returns:
            What the schema does not allow in the store, or None when it was removed.

        Raises:
            SchemaError: If the version is not higher than the recorded one, or in the mode ``"strict"`` if
                the schema does not allow all stored documents. Then the recorded schema stays.
        """
        return run(schema_graph.set_schema(self._backend, schema, mode))

    async def aset(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema: see :meth:`set`."""
        return await arun(schema_graph.set_schema(self._backend, schema, mode))

    def check(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema. The time and memory grow with the size of the store.

        Beside what is checked when documents are written, this finds links that lead to a document of a type
        that the schema does not allow there, and links whose end was deleted.

        Args:
            schema: None: the recorded one.

        Raises:
            SchemaError: If none is given and none is recorded.
        """
        return run(self._check(schema))

    async def acheck(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema: see :meth:`check`."""
        return await arun(self._check(schema))

    def problems(self) -> list[Problem]:
        """Return the last 1,000 problems that the mode ``"warn"`` recorded, oldest first."""
        return run(schema_graph.read_problems(self._backend))

    async def aproblems(self) -> list[Problem]:
        """Return the problems that the mode ``"warn"`` recorded: see :meth:`problems`."""
        return await arun(schema_graph.read_problems(self._backend))

    def reach(self, type: str, depth: int | None = None, *, type_field: str | None = None) -> Reach:
        """Find the documents that a traversal from documents of a type can and cannot reach.

        A document type that nothing links to is never found by following links. The time and memory grow with
        the size of the store.

        Args:
            type: The type of the documents to start from.
            depth: How many links to follow forward, or None for any number.
            type_field: The metadata field that holds types. None: that of the recorded schema, else
                ``"type"``.

        Raises:
            SchemaError: If no document has the type.
        """
        return run(schema_graph.compute_reach(self._backend, type, depth, type_field))

    async def areach(self, type: str, depth: int | None = None, *, type_field: str | None = None) -> Reach:
        """Find the documents that a traversal can reach: see :meth:`reach`."""
        return await arun(schema_graph.compute_reach(self._backend, type, depth, type_field))

    def _read(self) -> Operation[Schema | None]:
        recorded = yield from schema_graph.read_schema(self._backend)
        return recorded.schema if recorded else None

    def _check(self, schema: Schema | None) -> Operation[SchemaReport]:
        chosen = schema or (yield from self._read())
        if chosen is None:
            raise SchemaError("the store records no schema; give one, such as Schema.infer(store)")
        return (yield from schema_graph.check_against_schema(self._backend, chosen))

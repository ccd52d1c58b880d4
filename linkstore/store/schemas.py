"""The schema of a store: its document types, and the kinds of link between them."""

from __future__ import annotations

from linkstore import schemachange, schemacheck
from linkstore.errors import SchemaError
from linkstore.plans import Operation
from linkstore.schema import Mode, Problem, Reach, Schema, SchemaReport
from linkstore.store.driving import Driven


class Schemas(Driven):
    """Methods that set a schema, and compare documents with it."""

    def schema(self) -> Schema | None:
        """Return the schema that the store records, or None without one."""
        return self._run(self._read_schema())

    async def aschema(self) -> Schema | None:
        """Return the schema that the store records: see :meth:`schema`."""
        return await self._arun(self._read_schema())

    def set_schema(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema in the store. From then on every client checks what it writes.

        All stored documents are checked first. The time and memory grow with the size of the store. Writes
        that other clients have begun meanwhile are not checked.

        Args:
            schema: The schema. None removes the recorded one. To replace a schema, raise its version:
                ``store.schema().next(relations=...)``.
            mode: ``"strict"`` refuses whole calls that write documents which the schema does not allow.
                ``"warn"`` writes them, and records the problems: see :meth:`schema_problems`.

        Returns:
            What the schema does not allow in the store, or None when it was removed.

        Raises:
            SchemaError: If the version is not higher than the recorded one, or in the mode ``"strict"`` if
                the schema does not allow all stored documents. Then the recorded schema stays.
        """
        return self._run(schemachange.set_schema(self.backend, schema, mode))

    async def aset_schema(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema: see :meth:`set_schema`."""
        return await self._arun(schemachange.set_schema(self.backend, schema, mode))

    def check_schema(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema. The time and memory grow with the size of the store.

        Beside what is checked when documents are written, this finds links that lead to a document of a type
        that the schema does not allow there, and links whose end was deleted.

        Args:
            schema: None: the recorded one.

        Raises:
            SchemaError: If none is given and none is recorded.
        """
        return self._run(self._check(schema))

    async def acheck_schema(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema: see :meth:`check_schema`."""
        return await self._arun(self._check(schema))

    def schema_problems(self) -> list[Problem]:
        """Return the last 1,000 problems that the mode ``"warn"`` recorded, oldest first."""
        return self._run(schemacheck.recorded_problems(self.backend))

    async def aschema_problems(self) -> list[Problem]:
        """Return the problems that the mode ``"warn"`` recorded: see :meth:`schema_problems`."""
        return await self._arun(schemacheck.recorded_problems(self.backend))

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
        return self._run(schemachange.reach(self.backend, type, depth, type_field))

    async def areach(self, type: str, depth: int | None = None, *, type_field: str | None = None) -> Reach:
        """Find the documents that a traversal can reach: see :meth:`reach`."""
        return await self._arun(schemachange.reach(self.backend, type, depth, type_field))

    def _read_schema(self) -> Operation[Schema | None]:
        recorded = yield from schemacheck.recorded_schema(self.backend)
        return recorded.schema if recorded else None

    def _check(self, schema: Schema | None) -> Operation[SchemaReport]:
        chosen = schema or (yield from self._read_schema())
        if chosen is None:
            raise SchemaError("the store records no schema; give one, such as Schema.infer(store)")
        return (yield from schemachange.check(self.backend, chosen))

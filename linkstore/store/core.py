"""A store without LangChain's base classes, whose import takes more than all of linkstore."""

from __future__ import annotations

from typing import Final

from linkstore.core.calls import arun, run
from linkstore.core.plans import Operation
from linkstore.engines.contract import Report, Survey
from linkstore.errors import SchemaError
from linkstore.store import schema_graph
from linkstore.store.pages import PageMethods
from linkstore.store.schema import Mode, Problem, Schema
from linkstore.store.schema_graph import Reach, SchemaReport
from linkstore.store.search import SearchMethods

FACTS_SUFFIX: Final = "facts"
"""The name of the store of facts of a store of chunks."""


class CoreStore(SearchMethods, PageMethods):
    """The methods of a :class:`~linkstore.LinkStore` that do not belong to a VectorStore.

    Args:
        backend: Where everything is kept.
        embedding: Turns texts into vectors. None: the recorded embedding if it is built in, else
            wordllama.
        max_depth: How many links in a row a search may follow, None for any number.

    Raises:
        EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
            same dimension is refused when it first embeds something.
        StrategyError: If ``max_depth`` is negative or not an integer.
    """

    def count(self) -> int:
        """Return the number of documents. On Cassandra the time grows with the size of the store."""
        return self.survey().documents

    async def acount(self) -> int:
        """Return the number of documents: see :meth:`count`."""
        return (await self.asurvey()).documents

    def survey(self) -> Survey:
        """Count documents, links and pages. The time grows with the size of the store."""
        return self.backend.run(self.backend.survey())

    async def asurvey(self) -> Survey:
        """Count documents, links and pages: see :meth:`survey`."""
        return await self.backend.arun(self.backend.survey())

    def flush(self) -> None:
        """Bring the indexes up to date now, as closing the store does."""
        self.backend.run(self.backend.flush())

    async def aflush(self) -> None:
        """Bring the indexes up to date: see :meth:`flush`."""
        await self.backend.arun(self.backend.flush())

    def compact(self) -> None:
        """Erase deleted and replaced content from all files, and shrink the files.

        An embedded store keeps its size in proportion to its content without this method, but deleted content
        stays in its files until the space is reused. Time and temporary space grow with the size of the
        store. A Cassandra cluster compacts by itself.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If the disk has not enough space to rewrite the files.
        """
        self.backend.run(self.backend.compact())

    async def acompact(self) -> None:
        """Erase deleted content from all files: see :meth:`compact`."""
        await self.backend.arun(self.backend.compact())

    def verify(self) -> Report:
        """Compare the indexes with the documents, without changing anything."""
        return self.backend.run(self.backend.verify())

    async def averify(self) -> Report:
        """Compare the indexes with the documents: see :meth:`verify`."""
        return await self.backend.arun(self.backend.verify())

    def repair(self) -> Report:
        """Repair what :meth:`verify` finds, and return the findings."""
        return self.backend.run(self.backend.repair())

    async def arepair(self) -> Report:
        """Repair what :meth:`verify` finds: see :meth:`repair`."""
        return await self.backend.arun(self.backend.repair())

    def schema(self) -> Schema | None:
        """Return the schema that the store records, or None without one."""
        return run(self._read_schema())

    async def aschema(self) -> Schema | None:
        """Return the schema that the store records: see :meth:`schema`."""
        return await arun(self._read_schema())

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
        return run(schema_graph.set_schema(self.backend, schema, mode))

    async def aset_schema(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema: see :meth:`set_schema`."""
        return await arun(schema_graph.set_schema(self.backend, schema, mode))

    def check_schema(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema. The time and memory grow with the size of the store.

        Beside what is checked when documents are written, this finds links that lead to a document of a type
        that the schema does not allow there, and links whose end was deleted.

        Args:
            schema: None: the recorded one.

        Raises:
            SchemaError: If none is given and none is recorded.
        """
        return run(self._check(schema))

    async def acheck_schema(self, schema: Schema | None = None) -> SchemaReport:
        """Check all documents against a schema: see :meth:`check_schema`."""
        return await arun(self._check(schema))

    def schema_problems(self) -> list[Problem]:
        """Return the last 1,000 problems that the mode ``"warn"`` recorded, oldest first."""
        return run(schema_graph.read_problems(self.backend))

    async def aschema_problems(self) -> list[Problem]:
        """Return the problems that the mode ``"warn"`` recorded: see :meth:`schema_problems`."""
        return await arun(schema_graph.read_problems(self.backend))

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
        return run(schema_graph.compute_reach(self.backend, type, depth, type_field))

    async def areach(self, type: str, depth: int | None = None, *, type_field: str | None = None) -> Reach:
        """Find the documents that a traversal can reach: see :meth:`reach`."""
        return await arun(schema_graph.compute_reach(self.backend, type, depth, type_field))

    def _read_schema(self) -> Operation[Schema | None]:
        recorded = yield from schema_graph.read_schema(self.backend)
        return recorded.schema if recorded else None

    def _check(self, schema: Schema | None) -> Operation[SchemaReport]:
        chosen = schema or (yield from self._read_schema())
        if chosen is None:
            raise SchemaError("the store records no schema; give one, such as Schema.infer(store)")
        return (yield from schema_graph.check_against_schema(self.backend, chosen))

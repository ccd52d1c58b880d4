"""Methods of a store for indexed pages, its schema, inspection, suggestions and upkeep."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from linkstore.core.arguments import require_at_least
from linkstore.core.calls import call_engine, run_in_thread
from linkstore.core.documents import PageDocuments, is_storable
from linkstore.core.links import SUGGESTED, Link, parse_links
from linkstore.core.plans import Operation, read_documents
from linkstore.engines.contract import LinkedPage, PageEntry, Report, Survey, Written
from linkstore.errors import DocumentError, SchemaError
from linkstore.store import operations, schema_graph
from linkstore.store.driving import DrivenStore
from linkstore.store.schema import Mode, Problem, Schema
from linkstore.store.schema_graph import Reach, SchemaReport
from linkstore.strategies.neighbours import Neighbours, find_neighbours

if TYPE_CHECKING:
    from linkstore.store.suggestions import LinkSuggestion


class PageMethods(DrivenStore):
    """Methods that list, replace and remove indexed pages."""

    def pages(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source (None: of all sources), as a dict of URL → digest."""
        return self._run(self._read_digests(source))

    async def apages(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source: see :meth:`pages`."""
        return await self._arun(self._read_digests(source))

    def sources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from, each with its number of pages."""
        return self._run(self._count_pages())

    async def asources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from: see :meth:`sources`."""
        return await self._arun(self._count_pages())

    def page_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of indexed pages' documents (source None: of any source), as a dict of URL → ids."""
        return self._run(self._read_ids(source, urls))

    async def apage_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of the documents of pages: see :meth:`page_ids`."""
        return await self._arun(self._read_ids(source, urls))

    def most_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """Return the pages with most incoming links of a kind. The time grows with the size of the store."""
        return self._run(self._find_most_linked(kind, take))

    async def amost_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """Return the pages with the most incoming links: see :meth:`most_linked_pages`."""
        return await self._arun(self._find_most_linked(kind, take))

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Check that :meth:`put_pages` would not replace a page of another source.

        Raises:
            SourceConflictError: If it would.
        """
        self._run(operations.check_pages(self.backend, source, urls))

    async def acheck_pages(self, source: str, urls: Sequence[str]) -> None:
        """Check that no other source has one of these pages: see :meth:`check_pages`."""
        await self._arun(operations.check_pages(self.backend, source, urls))

    def embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages, and return the pages with these vectors.

        :meth:`put_pages` embeds nothing then, so one thread can embed the next pages while another stores the
        last ones.

        Raises:
            SourceConflictError: If another source has a page of the same name.
            DocumentError: If a text cannot be stored.
        """
        return self._run(operations.embed_pages(self.backend, self._embedding, source, pages))

    async def aembed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages: see :meth:`embed_pages`."""
        return await self._arun(operations.embed_pages(self.backend, self._embedding, source, pages))

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace whole pages in one change, and remove documents that the pages no longer have.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return self._run(operations.put_pages(self.backend, self._embedding, source, pages))

    async def aput_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace whole pages: see :meth:`put_pages`."""
        return await self._arun(operations.put_pages(self.backend, self._embedding, source, pages))

    def remove_pages(self, source: str, urls: Sequence[str]) -> Written:
        """Remove pages with their documents, in one change."""
        return self._run(operations.remove_pages(self.backend, source, urls))

    async def aremove_pages(self, source: str, urls: Sequence[str]) -> Written:
        """Remove pages with their documents: see :meth:`remove_pages`."""
        return await self._arun(operations.remove_pages(self.backend, source, urls))

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Replace the links of these kinds in stored documents, in one change.

        Texts, metadata and other links stay, and nothing is embedded. Concurrent updates and deletions are
        preserved. :func:`linkstore.ingest.link_corpus` computes such links.

        Args:
            kinds: The kinds of link to replace.
            links: The new links of these kinds by document id. Unknown ids are ignored.

        Raises:
            LinkError: If a link has a kind that is not in ``kinds``.
            StoreBusyError: If another writer holds the store for more than 5 s. On Cassandra, if other
                writers keep changing the same documents.
            StoreFullError: If the disk is full.
            StoreUnavailableError: If a server does not answer. Repeat the call to complete the change.
        """
        return self._run(operations.replace_links(self.backend, kinds, links))

    async def areplace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Replace the links of these kinds: see :meth:`replace_links`."""
        return await self._arun(operations.replace_links(self.backend, kinds, links))

    def suggest_links(self, k: int = 100) -> list[LinkSuggestion]:
        """Suggest links between pages that may be missing.

        Pages that name another page without a link to it come first: by its title, an alias, or the text of
        links that lead to it elsewhere. Then come pages that are near each other in meaning and by the pages
        that both are linked with. It reads all documents three times. Documents without ``metadata["page"]``
        are pages of their own.

        Args:
            k: Maximum number of suggestions.

        Returns:
            Suggestions, best first, then by the ids of their documents.

        Raises:
            StrategyError: If ``k`` is not an integer of at least 1.
        """
        from linkstore.store.suggestions import find_suggestions  # late: nothing else needs its automaton

        require_at_least(1, k=k)
        return find_suggestions(self._scan_records, k)

    async def asuggest_links(self, k: int = 100) -> list[LinkSuggestion]:
        """Suggest links that may be missing: see :meth:`suggest_links`."""
        return await run_in_thread(self.suggest_links, k)

    def add_suggested_links(self, suggestions: Iterable[LinkSuggestion]) -> int:
        """Write suggestions as links of the kind ``"suggested"``, besides those that were written before.

        Searches follow them only if a strategy names the kind, as in ``PageRank(kinds={"suggested": 0.5})``.
        A page that is indexed again loses its own. ``replace_links({"suggested"}, {id: []})`` removes them.

        Args:
            suggestions: Of :meth:`suggest_links`, all or some.

        Returns:
            The number of documents whose links changed.
        """
        made: dict[str, list[Link]] = {}
        for suggestion in suggestions:
            for id, link in suggestion.links():
                made.setdefault(id, []).append(link)
        for one in self._run(operations.run_plan(self.backend, read_documents(made))):
            before = [link for link in parse_links(one.metadata, one.id) if link.kind == SUGGESTED]
            made[one.id] = [*before, *made[one.id]]
        return self.replace_links({SUGGESTED}, made).updated

    async def aadd_suggested_links(self, suggestions: Iterable[LinkSuggestion]) -> int:
        """Write suggestions as links: see :meth:`add_suggested_links`."""
        return await run_in_thread(self.add_suggested_links, list(suggestions))

    def _read_digests(self, source: str | None) -> Operation[dict[str, str]]:
        found: dict[str, str] = yield call_engine(self.backend, self.backend.digests(source))
        return found

    def _count_pages(self) -> Operation[dict[str, int]]:
        entries: list[PageEntry] = yield call_engine(self.backend, self.backend.pages(None))
        return dict(sorted(Counter(entry.source for entry in entries).items()))

    def _read_ids(self, source: str | None, urls: Sequence[str]) -> Operation[dict[str, tuple[str, ...]]]:
        entries = yield call_engine(self.backend, self.backend.pages(source, urls))
        return {entry.url: entry.ids for entry in entries}

    def _find_most_linked(self, kind: str, take: int) -> Operation[list[LinkedPage]]:
        found: list[LinkedPage] = yield call_engine(self.backend, self.backend.linked(kind, take))
        return found


class SchemaMethods(DrivenStore):
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
        return self._run(schema_graph.set_schema(self.backend, schema, mode))

    async def aset_schema(self, schema: Schema | None, mode: Mode = "strict") -> SchemaReport | None:
        """Record a schema: see :meth:`set_schema`."""
        return await self._arun(schema_graph.set_schema(self.backend, schema, mode))

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
        return self._run(schema_graph.read_problems(self.backend))

    async def aschema_problems(self) -> list[Problem]:
        """Return the problems that the mode ``"warn"`` recorded: see :meth:`schema_problems`."""
        return await self._arun(schema_graph.read_problems(self.backend))

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
        return self._run(schema_graph.compute_reach(self.backend, type, depth, type_field))

    async def areach(self, type: str, depth: int | None = None, *, type_field: str | None = None) -> Reach:
        """Find the documents that a traversal can reach: see :meth:`reach`."""
        return await self._arun(schema_graph.compute_reach(self.backend, type, depth, type_field))

    def _read_schema(self) -> Operation[Schema | None]:
        recorded = yield from schema_graph.read_schema(self.backend)
        return recorded.schema if recorded else None

    def _check(self, schema: Schema | None) -> Operation[SchemaReport]:
        chosen = schema or (yield from self._read_schema())
        if chosen is None:
            raise SchemaError("the store records no schema; give one, such as Schema.infer(store)")
        return (yield from schema_graph.check_against_schema(self.backend, chosen))


class MaintenanceMethods(DrivenStore):
    """Methods that read, check and repair a whole store."""

    def neighbours(self, id: str) -> Neighbours:
        """Return the documents that a document links to, and those that link to it.

        Args:
            id: The id of the document.

        Raises:
            DocumentError: If the document does not exist.
        """
        return self._run(self._find_neighbours(id))

    async def aneighbours(self, id: str) -> Neighbours:
        """Return the neighbours of a document: see :meth:`neighbours`."""
        return await self._arun(self._find_neighbours(id))

    def scan(self) -> Iterator[Document]:
        """Iterate over all documents in batches, in the backend's order (embedded: by id)."""
        return map(operations.as_document, self._scan_records())

    async def ascan(self) -> AsyncIterator[Document]:
        """Iterate over all documents: see :meth:`scan`."""
        after: str | None = None
        while records := await self._arun(operations.scan(self.backend, after)):
            for record in records:
                yield operations.as_document(record)
            after = records[-1].id

    def count(self) -> int:
        """Return the number of documents. On Cassandra the time grows with the size of the store."""
        return self.survey().documents

    async def acount(self) -> int:
        """Return the number of documents: see :meth:`count`."""
        return (await self.asurvey()).documents

    def survey(self) -> Survey:
        """Count documents, links and pages. The time grows with the size of the store."""
        return self._run(self._survey())

    async def asurvey(self) -> Survey:
        """Count documents, links and pages: see :meth:`survey`."""
        return await self._arun(self._survey())

    def touch(self, ids: Sequence[str], at: datetime | None = None) -> int:
        """Record that documents were accessed. Documents, vectors and indexes are not written.

        The latest access is kept. It stays when a document is updated, and goes when it is removed.

        Args:
            ids: The documents. Ids that do not exist are ignored.
            at: When they were accessed, with a time zone. None: now.

        Returns:
            How many of the documents exist.

        Raises:
            DocumentError: If ``at`` has no time zone, or lies before 1970 or more than a
                minute in the future.
            ArgumentError: If the ids are not a list of strings.
        """
        return self._run(operations.touch(self.backend, ids, at))

    async def atouch(self, ids: Sequence[str], at: datetime | None = None) -> int:
        """Record that documents were accessed: see :meth:`touch`."""
        return await self._arun(operations.touch(self.backend, ids, at))

    def accessed(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when documents were last accessed, in UTC, by id, leaving out those that never were."""
        return self._run(operations.read_access_times(self.backend, ids))

    async def aaccessed(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when documents were last accessed: see :meth:`accessed`."""
        return await self._arun(operations.read_access_times(self.backend, ids))

    def flush(self) -> None:
        """Bring the indexes up to date now, as closing the store does."""
        self._run(self._flush())

    async def aflush(self) -> None:
        """Bring the indexes up to date: see :meth:`flush`."""
        await self._arun(self._flush())

    def compact(self) -> None:
        """Erase deleted and replaced content from all files, and shrink the files.

        An embedded store keeps its size in proportion to its content without this method, but deleted content
        stays in its files until the space is reused. Time and temporary space grow with the size of the
        store. A Cassandra cluster compacts by itself.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If the disk has not enough space to rewrite the files.
        """
        self._run(self._compact())

    async def acompact(self) -> None:
        """Erase deleted content from all files: see :meth:`compact`."""
        await self._arun(self._compact())

    def verify(self) -> Report:
        """Compare the indexes with the documents, without changing anything."""
        return self._run(self._verify())

    async def averify(self) -> Report:
        """Compare the indexes with the documents: see :meth:`verify`."""
        return await self._arun(self._verify())

    def repair(self) -> Report:
        """Repair what :meth:`verify` finds, and return the findings."""
        return self._run(self._repair())

    async def arepair(self) -> Report:
        """Repair what :meth:`verify` finds: see :meth:`repair`."""
        return await self._arun(self._repair())

    def _find_neighbours(self, id: str) -> Operation[Neighbours]:
        found: Neighbours | None = None
        if is_storable(id):
            found = yield from operations.run_plan(self.backend, find_neighbours(id))
        if found is None:
            raise DocumentError(f"document {id!r} does not exist in the store")
        return found

    def _survey(self) -> Operation[Survey]:
        found: Survey = yield call_engine(self.backend, self.backend.survey())
        return found

    def _flush(self) -> Operation[None]:
        yield call_engine(self.backend, self.backend.flush())

    def _compact(self) -> Operation[None]:
        yield call_engine(self.backend, self.backend.compact())

    def _verify(self) -> Operation[Report]:
        found: Report = yield call_engine(self.backend, self.backend.verify())
        return found

    def _repair(self) -> Operation[Report]:
        found: Report = yield call_engine(self.backend, self.backend.repair())
        return found

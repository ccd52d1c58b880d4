"""A store without LangChain's base classes, whose import takes more than all of linkstore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from linkstore.core.arguments import require, require_at_least, require_list
from linkstore.core.arrays import Floats, as_matrix
from linkstore.core.calls import Operation, arun, call_engine, run, run_in_thread
from linkstore.core.documents import PageDocuments, keep_storable
from linkstore.core.links import SUGGESTED, Link, merge_links, parse_links
from linkstore.core.plans import read_documents
from linkstore.engines.contract import LinkedPage, PageEntry, Report, Survey, WriteBatch, WriteCounts
from linkstore.errors import LinkError, SchemaError, SourceConflictError
from linkstore.store import schema_graph
from linkstore.store.documents import (
    DocumentMethods,
    check_count,
    check_text,
    embed_drafts,
    prepare_drafts,
    record_writing,
)
from linkstore.store.schema import Mode, Problem, Schema
from linkstore.store.schema_graph import Reach, SchemaReport, check_documents, check_links
from linkstore.store.search import SearchMethods

if TYPE_CHECKING:
    from linkstore.store.suggestions import LinkSuggestion

FACTS_SUFFIX: Final = "facts"
"""The name of the store of facts of a store of chunks."""


class CoreStore(SearchMethods, DocumentMethods):
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

    def pages(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source (None: of all sources), as a dict of URL → digest."""
        return self.backend.run(self.backend.digests(source))

    async def apages(self, source: str | None = None) -> dict[str, str]:
        """Return the indexed pages of a source: see :meth:`pages`."""
        return await self.backend.arun(self.backend.digests(source))

    def sources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from, each with its number of pages."""
        return _count_sources(self.backend.run(self.backend.pages(None)))

    async def asources(self) -> dict[str, int]:
        """Return the sources that pages were indexed from: see :meth:`sources`."""
        return _count_sources(await self.backend.arun(self.backend.pages(None)))

    def page_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of indexed pages' documents (source None: of any source), as a dict of URL → ids."""
        return {entry.url: entry.ids for entry in self.backend.run(self.backend.pages(source, urls))}

    async def apage_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the ids of the documents of pages: see :meth:`page_ids`."""
        return {entry.url: entry.ids for entry in await self.backend.arun(self.backend.pages(source, urls))}

    def most_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """Return the pages with most incoming links of a kind. The time grows with the size of the store."""
        return self.backend.run(self.backend.find_most_linked(kind, take))

    async def amost_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """Return the pages with the most incoming links: see :meth:`most_linked_pages`."""
        return await self.backend.arun(self.backend.find_most_linked(kind, take))

    def survey_pages(self, kind: str = "hyperlink", take: int = 10) -> tuple[Survey, list[LinkedPage]]:
        """Return the survey and the most linked pages, for which all links are read once."""
        return self.backend.run(self.backend.survey_pages(kind, take))

    async def asurvey_pages(self, kind: str = "hyperlink", take: int = 10) -> tuple[Survey, list[LinkedPage]]:
        """Return a survey and the most linked pages: see :meth:`survey_pages`."""
        return await self.backend.arun(self.backend.survey_pages(kind, take))

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Check that :meth:`put_pages` would not replace a page of another source.

        Raises:
            SourceConflictError: If it would.
        """
        run(self._read_entries(source, urls))

    async def acheck_pages(self, source: str, urls: Sequence[str]) -> None:
        """Check that no other source has one of these pages: see :meth:`check_pages`."""
        await arun(self._read_entries(source, urls))

    def embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages, and return the pages with these vectors.

        :meth:`put_pages` embeds nothing then, so one thread can embed the next pages while another stores the
        last ones.

        Raises:
            SourceConflictError: If another source has a page of the same name.
            DocumentError: If a text cannot be stored.
        """
        return run(self._embed_pages(source, pages))

    async def aembed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages: see :meth:`embed_pages`."""
        return await arun(self._embed_pages(source, pages))

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> WriteCounts:
        """Replace whole pages in one change, and remove documents that the pages no longer have.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return run(self._put_pages(source, pages))

    async def aput_pages(self, source: str, pages: Sequence[PageDocuments]) -> WriteCounts:
        """Replace whole pages: see :meth:`put_pages`."""
        return await arun(self._put_pages(source, pages))

    def renew_pages(self, source: str, digests: Mapping[str, str]) -> None:
        """Replace the digests of pages, by url, whose documents stay as they are."""
        run(self._renew_pages(source, digests))

    async def arenew_pages(self, source: str, digests: Mapping[str, str]) -> None:
        """Replace the digests of pages: see :meth:`renew_pages`."""
        await arun(self._renew_pages(source, digests))

    def remove_pages(self, source: str, urls: Sequence[str]) -> WriteCounts:
        """Remove pages with their documents, in one change."""
        return run(self._remove_pages(source, urls))

    async def aremove_pages(self, source: str, urls: Sequence[str]) -> WriteCounts:
        """Remove pages with their documents: see :meth:`remove_pages`."""
        return await arun(self._remove_pages(source, urls))

    def delete_pages(self, urls: Sequence[str]) -> WriteCounts:
        """Remove indexed pages of any source with all their documents. Unknown pages are ignored.

        The next run of :func:`linkstore.ingest.index` restores the pages that their source still has.

        Args:
            urls: Pages, as in ``metadata["page"]`` of their documents.
        """
        return run(self._remove_pages(None, keep_storable("urls", urls)))

    async def adelete_pages(self, urls: Sequence[str]) -> WriteCounts:
        """Remove indexed pages: see ``delete_pages``."""
        return await arun(self._remove_pages(None, keep_storable("urls", urls)))

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> WriteCounts:
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
        return run(self._replace_links(kinds, links))

    async def areplace_links(
        self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
    ) -> WriteCounts:
        """Replace the links of these kinds: see :meth:`replace_links`."""
        return await arun(self._replace_links(kinds, links))

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
        """Write suggestions as links of the kind ``"suggested"``, besides those written before.

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
        for document in self.backend.run(self.backend.answer(read_documents(made))):
            before = [link for link in parse_links(document.metadata, document.id) if link.kind == SUGGESTED]
            made[document.id] = [*before, *made[document.id]]
        return self.replace_links({SUGGESTED}, made).updated

    async def aadd_suggested_links(self, suggestions: Iterable[LinkSuggestion]) -> int:
        """Write suggestions as links: see :meth:`add_suggested_links`."""
        return await run_in_thread(self.add_suggested_links, list(suggestions))

    def _read_entries(self, source: str, urls: Sequence[str]) -> Operation[list[PageEntry]]:
        """Return the entries of the pages with these names, none of which may be of another source."""
        entries = yield from call_engine(self.backend, self.backend.pages(None, urls))
        for entry in entries:
            if entry.source != source:
                raise SourceConflictError(
                    f"the page {entry.url!r} was already indexed from the source {entry.source!r}; to update"
                    f" that source, use its name; to keep both pages, index one source with a prefix"
                )
        return entries

    def _embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> Operation[list[PageDocuments]]:
        yield from self._read_entries(source, [page.url for page in pages])
        documents = [document for page in pages for document in page.documents]
        if not documents:
            return list(pages)
        for document in documents:
            check_text(document.id or "", document.page_content)
        texts = [document.page_content for document in documents]
        vectors = as_matrix((yield from self._embedding.embed_documents(texts)))
        check_count(vectors, documents)
        ends = accumulate(len(page.documents) for page in pages)
        return [
            replace(page, vectors=vectors[end - len(page.documents) : end])
            for page, end in zip(pages, ends, strict=True)
        ]

    def _put_pages(self, source: str, pages: Sequence[PageDocuments]) -> Operation[WriteCounts]:
        entries = yield from self._read_entries(source, [page.url for page in pages])
        before = {id for entry in entries for id in entry.ids}
        documents = [document for page in pages for document in page.documents]
        drafts = prepare_drafts(documents, [document.id for document in documents])
        yield from check_documents(self.backend, drafts)
        records = yield from embed_drafts(self.backend, self._embedding, drafts, _join_vectors(pages))
        change = WriteBatch(
            put=records,
            remove=sorted(before - {record.id for record in records}),
            put_pages=[
                PageEntry(
                    source=source,
                    url=page.url,
                    digest=page.digest,
                    ids=tuple(str(document.id) for document in page.documents),
                )
                for page in pages
            ],
        )
        written = yield from call_engine(self.backend, self.backend.write(change))
        yield from record_writing(self.backend, drafts)
        return written

    def _renew_pages(self, source: str, digests: Mapping[str, str]) -> Operation[None]:
        entries = yield from call_engine(self.backend, self.backend.pages(source, list(digests)))
        renewed = [replace(entry, digest=digests[entry.url]) for entry in entries]
        yield from call_engine(self.backend, self.backend.write(WriteBatch(put_pages=renewed)))

    def _remove_pages(self, source: str | None, urls: Sequence[str]) -> Operation[WriteCounts]:
        gone = yield from call_engine(self.backend, self.backend.pages(source, urls))
        change = WriteBatch(
            remove=[id for entry in gone for id in entry.ids],
            remove_pages=[(entry.source, entry.url) for entry in gone],
        )
        return (yield from call_engine(self.backend, self.backend.write(change)))

    def _replace_links(
        self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
    ) -> Operation[WriteCounts]:
        require_list("kinds", kinds=kinds)
        require(Mapping, "a dict of links by the ids of documents", links=links)
        wanted = frozenset(kinds)
        merged = {id: merge_links(links[id]) for id in keep_storable("ids", links)}
        for id, listed in merged.items():
            for link in listed:
                if link.kind not in wanted:
                    raise LinkError(
                        f"document {id!r}: the kind of {link} is not among the kinds to replace"
                        f" ({', '.join(sorted(wanted)) or 'none'}); add it to kinds"
                    )
        yield from check_links(self.backend, merged)
        return (yield from call_engine(self.backend, self.backend.relink(wanted, merged)))


def _count_sources(entries: Iterable[PageEntry]) -> dict[str, int]:
    return dict(sorted(Counter(entry.source for entry in entries).items()))


def _join_vectors(pages: Sequence[PageDocuments]) -> Floats | None:
    """Return the vectors of the documents of pages, if all of them were embedded."""
    vectors = [page.vectors for page in pages if page.vectors is not None]
    return np.concatenate(vectors) if vectors and len(vectors) == len(pages) else None

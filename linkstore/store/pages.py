"""Methods for indexed pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from linkstore import operations
from linkstore.backends.base import LinkedPage, PageEntry, Written
from linkstore.links import Link
from linkstore.pagedocuments import PageDocuments
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.store.driving import Driven


class Pages(Driven):
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
        return self._run(operations.embed_pages(self.backend, source, pages))

    async def aembed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Embed the documents of pages: see :meth:`embed_pages`."""
        return await self._arun(operations.embed_pages(self.backend, source, pages))

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace whole pages in one change, and remove documents that the pages no longer have.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return self._run(operations.put_pages(self.backend, self._embedding_name, source, pages))

    async def aput_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace whole pages: see :meth:`put_pages`."""
        return await self._arun(operations.put_pages(self.backend, self._embedding_name, source, pages))

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

    def _read_digests(self, source: str | None) -> Operation[dict[str, str]]:
        found: dict[str, str] = yield Engine(self.backend.digests(source))
        return found

    def _count_pages(self) -> Operation[dict[str, int]]:
        entries: list[PageEntry] = yield Engine(self.backend.pages(None))
        return dict(sorted(Counter(entry.source for entry in entries).items()))

    def _read_ids(self, source: str | None, urls: Sequence[str]) -> Operation[dict[str, tuple[str, ...]]]:
        entries = yield Engine(self.backend.pages(source, urls))
        return {entry.url: entry.ids for entry in entries}

    def _find_most_linked(self, kind: str, take: int) -> Operation[list[LinkedPage]]:
        found: list[LinkedPage] = yield Engine(self.backend.linked(kind, take))
        return found

"""Indexed pages: which there are, and replacing them as wholes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from linkstore import operations
from linkstore.backends.base import LinkedPage, Written
from linkstore.links import Link
from linkstore.operations import Engine, PageDocuments
from linkstore.plans import Operation
from linkstore.store.driving import Driven


class Pages(Driven):
    """What a store knows of the pages that its documents were made of."""

    def pages(self, source: str | None = None) -> dict[str, str]:
        """The indexed pages of a source (None: of all): url → digest of what was indexed."""
        return self._run(self._digests(source))

    async def apages(self, source: str | None = None) -> dict[str, str]:
        """The indexed pages of a source: see :meth:`pages`."""
        return await self._arun(self._digests(source))

    def page_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The documents made of those of these pages (of any source: None) that are indexed: url → ids."""
        return self._run(self._ids(source, urls))

    async def apage_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The documents made of pages: see :meth:`page_ids`."""
        return await self._arun(self._ids(source, urls))

    def most_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """The indexed pages that most links of a kind lead to; takes time with the size of the store."""
        return self._run(self._most_linked(kind, take))

    async def amost_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """The indexed pages that most links lead to: see :meth:`most_linked_pages`."""
        return await self._arun(self._most_linked(kind, take))

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Make sure that :meth:`put_pages` would replace no page of another source.

        Raises:
            SourceConflictError: If it would.
        """
        self._run(operations.check_pages(self.backend, source, urls))

    async def acheck_pages(self, source: str, urls: Sequence[str]) -> None:
        """Make sure that no other source has one of these pages: see :meth:`check_pages`."""
        await self._arun(operations.check_pages(self.backend, source, urls))

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace pages as wholes, in one change: documents they no longer have are removed.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return self._run(operations.put_pages(self.backend, self._embedding_name, source, pages))

    async def aput_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace pages as wholes: see :meth:`put_pages`."""
        return await self._arun(operations.put_pages(self.backend, self._embedding_name, source, pages))

    def remove_pages(self, source: str, urls: Sequence[str]) -> Written:
        """Remove pages with their documents, in one change."""
        return self._run(operations.remove_pages(self.backend, source, urls))

    async def aremove_pages(self, source: str, urls: Sequence[str]) -> Written:
        """Remove pages with their documents: see :meth:`remove_pages`."""
        return await self._arun(operations.remove_pages(self.backend, source, urls))

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Replace the links of these kinds in stored documents, in one change; all else of them stays.

        Nothing is embedded. An update that is acknowledged meanwhile stays, and a document that is deleted
        meanwhile stays deleted. :func:`linkstore.ingest.link_corpus` finds out which links these are.

        Args:
            kinds: Links of these kinds that the documents have are taken away.
            links: By document id, the links of these kinds that it is to have. Ids that are not there are
                ignored.

        Raises:
            LinkError: If a link is of a kind that is not named.
            StoreBusyError: If another writer holds the store for more than 5 s; on Cassandra, if others
                change the same documents again and again.
            StoreFullError: If there is no space left.
            StoreUnavailableError: If a server below does not answer; replacing again completes it.
        """
        return self._run(operations.replace_links(self.backend, kinds, links))

    async def areplace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Replace the links of these kinds: see :meth:`replace_links`."""
        return await self._arun(operations.replace_links(self.backend, kinds, links))

    def _digests(self, source: str | None) -> Operation[dict[str, str]]:
        found: dict[str, str] = yield Engine(self.backend.digests(source))
        return found

    def _ids(self, source: str | None, urls: Sequence[str]) -> Operation[dict[str, tuple[str, ...]]]:
        entries = yield Engine(self.backend.pages(source, urls))
        return {entry.url: entry.ids for entry in entries}

    def _most_linked(self, kind: str, take: int) -> Operation[list[LinkedPage]]:
        found: list[LinkedPage] = yield Engine(self.backend.linked(kind, take))
        return found

"""Inspection and maintenance of a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime

from langchain_core.documents import Document

from linkstore import operations
from linkstore.backends.base import Report, Survey
from linkstore.errors import DocumentError
from linkstore.ids import is_storable
from linkstore.neighbours import Neighbours, neighbours
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.store.driving import Driven


class Upkeep(Driven):
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
        after: str | None = None
        while records := self._run(operations.scan(self.backend, after)):
            yield from map(operations.as_document, records)
            after = records[-1].id

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
        return self._run(operations.accessed(self.backend, ids))

    async def aaccessed(self, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when documents were last accessed: see :meth:`accessed`."""
        return await self._arun(operations.accessed(self.backend, ids))

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
            found = yield from operations.answer(self.backend, neighbours(id))
        if found is None:
            raise DocumentError(f"document {id!r} does not exist in the store")
        return found

    def _survey(self) -> Operation[Survey]:
        found: Survey = yield Engine(self.backend.survey())
        return found

    def _flush(self) -> Operation[None]:
        yield Engine(self.backend.flush())

    def _compact(self) -> Operation[None]:
        yield Engine(self.backend.compact())

    def _verify(self) -> Operation[Report]:
        found: Report = yield Engine(self.backend.verify())
        return found

    def _repair(self) -> Operation[Report]:
        found: Report = yield Engine(self.backend.repair())
        return found

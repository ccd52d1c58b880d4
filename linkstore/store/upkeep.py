"""Looking at a whole store, and keeping it sound."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from langchain_core.documents import Document

from linkstore import operations
from linkstore.backends.base import Report, Survey
from linkstore.errors import DocumentError
from linkstore.neighbours import Neighbours, neighbours
from linkstore.operations import Engine
from linkstore.plans import Operation
from linkstore.store.driving import Driven


class Upkeep(Driven):
    """What a store holds, and whether what is derived from its documents agrees with them."""

    def neighbours(self, id: str) -> Neighbours:
        """What a document links to, and what links to it.

        Args:
            id: The document.

        Raises:
            DocumentError: If there is no such document.
        """
        return self._run(self._neighbours(id))

    async def aneighbours(self, id: str) -> Neighbours:
        """What a document links to, and what links to it: see :meth:`neighbours`."""
        return await self._arun(self._neighbours(id))

    def scan(self) -> Iterator[Document]:
        """All documents, in the backend's order (the embedded one: by id), read in batches."""
        after: str | None = None
        while records := self._run(operations.scan(self.backend, after)):
            yield from map(operations.as_document, records)
            after = records[-1].id

    async def ascan(self) -> AsyncIterator[Document]:
        """All documents: see :meth:`scan`."""
        after: str | None = None
        while records := await self._arun(operations.scan(self.backend, after)):
            for record in records:
                yield operations.as_document(record)
            after = records[-1].id

    def count(self) -> int:
        """How many documents there are; on Cassandra this takes time with the size of the store."""
        return self.survey().documents

    async def acount(self) -> int:
        """How many documents there are: see :meth:`count`."""
        return (await self.asurvey()).documents

    def survey(self) -> Survey:
        """Count what is stored; takes time with the size of the store."""
        return self._run(self._survey())

    async def asurvey(self) -> Survey:
        """Count what is stored: see :meth:`survey`."""
        return await self._arun(self._survey())

    def flush(self) -> None:
        """Bring everything derived up to date now, as closing does."""
        self._run(self._flush())

    async def aflush(self) -> None:
        """Bring everything derived up to date: see :meth:`flush`."""
        await self._arun(self._flush())

    def compact(self) -> None:
        """Leave nothing of what was deleted or replaced in any file, and no file larger than need be.

        An embedded store keeps its size in proportion to its content without this; but until it reuses the
        space, what was deleted can be found in its files. Takes time and, for a while, space with the size
        of the store. A Cassandra cluster compacts by itself.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If there is no space for the files to be written anew.
        """
        self._run(self._compact())

    async def acompact(self) -> None:
        """Leave nothing of what was deleted in any file: see :meth:`compact`."""
        await self._arun(self._compact())

    def verify(self) -> Report:
        """Compare everything derived with the documents; changes nothing."""
        return self._run(self._verify())

    async def averify(self) -> Report:
        """Compare everything derived with the documents: see :meth:`verify`."""
        return await self._arun(self._verify())

    def repair(self) -> Report:
        """Mend what :meth:`verify` finds; returns what was found."""
        return self._run(self._repair())

    async def arepair(self) -> Report:
        """Mend what :meth:`verify` finds: see :meth:`repair`."""
        return await self._arun(self._repair())

    def _neighbours(self, id: str) -> Operation[Neighbours]:
        found: Neighbours | None = None
        if operations.is_storable(id):
            found = yield from operations.answer(self.backend, neighbours(id))
        if found is None:
            raise DocumentError(f"there is no document {id!r} in the store")
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

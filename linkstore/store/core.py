"""A store without LangChain's base classes, whose import takes more than all of linkstore."""

from __future__ import annotations

from linkstore.engines.contract import Report, Survey
from linkstore.store.accesses import StoreAccesses
from linkstore.store.documents import DocumentMethods
from linkstore.store.graph import GraphMethods
from linkstore.store.linking import StoreLinks
from linkstore.store.pages import StorePages
from linkstore.store.schema_record import StoreSchema
from linkstore.store.search import SearchMethods


class CoreStore(SearchMethods, DocumentMethods, GraphMethods):
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

    def survey(self) -> Survey:
        """Count documents, links and pages. The time grows with the size of the store."""
        return self.backend.run(self.backend.survey())

    async def asurvey(self) -> Survey:
        """Count documents, links and pages: see :meth:`survey`."""
        return await self.backend.arun(self.backend.survey())

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

    def verify(self, *, repair: bool = False) -> Report:
        """Compare the indexes with the documents, and return what differs.

        Args:
            repair: Whether to repair what differs. Default False, nothing is changed.
        """
        return self.backend.run(self.backend.repair() if repair else self.backend.verify())

    async def averify(self, *, repair: bool = False) -> Report:
        """Compare the indexes with the documents: see :meth:`verify`."""
        return await self.backend.arun(self.backend.repair() if repair else self.backend.verify())

    @property
    def accesses(self) -> StoreAccesses:
        """When documents were last accessed, as contexts and memories count it."""
        return StoreAccesses(self.backend)

    @property
    def pages(self) -> StorePages:
        """The indexed pages: their digests and sources, and how to put and remove them."""
        return StorePages(self.backend, self._embedding)

    @property
    def links(self) -> StoreLinks:
        """The links between the documents: neighbours, paths, replacements and suggestions."""
        return StoreLinks(self.backend, self._max_depth)

    @property
    def schema(self) -> StoreSchema:
        """The recorded schema: set, checked against the documents, and its problems."""
        return StoreSchema(self.backend)

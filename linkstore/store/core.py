"""A store without LangChain's base classes, whose import takes more than all of linkstore."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkstore.core.arguments import require
from linkstore.core.calls import arun, run
from linkstore.core.filters import Filter
from linkstore.engines.contract import Report, Survey
from linkstore.store.documents import DocumentMethods
from linkstore.store.search import SearchMethods
from linkstore.strategies.base import MAX_MATCH_NODES, MAX_MATCH_SECONDS

if TYPE_CHECKING:
    from datetime import date

    from linkstore.core.graph_answer import GraphAnswer, Lookup
    from linkstore.core.graph_query import GraphQuery
    from linkstore.store.graph import StoreLinks
    from linkstore.store.pages import StorePages
    from linkstore.store.schema_record import StoreSchema
    from linkstore.store.usage import StoreAccesses


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

    def match(
        self,
        query: GraphQuery | Mapping[str, Any] | str,
        *,
        as_of: str | date | None = None,
        filter: Filter | None = None,
        max_nodes: int = MAX_MATCH_NODES,
        seconds: float = MAX_MATCH_SECONDS,
    ) -> GraphAnswer:
        """Answer a query about typed links, exactly: see :class:`~linkstore.core.graph_query.GraphQuery`.

        Args:
            query: The query, its JSON form, or a query in Cypher, of which a part is read; see
                :mod:`linkstore.core.cypher`.
            as_of: The day on which all must be valid, such as ``"2024-05-01"``. None: what the query says.
            filter: Only documents with such metadata exist for the query, on the way too.
            max_nodes: How many documents a step may lead to. What is beyond is left out, and the answer says
                so. Default 100,000.
            seconds: For how long links are followed. Default 10.

        Raises:
            QueryError: If the query is malformed, no document has the name of a start, or several may be
                meant.
            UnknownNameError: If no document has a relation, a field or a type that it names.
            FilterError: If a filter is invalid.
            StrategyError: If it follows more links in a row than the store allows, or a limit is invalid.
        """
        from linkstore.store.graph import answer_query  # late: most searches are none of these

        return run(answer_query(self.backend, query, filter, self._max_depth, max_nodes, seconds, as_of))

    async def amatch(
        self,
        query: GraphQuery | Mapping[str, Any] | str,
        *,
        as_of: str | date | None = None,
        filter: Filter | None = None,
        max_nodes: int = MAX_MATCH_NODES,
        seconds: float = MAX_MATCH_SECONDS,
    ) -> GraphAnswer:
        """Answer a query about typed links: see :meth:`match`."""
        from linkstore.store.graph import answer_query

        return await arun(
            answer_query(self.backend, query, filter, self._max_depth, max_nodes, seconds, as_of)
        )

    def find(self, name: str, *, type: str | None = None, filter: Filter | None = None) -> Lookup:
        """Find the document with an id or a name: a title, an alias, a number, or something like these.

        A name may be an id, in any case and in brackets, a URL, a title, an alias, a number that ends an id,
        or the words that a text begins with. An article, a possessive, a plural, accents, hyphens, zeros
        before a number, the type or a short word beside the name ("MV", "IMO") make no difference. A part of
        a name, words in another order, a number in another field, initials, an acronym of a title, and one
        letter that is wrong do if one document alone can be meant.

        Args:
            name: The id or the name, in any case.
            type: The type of the document. None: any.
            filter: Only documents with such metadata may be meant.

        Returns:
            The document, if there is just one that may be meant, or else the choices: none is guessed.

        Raises:
            UnknownNameError: If the recorded schema lacks the type.
            FilterError: If the filter is invalid.
            ArgumentError: If the name is not a string.
        """
        from linkstore.store.graph import find_document

        return run(find_document(self.backend, name, type, filter))

    async def afind(self, name: str, *, type: str | None = None, filter: Filter | None = None) -> Lookup:
        """Find the document with an id or a name: see :meth:`find`."""
        from linkstore.store.graph import find_document

        return await arun(find_document(self.backend, name, type, filter))

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
        from linkstore.store.usage import StoreAccesses

        return StoreAccesses(self.backend)

    @property
    def pages(self) -> StorePages:
        """The indexed pages: their digests and sources, and how to put and remove them."""
        from linkstore.store.pages import StorePages

        return StorePages(self.backend, self._embedding)

    @property
    def links(self) -> StoreLinks:
        """The links between the documents: neighbours, paths, replacements and suggestions."""
        from linkstore.store.graph import StoreLinks

        return StoreLinks(self.backend, self._max_depth)

    @property
    def schema(self) -> StoreSchema:
        """The recorded schema: set, checked against the documents, and its problems."""
        from linkstore.store.schema_record import StoreSchema

        return StoreSchema(self.backend)


def require_store(**stores: object) -> None:
    """Raise unless every argument is an open store. For a path, the message says how to open it.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, store in stores.items():
        path = str(store) if isinstance(store, str | Path) else "kb"
        require(CoreStore, f"an open store, such as LinkStore.open({path!r})", **{name: store})

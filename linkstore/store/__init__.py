"""LinkStore: LangChain's VectorStore over a backend, with searches that follow links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever

from linkstore import operations
from linkstore.backends.base import Backend, LinkedPage, Report, Survey, Written
from linkstore.backends.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.errors import DocumentError
from linkstore.links import Link
from linkstore.neighbours import Neighbours, neighbours
from linkstore.operations import PageDocuments
from linkstore.store.searching import Searching
from linkstore.store.writing import Writing

if TYPE_CHECKING:
    from linkstore.backends.cassandra.settings import CassandraSettings
    from linkstore.backends.cassandra.transport.driver import Session

__all__ = ["LinkStore"]


class LinkStore(Searching, Writing):
    """Documents with their links, searched by similarity and by following the links.

    Open one with :meth:`open`, or :meth:`cassandra`. A store may be used by any number of threads and
    processes.

    Args:
        backend: Where everything is kept; default in memory only.
        embedding: Turns texts into vectors. None: the one recorded in the store if it is built in,
            else wordllama.
        path: Instead of a backend, the folder of an embedded one.

    Raises:
        EmbeddingError: If the store was built with another embedding.
    """

    def __init__(
        self,
        backend: Backend | None = None,
        embedding: Embeddings | None = None,
        *,
        path: str | Path = ":memory:",
    ) -> None:
        own = backend is None
        backend = backend or EmbeddedBackend(path)
        try:
            super().__init__(backend, embedding)
        except BaseException:
            if own:
                backend.close()
            raise

    @classmethod
    def open(
        cls,
        path: str | Path,
        embedding: Embeddings | None = None,
        create: bool = True,
        *,
        settings: EmbeddedSettings | None = None,
    ) -> Self:
        """Open the embedded store in a folder.

        Args:
            path: The folder; ``":memory:"`` is for experiments and gone after :meth:`close`.
            embedding: See :class:`LinkStore`.
            create: Make the store if it is not there.
            settings: For the rare need; see :class:`EmbeddedSettings`.

        Raises:
            StoreNotFoundError: If there is no store and ``create`` is False.
            StoreFormatError: If what is there is no linkstore, or a newer one.
            EmbeddingError: If the store was built with another embedding.
        """
        return cls._over(EmbeddedBackend(path, create=create, settings=settings), embedding)

    @classmethod
    def cassandra(
        cls,
        embedding: Embeddings | None = None,
        *,
        table: str = "linkstore",
        session: Session | None = None,
        keyspace: str | None = None,
        create: bool = True,
        settings: CassandraSettings | None = None,
    ) -> Self:
        """Open a store in Apache Cassandra 5.0 or Astra DB, for any number of clients at once.

        Session and keyspace are given, or come from ``cassio.init(...)``. The session stays open when the
        store is closed. Needs the extra ``cassandra``.

        Args:
            embedding: See :class:`LinkStore`.
            table: The store's name in the keyspace: a letter and up to 37 letters, digits and underscores.
                It has tables of this name and of four that begin with it.
            session: Of cassandra-driver; None: the one that ``cassio.init`` made.
            keyspace: None: the session's own, else the one given to ``cassio.init``.
            create: Make the tables if they are not there.
            settings: Consistency, timeouts, lifetime, lexical search or not; see
                :class:`linkstore.backends.cassandra.settings.CassandraSettings`.

        Raises:
            MissingExtraError: If the extra is not installed.
            BackendError: If there is no session or no keyspace, or the name is no name for tables.
            StoreNotFoundError: If there is no store and ``create`` is False.
            StoreFormatError: If the store is of a version that this linkstore does not know.
            StoreUnavailableError: If no server answers.
            EmbeddingError: If the store was built with another embedding.
        """
        from linkstore.store.cassandra import backend_on

        return cls._over(backend_on(session, keyspace, table, create=create, settings=settings), embedding)

    @classmethod
    def _over(cls, backend: Backend, embedding: Embeddings | None) -> Self:
        """A store over a backend that is closed if that fails."""
        try:
            return cls(backend, embedding)
        except BaseException:
            backend.close()
            raise

    def close(self) -> None:
        """Release everything; using the store afterwards raises StoreClosedError."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """A retriever over this store; without a ``search_type`` it follows links.

        Args:
            kwargs: ``search_type``: ``"traversal"`` (default), ``"mmr_traversal"``,
                ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``; ``search_kwargs``:
                arguments of the method of that name, such as ``{"k": 3, "depth": 1}``; ``tags``
                and other fields of LangChain's retrievers.
        """
        from linkstore.store.retrieving import StoreRetriever

        tags = [*(kwargs.pop("tags", None) or ()), *self._get_retriever_tags()]
        return StoreRetriever(vectorstore=self, tags=tags, **kwargs)

    def neighbours(self, name: str) -> Neighbours:
        """What a document links to, and what links to it.

        Args:
            name: Its id.

        Raises:
            DocumentError: If there is no such document.
        """
        known = operations.is_storable(name)
        found = self._run(operations.answer(self.backend, neighbours(name))) if known else None
        if found is None:
            raise DocumentError(f"there is no document {name!r} in the store")
        return found

    def scan(self) -> Iterator[Document]:
        """All documents, in the backend's order (the embedded one: by id), read in batches."""
        after: str | None = None
        while records := self._run(operations.scan(self.backend, after)):
            yield from map(operations.as_document, records)
            after = records[-1].id

    def survey(self) -> Survey:
        """Count what is stored; takes time with the size of the store."""
        return self.backend.run(self.backend.survey())

    def flush(self) -> None:
        """Bring everything derived up to date now, as closing does."""
        self.backend.run(self.backend.flush())

    def compact(self) -> None:
        """Leave nothing of what was deleted or replaced in any file, and no file larger than need be.

        An embedded store keeps its size in proportion to its content without this; but until it reuses the
        space, what was deleted can be found in its files. Takes time and, for a while, space with the size
        of the store. A Cassandra cluster compacts by itself.

        Raises:
            StoreBusyError: If another process writes, or reads from an older state, for more than 5 s.
            StoreFullError: If there is no space for the files to be written anew.
        """
        self.backend.run(self.backend.compact())

    async def acompact(self) -> None:
        """As :meth:`compact`, without blocking the event loop."""
        await self.backend.arun(self.backend.compact())

    def verify(self) -> Report:
        """Compare everything derived with the documents; changes nothing."""
        return self.backend.run(self.backend.verify())

    def repair(self) -> Report:
        """Mend what :meth:`verify` finds; returns what was found."""
        return self.backend.run(self.backend.repair())

    def pages(self, source: str | None = None) -> dict[str, str]:
        """The indexed pages of a source (None: of all): url → digest of what was indexed."""
        return self.backend.run(self.backend.digests(source))

    def linked(self, kind: str = "hyperlink", take: int = 10) -> list[LinkedPage]:
        """The indexed pages that most links of a kind lead to; takes time with the size of the store."""
        return self.backend.run(self.backend.linked(kind, take))

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Make sure that :meth:`put_pages` would replace no page of another source.

        Raises:
            SourceConflictError: If it would.
        """
        self._run(operations.check_pages(self.backend, source, urls))

    def page_ids(self, source: str | None, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The documents made of those of these pages (None: of any source) that are there: url → ids."""
        return {entry.url: entry.ids for entry in self.backend.run(self.backend.pages(source, urls))}

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> Written:
        """Replace pages as wholes, in one change: documents they no longer have go.

        Raises:
            SourceConflictError: If another source has a page of the same name.
        """
        return self._run(operations.put_pages(self.backend, self._embedding_name, source, pages))

    def remove_pages(self, source: str, urls: Sequence[str]) -> Written:
        """Remove pages with their documents, in one change."""
        return self._run(operations.remove_pages(self.backend, source, urls))

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

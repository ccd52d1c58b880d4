"""LinkStore: LangChain's VectorStore over a backend, with searches that follow links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever

from linkstore.backends.base import Backend
from linkstore.backends.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.embeddings import MiniLMEmbeddings, WordLlamaEmbeddings, get_embedding
from linkstore.store.pages import Pages
from linkstore.store.searching import Searching
from linkstore.store.upkeep import Upkeep
from linkstore.store.writing import Writing

if TYPE_CHECKING:
    from linkstore.backends.cassandra.settings import CassandraSettings
    from linkstore.backends.cassandra.transport.driver import Session

__all__ = ["LinkStore"]


class LinkStore(Searching, Writing, Pages, Upkeep):
    """Documents with their links, searched by similarity and by following the links.

    Open one with :meth:`open`, or :meth:`cassandra`. A store may be used by any number of threads and
    processes.

    Args:
        embedding: Turns texts into vectors. None: the one recorded in the store if it is built in,
            else wordllama.
        path: The folder of an embedded store; default in memory only.
        backend: Instead of a path, the storage engine to use.

    Raises:
        EmbeddingError: If the store was built with another embedding.
    """

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        path: str | Path = ":memory:",
        backend: Backend | None = None,
    ) -> None:
        if embedding is not None and not hasattr(embedding, "embed_query"):
            raise TypeError(
                f"LinkStore takes an embedding first, not {type(embedding).__name__}:"
                " LinkStore(embedding, path=...) or LinkStore(embedding, backend=...)"
            )
        own = backend is None
        backend = EmbeddedBackend(path) if backend is None else backend
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
            return cls(embedding, backend=backend)
        except BaseException:
            backend.close()
            raise

    @classmethod
    def _reopened(cls, backend: Backend, embedding: Embeddings | str) -> Self:
        """A store over a reopened backend; an embedding that is built in is made anew by its name."""
        return cls._over(backend, get_embedding(embedding) if isinstance(embedding, str) else embedding)

    def close(self) -> None:
        """Release everything; using the store afterwards raises StoreClosedError."""
        self.backend.close()

    async def aclose(self) -> None:
        """Release everything: see :meth:`close`."""
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backend!r}, embedding={self._embedding_name!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """By reopening the store where it is on disk, with the same settings and embedding.

        Raises:
            CapabilityError: If it is in memory only, or in Cassandra.
            StoreClosedError: If it is closed.
        """
        by_name = type(self._embedding) in {MiniLMEmbeddings, WordLlamaEmbeddings}
        embedding = self._embedding_name if by_name else self._embedding
        return self._reopened, (self.backend, embedding)

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __exit__(self, *_: object) -> None:
        self.close()

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """A retriever over this store; without a ``search_type`` it uses the default strategy.

        It returns 4 documents, or ``search_kwargs={"k": ...}``, whose metadata has no links unless
        ``with_links=True`` is given.

        Args:
            kwargs: ``search_type``: ``"links"`` (default), ``"traversal"``, ``"mmr_traversal"``,
                ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``; ``search_kwargs``: arguments
                of the search, such as ``{"k": 3, "filter": {"lang": "en"}}``, and for ``"links"`` also
                ``{"strategy": ...}``; ``tags`` and other fields of LangChain's retrievers.

        Raises:
            TypeError: If the search does not take one of the arguments.
            FilterError: If a filter cannot be understood.
        """
        from linkstore.store.retrieving import StoreRetriever

        tags = [*(kwargs.pop("tags", None) or ()), *self._get_retriever_tags()]
        return StoreRetriever(vectorstore=self, tags=tags, **kwargs)

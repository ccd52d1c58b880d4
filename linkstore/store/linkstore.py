"""LinkStore: a LangChain VectorStore whose searches follow links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStoreRetriever

from linkstore.core.arguments import require
from linkstore.core.calls import run_in_thread
from linkstore.embeddings.builtin import MiniLMEmbeddings, WordLlamaEmbeddings
from linkstore.embeddings.names import get_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.errors import ArgumentError
from linkstore.store.core import CoreStore
from linkstore.store.driving import close_on_failure
from linkstore.store.langchain_search import LangChainSearchMethods
from linkstore.store.searching import check_argument_names

if TYPE_CHECKING:
    from linkstore.engines.cassandra.driver import Session
    from linkstore.engines.cassandra.settings import CassandraSettings

__all__ = ["LinkStore"]
_OF_CASSANDRA: Final = frozenset({"session", "keyspace", "table"})
"""Arguments that only :meth:`LinkStore.cassandra` takes."""
_OF_FOLDER: Final = frozenset({"path", "create", "max_depth", "settings"})
"""Arguments of :meth:`LinkStore.open` besides the embedding."""


class LinkStore(LangChainSearchMethods, CoreStore):
    """A vector store that stores links between documents and follows them in searches.

    Open a store with :meth:`open` or :meth:`cassandra`. Any number of threads and processes may use it.

    Args:
        embedding: Turns texts into vectors. None: the recorded embedding if it is built in, else
            wordllama.
        path: Folder of an embedded store. The default keeps the store in memory.
        backend: The storage engine to use instead of a path.
        max_depth: How many links in a row a search may follow, whatever its strategy asks for. Default None,
            any number. A search that would follow more raises StrategyError.

    Raises:
        ArgumentError: If an argument has the wrong type, such as the name of an embedding.
        EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
            same dimension is refused when it first embeds something.
        StrategyError: If ``max_depth`` is negative or not an integer.
    """

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        path: str | Path = ":memory:",
        backend: Backend | None = None,
        max_depth: int | None = None,
    ) -> None:
        if isinstance(embedding, type) or (embedding is not None and not hasattr(embedding, "embed_query")):
            raise ArgumentError(
                f"an embedding must be an object such as get_embedding('wordllama'), not {embedding!r}:"
                " LinkStore(embedding, path=...) or LinkStore.open(path, embedding)"
            )
        if backend is not None:
            require(Backend, "a Backend; a folder is opened by LinkStore.open(path)", backend=backend)
            super().__init__(backend, embedding, max_depth)
            return
        own = EmbeddedBackend(path)
        with close_on_failure(own):
            super().__init__(own, embedding, max_depth)

    @classmethod
    def open(
        cls,
        path: str | Path,
        embedding: Embeddings | None = None,
        create: bool = True,
        *,
        max_depth: int | None = None,
        settings: EmbeddedSettings | None = None,
    ) -> Self:
        """Open the embedded store in a folder.

        Args:
            path: The folder. ``":memory:"`` keeps the store in memory until ``close``.
            embedding: See :class:`LinkStore`.
            create: Create the store if it does not exist.
            max_depth: See :class:`LinkStore`.
            settings: Advanced settings, see :class:`EmbeddedSettings`.

        Raises:
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If the folder contains something else, or a store of a newer version.
            EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
                same dimension is refused when it first embeds something.
        """
        return cls._open_over(EmbeddedBackend(path, create=create, settings=settings), embedding, max_depth)

    @classmethod
    async def aopen(
        cls,
        path: str | Path,
        embedding: Embeddings | None = None,
        create: bool = True,
        *,
        max_depth: int | None = None,
        settings: EmbeddedSettings | None = None,
    ) -> Self:
        """Open the embedded store in a folder without blocking the event loop: see :meth:`open`."""
        return await run_in_thread(cls.open, path, embedding, create, max_depth=max_depth, settings=settings)

    @classmethod
    def cassandra(
        cls,
        embedding: Embeddings | None = None,
        *,
        table: str = "linkstore",
        session: Session | None = None,
        keyspace: str | None = None,
        create: bool = True,
        max_depth: int | None = None,
        settings: CassandraSettings | None = None,
    ) -> Self:
        """Open a store in Apache Cassandra 5.0 or Astra DB, which any number of clients may use.

        Pass a session and a keyspace, or call ``cassio.init(...)`` first. Closing the store leaves the
        session open. Needs the extra ``cassandra``.

        Args:
            embedding: See :class:`LinkStore`.
            table: The store's name in the keyspace: a letter and up to 37 letters, digits and underscores,
                not ending as the names of its other tables do, such as ``_members``.
                The store consists of the table of this name and five whose names begin with it.
            session: A session of cassandra-driver. None: the one made by ``cassio.init``.
            keyspace: None: the session's own, else the one given to ``cassio.init``.
            create: Create the tables if they do not exist.
            max_depth: See :class:`LinkStore`.
            settings: Consistency, timeouts, lifetime, lexical search or not, see
                :class:`linkstore.engines.cassandra.settings.CassandraSettings`.

        Raises:
            MissingExtraError: If the extra is not installed.
            BackendError: If the session or the keyspace is missing, or the name is not valid for tables.
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If this version of linkstore cannot read the store.
            StoreUnavailableError: If no server answers.
            EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
                same dimension is refused when it first embeds something.
        """
        from linkstore.store.cassandra import make_session_backend

        backend = make_session_backend(session, keyspace, table, create=create, settings=settings)
        return cls._open_over(backend, embedding, max_depth)

    @classmethod
    async def acassandra(cls, embedding: Embeddings | None = None, **kwargs: Any) -> Self:
        """Open a store in Cassandra without blocking the event loop: see :meth:`cassandra`.

        Args:
            embedding: See :class:`LinkStore`.
            kwargs: The other arguments of :meth:`cassandra`.
        """
        return await run_in_thread(cls.cassandra, embedding, **kwargs)

    @classmethod
    def _made(cls, embedding: Embeddings | None, **kwargs: Any) -> Self:
        """Make a store on the backend, in the cluster or in the folder that the arguments name."""
        if "backend" in kwargs:
            return cls(embedding, **kwargs)
        if not _OF_CASSANDRA.isdisjoint(kwargs):
            return cls.cassandra(embedding, **kwargs)
        check_argument_names(f"{cls.__name__}.open()", kwargs, _OF_FOLDER)
        return cls.open(kwargs.pop("path", ":memory:"), embedding, **kwargs)

    @classmethod
    def _open_over(cls, backend: Backend, embedding: Embeddings | None, max_depth: int | None) -> Self:
        """Make a store over a backend, and close the backend if opening fails."""
        with close_on_failure(backend):
            return cls(embedding, backend=backend, max_depth=max_depth)

    @classmethod
    def _reopen(cls, backend: Backend, embedding: Embeddings | str, max_depth: int | None) -> Self:
        """Make a store over a reopened backend. A built-in embedding is made anew by its name."""
        made = get_embedding(embedding) if isinstance(embedding, str) else embedding
        return cls._open_over(backend, made, max_depth)

    @staticmethod
    def _embedding_by_name(name: str) -> Embeddings:
        return get_embedding(name)

    @property
    def embeddings(self) -> Embeddings:
        """The embedding of the store."""
        return cast("Embeddings", self._embedding.model)  # made above, or given

    async def aclose(self) -> None:
        """Close the store: see ``close``."""
        await run_in_thread(self.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backend!r}, embedding={self._embedding.name!r})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by reopening the store at its place on disk, with the same settings and embedding.

        Raises:
            CapabilityError: If it is in memory only, or in Cassandra.
            StoreClosedError: If it is closed.
        """
        by_name = type(self._embedding.model) in {MiniLMEmbeddings, WordLlamaEmbeddings}
        embedding = self._embedding.name if by_name else self._embedding.model
        return self._reopen, (self.backend, embedding, self._max_depth)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def explore(self, pages: int = 500) -> Any:
        """Show the pages of the store and the links between them in a notebook. Needs the extra ``plot``.

        Args:
            pages: How many pages are drawn at most.

        Raises:
            MissingExtraError: If the extra is not installed.
        """
        from importlib import import_module

        return import_module("linkstore.explorer").explore_store(self, pages)  # which lies above this folder

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return a retriever over this store, which by default uses the default strategy.

        It returns 4 documents, or the number in ``search_kwargs={"k": ...}``. Their metadata omits the links
        unless ``with_links=True`` is passed.

        Args:
            kwargs: ``search_type``: ``"links"`` (default), ``"traversal"``, ``"mmr_traversal"``,
                ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``. ``search_kwargs``: arguments
                of the search, such as ``{"k": 3, "filter": {"lang": "en"}}``, and for ``"links"`` also
                ``{"strategy": ...}``. ``tags`` and other fields of LangChain's retrievers.

        Raises:
            TypeError: If there is no such argument, or the search does not take it.
            FilterError: If a filter is invalid.
            StrategyError: If the strategy or one of its settings is invalid.
        """
        from linkstore.store.retriever import StoreRetriever, check_retriever_arguments

        check_retriever_arguments(kwargs)
        tags = [*(kwargs.pop("tags", None) or ()), *self._get_retriever_tags()]
        return StoreRetriever(vectorstore=self, tags=tags, **kwargs)


def require_store(**stores: object) -> None:
    """Raise unless every argument is an open store. For a path, the message says how to open it.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, store in stores.items():
        path = str(store) if isinstance(store, str | Path) else "kb"
        require(LinkStore, f"an open store, such as LinkStore.open({path!r})", **{name: store})

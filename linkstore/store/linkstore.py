"""LinkStore: a LangChain VectorStore whose searches follow links."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from linkstore.core.arguments import require
from linkstore.core.calls import Operation, arun, run, run_in_thread
from linkstore.core.filters import Filter
from linkstore.core.hits import Hits
from linkstore.core.links import LINKS_KEY
from linkstore.embeddings.builtin import MiniLMEmbeddings, WordLlamaEmbeddings
from linkstore.embeddings.names import get_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.errors import ArgumentError
from linkstore.store.base import close_on_failure
from linkstore.store.core import CoreStore
from linkstore.store.search import (
    DEFAULT_RETURNED_K,
    LINKS_SEARCH,
    SearchArguments,
    check_argument_names,
    convert_relevance,
    make_diverse_mmr,
    make_search_options,
    make_traversal,
)
from linkstore.strategies.base import DEFAULT_SEEDS, SearchOptions, Strategy
from linkstore.strategies.first_stage import Similarity

if TYPE_CHECKING:
    from linkstore.engines.cassandra.driver import Session
    from linkstore.engines.cassandra.settings import CassandraSettings
    from linkstore.store.retriever import LinkRetriever

ScoredDocuments = list[tuple[Document, float]]
_NO_LINKS: Final = (
    "none of the documents has links, so searches have none to follow; add_links() writes them, an extractor"
    " such as linkstore_extractors' MentionExtractor finds them, and linkstore.ingest reads those of pages"
)
_OF_CASSANDRA: Final = frozenset({"session", "keyspace", "table"})
"""Arguments that only :meth:`LinkStore.cassandra` takes."""
_OF_FOLDER: Final = frozenset({"path", "create", "max_depth", "settings"})
"""Arguments of :meth:`LinkStore.open` besides the embedding."""


class LinkStore(CoreStore, VectorStore):
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
        backend = EmbeddedBackend(path, create=create, settings=settings)
        with close_on_failure(backend):
            return cls(embedding, backend=backend, max_depth=max_depth)

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
        with close_on_failure(backend):
            return cls(embedding, backend=backend, max_depth=max_depth)

    @classmethod
    async def acassandra(cls, embedding: Embeddings | None = None, **kwargs: Any) -> Self:
        """Open a store in Cassandra without blocking the event loop: see :meth:`cassandra`.

        Args:
            embedding: See :class:`LinkStore`.
            kwargs: The other arguments of :meth:`cassandra`.
        """
        return await run_in_thread(cls.cassandra, embedding, **kwargs)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these texts in it.

        Args:
            texts: The texts to add.
            embedding: Turns texts into vectors; default the built-in wordllama.
            metadatas: One dict for each text.
            ids: One id for each text.
            kwargs: ``path``, the folder of the store (default: in memory), and other arguments of
                :meth:`LinkStore.open`; or ``session``, ``keyspace``, ``table`` and other arguments of
                :meth:`LinkStore.cassandra`; or ``backend``.

        Raises:
            TypeError: If no way to make a store takes an argument.
            DocumentError: If a text, metadata or id cannot be stored.
        """
        return cls._make_filled(embedding, kwargs, lambda store: store.add_texts(texts, metadatas, ids=ids))

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these texts in it, in a thread: see :meth:`from_texts`."""
        return await run_in_thread(cls.from_texts, texts, embedding, metadatas, ids=ids, **kwargs)

    @classmethod
    def from_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it: see :meth:`from_texts`.

        Warns if no document has a link, since searches then have none to follow.
        """
        if documents and not any(LINKS_KEY in document.metadata for document in documents):
            warnings.warn(_NO_LINKS, stacklevel=2)
        return cls._make_filled(embedding, kwargs, lambda store: store.add_documents(documents, ids=ids))

    @classmethod
    async def afrom_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it, in a thread: see :meth:`from_texts`."""
        return await run_in_thread(cls.from_documents, documents, embedding, ids=ids, **kwargs)

    @classmethod
    def _make_filled(
        cls, embedding: Embeddings | None, place: dict[str, Any], fill: Callable[[Self], object]
    ) -> Self:
        """Make a store at a place and fill it; close it if that fails, unless its backend is the caller's."""
        if "backend" in place:
            store = cls(embedding, **place)
            fill(store)
            return store
        if not _OF_CASSANDRA.isdisjoint(place):
            store = cls.cassandra(embedding, **place)
        else:
            check_argument_names(f"{cls.__name__}.open()", place, _OF_FOLDER)
            store = cls.open(place.pop("path", ":memory:"), embedding, **place)
        with close_on_failure(store.backend):
            fill(store)
        return store

    @classmethod
    def _reopen(cls, backend: Backend, embedding: Embeddings | str, max_depth: int | None) -> Self:
        """Make a store over a reopened backend. A built-in embedding is made anew by its name."""
        made = get_embedding(embedding) if isinstance(embedding, str) else embedding
        with close_on_failure(backend):
            return cls(made, backend=backend, max_depth=max_depth)

    @staticmethod
    def _get_named_embedding(name: str) -> Embeddings:
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

    def as_retriever(self, **kwargs: Any) -> LinkRetriever:
        """Return a retriever over this store, which by default uses the default strategy.

        It returns 4 documents, or ``k``. Their metadata omits the links unless ``with_links=True`` is passed.

        Args:
            kwargs: Fields of :class:`~linkstore.LinkRetriever`: ``strategy``, ``k``, ``filter``; or
                ``search_type``: ``"links"`` (default, or ``"traversal"`` if ``search_kwargs`` has a
                ``depth``), ``"pagerank"``, ``"traversal"``, ``"mmr_traversal"``,
                ``"similarity"``, ``"mmr"`` or ``"similarity_score_threshold"``, with ``search_kwargs``:
                arguments of that search. ``tags`` and other fields of LangChain's retrievers.

        Raises:
            TypeError: If there is no such argument, or the search does not take it.
            FilterError: If a filter is invalid.
            StrategyError: If the strategy or one of its settings is invalid.
        """
        from linkstore.store.retriever import LinkRetriever, check_fields

        check_fields("as_retriever()", kwargs)
        tags = [*(kwargs.pop("tags", None) or ()), *self._get_retriever_tags()]
        return LinkRetriever(store=self, tags=tags, **kwargs)

    def search(  # type: ignore[override]  # hits have paths, which plain documents lack
        self, query: str, search_type: str | None = None, **arguments: Unpack[SearchArguments]
    ) -> Hits:
        """Search, and return hits with their paths.

        Args:
            query: The question, in words.
            search_type: ``"links"``, or None, the default, searches by a strategy. ``"traversal"``,
                ``"mmr_traversal"``, ``"pagerank"``, ``"similarity"``, ``"mmr"`` and
                ``"similarity_score_threshold"`` name one, whose settings are further arguments.
            arguments: See below. Other names raise TypeError.

        Keyword Args:
            k (int): Maximum number of documents to return. Default the ``k`` of the strategy, which is 10, or
                4 for a search type.
            strategy (Strategy): How to search. Default :data:`~linkstore.strategies.DEFAULT_STRATEGY`, a
                :class:`~linkstore.strategies.PageRank`.
            filter (Filter): Metadata filter for the whole search: seeds, hops and results.
            seed_filter (Filter): Further filter for the seeds.
            hop_filter (Filter): Further filter for documents reached by links.
            link_filter (Filter): Filter for the links that are followed, on their ``data``.
            result_filter (Filter): Further filter for the documents returned.
            initial_roots (Sequence[str]): Ids of additional seeds.
            initial_links (Sequence[AnyLink]): Links to follow from the query, as if it were a document with
                these links.

        Returns:
            Hits, best first. ``hits.reason`` explains an empty result.

        Raises:
            FilterError: If a filter is invalid.
            UnknownNameError: If the strategy names a kind of link, ``hop_filter`` a metadata field, or
                ``link_filter`` a field of link data, that no document in the store has. An empty store raises
                no such error.
            StrategyError: If there is no such search type, or the strategy follows more links than the
                store's ``max_depth`` allows.
            LinkError: If an initial link is invalid.
            EmbeddingError: If the embedding does not match the store.
            BackendError: If the storage engine fails.
        """
        return run(self._search("search", query, search_type or LINKS_SEARCH, arguments))

    async def asearch(  # type: ignore[override]  # hits have paths, which plain documents lack
        self, query: str, search_type: str | None = None, **arguments: Unpack[SearchArguments]
    ) -> Hits:
        """Search without blocking the event loop: see :meth:`search`."""
        return await arun(self._search("asearch", query, search_type or LINKS_SEARCH, arguments))

    def traversal_search(
        self,
        query: str,
        *,
        k: int = DEFAULT_SEEDS,
        depth: int = 1,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links from the nearest documents: see :class:`~linkstore.strategies.Eager`.

        Args:
            query: The question, in words.
            k: Number of seeds, as in langchain-community. All documents reached, at most ``max_nodes``, are
                returned.
            depth: Number of hops.
            filter: Metadata filter for the whole search.
            kwargs: Further settings of :class:`~linkstore.strategies.Eager`, and the filters, roots and links
                of :meth:`search`.

        Returns:
            Copies of the documents with score, depth and path under ``metadata["linkstore"]``, best first.
        """
        options = {"k": k, "depth": depth, "filter": filter, **kwargs}
        return run(self._traverse("traversal", query, options))

    async def atraversal_search(
        self,
        query: str,
        *,
        k: int = DEFAULT_SEEDS,
        depth: int = 1,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links from the nearest documents: see :meth:`traversal_search`."""
        options = {"k": k, "depth": depth, "filter": filter, **kwargs}
        return await arun(self._traverse("traversal", query, options))

    def mmr_traversal_search(
        self,
        query: str,
        *,
        k: int = DEFAULT_RETURNED_K,
        depth: int = 2,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links and select documents by maximal marginal relevance.

        Args:
            query: The question, in words.
            k: Number of documents to return.
            depth: Maximum number of hops from a seed.
            filter: Metadata filter for the whole search.
            kwargs: Further settings of :class:`~linkstore.strategies.Mmr`, such as ``fetch_k``,
                ``adjacent_k``, ``lambda_mult`` and ``score_threshold``, and the filters, roots and links of
                :meth:`search`.

        Returns:
            Copies of the documents with score, depth and path under ``metadata["linkstore"]``, in the order
            in which MMR selected them.
        """
        options = {"k": k, "depth": depth, "filter": filter, **kwargs}
        return run(self._traverse("mmr_traversal", query, options))

    async def ammr_traversal_search(
        self,
        query: str,
        *,
        k: int = DEFAULT_RETURNED_K,
        depth: int = 2,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links and select by MMR: see :meth:`mmr_traversal_search`."""
        options = {"k": k, "depth": depth, "filter": filter, **kwargs}
        return await arun(self._traverse("mmr_traversal", query, options))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, as stored. Takes ``filter``."""
        return run(self._search_plain(query, Similarity(k=k), kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, as stored. Takes ``filter``."""
        return await arun(self._search_plain(query, Similarity(k=k), kwargs))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the ``k`` documents most similar to a vector, as stored. Takes ``filter``."""
        return run(self._search_plain(embedding, Similarity(k=k), kwargs))

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the ``k`` documents most similar to a vector, as stored. Takes ``filter``."""
        return await arun(self._search_plain(embedding, Similarity(k=k), kwargs))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> ScoredDocuments:
        """Return the ``k`` most similar documents with their cosine, in [-1, 1]. Takes ``filter``."""
        return run(self._search_scored(query, k, kwargs))

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> ScoredDocuments:
        """Return the ``k`` most similar documents with their cosine, in [-1, 1]. Takes ``filter``."""
        return await arun(self._search_scored(query, k, kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` most similar documents, chosen for diversity. Takes ``filter``."""
        return run(self._search_plain(query, make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` most similar documents, chosen for diversity. Takes ``filter``."""
        return await arun(self._search_plain(query, make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` documents most similar to a vector, chosen for diversity."""
        return run(self._search_plain(embedding, make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` documents most similar to a vector, chosen for diversity."""
        return await arun(self._search_plain(embedding, make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return the function for LangChain's relevance, in [0, 1]."""
        return convert_relevance

    def _traverse(self, search_type: str, query: str, options: dict[str, Any]) -> Operation[list[Document]]:
        strategy, of_search = make_traversal(search_type, options)
        return (yield from self._hits(query, strategy, SearchOptions(**of_search))).documents()

    def _search_plain(
        self, query: str | list[float], strategy: Strategy, options: dict[str, Any]
    ) -> Operation[list[Document]]:
        method = "similarity_search" if isinstance(strategy, Similarity) else "max_marginal_relevance_search"
        hits = yield from self._hits(query, strategy, make_search_options(method, options))
        return [hit.document for hit in hits]

    def _search_scored(self, query: str, k: int, options: dict[str, Any]) -> Operation[ScoredDocuments]:
        taken = make_search_options("similarity_search_with_score", options)
        hits = yield from self._hits(query, Similarity(k=k), taken)
        return [(hit.document, hit.score) for hit in hits]


def require_store(**stores: object) -> None:
    """Raise unless every argument is an open store. For a path, the message says how to open it.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, store in stores.items():
        path = str(store) if isinstance(store, str | Path) else "kb"
        require(LinkStore, f"an open store, such as LinkStore.open({path!r})", **{name: store})

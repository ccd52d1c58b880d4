"""LinkStore: a LangChain VectorStore whose searches follow links."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.core.calls import Operation, arun, run, run_in_thread
from linkstore.core.filters import Filter
from linkstore.core.hits import Hits
from linkstore.embeddings.builtin import MiniLMEmbeddings, WordLlamaEmbeddings
from linkstore.embeddings.names import get_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.store.base import close_on_failure
from linkstore.store.constructors import StoreConstructors
from linkstore.store.core import require_store as require_store
from linkstore.store.search import (
    DEFAULT_RETURNED_K,
    LINKS_SEARCH,
    SearchArguments,
    convert_relevance,
    make_diverse_mmr,
    make_search_options,
    make_traversal,
)
from linkstore.strategies.base import DEFAULT_SEEDS, SearchOptions, Strategy
from linkstore.strategies.first_stage import Similarity

if TYPE_CHECKING:
    from linkstore.store.retriever import LinkRetriever

ScoredDocuments = list[tuple[Document, float]]


class LinkStore(StoreConstructors):
    """A vector store that stores links between documents and follows them in searches.

    Open a store with :meth:`LinkStore.open` or :meth:`LinkStore.cassandra`. Any number of threads and
    processes may use it.

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

"""LangChain's search methods: those of VectorStore, and of its former GraphVectorStore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from linkstore.core.filters import Filter
from linkstore.core.hits import Hits
from linkstore.core.links import AnyLink
from linkstore.core.plans import Operation
from linkstore.store.searching import (
    DEFAULT_RETURNED_K,
    SearchMethods,
    choose_strategy,
    make_search_options,
    make_traversal,
)
from linkstore.strategies.base import DEFAULT_SEEDS, SearchOptions, Strategy
from linkstore.strategies.first_stage import Similarity
from linkstore.strategies.mmr import Mmr

_DEFAULT_MMR = Mmr(k=DEFAULT_RETURNED_K)
_FORMER_SETTINGS = ("k", "depth", "fetch_k", "adjacent_k", "lambda_mult", "score_threshold")
ScoredDocuments = list[tuple[Document, float]]


class LangChainSearchMethods(SearchMethods, VectorStore):
    """The search methods of a store that is a VectorStore of LangChain."""

    @overload
    def search(
        self,
        query: str,
        search_type: None = None,
        *,
        k: int | None = None,
        strategy: Strategy | None = None,
        filter: Filter | None = None,
        seed_filter: Filter | None = None,
        hop_filter: Filter | None = None,
        link_filter: Filter | None = None,
        result_filter: Filter | None = None,
        initial_roots: Sequence[str] = (),
        initial_links: Sequence[AnyLink] = (),
    ) -> Hits: ...
    @overload
    def search(self, query: str, search_type: str, **kwargs: Any) -> list[Document]: ...
    def search(
        self,
        query: str,
        search_type: str | None = None,
        *,
        k: int | None = None,
        strategy: Strategy | None = None,
        **kwargs: Any,
    ) -> Hits | list[Document]:
        """Search by a strategy, and return hits with their paths.

        Args:
            query: The question, in words.
            search_type: If given (``"similarity"``, ``"mmr"``, …), call LangChain's search method of this
                type, which returns plain documents.
            k: Maximum number of documents to return. Default the ``k`` of the strategy, which is 10.
            strategy: How to search. Default :data:`~linkstore.strategies.DEFAULT_STRATEGY`, a
                :class:`~linkstore.strategies.PageRank`.
            kwargs: See below. Other names raise TypeError.

        Keyword Args:
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
            UnknownNameError: If the strategy names a kind of link, a filter a metadata field, or
                ``link_filter`` a field of link data, that no document in the store has. An empty store raises
                no such error.
            StrategyError: If the strategy follows more links than the store's ``max_depth`` allows.
            LinkError: If an initial link is invalid.
            EmbeddingError: If the embedding does not match the store.
            BackendError: If the storage engine fails.
        """
        if search_type is not None:
            return VectorStore.search(self, query, search_type, **_pass_k(k), **kwargs)
        options = make_search_options("search", kwargs)
        return self._run(self._hits(query, choose_strategy(strategy, k), options))

    @overload
    async def asearch(
        self,
        query: str,
        search_type: None = None,
        *,
        k: int | None = None,
        strategy: Strategy | None = None,
        filter: Filter | None = None,
        seed_filter: Filter | None = None,
        hop_filter: Filter | None = None,
        link_filter: Filter | None = None,
        result_filter: Filter | None = None,
        initial_roots: Sequence[str] = (),
        initial_links: Sequence[AnyLink] = (),
    ) -> Hits: ...
    @overload
    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]: ...
    async def asearch(
        self,
        query: str,
        search_type: str | None = None,
        *,
        k: int | None = None,
        strategy: Strategy | None = None,
        **kwargs: Any,
    ) -> Hits | list[Document]:
        """Search without blocking the event loop: see :meth:`search`."""
        if search_type is not None:
            return await VectorStore.asearch(self, query, search_type, **_pass_k(k), **kwargs)
        options = make_search_options("asearch", kwargs)
        return await self._arun(self._hits(query, choose_strategy(strategy, k), options))

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
        return self._run(self._traverse("traversal", query, options))

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
        return await self._arun(self._traverse("traversal", query, options))

    def mmr_traversal_search(
        self,
        query: str,
        *,
        initial_roots: Sequence[str] = (),
        k: int = _DEFAULT_MMR.k,
        depth: int = _DEFAULT_MMR.depth,
        fetch_k: int = _DEFAULT_MMR.fetch_k,
        adjacent_k: int = _DEFAULT_MMR.adjacent_k,
        lambda_mult: float = _DEFAULT_MMR.lambda_mult,
        score_threshold: float = _DEFAULT_MMR.score_threshold,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links and select documents by maximal marginal relevance: see :class:`Mmr`.

        Args:
            query: The question, in words.
            initial_roots: Ids of additional seeds.
            k: Number of documents to return.
            depth: Maximum number of hops from a seed.
            fetch_k: Number of seeds, found by similarity.
            adjacent_k: Number of members taken from each link group.
            lambda_mult: From 0 (maximum diversity) to 1 (similarity only).
            score_threshold: Stop when the best MMR score is below this value.
            filter: Metadata filter for the whole search.
            kwargs: Further settings of :class:`Mmr`, and the filters, roots and links of :meth:`search`.

        Returns:
            Copies of the documents with score, depth and path under ``metadata["linkstore"]``, in the order
            in which MMR selected them.
        """
        settings = (k, depth, fetch_k, adjacent_k, lambda_mult, score_threshold)
        options = {
            **_name_former_settings(settings),
            "initial_roots": initial_roots,
            "filter": filter,
            **kwargs,
        }
        return self._run(self._traverse("mmr_traversal", query, options))

    async def ammr_traversal_search(
        self,
        query: str,
        *,
        initial_roots: Sequence[str] = (),
        k: int = _DEFAULT_MMR.k,
        depth: int = _DEFAULT_MMR.depth,
        fetch_k: int = _DEFAULT_MMR.fetch_k,
        adjacent_k: int = _DEFAULT_MMR.adjacent_k,
        lambda_mult: float = _DEFAULT_MMR.lambda_mult,
        score_threshold: float = _DEFAULT_MMR.score_threshold,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Follow links and select by MMR: see :meth:`mmr_traversal_search`."""
        settings = (k, depth, fetch_k, adjacent_k, lambda_mult, score_threshold)
        options = {
            **_name_former_settings(settings),
            "initial_roots": initial_roots,
            "filter": filter,
            **kwargs,
        }
        return await self._arun(self._traverse("mmr_traversal", query, options))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, as stored. Takes ``filter``."""
        return self._run(self._search_plain(query, Similarity(k=k), kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, as stored. Takes ``filter``."""
        return await self._arun(self._search_plain(query, Similarity(k=k), kwargs))

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the ``k`` documents most similar to a vector, as stored. Takes ``filter``."""
        return self._run(self._search_plain(embedding, Similarity(k=k), kwargs))

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return the ``k`` documents most similar to a vector, as stored. Takes ``filter``."""
        return await self._arun(self._search_plain(embedding, Similarity(k=k), kwargs))

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> ScoredDocuments:
        """Return the ``k`` most similar documents with their cosine, in [-1, 1]. Takes ``filter``."""
        return self._run(self._scored(query, k, kwargs))

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> ScoredDocuments:
        """Return the ``k`` most similar documents with their cosine, in [-1, 1]. Takes ``filter``."""
        return await self._arun(self._scored(query, k, kwargs))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` most similar documents, chosen for diversity. Takes ``filter``."""
        return self._run(self._search_plain(query, _make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` most similar documents, chosen for diversity. Takes ``filter``."""
        return await self._arun(self._search_plain(query, _make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` documents most similar to a vector, chosen for diversity."""
        return self._run(self._search_plain(embedding, _make_diverse_mmr(k, fetch_k, lambda_mult), kwargs))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return ``k`` of the ``fetch_k`` documents most similar to a vector, chosen for diversity."""
        return await self._arun(
            self._search_plain(embedding, _make_diverse_mmr(k, fetch_k, lambda_mult), kwargs)
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Return the function for LangChain's relevance, in [0, 1]."""
        return lambda cosine: (1.0 + cosine) / 2.0

    def _traverse(self, search_type: str, query: str, options: dict[str, Any]) -> Operation[list[Document]]:
        strategy, of_search = make_traversal(search_type, options)
        return (yield from self._hits(query, strategy, SearchOptions(**of_search))).documents()

    def _search_plain(
        self, query: str | list[float], strategy: Strategy, options: dict[str, Any]
    ) -> Operation[list[Document]]:
        method = "similarity_search" if isinstance(strategy, Similarity) else "max_marginal_relevance_search"
        hits = yield from self._hits(query, strategy, make_search_options(method, options))
        return [hit.document for hit in hits]

    def _scored(self, query: str, k: int, options: dict[str, Any]) -> Operation[ScoredDocuments]:
        taken = make_search_options("similarity_search_with_score", options)
        hits = yield from self._hits(query, Similarity(k=k), taken)
        return [(hit.document, hit.score) for hit in hits]


def _pass_k(k: int | None) -> dict[str, int]:
    return {} if k is None else {"k": k}


def _name_former_settings(settings: tuple[float, ...]) -> dict[str, Any]:
    """Return the settings of the former GraphVectorStore's method by name."""
    return dict(zip(_FORMER_SETTINGS, settings, strict=True))


def _make_diverse_mmr(k: int, fetch_k: int, lambda_mult: float) -> Mmr:
    return Mmr(k=k, depth=0, fetch_k=fetch_k, lambda_mult=lambda_mult)

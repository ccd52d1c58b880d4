"""Retrievers: the store as LangChain's chains and agents call it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict

from linkstore.store import LinkStore
from linkstore.strategies import DEFAULT_STRATEGY, Strategy


class LinkRetriever(BaseRetriever):
    """Retrieves by a strategy; every document carries score, depth and path.

    Args:
        store: What is searched.
        strategy: How; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`, a
            :class:`~linkstore.strategies.PageRank`.
        k: How many documents are returned at most; default what the strategy says. Also as
            ``invoke(query, k=…)``.
        filter: Holds at every stage of the search.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    store: LinkStore
    strategy: Strategy | None = None
    k: int | None = None
    filter: dict[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self.store.search(query, strategy=self.strategy_for(k), filter=self.filter).documents()

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        hits = await self.store.asearch(query, strategy=self.strategy_for(k), filter=self.filter)
        return hits.documents()

    def strategy_for(self, k: int | None = None) -> Strategy:
        """The strategy that a query is answered with.

        Args:
            k: How many documents at most; default this retriever's ``k``, or what the strategy says.
        """
        wanted = self.k if k is None else k
        strategy = self.strategy or DEFAULT_STRATEGY
        return strategy if wanted is None else strategy.limited(wanted)


class StoreRetriever(VectorStoreRetriever):
    """What ``store.as_retriever()`` gives: LangChain's own retriever, which also follows links."""

    vectorstore: LinkStore  # pyright: ignore[reportIncompatibleVariableOverride]
    search_type: str = "traversal"
    allowed_search_types: ClassVar[Collection[str]] = (
        *VectorStoreRetriever.allowed_search_types,
        "traversal",
        "mmr_traversal",
    )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self.search_kwargs | kwargs
        match self.search_type:
            case "traversal":
                return self.vectorstore.traversal_search(query, **options)
            case "mmr_traversal":
                return self.vectorstore.mmr_traversal_search(query, **options)
        return super()._get_relevant_documents(query, run_manager=run_manager, **kwargs)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self.search_kwargs | kwargs
        match self.search_type:
            case "traversal":
                return await self.vectorstore.atraversal_search(query, **options)
            case "mmr_traversal":
                return await self.vectorstore.ammr_traversal_search(query, **options)
        return await super()._aget_relevant_documents(query, run_manager=run_manager, **kwargs)

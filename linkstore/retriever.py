"""The retriever: a store and a strategy as LangChain's chains and agents call them."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
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

"""LinkRetriever: a LangChain retriever with a store and a strategy."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from linkstore.filters import parse_filter
from linkstore.hits import Hits
from linkstore.links import without_links
from linkstore.store import LinkStore
from linkstore.store.searching import DEFAULT_RETURNED
from linkstore.strategies import DEFAULT_STRATEGY, Strategy
from linkstore.tracing import atraced, traced


class LinkRetriever(BaseRetriever):
    """Retrieves documents by a strategy, with score, depth and path in their metadata.

    Args:
        store: The store to search.
        strategy: How to search; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`, a
            :class:`~linkstore.strategies.PageRank`.
        k: Maximum number of documents to return; default the ``k`` of the given strategy, or 4 without one.
            ``invoke(query, k=…)`` overrides it.
        filter: Metadata filter for the whole search.
        with_links: Whether documents keep ``metadata["links"]``; default False.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    store: LinkStore
    strategy: Strategy | None = None
    k: int | None = None
    filter: dict[str, Any] | None = None
    with_links: bool = False

    def model_post_init(self, context: Any, /) -> None:
        """Raise FilterError if the filter is invalid."""
        super().model_post_init(context)
        parse_filter(self.filter)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        hits = self.store.search(query, strategy=self.strategy_for(k), filter=self.filter)
        traced(run_manager, hits)
        return self._given(hits)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        hits = await self.store.asearch(query, strategy=self.strategy_for(k), filter=self.filter)
        await atraced(run_manager, hits)
        return self._given(hits)

    def strategy_for(self, k: int | None = None) -> Strategy:
        """The strategy for one query.

        Args:
            k: Maximum number of documents; default the retriever's ``k``, or that of the strategy.
        """
        wanted = self.k if k is None else k
        if self.strategy is None:
            return DEFAULT_STRATEGY.returning(DEFAULT_RETURNED if wanted is None else wanted)
        return self.strategy if wanted is None else self.strategy.returning(wanted)

    def _given(self, hits: Hits) -> list[Document]:
        documents = hits.documents()
        return documents if self.with_links else [without_links(document) for document in documents]

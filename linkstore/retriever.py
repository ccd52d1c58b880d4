"""LinkRetriever: a LangChain retriever with a store and a strategy."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, model_validator

from linkstore.filters import parse_filter
from linkstore.hits import Hits
from linkstore.links import without_links
from linkstore.store import LinkStore
from linkstore.store.checking import require_store
from linkstore.store.options import DEFAULT_RETURNED, check_names, chosen_strategy
from linkstore.strategies import Strategy
from linkstore.tracing import atraced, traced


class LinkRetriever(BaseRetriever):
    """Retrieves documents by a strategy, with score, depth and path in their metadata.

    Attributes:
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

    @model_validator(mode="before")
    @classmethod
    def _check_arguments(cls, given: Any) -> Any:
        """Raise TypeError for an unknown argument, saying where it belongs, or if the store is none."""
        if isinstance(given, dict):
            check_names(cls.__name__, given, cls.model_fields.keys())
            require_store(store=given.get("store"))
            chosen_strategy(given.get("strategy"), None)
        return given

    def model_post_init(self, context: Any, /) -> None:
        """Raise ValueError, as pydantic does, if the filter or ``k`` is invalid."""
        super().model_post_init(context)
        parse_filter(self.filter)
        self.strategy_for()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **kwargs: Any
    ) -> list[Document]:
        check_names("invoke()", kwargs, ("k",))
        hits = self.store.search(query, strategy=self.strategy_for(k), filter=self.filter)
        traced(run_manager, hits)
        return self._list_documents(hits)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        check_names("ainvoke()", kwargs, ("k",))
        hits = await self.store.asearch(query, strategy=self.strategy_for(k), filter=self.filter)
        await atraced(run_manager, hits)
        return self._list_documents(hits)

    def strategy_for(self, k: int | None = None) -> Strategy:
        """Return the strategy for one query.

        Args:
            k: Maximum number of documents; default the retriever's ``k``, or that of the strategy.
        """
        wanted = self.k if k is None else k
        own = DEFAULT_RETURNED if self.strategy is None else None
        return chosen_strategy(self.strategy, own if wanted is None else wanted)

    def _list_documents(self, hits: Hits) -> list[Document]:
        documents = hits.documents()
        return documents if self.with_links else [without_links(document) for document in documents]

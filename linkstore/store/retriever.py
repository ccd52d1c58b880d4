"""LangChain retrievers over a store, and their reports to callbacks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict, model_validator

from linkstore.core.filters import parse_filter
from linkstore.core.hits import Hits
from linkstore.core.links import strip_links
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.searching import (
    DEFAULT_RETURNED_K,
    LINKS_SEARCH,
    SEARCH_ARGUMENTS,
    TRAVERSAL_SEARCHES,
    check_argument_names,
    check_options,
    choose_strategy,
    make_traversal,
)
from linkstore.strategies.base import Strategy

EVENT_NAME: Final = "linkstore"
"""The name of the custom event: see it in LangSmith, or as ``on_custom_event`` of ``astream_events``."""


def trace_search(run: CallbackManagerForRetrieverRun, hits: Hits) -> None:
    """Report a search as a custom event of the retriever's run."""
    dispatch_custom_event(EVENT_NAME, summarize_hits(hits), config={"callbacks": run.get_child()})


async def atrace_search(run: AsyncCallbackManagerForRetrieverRun, hits: Hits) -> None:
    """Report a search as :func:`trace_search` does, without blocking the event loop."""
    await adispatch_custom_event(EVENT_NAME, summarize_hits(hits), config={"callbacks": run.get_child()})


def summarize_hits(hits: Hits) -> dict[str, Any]:
    """Return the strategy, how many documents came back by how many hops, and what was cut and why."""
    by_depth: dict[int, int] = {}
    for hit in hits:
        by_depth[hit.depth] = by_depth.get(hit.depth, 0) + 1
    return {
        "strategy": hits.strategy,
        "hits": len(hits),
        "hops": max(by_depth, default=0),
        "hits_by_depth": dict(sorted(by_depth.items())),
        "cuts": [str(cut) for cut in hits.cuts],
        "reason": hits.reason,
    }


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
            check_argument_names(cls.__name__, given, cls.model_fields.keys())
            require_store(store=given.get("store"))
            choose_strategy(given.get("strategy"), None)
        return given

    def model_post_init(self, context: Any, /) -> None:
        """Raise ValueError, as pydantic does, if the filter or ``k`` is invalid."""
        super().model_post_init(context)
        parse_filter(self.filter)
        self.strategy_for()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **kwargs: Any
    ) -> list[Document]:
        check_argument_names("invoke()", kwargs, ("k",))
        hits = self.store.search(query, strategy=self.strategy_for(k), filter=self.filter)
        trace_search(run_manager, hits)
        return self._list_documents(hits)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        check_argument_names("ainvoke()", kwargs, ("k",))
        hits = await self.store.asearch(query, strategy=self.strategy_for(k), filter=self.filter)
        await atrace_search(run_manager, hits)
        return self._list_documents(hits)

    def strategy_for(self, k: int | None = None) -> Strategy:
        """Return the strategy for one query.

        Args:
            k: Maximum number of documents; default the retriever's ``k``, or that of the strategy.
        """
        wanted = self.k if k is None else k
        own = DEFAULT_RETURNED_K if self.strategy is None else None
        return choose_strategy(self.strategy, own if wanted is None else wanted)

    def _list_documents(self, hits: Hits) -> list[Document]:
        documents = hits.documents()
        return documents if self.with_links else [strip_links(document) for document in documents]


_LINK_FOLLOWING_SEARCHES: Final = (LINKS_SEARCH, *TRAVERSAL_SEARCHES)
"""The search types that follow links; their traces say how."""


class StoreRetriever(VectorStoreRetriever):
    """The retriever that ``store.as_retriever()`` returns: LangChain's own, which also follows links.

    Args:
        vectorstore: What is searched.
        search_type: ``"links"``, the default: the default strategy, or that in ``search_kwargs["strategy"]``;
            or ``"traversal"``, ``"mmr_traversal"``, ``"similarity"``, ``"mmr"`` or
            ``"similarity_score_threshold"``, the method of that name.
        search_kwargs: Arguments of the search, such as ``{"k": 4, "filter": {...}}``.
        with_links: Whether documents keep ``metadata["links"]``; default False.
    """

    vectorstore: LinkStore  # pyright: ignore[reportIncompatibleVariableOverride]
    search_type: str = LINKS_SEARCH
    with_links: bool = False
    allowed_search_types: ClassVar[Collection[str]] = tuple(SEARCH_ARGUMENTS)

    def model_post_init(self, context: Any, /) -> None:
        """Raise if the search does not take an argument, or an argument is invalid."""
        super().model_post_init(context)
        check_options(self.search_type, self.search_kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self._options(kwargs)
        if self.search_type in _LINK_FOLLOWING_SEARCHES:
            hits: Hits = self.vectorstore.search(query, None, **self._make_search_arguments(options))
            trace_search(run_manager, hits)
            return self._given(hits.documents())
        found = super()._get_relevant_documents(query, run_manager=run_manager, **kwargs)
        return self._given(found)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self._options(kwargs)
        if self.search_type in _LINK_FOLLOWING_SEARCHES:
            hits: Hits = await self.vectorstore.asearch(query, None, **self._make_search_arguments(options))
            await atrace_search(run_manager, hits)
            return self._given(hits.documents())
        found = await super()._aget_relevant_documents(query, run_manager=run_manager, **kwargs)
        return self._given(found)

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of one search."""
        options = self.search_kwargs | given
        check_options(self.search_type, options)
        own = self.search_type == LINKS_SEARCH and options.get("strategy") is None
        return {"k": DEFAULT_RETURNED_K, **options} if own else options

    def _make_search_arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the same search as arguments of :meth:`LinkStore.search`."""
        if self.search_type == LINKS_SEARCH:
            return options
        strategy, of_search = make_traversal(self.search_type, options)
        return {"strategy": strategy, **of_search}

    def _given(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_links else [strip_links(document) for document in documents]


def check_retriever_arguments(given: Mapping[str, Any]) -> None:
    """Raise if ``as_retriever`` does not take an argument, or the search does not take one of its own.

    Raises:
        TypeError: Naming the argument, and where it belongs.
        FilterError: If a filter is invalid.
        StrategyError: If a strategy or one of its settings is invalid.
    """
    taken = StoreRetriever.model_fields.keys() - {"vectorstore"}
    search_type = given.get("search_type", LINKS_SEARCH)
    for name in given:
        if name not in taken and any(name in names for names in SEARCH_ARGUMENTS.values()):
            raise TypeError(f"as_retriever() has no argument {name!r}; use search_kwargs={{{name!r}: ...}}")
    check_argument_names("as_retriever()", given, taken)
    if search_type in SEARCH_ARGUMENTS:
        check_options(search_type, given.get("search_kwargs") or {})

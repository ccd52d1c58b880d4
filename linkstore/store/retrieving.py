"""The retriever that ``as_retriever()`` returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever

from linkstore.hits import Hits
from linkstore.links import without_links
from linkstore.store import LinkStore
from linkstore.store.options import (
    DEFAULT_RETURNED,
    LINKS,
    TAKES,
    TRAVERSALS,
    check_names,
    check_options,
    traversing,
)
from linkstore.tracing import atraced, traced

_FOLLOWING: Final = (LINKS, *TRAVERSALS)
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
    search_type: str = LINKS
    with_links: bool = False
    allowed_search_types: ClassVar[Collection[str]] = tuple(TAKES)

    def model_post_init(self, context: Any, /) -> None:
        """Raise if the search does not take an argument, or an argument is invalid."""
        super().model_post_init(context)
        check_options(self.search_type, self.search_kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self._options(kwargs)
        if self.search_type in _FOLLOWING:
            hits: Hits = self.vectorstore.search(query, None, **self._make_search_arguments(options))
            traced(run_manager, hits)
            return self._given(hits.documents())
        found = super()._get_relevant_documents(query, run_manager=run_manager, **kwargs)
        return self._given(found)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        options = self._options(kwargs)
        if self.search_type in _FOLLOWING:
            hits: Hits = await self.vectorstore.asearch(query, None, **self._make_search_arguments(options))
            await atraced(run_manager, hits)
            return self._given(hits.documents())
        found = await super()._aget_relevant_documents(query, run_manager=run_manager, **kwargs)
        return self._given(found)

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of one search."""
        options = self.search_kwargs | given
        check_options(self.search_type, options)
        own = self.search_type == LINKS and options.get("strategy") is None
        return {"k": DEFAULT_RETURNED, **options} if own else options

    def _make_search_arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the same search as arguments of :meth:`LinkStore.search`."""
        if self.search_type == LINKS:
            return options
        strategy, of_search = traversing(self.search_type, options)
        return {"strategy": strategy, **of_search}

    def _given(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_links else [without_links(document) for document in documents]


def check_arguments(given: Mapping[str, Any]) -> None:
    """Raise if ``as_retriever`` does not take an argument, or the search does not take one of its own.

    Raises:
        TypeError: Naming the argument, and where it belongs.
        FilterError: If a filter is invalid.
        StrategyError: If a strategy or one of its settings is invalid.
    """
    taken = StoreRetriever.model_fields.keys() - {"vectorstore"}
    search_type = given.get("search_type", LINKS)
    for name in given:
        if name not in taken and any(name in names for names in TAKES.values()):
            raise TypeError(f"as_retriever() has no argument {name!r}; use search_kwargs={{{name!r}: ...}}")
    check_names("as_retriever()", given, taken)
    if search_type in TAKES:
        check_options(search_type, given.get("search_kwargs") or {})

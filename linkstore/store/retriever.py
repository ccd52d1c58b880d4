"""The LangChain retriever over a store, and its reports to callbacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict, Field, model_validator

from linkstore.core.arguments import omit_none, require
from linkstore.core.filters import Filter
from linkstore.core.hits import Hits
from linkstore.core.links import strip_links
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.search import (
    DEFAULT_RETURNED_K,
    LINKS_SEARCH,
    SEARCH_ARGUMENTS,
    TRAVERSAL_SEARCHES,
    check_argument_names,
    check_options,
    make_traversal,
)
from linkstore.strategies.base import Strategy

EVENT_NAME: Final = "linkstore"
"""The name of the custom event: see it in LangSmith, or as ``on_custom_event`` of ``astream_events``."""
_LINK_FOLLOWING_SEARCHES: Final = (LINKS_SEARCH, *TRAVERSAL_SEARCHES)
"""The search types that follow links; their traces say how."""


class LinkRetriever(VectorStoreRetriever):
    """Retrieves documents by following links, with score, depth and path in their metadata.

    ``store.as_retriever()`` makes one, too.

    Attributes:
        vectorstore: The store to search, given as ``store``.
        strategy: How to search; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`, a
            :class:`~linkstore.strategies.PageRank`.
        k: Maximum number of documents to return; default the ``k`` of the given strategy, or 4 without one.
            ``invoke(query, k=…)`` overrides it.
        filter: Metadata filter for the whole search.
        with_links: Whether documents keep ``metadata["links"]``; default False.
        search_type: ``"links"``, the default, searches by the strategy. With a ``depth`` among the
            ``search_kwargs`` and no strategy the default is ``"traversal"``. ``"pagerank"`` searches
            by the strategy of this name, with its settings in ``search_kwargs``. ``"traversal"``,
            ``"mmr_traversal"``, ``"similarity"``, ``"mmr"`` and ``"similarity_score_threshold"`` call the
            method of that name, and take no strategy.
        search_kwargs: Further arguments of the search, such as ``{"initial_roots": ["a"]}``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", populate_by_name=True)

    vectorstore: LinkStore = Field(alias="store")  # pyright: ignore[reportIncompatibleVariableOverride]
    strategy: Strategy | None = None
    k: int | None = None
    filter: Filter | None = None
    with_links: bool = False
    search_type: str = LINKS_SEARCH
    allowed_search_types: ClassVar[Collection[str]] = tuple(SEARCH_ARGUMENTS)

    @model_validator(mode="before")
    @classmethod
    def _check_arguments(cls, given: Any) -> Any:
        """Raise TypeError for an unknown argument, saying where it belongs, or if the store is none."""
        if isinstance(given, dict):
            check_fields(cls.__name__, given)
            require_store(store=given.get("store", given.get("vectorstore")))
            return {**given, "search_type": _find_search_type(given)}
        return given

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        arguments = self._make_arguments(kwargs)
        if self.search_type not in _LINK_FOLLOWING_SEARCHES:
            return self._prepare(super()._get_relevant_documents(query, run_manager=run_manager, **arguments))
        hits: Hits = self.vectorstore.search(query, **arguments)
        dispatch_custom_event(
            EVENT_NAME, _summarize_hits(hits), config={"callbacks": run_manager.get_child()}
        )
        return self._prepare(hits.documents())

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        arguments = self._make_arguments(kwargs)
        if self.search_type not in _LINK_FOLLOWING_SEARCHES:
            return self._prepare(
                await super()._aget_relevant_documents(query, run_manager=run_manager, **arguments)
            )
        hits: Hits = await self.vectorstore.asearch(query, **arguments)
        await adispatch_custom_event(
            EVENT_NAME, _summarize_hits(hits), config={"callbacks": run_manager.get_child()}
        )
        return self._prepare(hits.documents())

    def _make_arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of one search, of which some are given for it alone."""
        options = _join_options(self.__dict__) | given
        check_options(self.search_type, options)
        if self.search_type in TRAVERSAL_SEARCHES:
            strategy, of_search = make_traversal(self.search_type, options)
            return {"strategy": strategy, **of_search}
        if self.search_type == LINKS_SEARCH and options.get("strategy") is None:
            return {"k": DEFAULT_RETURNED_K, **options}
        return options

    def _prepare(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_links else [strip_links(document) for document in documents]


def check_fields(where: str, given: Mapping[str, Any]) -> None:
    """Raise if a retriever has no such argument, or its search does not take one of them.

    Args:
        where: What was called, as messages say it.
        given: Arguments by name.

    Raises:
        TypeError: Naming the argument, and where it belongs.
        FilterError: If a filter is invalid.
        StrategyError: If a strategy or one of its settings is invalid.
    """
    require(Mapping, "a dict of arguments", **omit_none(search_kwargs=given.get("search_kwargs")))
    taken = {"store", *LinkRetriever.model_fields}
    search_type = _find_search_type(given)
    for name in given:
        if name not in taken and name in SEARCH_ARGUMENTS.get(search_type, ()):
            raise TypeError(f"{where} has no argument {name!r}; use search_kwargs={{{name!r}: ...}}")
    check_argument_names(where, given, taken)
    if search_type in SEARCH_ARGUMENTS:
        check_options(search_type, _join_options(given))


def _find_search_type(given: Mapping[str, Any]) -> Any:
    """Return the search type that arguments give or imply: with a depth, a traversal."""
    means_traversal = given.get("strategy") is None and "depth" in (given.get("search_kwargs") or ())
    return given.get("search_type", "traversal" if means_traversal else LINKS_SEARCH)


def _join_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search from the fields of a retriever."""
    own = omit_none(**{name: fields.get(name) for name in ("strategy", "k", "filter")})
    return own | (fields.get("search_kwargs") or {})


def _summarize_hits(hits: Hits) -> dict[str, Any]:
    """Return the strategy, how many documents came back by how many hops, and what was cut and why."""
    by_depth = Counter(hit.depth for hit in hits)
    return {
        "strategy": hits.strategy,
        "hits": len(hits),
        "hops": max(by_depth, default=0),
        "hits_by_depth": dict(sorted(by_depth.items())),
        "cuts": [str(cut) for cut in hits.cuts],
        "reason": hits.reason,
        "doubt": hits.doubt,
    }

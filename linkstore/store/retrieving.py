"""What ``as_retriever()`` gives."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever

from linkstore.store import LinkStore


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

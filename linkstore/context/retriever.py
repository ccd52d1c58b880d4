"""A retriever that returns the documents of a compiled context."""

from __future__ import annotations

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from linkstore.context.compiler import ContextCompiler
from linkstore.core.links import strip_links


class ContextRetriever(BaseRetriever):
    """Retrieves the documents of the best context that fits a budget, in the order they are to be read.

    Args:
        compiler: Compiles the contexts.
        with_links: Whether documents keep ``metadata["links"]``; default False.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    compiler: ContextCompiler
    with_links: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._prepare(self.compiler.compile(query).documents)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._prepare((await self.compiler.acompile(query)).documents)

    def _prepare(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_links else [strip_links(one) for one in documents]

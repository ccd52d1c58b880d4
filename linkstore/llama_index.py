"""A retriever of LlamaIndex over a store. Needs ``llama-index-core``."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none
from linkstore.core.filters import Filter
from linkstore.errors import MissingExtraError
from linkstore.store import LinkStore
from linkstore.store.core import require_store
from linkstore.strategies import Strategy

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtraError("linkstore.llama_index", "llama-index") from error

_FOR_MODELS: Final = frozenset({"title", "url"})
"""The metadata that LlamaIndex writes above a text for a model."""


class LinkRetriever(BaseRetriever):
    """Retrieves nodes by following links, with score, depth and path in ``metadata["linkstore"]``.

    Args:
        store: The store to search.
        strategy: How to search; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`.
        k: Maximum number of nodes; default the ``k`` of the given strategy, or 4 without one.
        filter: Metadata filter for the whole search.
        options: Those of LlamaIndex's retrievers, such as ``callback_manager``.

    Raises:
        ArgumentError: If this is not a store.
    """

    def __init__(
        self,
        store: LinkStore,
        strategy: Strategy | None = None,
        *,
        k: int | None = None,
        filter: Filter | None = None,
        **options: Any,
    ) -> None:
        require_store(store=store)
        self._retriever: Final = store.as_retriever(**omit_none(strategy=strategy, k=k, filter=filter))
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(map(_make_node, self._retriever.invoke(query_bundle.query_str)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(map(_make_node, await self._retriever.ainvoke(query_bundle.query_str)))


def _make_node(document: Document) -> NodeWithScore:
    """Make a node of a document, of whose metadata a model reads only title and URL."""
    hidden = [key for key in document.metadata if key not in _FOR_MODELS]
    node = TextNode(
        id_=document.id or "",
        text=document.page_content,
        metadata=document.metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=document.metadata["linkstore"]["score"])

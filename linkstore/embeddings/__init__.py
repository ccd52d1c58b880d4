"""Embeddings that work offline, and embeddings by name.

:func:`get_embedding` makes an embedding from its name, :func:`embedding_name` says under which name
a store records one. Any LangChain ``Embeddings`` will do; the ones here add
``embed_array``, which spares the way through lists of Python floats.
Models are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.embeddings.builtin import (
        ArrayEmbeddings,
        BgeSmallEmbeddings,
        MiniLMEmbeddings,
        WordLlamaEmbeddings,
    )
    from linkstore.embeddings.names import DEFAULT_EMBEDDING, embedding_name, get_embedding

__all__ = [
    "ArrayEmbeddings",
    "BgeSmallEmbeddings",
    "DEFAULT_EMBEDDING",
    "MiniLMEmbeddings",
    "WordLlamaEmbeddings",
    "embedding_name",
    "get_embedding",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.embeddings.builtin": (
            "ArrayEmbeddings BgeSmallEmbeddings MiniLMEmbeddings WordLlamaEmbeddings"
        ),
        "linkstore.embeddings.names": "DEFAULT_EMBEDDING embedding_name get_embedding",
    },
)

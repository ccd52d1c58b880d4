"""Embeddings that work offline, and embeddings by name.

:func:`get_embedding` makes an embedding from its name, :func:`embedding_name` says under which name
a store records one. Any LangChain ``Embeddings`` will do; the ones here add
:meth:`ArrayEmbeddings.embed_array`, which spares the way through lists of Python floats.
Models are loaded on first use.
"""

from __future__ import annotations

from linkstore.embeddings.base import ArrayEmbeddings
from linkstore.embeddings.minilm import MiniLMEmbeddings
from linkstore.embeddings.names import DEFAULT_EMBEDDING, embedding_name, get_embedding
from linkstore.embeddings.wordllama import WordLlamaEmbeddings

__all__ = [
    "DEFAULT_EMBEDDING",
    "ArrayEmbeddings",
    "MiniLMEmbeddings",
    "WordLlamaEmbeddings",
    "embedding_name",
    "get_embedding",
]

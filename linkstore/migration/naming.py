"""The name under which a migrated store records its embedding."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from linkstore.embeddings import embedding_name, get_embedding
from linkstore.errors import EmbeddingError


def recorded_name(embedding: Embeddings | str) -> str:
    """The name that a store built with this embedding records, so that it opens with it.

    Args:
        embedding: An embedding or its name: a short one such as ``wordllama`` gives the full one, and one
            that linkstore cannot make an embedding from stays as it is.

    Raises:
        MissingExtraError: If it is a built-in one that is not installed.
    """
    if not isinstance(embedding, str):
        return embedding_name(embedding)
    if ":" in embedding:  # a model's name is written in one way only
        return embedding
    try:
        return embedding_name(get_embedding(embedding))
    except EmbeddingError:
        return embedding

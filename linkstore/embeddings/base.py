"""A base class of embeddings that return arrays."""

from __future__ import annotations

from abc import ABC

from langchain_core.embeddings import Embeddings

from linkstore.embeddings.encoder import Encoder


class ArrayEmbeddings(Encoder, Embeddings, ABC):
    """LangChain embeddings that can also return a float32 array of vectors of length 1.

    A text without any word or sign (empty, or white space only) has no direction, so it is refused
    rather than embedded as a zero or arbitrary vector.
    """

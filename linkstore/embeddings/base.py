"""A base class of embeddings that return arrays."""

from __future__ import annotations

from abc import ABC

from langchain_core.embeddings import Embeddings

from linkstore.embeddings.encoder import Encoder


class ArrayEmbeddings(Encoder, Embeddings, ABC):
    """LangChain embeddings that can also give a float32 array, of vectors of length 1.

    A text without any word or sign (empty, or white space only) has no direction: it is refused
    rather than given a zero or an arbitrary vector.
    """

"""OpenAI's embeddings by name, with advice in their errors.

LangChain's class counts tokens with tiktoken, which fetches its encoding on first use; what fails there or at
OpenAI's server has many classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_openai import OpenAIEmbeddings
from openai import APIConnectionError, OpenAIError

from linkstore.errors import EmbeddingError


class NamedOpenAIEmbeddings(OpenAIEmbeddings):
    """LangChain's embeddings by OpenAI, which raise EmbeddingError if they cannot embed."""

    def embed_documents(
        self, texts: list[str], chunk_size: int | None = None, **kwargs: Any
    ) -> list[list[float]]:
        """Embed texts.

        Raises:
            EmbeddingError: If OpenAI's server, or the encoding of the model, cannot be had.
        """
        with self._explain_failures():
            return super().embed_documents(texts, chunk_size, **kwargs)

    async def aembed_documents(
        self, texts: list[str], chunk_size: int | None = None, **kwargs: Any
    ) -> list[list[float]]:
        """Embed texts as :meth:`embed_documents`, in an event loop."""
        with self._explain_failures():
            return await super().aembed_documents(texts, chunk_size, **kwargs)

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        try:
            yield
        except (APIConnectionError, OSError) as error:  # requests' errors, of tiktoken, are of OSError
            raise EmbeddingError(
                f"embedding 'openai:{self.model}' needs the network: {type(error).__name__}: {error}; connect"
                " it, keep tiktoken's encodings in TIKTOKEN_CACHE_DIR if only they cannot be fetched, or take"
                " an embedding that works offline, such as wordllama, for a new store"
            ) from error
        except OpenAIError as error:
            raise EmbeddingError(f"embedding 'openai:{self.model}': {error}") from error

"""Encoders, which turn texts into arrays of vectors without the slow import of LangChain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from linkstore.errors import EmbeddingError
from linkstore.text import is_unicode

if TYPE_CHECKING:  # numpy takes longer to import than all of this package
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]


class Encoder(ABC):
    """Turns texts into float32 vectors of length 1.

    A text without any word or sign (empty, or white space only) has no direction, so it is refused
    rather than embedded as a zero or arbitrary vector.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that a store records: the same in every process, and different for different vectors."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of the vectors."""

    def embed_array(self, texts: Sequence[str]) -> Matrix:
        """Embed texts into one array.

        Args:
            texts: Any number of texts.

        Returns:
            float32 of shape (len(texts), dimension), C-contiguous; each row has length 1.

        Raises:
            EmbeddingError: If a text is blank or not valid Unicode; the message names it.
        """
        for position, text in enumerate(texts):
            problem = _problem(text)
            if problem:
                raise EmbeddingError(f"text {position} {problem}", position)
        vectors = self._vectors(texts)
        _normalize(vectors)
        return vectors

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a new float32 array of shape (len(texts), dimension), with rows of any length above zero."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as lists of numbers: see ``embed_array``."""
        return cast("list[list[float]]", self.embed_array(texts).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Embed one question as a list of numbers: see ``embed_array``."""
        problem = _problem(text)
        if problem:
            raise EmbeddingError(f"the question {problem}")
        return cast("list[float]", self.embed_array((text,))[0].tolist())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def package_folder(package: str) -> Path | None:
    """Find the folder of a package without importing it. Return None if it is not installed."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _problem(text: str) -> str | None:
    """Return the reason why a text has no embedding, or None."""
    if not text or text.isspace():
        return "is blank, so it has no embedding; give it a word or leave it out"
    if not is_unicode(text):
        return f"is not valid Unicode (it has a lone surrogate): {text[:60]!a}"
    return None


def _normalize(vectors: Matrix) -> None:
    import numpy as np

    vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]

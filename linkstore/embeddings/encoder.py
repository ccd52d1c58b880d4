"""Encoders: they turn texts into arrays of vectors, without the slow import of LangChain."""

from __future__ import annotations

import ctypes
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

from linkstore.core.text import is_unicode
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

if TYPE_CHECKING:  # numpy takes longer to import than all of this package
    Matrix: TypeAlias = NDArray[np.float32]
_RUNTIME: Final = "libstdc++.so.6"
_USEARCH: Final = "usearch.compiled"
_A_SYMBOL: Final = "_ZNSt6locale7classicEv"


class Encoder(ABC):
    """Turns texts into float32 vectors of length 1.

    A text without any word or sign (empty, or white space only) has no direction, so it is refused
    rather than embedded as a zero or arbitrary vector.

    Attributes:
        instruction: What stands before a question, for models that were trained so.
        name: The name that a store records: the same in every process, and different for different vectors.
        dimension: Length of the vectors.
    """

    instruction: ClassVar[str] = ""
    name: str
    dimension: int

    def embed_array(self, texts: Sequence[str]) -> Matrix:
        """Embed texts into one array.

        Args:
            texts: Any number of texts.

        Returns:
            float32 of shape (len(texts), dimension), C-contiguous; each row has length 1.

        Raises:
            EmbeddingError: If a text is blank or not valid Unicode; the message names it.
        """
        import numpy as np

        for position, text in enumerate(texts):
            problem = _find_problem(text)
            if problem:
                raise EmbeddingError(f"text {position} {problem}", position)
        vectors = self._vectors(texts)
        vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        return vectors

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> Matrix:
        """Return a new float32 array of shape (len(texts), dimension), with rows of any length above zero."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts as lists of numbers: see ``embed_array``."""
        return cast("list[list[float]]", self.embed_array(texts).tolist())

    def embed_query(self, text: str) -> list[float]:
        """Embed one question as a list of numbers: see ``embed_array``."""
        problem = _find_problem(text)
        if problem:
            raise EmbeddingError(f"the question {problem}")
        return cast("list[float]", self.embed_array((self.instruction + text,))[0].tolist())

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AbsentEncoder(Encoder):
    """Stands for the embedding of a store that is neither built in nor given: it refuses to embed.

    Args:
        name: The name that the store records.
        dimension: The dimension of its vectors.
        reason: Why the embedding cannot be had.
        by_words: Whether a store may take the vectors of documents with the words of a question for the
            question's.
    """

    def __init__(self, name: str, dimension: int, reason: str, *, by_words: bool = False) -> None:
        self.name = name
        self.dimension = dimension
        self.by_words = by_words
        self._reason = reason

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        raise EmbeddingError(
            f"the store was built with the embedding {self.name!r}, which is needed to embed a text:"
            f" {self._reason}; open the store with that embedding (on the command line: --embedding or"
            " LINKSTORE_EMBEDDING=package.module:function)"
        )


def find_package_folder(package: str) -> Path | None:
    """Find the folder of a package without importing it. Return None if it is not installed."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _find_problem(text: str) -> str | None:
    """Return the reason why a text has no embedding, or None."""
    if not text or text.isspace():
        return "is blank, so it has no embedding; give it a word or leave it out"
    if not is_unicode(text):
        return f"is not valid Unicode (it has a lone surrogate): {text[:60]!a}"
    return None


def share_cpp_runtime() -> None:
    """Load the system's C++ runtime so that every library uses it, if called before usearch is imported.

    usearch's wheels for Linux carry a copy of the runtime whose symbols are visible to the whole
    process. A library loaded later (ONNX Runtime, PyTorch) takes some symbols from that copy and the rest
    from the system's runtime, and the process dies (the same clash: pytorch/pytorch#109923). Once the
    system's runtime is global, all libraries use it. Do nothing if there is no such runtime, or too late.
    """
    if sys.platform == "linux" and _USEARCH not in sys.modules:
        with suppress(OSError):  # not installed: then nothing that is loaded later needs it either
            ctypes.CDLL(_RUNTIME, mode=ctypes.RTLD_GLOBAL)


def has_cpp_runtime_clash(package: str) -> bool:
    """Say whether loading a package with native code now would end the process."""
    return (
        sys.platform == "linux"
        and _USEARCH in sys.modules
        and package not in sys.modules
        and not hasattr(ctypes.CDLL(None), _A_SYMBOL)
    )

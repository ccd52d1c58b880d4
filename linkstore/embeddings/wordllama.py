"""WordLlama: averaged token embeddings taken from a large language model. Small, fast, offline.

Method and weights: D. Lee Miller, WordLlama (2024), https://github.com/dleemiller/WordLlama, MIT.
The files are those of the ``wordllama`` distribution; its code is not imported, since doing so sets
up the root logger, and since it pads a batch to its longest text, which costs memory and time.
The vectors point the same way as those of ``wordllama.WordLlama.embed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.embeddings.encoder import Encoder, find_package_folder
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer

    from linkstore.embeddings.encoder import Matrix

DIMENSION: Final = 256
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR: Final = "embedding.weight"
_BATCH: Final = 512
"""Texts tokenized at once: enough to keep every core busy, and few enough to bound memory."""
_MOST_READ: Final = 1000
"""Maximum number of tokens whose vectors are read from the file; for more, all are converted, in 0.1 s."""


class WordLlama(Encoder):
    """The encoder of :class:`~linkstore.embeddings.builtin.WordLlamaEmbeddings`."""

    name = "wordllama-256"
    dimension = DIMENSION

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        tokenizer = load_wordllama_tokenizer()
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        add = np.add.reduce
        counts = np.empty((len(texts), 1), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            encodings = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            look_up = _choose_lookup(sum(map(len, encodings)))
            for row, encoding in enumerate(encodings, start):
                ids = encoding.ids
                counts[row] = len(ids)
                add(look_up(ids), axis=0, out=vectors[row])
        return np.divide(vectors, counts, out=vectors)


def _choose_lookup(tokens: int) -> Callable[[list[int]], Matrix]:
    """Return a function that looks up token vectors: from the file for few tokens, else from memory."""
    if tokens <= _MOST_READ and not _load_vectors.cache_info().currsize:
        return _read
    weights = _load_vectors()
    return lambda ids: weights.take(ids, axis=0)


def _read(ids: list[int]) -> Matrix:
    """Read the vectors of tokens from the file: float32 of shape (n, 256)."""
    import numpy as np

    stored = _map_vectors()
    vectors = np.empty((len(ids), DIMENSION), dtype=np.float32)
    for row, id in enumerate(ids):
        vectors[row] = stored[id : id + 1]
    return vectors


@cache
def _map_vectors() -> Any:
    """Map the file's float16 token vectors, of shape (32000, 256), into memory."""
    from safetensors import safe_open

    opened: Any = safe_open(_find_file(_WEIGHTS), framework="numpy")
    return opened.get_slice(_TENSOR)


@cache
def _load_vectors() -> Matrix:
    """Load all token vectors in float32, of shape (32000, 256).

    Two threads that call this first at the same time both load them, and one result stays. That is cheaper
    than a lock, which a fork could leave held.
    """
    import numpy as np
    from safetensors.numpy import load_file

    return np.ascontiguousarray(load_file(_find_file(_WEIGHTS))[_TENSOR], dtype=np.float32)


@cache
def load_wordllama_tokenizer() -> Tokenizer:
    """Load the tokenizer of the model, that of Llama 2, offline and without the token vectors.

    Raises:
        EmbeddingError: If the package wordllama is not installed, or lacks the file.
    """
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(_find_file(_TOKENIZER)))


def _find_file(name: str) -> Path:
    folder = find_package_folder("wordllama")
    if folder is None:
        raise EmbeddingError("the package wordllama is not installed: pip install 'wordllama>=0.4,<0.5'")
    path = folder / name
    if not path.is_file():
        raise EmbeddingError(f"{path} is missing: reinstall with pip install 'wordllama>=0.4,<0.5'")
    return path

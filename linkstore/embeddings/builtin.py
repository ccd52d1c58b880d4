"""The built-in encoders as LangChain's embeddings."""

from __future__ import annotations

from abc import ABC

from langchain_core.embeddings import Embeddings

from linkstore.embeddings.encoder import AbsentEncoder, Encoder
from linkstore.embeddings.onnx import BgeSmall, MiniLM, Multilingual
from linkstore.embeddings.wordllama import WordLlama


class ArrayEmbeddings(Encoder, Embeddings, ABC):
    """LangChain embeddings that can also return a float32 array of vectors of length 1.

    A text without any word or sign (empty, or white space only) has no direction, so it is refused
    rather than embedded as a zero or arbitrary vector.
    """


class AbsentEmbeddings(AbsentEncoder, ArrayEmbeddings):
    """Stands for the embedding of a store that is neither built in nor given: it refuses to embed."""


class BgeSmallEmbeddings(BgeSmall, ArrayEmbeddings):
    """The best of the models that work offline, and the slowest; extra ``bge``, and weights to fetch.

    384 dimensions; the first 512 tokens of a text count. Some 25 passages a second on two cores.
    ``linkstore embeddings fetch bge-small`` fetches the weights.

    Args:
        path: The jar, or a folder with the ONNX file and the file of the tokenizer, whose hashes are checked.
            None: what the environment variable ``LINKSTORE_BGE_SMALL`` names, else what was fetched.

    Raises:
        EmbeddingError: If no path is given, or there is nothing at it.
        MissingExtraError: If the extra is not installed.
    """


class MiniLMEmbeddings(MiniLM, ArrayEmbeddings):
    """A model better than the default if wording differs, but some hundred times slower; extra ``minilm``.

    384 dimensions; the first 256 tokens of a text count. Some 50 passages a second on two cores.
    ONNX Runtime's telemetry is switched off (``ORT_DISABLE_TELEMETRY``), unless you set it otherwise.
    Safe to use from threads and after a fork.

    Raises:
        MissingExtraError: If the extra is not installed.
    """


class MultilingualEmbeddings(Multilingual, ArrayEmbeddings):
    """A model of 16 languages in one space, twenty times slower than the default; extra ``multilingual``.

    512 dimensions; the first 4,096 characters of a text count. Its languages are Arabic, Chinese in both
    scripts, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese, Russian, Spanish,
    Thai and Turkish. ``linkstore embeddings fetch multilingual`` fetches the weights (72 MB). Safe to use
    from threads and after a fork.

    Raises:
        EmbeddingError: If its weights are not here.
        MissingExtraError: If the extra is not installed.
    """


class WordLlamaEmbeddings(WordLlama, ArrayEmbeddings):
    """The default model: 256 dimensions, about a thousand passages a second on two cores, no network.

    Good at what a text is about, blind to word order. All instances share one model, loaded on first
    use (0.2 s, 32 MB). Safe to use from threads and after a fork.
    """

"""Embeddings by name, and the name of an embedding.

:func:`get_embedding` makes an embedding from its name, :func:`name_embedding` says under which name
a store records one. Any LangChain ``Embeddings`` will do; the ones here add
``embed_array``, which spares the way through lists of Python floats.
Models are loaded on first use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from linkstore.core.arguments import require, require_having
from linkstore.embeddings.encoder import AbsentEncoder, Encoder
from linkstore.embeddings.onnx import BgeSmall, MiniLM, Multilingual
from linkstore.embeddings.wordllama import WordLlama
from linkstore.errors import EmbeddingError, MissingExtraError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


DEFAULT_EMBEDDING: Final = "wordllama"
"""The default embedding of a new store."""

LEAST_SIMILARITY: Final[Mapping[str, float]] = {"minilm-l6-v2-int8": 0.25, "wordllama-256": 0.35}
"""For embeddings by the name that stores record: a question finds nothing by default if no document is this
similar to it, and its words are unknown. docs/explanation/ranking.md says how these were measured.
"""
LEXICAL_WEIGHT: Final[Mapping[str, float]] = {
    "bge-small-en-v1.5-int8": 0.25,
    "minilm-l6-v2-int8": 1.0,
    "use-multilingual-3-int8": 0.5,
    "wordllama-256": 1.0,
}
"""For embeddings by the name that stores record: the weight of words in the first stage of a search, where
similarity has weight 1. docs/explanation/ranking.md says how these were measured.
"""
DEFAULT_LEXICAL_WEIGHT: Final = 1.0
"""The weight of words for any other embedding."""
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OPENAI: Final = "openai:"
_OPENAI_CLASSES: Final = (
    "langchain_openai.embeddings.base.OpenAIEmbeddings",
    "linkstore.embeddings.openai.NamedOpenAIEmbeddings",
)
_BGE: Final = "bge-small:"
_BUILT_IN: Final[Mapping[str, Callable[[], Encoder]]] = {
    "bge-small": BgeSmall,
    "bge-small-en-v1.5-int8": BgeSmall,
    "minilm": MiniLM,
    "minilm-l6-v2-int8": MiniLM,
    "multilingual": Multilingual,
    "use-multilingual-3-int8": Multilingual,
    "wordllama": WordLlama,
    "wordllama-256": WordLlama,
}


def is_built_in(name: str) -> bool:
    """Say whether an embedding of this name is part of linkstore."""
    return name in _BUILT_IN


def get_encoder(name: str) -> Encoder | Embeddings:
    """Make an embedding as :func:`get_embedding`, but built-in ones without LangChain's slowly imported base.

    Raises:
        EmbeddingError: See :func:`get_embedding`.
        MissingExtraError: See :func:`get_embedding`.
    """
    return _BUILT_IN[name]() if name in _BUILT_IN else get_embedding(name)


def find_encoder(
    name: str,
    dimension: int,
    make: Callable[[str], Encoder | Embeddings] = get_encoder,
    *,
    by_words: bool = False,
) -> Encoder | Embeddings:
    """Make the embedding that a store records, or a stand-in where it cannot be had.

    Args:
        name: The recorded name. Nothing is imported by it, since whoever wrote the store chose it.
        dimension: The recorded dimension.
        make: Makes an embedding from its name.
        by_words: See :class:`~linkstore.embeddings.encoder.AbsentEncoder`.
    """
    try:
        return make(name)
    except (EmbeddingError, MissingExtraError) as error:
        reason = str(error)
    if make is get_encoder:
        return AbsentEncoder(name, dimension, reason, by_words=by_words)
    from linkstore.embeddings.builtin import AbsentEmbeddings

    return AbsentEmbeddings(name, dimension, reason, by_words=by_words)


def import_embedding(place: str) -> Embeddings:
    """Make an embedding from its name, or by a function of the user's.

    Args:
        place: A name as for :func:`get_embedding`, or ``package.module:function``, where the function takes
            no argument and returns LangChain embeddings.

    Raises:
        EmbeddingError: If there is no such embedding, module or function, or it returns something else.
        MissingExtraError: If the extra it needs is not installed.
    """
    module, _, function = place.partition(":")
    if module in _BUILT_IN or module == _OPENAI.rstrip(":") or not (_DOTTED.fullmatch(module) and function):
        return get_embedding(place)
    try:
        embedding: Embeddings = getattr(import_module(module), function)()
    except Exception as error:
        raise EmbeddingError(f"embedding {place!r}: {type(error).__name__}: {error}") from error
    require_having("embed_documents", "LangChain embeddings", **{function: embedding})
    return embedding


def get_embedding(name: str) -> Embeddings:
    """Make an embedding from its name.

    Args:
        name: ``"wordllama"``, ``"minilm"`` (extra ``minilm``), ``"multilingual"`` (extra ``multilingual``),
            ``"bge-small"`` or ``"bge-small:PATH"`` of its weights (extra ``bge``), ``"openai:MODEL"`` or
            ``"openai:MODEL/DIMENSION"`` (extra ``openai``, needs ``OPENAI_API_KEY`` and the network), or what
            :func:`name_embedding` gave for one of these.

    Raises:
        EmbeddingError: If the name is unknown, or OpenAI's client cannot be set up.
        MissingExtraError: If the extra it needs is not installed.
    """
    require(str, "a string", name=name)
    if name in _BUILT_IN or (name.startswith(_BGE) and name != _BGE):
        return _make_langchain_embedding(name)
    if name.startswith(_OPENAI) and name != _OPENAI:
        return _make_openai_embedding(name)
    raise EmbeddingError(
        f"unknown embedding {name!r}; use wordllama, minilm, multilingual, bge-small or openai:MODEL,"
        " or pass a LangChain Embeddings object"
    )


def name_embedding(embedding: Encoder | Embeddings) -> str:
    """Return the name under which a store records an embedding, the same in every process.

    Embeddings that :func:`get_embedding` makes have the name that makes them again. Any other embedding
    is named by its class, as ``module.Class``, followed by ``:MODEL`` if it has a string attribute
    ``model``, ``model_name`` or ``model_id``, and ``/DIMENSION`` if ``dimensions`` is set.

    A store compares vectors if the names differ, or if :func:`has_model` is false.
    """
    if isinstance(embedding, Encoder):
        return embedding.name
    cls = type(embedding)
    qualified = f"{cls.__module__}.{cls.__qualname__}"
    name = "openai" if qualified in _OPENAI_CLASSES else qualified
    model = _get_model_name(embedding)
    dimensions = getattr(embedding, "dimensions", None)
    name = f"{name}:{model}" if model else name
    return f"{name}/{dimensions}" if isinstance(dimensions, int) else name


def has_model(embedding: Encoder | Embeddings) -> bool:
    """Say whether an embedding's name determines its vectors: it is built in, or its name has a model.

    The name of a class alone does not: a cache, for example, may wrap one embedding or another.
    """
    return isinstance(embedding, Encoder) or _get_model_name(embedding) is not None


def _get_model_name(embedding: Embeddings) -> str | None:
    """Return the model that an embedding names, or None."""
    named = (getattr(embedding, attribute, None) for attribute in ("model", "model_name", "model_id"))
    return next((model for model in named if isinstance(model, str) and model), None)


def _make_langchain_embedding(name: str) -> Embeddings:
    """Return LangChain's form of a built-in embedding."""
    from linkstore.embeddings import builtin

    kind, _, path = name.partition(":")
    if path:
        return builtin.BgeSmallEmbeddings(path)
    made: Embeddings = getattr(builtin, f"{_BUILT_IN[kind].__name__}Embeddings")()
    return made


def _make_openai_embedding(name: str) -> Embeddings:
    if find_spec("langchain_openai") is None:
        raise MissingExtraError(f"the embedding {name!r}", "openai")
    from openai import OpenAIError

    from linkstore.embeddings.openai import NamedOpenAIEmbeddings

    model, _, dimensions = name.removeprefix(_OPENAI).partition("/")
    if dimensions and not dimensions.isdecimal():
        raise EmbeddingError(f"embedding {name!r}: the dimension after '/' must be a number")
    try:
        return NamedOpenAIEmbeddings(model=model, dimensions=int(dimensions) if dimensions else None)
    except OpenAIError as error:
        raise EmbeddingError(f"embedding {name!r}: {error}") from error

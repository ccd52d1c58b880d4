"""Keywords by KeyBERT: the words and phrases whose embeddings are nearest to the document's.

M. Grootendorst, "KeyBERT: Minimal keyword extraction with BERT" (2020), MIT. Extra ``keybert``.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.errors import MissingExtraError
from linkstore.links import Direction, Link
from linkstore_extractors._scored import scored_links
from linkstore_extractors._terms import candidates, runs, text_of


class KeyBertExtractor:
    """Keywords of a document on its own, without a look at the corpus.

    Candidates are those of ``KeywordExtractor``: words and phrases of up to three words with no stop
    word between them. A keyword's weight is its cosine similarity to the document; those at zero or
    below are left out. Links go both ways, with the folded keyword as their tag.

    Args:
        embedding: Any LangChain embeddings; None for KeyBERT's own model, which sentence-transformers
            downloads on first use.
        max_keywords: Most keywords of a document.
        diversity: From 0 to 1; above 0 keywords are chosen by maximal marginal relevance, so that they
            are less alike.
        kind: Kind of the links.

    Raises:
        MissingExtraError: If the extra ``keybert`` is not installed.
    """

    source = Document

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        max_keywords: int = 8,
        diversity: float = 0.0,
        kind: str = "keyword",
    ) -> None:
        if find_spec("keybert") is None:
            raise MissingExtraError("the extractor 'keybert'", "keybert")
        model = import_module("keybert").KeyBERT
        self._model = model() if embedding is None else model(model=_backend(embedding))
        self._kind = kind
        self._options: dict[str, Any] = {
            "top_n": max_keywords,
            "use_mmr": diversity > 0,
            "diversity": diversity,
        }

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the document's keywords, heaviest first, equal ones by tag."""
        return self._links(text_of(source), "bidir")

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the keywords of a question. Whether a document has them is not known."""
        return self._links(text, "out")

    def _links(self, text: str, direction: Direction) -> tuple[Link, ...]:
        if not _terms(text):
            return ()
        vectorizer = import_module("sklearn.feature_extraction.text").CountVectorizer(analyzer=_terms)
        found: list[tuple[str, float]] = self._model.extract_keywords(
            text, vectorizer=vectorizer, **self._options
        )
        pairs = ((keyword, float(score)) for keyword, score in found)
        return scored_links(pairs, text, kind=self._kind, direction=direction)


def _terms(text: str) -> list[str]:
    return sorted(candidates(runs(text)))


def _backend(embedding: Embeddings) -> Any:
    """Make a KeyBERT backend of other embeddings."""
    base = import_module("keybert.backend").BaseEmbedder

    class LangChainBackend(base):  # type: ignore[misc, valid-type]
        def embed(self, documents: list[str], verbose: bool = False) -> Any:
            return np.asarray(embedding.embed_documents(list(documents)), dtype=np.float32)

    return LangChainBackend()

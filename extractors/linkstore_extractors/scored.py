"""Keywords by other packages: KeyBERT and YAKE, each an extra.

KeyBERT finds the words and phrases whose embeddings are nearest to the document's: M. Grootendorst,
"KeyBERT: Minimal keyword extraction with BERT" (2020), MIT. YAKE goes by statistics of a single text: R.
Campos et al., "YAKE! Keyword extraction from single documents using multiple local features", Information
Sciences 509 (2020).

Mind the licence of YAKE: the licence file of the ``yake`` distribution (0.7) is the GNU Affero General
Public License 3, while its metadata says LGPL 3 in one place and GPL 3 in another. It is not part of the
default install, and linkstore only calls it: whoever installs the extra accepts its terms.
``KeywordExtractor`` is the default and has none of this.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.core.links import Direction, Link, merge_links
from linkstore.core.text import fold
from linkstore.errors import MissingExtraError
from linkstore_extractors.keywords import find_candidates, find_runs, get_text


class _ScoredExtractor:
    """Links a document to its keywords on its own, without a look at the corpus."""

    source = Document

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the document's keywords, heaviest first, equal ones by tag."""
        return self._links(get_text(source), "bidir")

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the keywords of a question. Whether a document has them is not known."""
        return self._links(text, "out")

    def _links(self, text: str, direction: Direction) -> tuple[Link, ...]:
        """Make one link for each keyword that has a weight; its label is the keyword as first written."""
        links = merge_links(
            Link(
                kind=self._kind,
                tag=fold(keyword),
                direction=direction,
                label=match[0] if (match := re.search(re.escape(keyword), text, re.IGNORECASE)) else keyword,
                weight=min(1.0, float(weight)),
            )
            for keyword, weight in self._score(text)
            if weight > 0 and fold(keyword)
        )
        return tuple(sorted(links, key=lambda link: (-link.weight, link.tag)))

    def _score(self, text: str) -> list[tuple[str, float]]:
        """Return the keywords of a text, each with its weight."""
        raise NotImplementedError


class KeyBertExtractor(_ScoredExtractor):
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
        self._model = model() if embedding is None else model(model=_make_backend(embedding))
        super().__init__(kind)
        self._options: dict[str, Any] = {
            "top_n": max_keywords,
            "use_mmr": diversity > 0,
            "diversity": diversity,
        }

    def _score(self, text: str) -> list[tuple[str, float]]:
        if not _list_terms(text):
            return []
        vectorizer = import_module("sklearn.feature_extraction.text").CountVectorizer(analyzer=_list_terms)
        keywords: list[tuple[str, float]] = self._model.extract_keywords(
            text, vectorizer=vectorizer, **self._options
        )
        return keywords


def _list_terms(text: str) -> list[str]:
    return sorted(find_candidates(find_runs(text)))


def _make_backend(embedding: Embeddings) -> Any:
    """Make a KeyBERT backend of other embeddings."""
    base = import_module("keybert.backend").BaseEmbedder

    class LangChainBackend(base):  # type: ignore[misc, valid-type]
        def embed(self, documents: list[str], verbose: bool = False) -> Any:
            return np.asarray(embedding.embed_documents(list(documents)), dtype=np.float32)

    return LangChainBackend()


class YakeExtractor(_ScoredExtractor):
    """Keywords of a document on its own, without a look at the corpus.

    YAKE's score s is 0 for the best keyword and grows without bound; the link's weight is 1 / (1 + s).
    Links go both ways, with the folded keyword as their tag, as those of ``KeywordExtractor`` do.

    Args:
        max_keywords: Most keywords of a document.
        max_words: Most words of a phrase.
        language: Two-letter code of YAKE's stop word list.
        kind: Kind of the links.

    Raises:
        MissingExtraError: If the extra ``yake`` is not installed.
    """

    def __init__(
        self, *, max_keywords: int = 8, max_words: int = 3, language: str = "en", kind: str = "keyword"
    ) -> None:
        if find_spec("yake") is None:
            raise MissingExtraError("the extractor 'yake'", "yake")
        self._yake: Any = import_module("yake").KeywordExtractor(lan=language, n=max_words, top=max_keywords)
        super().__init__(kind)

    def _score(self, text: str) -> list[tuple[str, float]]:
        keywords: list[tuple[str, float]] = self._yake.extract_keywords(text)
        return [(keyword, 1 / (1 + max(0.0, score))) for keyword, score in keywords]

"""Keywords by YAKE: statistics of a single text. Extra ``yake``.

R. Campos et al., "YAKE! Keyword extraction from single documents using multiple local features",
Information Sciences 509 (2020).

Mind the licence: the licence file of the ``yake`` distribution (0.7) is the GNU Affero General Public
License 3, while its metadata says LGPL 3 in one place and GPL 3 in another. It is not part of the default
install, and linkstore only calls it: whoever installs the extra accepts its terms. ``KeywordExtractor``
is the default and has none of this.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from langchain_core.documents import Document

from linkstore.errors import MissingExtraError
from linkstore.links import Direction, Link
from linkstore_extractors._scored import scored_links
from linkstore_extractors._terms import text_of


class YakeExtractor:
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

    source = Document

    def __init__(
        self,
        *,
        max_keywords: int = 8,
        max_words: int = 3,
        language: str = "en",
        kind: str = "keyword",
    ) -> None:
        if find_spec("yake") is None:
            raise MissingExtraError("the extractor 'yake'", "yake")
        self._yake: Any = import_module("yake").KeywordExtractor(lan=language, n=max_words, top=max_keywords)
        self._kind = kind

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the document's keywords, heaviest first, equal ones by tag."""
        return self._links(text_of(source), "bidir")

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the keywords of a question. Whether a document has them is not known."""
        return self._links(text, "out")

    def _links(self, text: str, direction: Direction) -> tuple[Link, ...]:
        found: list[tuple[str, float]] = self._yake.extract_keywords(text)
        pairs = ((keyword, 1 / (1 + max(0.0, score))) for keyword, score in found)
        return scored_links(pairs, text, kind=self._kind, direction=direction)

"""The protocol of extractors whose links depend on the whole corpus and can be kept up to date.

The links of such an extractor depend on a document, and on the number of documents of the corpus that have
each of certain *keys*, such as names or phrases. When documents are added or removed, the links of others can
change only if they have a key whose count changed. A *review* finds these documents in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from langchain_core.documents import Document

from linkstore.extraction import CorpusExtractor

Review = Callable[[Document], bool]
"""Shown a stored document, takes it into account and says whether its links may have changed."""


@runtime_checkable
class UpkeepExtractor(CorpusExtractor[Document], Protocol):
    """A corpus extractor whose links are kept up to date as documents come and go.

    A run with this extractor replaces all links of its kinds, including those that you wrote: give links of
    your own another kind.
    """

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of the links that the extractor makes, which are its own."""
        ...

    def keys(self, document: Document) -> frozenset[str]:
        """Return the keys whose counts the document increases by 1."""
        ...

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Begin a pass over the whole corpus, instead of :meth:`observe`, by an extractor that is new.

        Once every document was shown to the review, :meth:`extract` gives the links of the documents that it
        found, and of those whose keys are in ``after``.

        Args:
            before: How many of the documents that were replaced or removed had each key.
            after: How many of those that were added or came in their place have it.
        """
        ...

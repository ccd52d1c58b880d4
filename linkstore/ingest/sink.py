"""What ingest needs of a store; :class:`linkstore.store.LinkStore` has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from langchain_core.documents import Document

from linkstore.backends.base import LinkedPage, Survey
from linkstore.operations import PageDocuments

__all__ = ["PageDocuments", "PageStore"]


class PageStore(Protocol):
    """A store that remembers which documents make up a page."""

    def pages(self, source: str) -> dict[str, str]:
        """The pages stored for a source: URL → digest of what was indexed."""
        ...

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Raise SourceConflictError if another source has one of these pages."""
        ...

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> object:
        """Add pages, each replaced as a whole, in one transaction."""
        ...

    def remove_pages(self, source: str, urls: Sequence[str]) -> object:
        """Remove pages with their documents, in one transaction."""
        ...

    def scan(self) -> Iterator[Document]:
        """All stored documents, by id."""
        ...

    def linked(self, kind: str = ..., take: int = ...) -> Sequence[LinkedPage]:
        """The pages that most links of a kind lead to, most first."""
        ...

    def survey(self) -> Survey:
        """Count what is stored."""
        ...

"""The protocol of what pages are indexed into; :class:`linkstore.store.LinkStore` implements it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from langchain_core.documents import Document

from linkstore.arguments import require_having
from linkstore.links import Link
from linkstore.pagedocuments import PageDocuments

if TYPE_CHECKING:
    from linkstore.backends.base import LinkedPage, Survey

__all__ = ["PageDocuments", "PageStore", "PageWriter"]


class PageWriter(Protocol):
    """Takes pages in."""

    def embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Return pages with the vectors of their documents, so that ``put_pages`` embeds nothing.

        It is called by one thread, while another puts pages.
        """
        ...

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> object:
        """Add pages, each replaced as a whole, in one transaction."""
        ...

    def remove_pages(self, source: str, urls: Sequence[str]) -> object:
        """Remove pages with their documents, in one transaction."""
        ...


def check_store(store: object) -> None:
    """Raise unless this is a store.

    Raises:
        ArgumentError: If it is not.
    """
    require_having("check_pages", "a store, such as LinkStore.open('kb')", store=store)


class PageStore(PageWriter, Protocol):
    """A store that remembers which documents make up a page."""

    def pages(self, source: str) -> dict[str, str]:
        """Return the pages stored for a source: URL → digest of what was indexed."""
        ...

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Raise SourceConflictError if another source has one of these pages."""
        ...

    def page_ids(self, source: str, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the documents of those of these pages that are there: URL → ids, in order."""
        ...

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> object:
        """Replace the links of these kinds in documents, by id, and keep everything else."""
        ...

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, leaving out unknown ids."""
        ...

    def scan(self) -> Iterator[Document]:
        """Yield all stored documents, by id."""
        ...

    def most_linked_pages(self, kind: str = ..., take: int = ...) -> Sequence[LinkedPage]:
        """Return the pages that most links of a kind lead to, most first."""
        ...

    def survey(self) -> Survey:
        """Count what is stored."""
        ...

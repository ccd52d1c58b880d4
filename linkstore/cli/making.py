"""Creates a store only when there is something to put into it, so that a failed run leaves none."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from linkstore.cli.stores import is_url, opened
from linkstore.errors import StoreNotFoundError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.backends.base import LinkedPage, Survey
    from linkstore.ingest import PageStore
    from linkstore.links import Link
    from linkstore.pagedocuments import PageDocuments
    from linkstore.store import LinkStore


@contextmanager
def opened_or_made(place: str, *, embedding: str | None = None) -> Iterator[PageStore]:
    """Open the store at a place, where the first page makes a store that does not exist yet.

    Args:
        place: The value of ``--store``.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        UsageError: As for :func:`~linkstore.cli.stores.opened`.
        EmbeddingError: If there is no such embedding, or the store was built with another.
    """
    from linkstore.embeddings import get_embedding
    from linkstore.store import LinkStore

    chosen = None if embedding is None else get_embedding(embedding)
    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(place, embedding=embedding))
        except StoreNotFoundError:
            making = _ToBeMade(place, embedding, stack.enter_context(LinkStore(embedding=chosen)))
            stack.callback(making.close)
            yield making
        else:
            yield store


class _ToBeMade:
    """A store that reads from an empty one until the first write, which makes the real one."""

    def __init__(self, place: str, embedding: str | None, empty: LinkStore) -> None:
        self._place = place
        self._embedding = embedding
        self._store = empty
        self._made = ExitStack()
        self._is_made = False
        self._is_new = not is_url(place) and not Path(place).exists()

    def close(self) -> None:
        """Close the store, and remove a new one that nothing was written to."""
        if not self._is_made:
            return
        is_empty = self._is_new and not self._store.survey().documents
        self._made.close()
        if is_empty:
            shutil.rmtree(self._place)

    def embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Make the store if need be, and embed what will be written."""
        return self._make().embed_pages(source, pages)

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> object:
        """Make the store if need be, and write."""
        return self._make().put_pages(source, pages)

    def remove_pages(self, source: str, urls: Sequence[str]) -> object:
        """Remove pages with their documents."""
        return self._store.remove_pages(source, urls)

    def pages(self, source: str) -> dict[str, str]:
        """Return the pages stored for a source."""
        return self._store.pages(source)

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Raise SourceConflictError if another source has one of these pages."""
        self._store.check_pages(source, urls)

    def page_ids(self, source: str, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the documents made of pages."""
        return self._store.page_ids(source, urls)

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> object:
        """Give documents other links of these kinds."""
        return self._store.replace_links(kinds, links)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids."""
        return self._store.get_by_ids(ids)

    def scan(self) -> Iterator[Document]:
        """Yield all stored documents."""
        return self._store.scan()

    def most_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> Sequence[LinkedPage]:
        """Return the pages that most links lead to."""
        return self._store.most_linked_pages(kind, take)

    def survey(self) -> Survey:
        """Count what is stored."""
        return self._store.survey()

    def _make(self) -> LinkStore:
        if not self._is_made:
            made = opened(self._place, create=True, embedding=self._embedding)
            self._store = self._made.enter_context(made)
            self._is_made = True
        return self._store

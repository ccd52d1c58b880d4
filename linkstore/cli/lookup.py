"""From what a user types to documents: an id, a URL, or the URL of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.store import LinkStore

MOST: Final = 1000
"""At most so many documents of a page are looked at."""


def documents_named(store: LinkStore, name: str) -> list[Document]:
    """The document with this id, or else those at this URL, or else those of this page, by id.

    Raises:
        LinkStoreError: If there is none.
    """
    found = store.get_by_ids([name])
    if found:
        return found
    for field in ("url", "page"):
        found = _where(store, field, _spellings(name))
        if found:
            return found
    raise LinkStoreError(f"no document has the id or URL {name!r}")


def _where(store: LinkStore, field: str, values: list[str]) -> list[Document]:
    from linkstore.strategies import Similarity

    hits = store.search(field, strategy=Similarity(k=MOST), filter={field: {"$in": values}})
    return sorted((hit.document for hit in hits), key=lambda document: document.id or "")


def _spellings(name: str) -> list[str]:
    """The URL as given, and as pages of a site are named."""
    from linkstore.urls import Site

    tag = Site().page_tag(name)
    return [name] if tag is None else list(dict.fromkeys((name, tag)))

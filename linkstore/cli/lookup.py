"""From what a user types to documents: an id, a URL, or the URL of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.hits import Hits
    from linkstore.store import LinkStore

MOST: Final = 1000
"""At most so many documents are looked up at once."""


def documents_named(store: LinkStore, name: str) -> list[Document]:
    """The document with this id; else those that a hyperlink to this URL leads to, with their pages.

    Raises:
        LinkStoreError: If there is none.
    """
    found = store.get_by_ids([name]) or _led_to(store, name) or _where(store, "url", [name])
    if not found:
        raise LinkStoreError(
            f"no document has the id or URL {name!r}; find what there is with: linkstore query TEXT"
        )
    return found


def _led_to(store: LinkStore, url: str) -> list[Document]:
    from linkstore.links import Link
    from linkstore.strategies import Eager
    from linkstore.urls import Site

    tags = dict.fromkeys((url, Site().page_tag(url) or url))
    hits = store.search(
        url,
        strategy=Eager(start_k=0, depth=0, adjacent_k=MOST, hub_cap=MOST, k=MOST),
        initial_links=[Link.outgoing(kind="hyperlink", tag=tag) for tag in tags],
    )
    pages = sorted({page for hit in hits if isinstance(page := hit.document.metadata.get("page"), str)})
    return _by_id(hits) if "#" in url or not pages else _where(store, "page", pages)


def _where(store: LinkStore, field: str, values: list[str]) -> list[Document]:
    from linkstore.strategies import Similarity

    return _by_id(store.search(field, strategy=Similarity(k=MOST), filter={field: {"$in": values}}))


def _by_id(hits: Hits) -> list[Document]:
    return sorted((hit.document for hit in hits), key=lambda document: document.id or "")

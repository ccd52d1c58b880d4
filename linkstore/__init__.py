"""A vector store for LangChain that stores the links between documents and follows them in searches.

``LinkStore`` stores documents with their links (``Link``), and ``LinkRetriever`` retrieves them.
:mod:`linkstore.strategies` has the ways to search, and :mod:`linkstore.ingest` indexes sites, notes, wikis
and other sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore._version import __version__
from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.core.hits import Hit, Hits, Path, Step
    from linkstore.core.links import Link, add_links, copy_with_links, get_links
    from linkstore.errors import LinkStoreError
    from linkstore.store import LinkStore
    from linkstore.store.retriever import LinkRetriever

__all__ = [
    "Hit",
    "Hits",
    "Link",
    "LinkRetriever",
    "LinkStore",
    "LinkStoreError",
    "Path",
    "Step",
    "__version__",
    "add_links",
    "copy_with_links",
    "get_links",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.core.hits": "Hit Hits Path Step",
        "linkstore.core.links": "Link add_links copy_with_links get_links",
        "linkstore.errors": "LinkStoreError",
        "linkstore.store": "LinkRetriever LinkStore",
    },
)

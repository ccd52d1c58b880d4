"""A vector store for LangChain that stores the links between documents and follows them in searches.

``LinkStore`` stores documents with their links (``Link``), and ``LinkRetriever`` retrieves them.
:mod:`linkstore.strategies` has the ways to search, and :mod:`linkstore.ingest` indexes sites, notes, wikis
and other sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore._version import __version__
from linkstore.lazy import lazy

if TYPE_CHECKING:
    from linkstore.errors import LinkStoreError
    from linkstore.hits import Hit, Hits, Path, Step
    from linkstore.links import Link, add_links, copy_with_links, get_links
    from linkstore.retriever import LinkRetriever
    from linkstore.store import LinkStore

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

_HOME_OF = {
    "Hit": "hits",
    "Hits": "hits",
    "Link": "links",
    "LinkRetriever": "retriever",
    "LinkStore": "store",
    "LinkStoreError": "errors",
    "Path": "hits",
    "Step": "hits",
    "add_links": "links",
    "copy_with_links": "links",
    "get_links": "links",
}

__getattr__, __dir__ = lazy(__name__, _HOME_OF)

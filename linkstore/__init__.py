"""A vector store for LangChain that remembers how documents point at each other."""

from linkstore._version import __version__
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

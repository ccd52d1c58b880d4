"""A vector store for LangChain that remembers how documents point at each other."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from linkstore._version import __version__

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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts quickly."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'linkstore' has no attribute {name!r}")
    value = getattr(import_module(f"linkstore.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

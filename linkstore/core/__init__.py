"""Values that everything shares: documents, links, filters, hits, texts, URLs, arrays; and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.core.hits import Hit, Hits, Path, Step
    from linkstore.core.links import Link, add_links, copy_with_links, get_links

__all__ = ["Hit", "Hits", "Link", "Path", "Step", "add_links", "copy_with_links", "get_links"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.core.hits": "Hit Hits Path Step",
        "linkstore.core.links": "Link add_links copy_with_links get_links",
    },
)

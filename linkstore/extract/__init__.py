"""The protocol of link extractors, and finding the installed ones.

An extractor reads one source and returns its links. Extractors are outside the package ``linkstore``
and are found through the entry-point group ``linkstore.extractors``; strategies never load them.
:class:`TypedGraphExtractor` makes a typed graph from texts with a chat model. Three small protocols
describe what the other extractors can do:

- :class:`LinkExtractor`: ``extract(source)``, the links of one source;
- :class:`CorpusExtractor`: also ``observe(sources)``, for those that must see the corpus first;
- :class:`QueryExtractor`: also ``extract_query(text)``, the links that a question names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.extract.names import Variants
    from linkstore.extract.protocol import (
        ENTRY_POINT_GROUP,
        Chunk,
        CorpusExtractor,
        Hyperlink,
        LinkExtractor,
        Page,
        QueryExtractor,
        extractor_names,
        load_extractor,
    )
    from linkstore.extract.typed_graph import ExtractedGraph, Rejection, TypedGraphExtractor

__all__ = [
    "Chunk",
    "CorpusExtractor",
    "ENTRY_POINT_GROUP",
    "ExtractedGraph",
    "Hyperlink",
    "LinkExtractor",
    "Page",
    "QueryExtractor",
    "Rejection",
    "TypedGraphExtractor",
    "Variants",
    "extractor_names",
    "load_extractor",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.extract.names": "Variants",
        "linkstore.extract.protocol": (
            "Chunk CorpusExtractor ENTRY_POINT_GROUP Hyperlink LinkExtractor Page QueryExtractor "
            "extractor_names load_extractor"
        ),
        "linkstore.extract.typed_graph": "ExtractedGraph Rejection TypedGraphExtractor",
    },
)

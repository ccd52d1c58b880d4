"""Indexes sources of pages, such as a folder of built HTML, as documents with links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.core.batches import Progress
    from linkstore.engines.contract import Written
    from linkstore.ingest.chunks import ChunkLimits
    from linkstore.ingest.files import SourceNotFoundError
    from linkstore.ingest.html.folder import FolderSource
    from linkstore.ingest.notes.vault import VaultSource
    from linkstore.ingest.page import LlmsTxtSource, PageSource
    from linkstore.ingest.pipeline import DEFAULT_LINKS, IndexOptions, aindex, index
    from linkstore.ingest.records import DocumentsSource, JsonLinesSource
    from linkstore.ingest.relink import CORPUS_LINKS, Relinked, link_corpus
    from linkstore.ingest.settings import PageSettings, PathSettings
    from linkstore.ingest.source import (
        BadInput,
        Dangling,
        Encodings,
        IndexingError,
        LeftOut,
        NothingIndexedError,
        OpenedSource,
        Partition,
        RemovalRefusedError,
        Source,
        SourcePage,
        Staleness,
        Summary,
        UnreadablePageError,
        staleness,
    )
    from linkstore.ingest.watch import watch_folder
    from linkstore.ingest.wiki.source import WikiDumpSource
    from linkstore.ingest.wiki.zim import MissingLibzimError, ZimSource
    from linkstore.ingest.writer import Finished, Writer

__all__ = [
    "BadInput",
    "CORPUS_LINKS",
    "ChunkLimits",
    "DEFAULT_LINKS",
    "Dangling",
    "DocumentsSource",
    "Encodings",
    "Finished",
    "FolderSource",
    "IndexOptions",
    "IndexingError",
    "JsonLinesSource",
    "LeftOut",
    "LlmsTxtSource",
    "MissingLibzimError",
    "NothingIndexedError",
    "OpenedSource",
    "PageSettings",
    "PathSettings",
    "PageSource",
    "Partition",
    "Progress",
    "Relinked",
    "RemovalRefusedError",
    "Source",
    "SourceNotFoundError",
    "SourcePage",
    "Staleness",
    "Summary",
    "UnreadablePageError",
    "VaultSource",
    "WikiDumpSource",
    "Writer",
    "Written",
    "ZimSource",
    "aindex",
    "index",
    "link_corpus",
    "staleness",
    "watch_folder",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.core.batches": "Progress",
        "linkstore.engines.contract": "Written",
        "linkstore.ingest.chunks": "ChunkLimits",
        "linkstore.ingest.files": "SourceNotFoundError",
        "linkstore.ingest.html.folder": "FolderSource",
        "linkstore.ingest.html.pages": "UnreadablePageError",
        "linkstore.ingest.notes.vault": "VaultSource",
        "linkstore.ingest.page": "LlmsTxtSource PageSource",
        "linkstore.ingest.pipeline": "DEFAULT_LINKS IndexOptions aindex index",
        "linkstore.ingest.records": "DocumentsSource JsonLinesSource",
        "linkstore.ingest.relink": "CORPUS_LINKS Relinked link_corpus",
        "linkstore.ingest.settings": "PageSettings PathSettings",
        "linkstore.ingest.source": (
            "BadInput Dangling Encodings IndexingError LeftOut NothingIndexedError OpenedSource "
            "Partition RemovalRefusedError Source SourcePage Staleness Summary staleness"
        ),
        "linkstore.ingest.watch": "watch_folder",
        "linkstore.ingest.wiki.source": "WikiDumpSource",
        "linkstore.ingest.wiki.zim": "MissingLibzimError ZimSource",
        "linkstore.ingest.writer": "Finished Writer",
    },
)

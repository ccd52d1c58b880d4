"""Indexes sources of pages, such as a folder of built HTML, as documents with links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.core.batches import Progress
    from linkstore.ingest.chunks import ChunkLimits
    from linkstore.ingest.files import SourceNotFoundError
    from linkstore.ingest.html.folder import FolderSource, IngestSettings, index_folder
    from linkstore.ingest.html.pages import UnreadablePageError
    from linkstore.ingest.notes.vault import VaultSource, index_vault
    from linkstore.ingest.pipeline import DEFAULT_LINKS, IndexOptions, Staleness, index_source, staleness
    from linkstore.ingest.records import DocumentsSource, JsonlSource, index_documents, index_jsonl
    from linkstore.ingest.relink import CORPUS_LINKS, Relinked, link_corpus
    from linkstore.ingest.source import (
        BadInput,
        Dangling,
        Encodings,
        IndexingError,
        LeftOut,
        NothingIndexedError,
        PageCounts,
        PageStore,
        RemovalRefusedError,
        Source,
        SourcePage,
        Summary,
    )
    from linkstore.ingest.watch import watch_folder
    from linkstore.ingest.wiki.source import WikiSettings, WikiSource, index_wiki
    from linkstore.ingest.wiki.zim import MissingLibzimError, ZimSource, index_zim

__all__ = [
    "BadInput",
    "CORPUS_LINKS",
    "ChunkLimits",
    "DEFAULT_LINKS",
    "Dangling",
    "DocumentsSource",
    "Encodings",
    "FolderSource",
    "IndexOptions",
    "IndexingError",
    "IngestSettings",
    "JsonlSource",
    "LeftOut",
    "MissingLibzimError",
    "NothingIndexedError",
    "PageCounts",
    "PageStore",
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
    "WikiSettings",
    "WikiSource",
    "ZimSource",
    "index_documents",
    "index_folder",
    "index_jsonl",
    "index_source",
    "index_vault",
    "index_wiki",
    "index_zim",
    "link_corpus",
    "staleness",
    "watch_folder",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.core.batches": "Progress",
        "linkstore.ingest.chunks": "ChunkLimits",
        "linkstore.ingest.files": "SourceNotFoundError",
        "linkstore.ingest.html.folder": "FolderSource IngestSettings index_folder",
        "linkstore.ingest.html.pages": "UnreadablePageError",
        "linkstore.ingest.notes.vault": "VaultSource index_vault",
        "linkstore.ingest.pipeline": "DEFAULT_LINKS IndexOptions Staleness index_source staleness",
        "linkstore.ingest.records": "DocumentsSource JsonlSource index_documents index_jsonl",
        "linkstore.ingest.relink": "CORPUS_LINKS Relinked link_corpus",
        "linkstore.ingest.source": (
            "BadInput Dangling Encodings IndexingError LeftOut NothingIndexedError PageCounts PageStore "
            "RemovalRefusedError Source SourcePage Summary"
        ),
        "linkstore.ingest.watch": "watch_folder",
        "linkstore.ingest.wiki.source": "WikiSettings WikiSource index_wiki",
        "linkstore.ingest.wiki.zim": "MissingLibzimError ZimSource index_zim",
    },
)

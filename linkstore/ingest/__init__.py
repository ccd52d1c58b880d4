"""Indexes sources of pages, such as a folder of built HTML, as documents with links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.lazy import lazy

if TYPE_CHECKING:
    from linkstore.ingest.chunks import ChunkLimits
    from linkstore.ingest.html.folder import FolderSource, IngestSettings, index_folder
    from linkstore.ingest.html.pages import UnreadablePageError
    from linkstore.ingest.notes.vault import VaultSource, index_vault
    from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
    from linkstore.ingest.records.jsonl import JsonlSource, index_jsonl
    from linkstore.ingest.records.loaded import DocumentsSource, index_documents
    from linkstore.ingest.relink import CORPUS_LINKS, Relinked, link_corpus
    from linkstore.ingest.sink import PageStore
    from linkstore.ingest.source import BadInput, Source, SourcePage
    from linkstore.ingest.sources import SourceNotFoundError
    from linkstore.ingest.stalepages import Staleness, staleness
    from linkstore.ingest.summary import (
        Dangling,
        Encodings,
        IndexingError,
        LeftOut,
        NothingIndexedError,
        PageCounts,
        Progress,
        RemovalRefusedError,
        Summary,
    )
    from linkstore.ingest.wiki import WikiSettings, WikiSource, index_wiki
    from linkstore.ingest.wiki.zim import MissingLibzimError, ZimSource, index_zim

__all__ = [
    "DEFAULT_LINKS",
    "BadInput",
    "CORPUS_LINKS",
    "ChunkLimits",
    "Dangling",
    "LeftOut",
    "DocumentsSource",
    "Encodings",
    "FolderSource",
    "IndexingError",
    "IngestSettings",
    "JsonlSource",
    "MissingLibzimError",
    "NothingIndexedError",
    "PageCounts",
    "PageStore",
    "Progress",
    "Source",
    "Relinked",
    "RemovalRefusedError",
    "SourceNotFoundError",
    "SourcePage",
    "Staleness",
    "Summary",
    "UnreadablePageError",
    "VaultSource",
    "ZimSource",
    "index_documents",
    "WikiSettings",
    "WikiSource",
    "index_folder",
    "index_jsonl",
    "index_source",
    "index_vault",
    "index_wiki",
    "index_zim",
    "link_corpus",
    "staleness",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "BadInput": "source",
        "CORPUS_LINKS": "relink",
        "ChunkLimits": "chunks",
        "DEFAULT_LINKS": "pipeline",
        "Dangling": "summary",
        "DocumentsSource": "records.loaded",
        "Encodings": "summary",
        "FolderSource": "html.folder",
        "IndexingError": "summary",
        "IngestSettings": "html.folder",
        "JsonlSource": "records.jsonl",
        "LeftOut": "summary",
        "MissingLibzimError": "wiki.zim",
        "NothingIndexedError": "summary",
        "PageCounts": "summary",
        "PageStore": "sink",
        "Progress": "summary",
        "Relinked": "relink",
        "RemovalRefusedError": "summary",
        "Source": "source",
        "SourceNotFoundError": "sources",
        "SourcePage": "source",
        "Staleness": "stalepages",
        "Summary": "summary",
        "UnreadablePageError": "html.pages",
        "VaultSource": "notes.vault",
        "WikiSettings": "wiki",
        "WikiSource": "wiki",
        "ZimSource": "wiki.zim",
        "index_documents": "records.loaded",
        "index_folder": "html.folder",
        "index_jsonl": "records.jsonl",
        "index_source": "pipeline",
        "index_vault": "notes.vault",
        "index_wiki": "wiki",
        "index_zim": "wiki.zim",
        "link_corpus": "relink",
        "staleness": "stalepages",
    },
)

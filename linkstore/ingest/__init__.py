"""From sources of pages, such as a folder of built HTML, to documents with links in a store."""

from __future__ import annotations

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
from linkstore.ingest.staleness import Staleness, staleness
from linkstore.ingest.summary import (
    Dangling,
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

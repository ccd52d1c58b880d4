"""From a folder of built HTML and Markdown to documents with links in a store."""

from __future__ import annotations

from linkstore.ingest.chunks import ChunkLimits
from linkstore.ingest.pipeline import DEFAULT_LINKS, IngestSettings, index_folder
from linkstore.ingest.relink import CORPUS_LINKS, Relinked, link_corpus
from linkstore.ingest.sink import PageStore
from linkstore.ingest.sources import SourceNotFoundError
from linkstore.ingest.summary import Dangling, PageCounts, Progress, Summary

__all__ = [
    "CORPUS_LINKS",
    "DEFAULT_LINKS",
    "ChunkLimits",
    "Dangling",
    "IngestSettings",
    "PageCounts",
    "PageStore",
    "Progress",
    "Relinked",
    "SourceNotFoundError",
    "Summary",
    "index_folder",
    "link_corpus",
]

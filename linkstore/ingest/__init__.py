"""From sources of pages, such as a folder of built HTML, to documents with links in a store."""

from __future__ import annotations

from linkstore.ingest.chunks import ChunkLimits
from linkstore.ingest.folder import FolderSource, IngestSettings, index_folder
from linkstore.ingest.html_pages import UnreadablePageError
from linkstore.ingest.pipeline import DEFAULT_LINKS, index_source
from linkstore.ingest.sink import PageStore
from linkstore.ingest.source import BadInput, Source, SourcePage
from linkstore.ingest.sources import SourceNotFoundError
from linkstore.ingest.summary import Dangling, PageCounts, Progress, Summary
from linkstore.ingest.wiki import WikiSettings, WikiSource, index_wiki

__all__ = [
    "BadInput",
    "ChunkLimits",
    "DEFAULT_LINKS",
    "Dangling",
    "FolderSource",
    "IngestSettings",
    "PageCounts",
    "PageStore",
    "Progress",
    "Source",
    "SourceNotFoundError",
    "SourcePage",
    "Summary",
    "UnreadablePageError",
    "WikiSettings",
    "WikiSource",
    "index_folder",
    "index_source",
    "index_wiki",
]

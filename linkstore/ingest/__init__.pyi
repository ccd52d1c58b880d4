from .chunks import ChunkLimits as ChunkLimits
from .html.folder import (
    FolderSource as FolderSource,
    LlmsTxtSource as LlmsTxtSource,
    PageSource as PageSource,
)
from .notes.vault import VaultSource as VaultSource
from .pipeline import WriteCounts as WriteCounts, aindex as aindex, index as index
from .records import DocumentsSource as DocumentsSource, JsonLinesSource as JsonLinesSource
from .relink import link_corpus as link_corpus
from .settings import PageSettings as PageSettings, PathSettings as PathSettings
from .source import (
    NothingIndexedError as NothingIndexedError,
    Partition as Partition,
    RemovalRefusedError as RemovalRefusedError,
    Source as Source,
    Summary as Summary,
)
from .watch import watch_folder as watch_folder
from .web.targets import WebSettings as WebSettings
from .web.website import WebsiteSource as WebsiteSource
from .wiki.source import WikiDumpSource as WikiDumpSource
from .wiki.zim import ZimSource as ZimSource
from .writer import Writer as Writer

from .chunks import ChunkLimits as ChunkLimits
from .files import SourceNotFoundError as SourceNotFoundError
from .html.folder import FolderSource as FolderSource
from .jsonlines import JsonLinesSource as JsonLinesSource
from .notes.vault import VaultSource as VaultSource
from .page import LlmsTxtSource as LlmsTxtSource, PageSource as PageSource
from .pipeline import (
    DEFAULT_LINKS as DEFAULT_LINKS,
    IndexOptions as IndexOptions,
    Progress as Progress,
    WriteCounts as WriteCounts,
    aindex as aindex,
    index as index,
)
from .records import DocumentsSource as DocumentsSource
from .relink import CORPUS_LINKS as CORPUS_LINKS, Relinked as Relinked, link_corpus as link_corpus
from .settings import PageSettings as PageSettings, PathSettings as PathSettings
from .source import (
    BadInput as BadInput,
    Dangling as Dangling,
    Encodings as Encodings,
    IndexingError as IndexingError,
    LeftOut as LeftOut,
    NothingIndexedError as NothingIndexedError,
    OpenedSource as OpenedSource,
    Partition as Partition,
    RemovalRefusedError as RemovalRefusedError,
    Source as Source,
    SourcePage as SourcePage,
    Staleness as Staleness,
    Summary as Summary,
    UnreadablePageError as UnreadablePageError,
    staleness as staleness,
)
from .watch import watch_folder as watch_folder
from .wiki.source import WikiDumpSource as WikiDumpSource
from .wiki.zim import MissingLibzimError as MissingLibzimError, ZimSource as ZimSource
from .writer import Finished as Finished, Writer as Writer

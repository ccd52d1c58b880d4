from .names import NameNormalizer as NameNormalizer
from .protocol import (
    ENTRY_POINT_GROUP as ENTRY_POINT_GROUP,
    Chunk as Chunk,
    CorpusExtractor as CorpusExtractor,
    Hyperlink as Hyperlink,
    LinkExtractor as LinkExtractor,
    Page as Page,
    QueryExtractor as QueryExtractor,
    extractor_names as extractor_names,
    load_extractor as load_extractor,
)

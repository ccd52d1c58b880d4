from .protocol import (
    Chunk as Chunk,
    CorpusExtractor as CorpusExtractor,
    Hyperlink as Hyperlink,
    LinkExtractor as LinkExtractor,
    Page as Page,
    QueryExtractor as QueryExtractor,
    extractor_names as extractor_names,
    load_extractor as load_extractor,
)

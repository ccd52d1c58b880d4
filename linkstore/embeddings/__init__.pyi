from .builtin import (
    ArrayEmbeddings as ArrayEmbeddings,
    BgeSmallEmbeddings as BgeSmallEmbeddings,
    MiniLMEmbeddings as MiniLMEmbeddings,
    WordLlamaEmbeddings as WordLlamaEmbeddings,
)
from .names import (
    DEFAULT_EMBEDDING as DEFAULT_EMBEDDING,
    name_embedding as name_embedding,
    get_embedding as get_embedding,
)

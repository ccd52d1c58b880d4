from .builtin import (
    ArrayEmbeddings as ArrayEmbeddings,
    BgeSmallEmbeddings as BgeSmallEmbeddings,
    MiniLMEmbeddings as MiniLMEmbeddings,
    WordLlamaEmbeddings as WordLlamaEmbeddings,
)
from .names import (
    DEFAULT_EMBEDDING as DEFAULT_EMBEDDING,
    embedding_name as embedding_name,
    get_embedding as get_embedding,
)

"""Strategies: how a search starts, which links it follows, and how it ranks what it reached."""

from typing import Final

from linkstore.strategies.allpaths import AllPaths
from linkstore.strategies.base import Question, Strategy, Traversing
from linkstore.strategies.eager import Eager
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank
from linkstore.strategies.reranking import Reranker
from linkstore.strategies.similarity import Similarity
from linkstore.strategies.words import Words

DEFAULT_STRATEGY: Final[Strategy] = PageRank()
"""The default strategy: it ranks best over all sets of docs/benchmarks.md."""

__all__ = [
    "DEFAULT_STRATEGY",
    "AllPaths",
    "Eager",
    "Mmr",
    "PageRank",
    "Question",
    "Reranker",
    "Similarity",
    "Strategy",
    "Traversing",
    "Words",
]

"""Strategies: how a search starts, which links it follows, and how it ranks what it reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.strategies.all_paths import AllPaths
    from linkstore.strategies.base import Question, Reranker, Strategy, Traversing
    from linkstore.strategies.eager import Eager
    from linkstore.strategies.first_stage import Named, Similarity, Words
    from linkstore.strategies.mmr import Mmr
    from linkstore.strategies.pagerank import DEFAULT_STRATEGY, PageRank
    from linkstore.strategies.relations import Relations

__all__ = [
    "AllPaths",
    "DEFAULT_STRATEGY",
    "Eager",
    "Mmr",
    "Named",
    "PageRank",
    "Question",
    "Relations",
    "Reranker",
    "Similarity",
    "Strategy",
    "Traversing",
    "Words",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.strategies.all_paths": "AllPaths",
        "linkstore.strategies.base": "Question Reranker Strategy Traversing",
        "linkstore.strategies.eager": "Eager",
        "linkstore.strategies.first_stage": "Named Similarity Words",
        "linkstore.strategies.mmr": "Mmr",
        "linkstore.strategies.pagerank": "DEFAULT_STRATEGY PageRank",
        "linkstore.strategies.relations": "Relations",
    },
)

"""Strategies: how a search starts, which links it follows, and how it ranks what it reached."""

from linkstore.strategies.base import Question, Strategy, Traversing
from linkstore.strategies.eager import Eager
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank
from linkstore.strategies.similarity import Similarity
from linkstore.strategies.words import Words

__all__ = ["Eager", "Mmr", "PageRank", "Question", "Similarity", "Strategy", "Traversing", "Words"]

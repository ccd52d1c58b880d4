from .all_paths import AllPaths as AllPaths
from .base import Question as Question, Reranker as Reranker, Strategy as Strategy
from .eager import Eager as Eager
from .first_stage import Similarity as Similarity, Words as Words
from .mmr import Mmr as Mmr
from .pagerank import DEFAULT_STRATEGY as DEFAULT_STRATEGY, PageRank as PageRank

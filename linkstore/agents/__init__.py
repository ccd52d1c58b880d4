"""Agents that read a store: GraphReader, and the index of facts that it explores.

:func:`index_facts` extracts atomic facts and key elements from the chunks of a store.
:func:`graph_reader` makes the agent, which needs the extra ``agents``.
"""

from __future__ import annotations

from linkstore.agents.answer import Answer, Citation, Statement
from linkstore.agents.exploration import draw_reading
from linkstore.agents.facts import Fact, FactExtractor, Failed
from linkstore.agents.index import aindex_facts, fact_store, index_facts
from linkstore.agents.indexing import FactSummary
from linkstore.agents.modelled import ModelExtractor
from linkstore.agents.models import chat_model
from linkstore.agents.reader import GraphReader, graph_reader
from linkstore.agents.state import Budget

__all__ = [
    "Answer",
    "Budget",
    "Citation",
    "Fact",
    "FactExtractor",
    "FactSummary",
    "Failed",
    "GraphReader",
    "ModelExtractor",
    "Statement",
    "aindex_facts",
    "chat_model",
    "draw_reading",
    "fact_store",
    "graph_reader",
    "index_facts",
]

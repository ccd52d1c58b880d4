"""Agents that read a store: GraphReader, and the index of facts that it explores.

:func:`index_facts` extracts atomic facts and key elements from the chunks of a store.
"""

from __future__ import annotations

from linkstore.agents.facts import Fact, FactExtractor, Failed
from linkstore.agents.index import aindex_facts, fact_store, index_facts
from linkstore.agents.indexing import FactSummary
from linkstore.agents.modelled import ModelExtractor
from linkstore.agents.models import chat_model
from linkstore.agents.report import element_report
from linkstore.agents.rules import RuleExtractor

__all__ = [
    "Fact",
    "FactExtractor",
    "FactSummary",
    "Failed",
    "ModelExtractor",
    "RuleExtractor",
    "aindex_facts",
    "chat_model",
    "element_report",
    "fact_store",
    "index_facts",
]

"""Agents that read a store: GraphReader, and the index of facts that it explores.

:func:`index_facts` extracts atomic facts and key elements from the chunks of a store.
:func:`graph_reader` makes the agent, which needs the extra ``agents``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.agents.answers import Answer, Citation, Statement
    from linkstore.agents.fact_index import (
        FactReport,
        FactSummary,
        ModelExtractor,
        aindex_facts,
        describe_facts,
        fact_store,
        index_facts,
    )
    from linkstore.agents.facts import Fact, FactExtractor, Failed
    from linkstore.agents.reader import GraphReader, chat_model, graph_reader
    from linkstore.agents.state import Budget
    from linkstore.agents.testing import ModelCall, ScriptedChatModel
    from linkstore.agents.tool_answers import ToolLimits
    from linkstore.agents.tools import graph_tools

__all__ = [
    "Answer",
    "Budget",
    "Citation",
    "Fact",
    "FactExtractor",
    "FactReport",
    "FactSummary",
    "Failed",
    "GraphReader",
    "ModelCall",
    "ModelExtractor",
    "ScriptedChatModel",
    "Statement",
    "ToolLimits",
    "aindex_facts",
    "chat_model",
    "describe_facts",
    "fact_store",
    "graph_reader",
    "graph_tools",
    "index_facts",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.agents.fact_index": (
            "FactReport FactSummary ModelExtractor aindex_facts describe_facts fact_store index_facts"
        ),
        "linkstore.agents.facts": "Fact FactExtractor Failed",
        "linkstore.agents.reader": "GraphReader chat_model graph_reader",
        "linkstore.agents.answers": "Answer Citation Statement",
        "linkstore.agents.state": "Budget",
        "linkstore.agents.testing": "ModelCall ScriptedChatModel",
        "linkstore.agents.tool_answers": "ToolLimits",
        "linkstore.agents.tools": "graph_tools",
    },
)

"""The graph of a reading, as LangGraph runs it. Imported late; needs the extra ``agents``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from langchain_core.runnables import RunnableLambda

from linkstore.agents import passages, steps
from linkstore.agents.sources import Sources
from linkstore.agents.state import Reading
from linkstore.drivers import arun, run
from linkstore.errors import MissingExtraError
from linkstore.plans import Operation
from linkstore.twins import awaited, wait

try:
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer
except ImportError as error:
    raise MissingExtraError("graph_reader", "agents") from error

Step = Callable[[Sources, Reading], Operation[dict[str, Any]]]
STEPS: Final[dict[str, Step]] = {
    "plan": steps.plan,
    "elements": steps.elements,
    "facts": steps.facts,
    "search": steps.search,
    "chunk": passages.chunk,
    "neighbours": passages.neighbours,
    "answer": passages.answer,
}
"""The nodes of the graph, by name."""
Graph = CompiledStateGraph[Reading, None, Reading, Reading]


def compiled(sources: Sources, checkpointer: Checkpointer) -> Graph:
    """Compile the graph: each step says which one follows, and the answer ends it."""
    builder = StateGraph(Reading)
    for name, step in STEPS.items():
        builder.add_node(name, _node(sources, step))
    builder.add_edge(START, "plan")
    builder.add_edge("answer", END)
    names = [name for name in STEPS if name != "plan"]
    for name in STEPS:
        if name != "answer":
            builder.add_conditional_edges(name, _next, names)
    return builder.compile(checkpointer=checkpointer, name="graph_reader")


def _next(state: Reading) -> str:
    return state["next"]


def _node(sources: Sources, step: Step) -> RunnableLambda[Reading, dict[str, Any]]:
    """Wrap a step as a node that adds the time it took."""

    def node(state: Reading) -> dict[str, Any]:
        began = time.monotonic()
        return _timed(state, run(step(sources, state), wait), began)

    async def anode(state: Reading) -> dict[str, Any]:
        began = time.monotonic()
        return _timed(state, await arun(step(sources, state), awaited), began)

    return RunnableLambda(node, anode)


def _timed(state: Reading, change: dict[str, Any], began: float) -> dict[str, Any]:
    before = change.get("seconds", state.get("seconds", 0.0))
    return {**change, "seconds": before + time.monotonic() - began}

"""The graph of a reading, as LangGraph runs it. Imported late, because it needs the extra ``agents``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from langchain_core.runnables import RunnableLambda

from linkstore.agents import steps
from linkstore.agents.model_calls import ReadingSources
from linkstore.agents.state import (
    Reading,
)
from linkstore.core.calls import arun, await_call, make_call, run
from linkstore.core.plans import Operation
from linkstore.errors import (
    MissingExtraError,
)

try:
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer
except ImportError as error:
    raise MissingExtraError("graph_reader", "agents") from error

StepFunction = Callable[[ReadingSources, Reading], Operation[dict[str, Any]]]
STEP_FUNCTIONS: Final[dict[str, StepFunction]] = {
    "plan": steps.make_plan,
    "elements": steps.choose_elements,
    "facts": steps.read_facts,
    "search": steps.search_passages,
    "chunk": steps.read_chunk,
    "neighbours": steps.choose_neighbours,
    "answer": steps.write_answer,
}
"""The nodes of the graph, by name."""
Graph = CompiledStateGraph[Reading, None, Reading, Reading]


def compile_graph(sources: ReadingSources, checkpointer: Checkpointer) -> Graph:
    """Compile the graph: each step says which one follows, and the answer ends it."""
    builder = StateGraph(Reading)
    for name, step in STEP_FUNCTIONS.items():
        builder.add_node(name, _make_node(sources, step))
    builder.add_edge(START, "plan")
    builder.add_edge("answer", END)
    names = [name for name in STEP_FUNCTIONS if name != "plan"]
    for name in STEP_FUNCTIONS:
        if name != "answer":
            builder.add_conditional_edges(name, _read_next, names)
    return builder.compile(checkpointer=checkpointer, name="graph_reader")


def _read_next(state: Reading) -> str:
    return state["next"]


def _make_node(sources: ReadingSources, step: StepFunction) -> RunnableLambda[Reading, dict[str, Any]]:
    """Wrap a step as a node that adds the time it took."""

    def node(state: Reading) -> dict[str, Any]:
        began = time.monotonic()
        return _add_time(state, run(step(sources, state), make_call), began)

    async def anode(state: Reading) -> dict[str, Any]:
        began = time.monotonic()
        return _add_time(state, await arun(step(sources, state), await_call), began)

    return RunnableLambda(node, anode)


def _add_time(state: Reading, change: dict[str, Any], began: float) -> dict[str, Any]:
    before = change.get("seconds", state.get("seconds", 0.0))
    return {**change, "seconds": before + time.monotonic() - began}

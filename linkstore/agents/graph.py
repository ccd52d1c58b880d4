"""The graph of a reading, as LangGraph runs it. Imported late, because it needs the extra ``agents``."""

from __future__ import annotations

from langchain_core.runnables import RunnableLambda

from linkstore.agents.state import Reading
from linkstore.agents.steps import STEPS, ReadingSources, take_step
from linkstore.core.calls import arun, await_call, make_call, run
from linkstore.errors import MissingExtraError

try:
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer
except ImportError as error:
    raise MissingExtraError("graph_reader", "agents") from error

Graph = CompiledStateGraph[Reading, None, Reading, Reading]


def compile_graph(sources: ReadingSources, checkpointer: Checkpointer) -> Graph:
    """Compile the graph: its nodes are the steps, each of which says which one follows."""
    builder = StateGraph(Reading)
    builder.add_edge(START, "plan")
    for name in STEPS:
        builder.add_node(name, _make_node(sources, name))
        builder.add_conditional_edges(name, _choose_node, [*STEPS, END])
    return builder.compile(checkpointer=checkpointer, name="graph_reader")


def _choose_node(state: Reading) -> str:
    return state["next"] or END


def _make_node(sources: ReadingSources, name: str) -> RunnableLambda[Reading, Reading]:
    return RunnableLambda(
        lambda state: run(take_step(sources, state, name), make_call),
        lambda state: arun(take_step(sources, state, name), await_call),
        name=name,
    )

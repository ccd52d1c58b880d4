"""graph_reader: an agent that explores a store with a plan and a notebook, as a graph of LangGraph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config

from linkstore.agents.answers import Answer, make_answer
from linkstore.agents.chat_models import chat_model, get_context
from linkstore.agents.fact_index import check_embeddings, fact_store
from linkstore.agents.model_calls import OutputModel
from linkstore.agents.state import Budget, Reading, begin_reading
from linkstore.agents.steps import FIRST_READ, STEPS, ReadingSources, take_step
from linkstore.context.compiled import counter_of
from linkstore.core.arguments import omit_none, require, require_at_least
from linkstore.core.calls import Operation, arun, run, run_in_thread
from linkstore.core.hit_graph import HitGraph
from linkstore.errors import (
    AgentError,
    CapabilityError,
    MissingExtraError,
    StoreNotFoundError,
)
from linkstore.store.linkstore import LinkStore, require_store

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer

    Graph = CompiledStateGraph[Reading, None, Reading, Reading]


_NODES_PER_CALL: Final = 3
"""Nodes that LangGraph may run for each call of the model."""
_SLACK: Final = 1_000
"""Nodes that make no call, such as those of passages that were deleted while they were queued."""


class GraphReader(Runnable[str | None, Answer]):
    """Reads a store to answer questions; made by :func:`graph_reader`.

    A LangChain Runnable from a question to an :class:`Answer`. With a checkpointer and a ``thread_id``, a
    reading that was interrupted goes on with ``None`` in place of a question.

    Attributes:
        graph: The compiled LangGraph graph; its state is a :class:`~linkstore.agents.state.Reading`, and its
            input ``{"question": ...}``.
        facts: The store of facts; None if the reader does without.
    """

    def __init__(self, sources: ReadingSources, graph: Graph, owned: bool) -> None:
        self.graph = graph
        self.facts = sources.facts
        self._sources, self._owned = sources, owned
        self._limit = _NODES_PER_CALL * sources.budget.steps + _SLACK

    def invoke(self, input: str | None, config: RunnableConfig | None = None, **kwargs: Any) -> Answer:
        """Answer a question, or continue a reading that was interrupted.

        Args:
            input: The question; None to continue where the thread of ``config`` stopped.
            config: With ``{"configurable": {"thread_id": ...}}`` if there is a checkpointer.
            kwargs: Of the graph, such as ``interrupt_before="*"``; the answer is then not at its end.

        Raises:
            EmbeddingError: If the question is blank; the model is not called.
            AgentError: If the model fails or its answer is malformed twice; if the question is not a string;
                if the thread has no reading to continue.
            BackendError: If a storage engine fails; with a checkpointer, the reading can go on later.
        """
        start = _make_input(input)
        if start is not None and not self.graph.checkpointer and not kwargs:
            # In this thread: Ctrl-C would wait for the pool of a graph.
            return self._call_with_config(lambda _: run(self._read(start)), input, config)
        with _explain_missing(config):
            state = self.graph.invoke(start, self._complete_config(config), **_require_whole_states(kwargs))
        return self._make_answer(state)

    def _read(self, state: Reading) -> Operation[Answer]:
        """Take one step after the other."""
        while state["next"]:
            state = yield from take_step(self._sources, state["next"], state)
        return self._make_answer(state)

    async def ainvoke(self, input: str | None, config: RunnableConfig | None = None, **kwargs: Any) -> Answer:
        """Answer a question: see :meth:`invoke`."""
        with _explain_missing(config):
            state = await self.graph.ainvoke(
                _make_input(input), self._complete_config(config), **_require_whole_states(kwargs)
            )
        return self._make_answer(state)

    def stream(
        self, input: str | None, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Answer]:
        """Yield the state of the answer after each step, the final answer last.

        Raises:
            AgentError: As :meth:`invoke`; if ``stream_mode`` is not ``values``: use ``graph`` for others.
        """
        with _explain_missing(config):
            options = _require_whole_states(kwargs)
            for state in self.graph.stream(_make_input(input), self._complete_config(config), **options):
                yield self._make_answer(state)

    async def astream(
        self, input: str | None, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Answer]:
        """Yield answers without blocking the event loop: see :meth:`stream`."""
        with _explain_missing(config):
            options = _require_whole_states(kwargs)
            async for state in self.graph.astream(
                _make_input(input), self._complete_config(config), **options
            ):
                yield self._make_answer(state)

    def explain(self, config: RunnableConfig) -> HitGraph:
        """Return the graph of what the thread of ``config`` has explored so far: see :meth:`Answer.graph`.

        Raises:
            AgentError: If there is no checkpointer, or no such thread.
        """
        return self.answer(config).graph()

    def answer(self, config: RunnableConfig) -> Answer:
        """Return the reading in the thread of ``config`` so far, with its answer if it is complete.

        Raises:
            AgentError: If there is no checkpointer, or no such thread.
        """
        if not self.graph.checkpointer:
            raise AgentError("this reader does not record readings; create it with a checkpointer")
        values = self.graph.get_state(config).values
        if not values:
            raise AgentError(f"no reading is recorded for {config.get('configurable')!r}")
        return self._make_answer(values)

    def close(self) -> None:
        """Close the store of facts, if the reader opened it."""
        if self._owned and self.facts is not None:
            self.facts.close()

    async def aclose(self) -> None:
        """Close the store of facts: see :meth:`close`."""
        await run_in_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_answer(self, state: Any) -> Answer:
        return make_answer(cast("Reading", state), with_facts=self.facts is not None)

    def _complete_config(self, config: RunnableConfig | None) -> RunnableConfig:
        full_config = ensure_config(config)
        if config is None or "recursion_limit" not in config:
            full_config["recursion_limit"] = self._limit
        return full_config


def _make_input(question: str | None) -> Reading | None:
    """Return the initial state of a reading, or None without a question, to continue a recorded one."""
    if question is None:
        return None
    if not isinstance(question, str):
        raise AgentError(
            f"the question must be a string, not {question!r:.200}; only reader.graph takes a dict"
        )
    return begin_reading(question)


def _require_whole_states(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with which the graph yields whole states."""
    mode = options.get("stream_mode", "values")
    if mode != "values":
        raise AgentError(
            f"a reader streams only answers, not stream_mode={mode!r}; use reader.graph.stream for that"
        )
    return {**options, "stream_mode": mode}


@contextmanager
def _explain_missing(config: RunnableConfig | None) -> Iterator[None]:
    """Raise an error with an explanation if a reading to go on with was never begun."""
    from langgraph.errors import EmptyInputError

    try:
        yield
    except EmptyInputError as error:
        thread = (config or {}).get("configurable", {}).get("thread_id")
        raise AgentError(
            f"there is no reading to go on with in the thread {thread!r}; ask a question, or use the"
            " checkpointer and the thread_id with which the reading was begun"
        ) from error


def graph_reader(
    store: LinkStore,
    model: BaseChatModel | str,
    *,
    facts: LinkStore | None = None,
    first: int = FIRST_READ,
    budget: Budget | None = None,
    checkpointer: Checkpointer = None,
) -> GraphReader:
    """Make an agent that reads a store to answer a question: GraphReader, as a LangGraph graph.

    It searches, and answers in one call if the best passages have the answer. Else it reads on, with what
    they lack as its plan: passages, their neighbours on the page, and what is linked with them; with facts,
    also by key elements. It keeps a notebook, and answers from that, with citations. A statement is kept if
    what it cites has its names and numbers.

    Args:
        store: Holds the chunks.
        model: A chat model, or its name, such as ``openai:gpt-4.1-mini``.
        facts: The store of facts; default that of :func:`index_facts`, if there is one.
        first: How many passages the first call is shown, as far as the model's context has room; 0: it only
            plans.
        budget: What a question may cost; default 40 calls of the model.
        checkpointer: A checkpointer of LangGraph, so that readings can be interrupted and go on.

    Raises:
        ArgumentError: If an argument has the wrong type.
        MissingExtraError: If the extra ``agents`` is not installed.
        ExtractionError: If a model of this name cannot be used.
        EmbeddingError: If the facts were embedded otherwise than the chunks.

    Source: S. Li et al., "GraphReader: Building Graph-based Agent to Enhance Long-Context Abilities of Large
    Language Models", EMNLP Findings 2024, https://arxiv.org/abs/2406.14550.
    """
    require_store(store=store, **omit_none(facts=facts))
    limits = Budget() if budget is None else budget
    require(Budget, "a Budget", budget=limits)
    require_at_least(0, first=first)
    model = chat_model(model) if isinstance(model, str) else model
    asked = OutputModel(model)
    fact_index = facts
    if facts is not None:
        check_embeddings(store, facts)
    else:
        with suppress(StoreNotFoundError, CapabilityError):
            fact_index = fact_store(store)
    sources = ReadingSources(
        store=store,
        facts=fact_index,
        model=asked,
        budget=limits,
        counter=counter_of(None),
        context=get_context(model),
        first=first,
    )
    return GraphReader(sources, compile_graph(sources, checkpointer), owned=facts is None)


def compile_graph(sources: ReadingSources, checkpointer: Checkpointer = None) -> Graph:
    """Compile the graph of a reading for LangGraph: its nodes are the steps, each says which one follows.

    Raises:
        MissingExtraError: If the extra ``agents`` is not installed.
    """
    try:
        from langgraph.graph import END, START, StateGraph
    except ImportError as error:
        raise MissingExtraError("graph_reader", "agents") from error
    builder = StateGraph(Reading)
    builder.add_edge(START, "begin")
    for name in STEPS:
        builder.add_node(name, _make_node(sources, name))
        builder.add_conditional_edges(name, lambda state: state["next"] or END)
    return builder.compile(checkpointer=checkpointer, name="graph_reader")


def _make_node(sources: ReadingSources, name: str) -> RunnableLambda[Reading, Reading]:
    return RunnableLambda(
        lambda state: run(take_step(sources, name, state)),
        lambda state: arun(take_step(sources, name, state)),
        name=name,
    )

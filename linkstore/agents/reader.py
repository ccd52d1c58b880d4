"""graph_reader: a chat model answers from the passages of a store, and reads on where they do not suffice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig

from linkstore.agents.answers import Answer, Budget, Reading, begin_reading, make_answer
from linkstore.agents.chat_models import chat_model, get_context
from linkstore.agents.facts import check_embeddings
from linkstore.agents.model_calls import OutputModel
from linkstore.agents.reading import FIRST_READ, ReadingSources, take_step
from linkstore.context.compiled import counter_of
from linkstore.core.arguments import omit_none, require, require_at_least
from linkstore.core.calls import Operation, arun, run
from linkstore.errors import AgentError
from linkstore.store.linkstore import LinkStore, require_store


class GraphReader(Runnable[str | Answer, Answer]):
    """Reads a store to answer questions; made by :func:`graph_reader`.

    A LangChain Runnable from a question to an :class:`Answer`. A reading that was interrupted goes on with
    the last answer of :meth:`stream` in place of a question.

    Attributes:
        facts: The store of facts; None if the reader does without.
    """

    def __init__(self, sources: ReadingSources) -> None:
        self.facts = sources.facts
        self._sources = sources

    def invoke(self, input: str | Answer, config: RunnableConfig | None = None, **kwargs: Any) -> Answer:
        """Answer a question, or go on with a reading.

        Args:
            input: The question; or an answer of :meth:`stream`, to go on where it was.
            config: As for any Runnable.
            kwargs: None are taken.

        Raises:
            EmbeddingError: If the question is blank; the model is not called.
            AgentError: If the model fails, or its first output is malformed twice; if the question is not a
                string.
            BackendError: If a storage engine fails.
        """
        state = _begin(input, kwargs)
        return self._call_with_config(lambda _: run(self._read(state)), input, config)

    async def ainvoke(
        self, input: str | Answer, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answer:
        """Answer a question: see :meth:`invoke`."""
        state = _begin(input, kwargs)

        async def read(_: str | Answer) -> Answer:
            return await arun(self._read(state))

        return await self._acall_with_config(read, input, config)

    def stream(
        self, input: str | Answer, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Answer]:
        """Yield the state of the answer after each step, the final answer last.

        Raises:
            AgentError: As :meth:`invoke`.
        """
        state = _begin(input, kwargs)
        while not state["outcome"]:
            state = run(take_step(self._sources, state))
            yield make_answer(state)

    async def astream(
        self, input: str | Answer, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Answer]:
        """Yield answers without blocking the event loop: see :meth:`stream`."""
        state = _begin(input, kwargs)
        while not state["outcome"]:
            state = await arun(take_step(self._sources, state))
            yield make_answer(state)

    def _read(self, state: Reading) -> Operation[Answer]:
        while not state["outcome"]:
            state = yield from take_step(self._sources, state)
        return make_answer(state)


def _begin(input: object, options: dict[str, Any]) -> Reading:
    """Return the state from which a reader goes on."""
    if options:
        raise AgentError(f"a reader takes a question and a config alone, not {', '.join(sorted(options))}")
    if isinstance(input, Answer) and input.reading is not None:
        return input.reading
    if not isinstance(input, str):
        raise AgentError(f"the question must be a string, not {input!r:.200}")
    return begin_reading(input)


def graph_reader(
    store: LinkStore,
    model: BaseChatModel | str,
    *,
    facts: LinkStore | None = None,
    first: int = FIRST_READ,
    budget: Budget | None = None,
    instructions: str = "",
) -> GraphReader:
    """Make an agent that reads a store to answer a question: GraphReader.

    It searches, and answers in one call if the best passages have the answer. Else it reads on what the model
    searches for or chooses: passages, their neighbours on the page, what is linked with them, and, with
    facts, what those lead to. What was found out becomes findings, which are the answer if there is no better
    one. A statement is kept if what it cites has its names and numbers.

    Args:
        store: Holds the chunks.
        model: A chat model, or its name, such as ``openai:gpt-4.1-mini``.
        facts: The store of their facts, which :func:`index_facts` wrote; None: it reads without.
        first: How many passages the first call is shown, as far as the model's context has room; 0: it only
            plans.
        budget: What a question may cost; default 8 calls of the model.
        instructions: About the form of the answer, such as "Answer in German."; default none.

    Raises:
        ArgumentError: If an argument has the wrong type.
        MissingExtraError: If a model is named, and the extra ``agents`` is not installed.
        ExtractionError: If a model of this name cannot be used.
        EmbeddingError: If the facts were embedded otherwise than the chunks.

    Source: S. Li et al., "GraphReader: Building Graph-based Agent to Enhance Long-Context Abilities of Large
    Language Models", EMNLP Findings 2024, https://arxiv.org/abs/2406.14550.
    """
    require_store(store=store, **omit_none(facts=facts))
    limits = Budget() if budget is None else budget
    require(Budget, "a Budget", budget=limits)
    require_at_least(0, first=first)
    require(str, "a string", instructions=instructions)
    model = chat_model(model) if isinstance(model, str) else model
    asked = OutputModel(model)
    if facts is not None:
        check_embeddings(store, facts)
    sources = ReadingSources(
        store=store,
        facts=facts,
        model=asked,
        budget=limits,
        counter=counter_of(None),
        context=get_context(model),
        first=first,
        instructions=instructions,
    )
    return GraphReader(sources)

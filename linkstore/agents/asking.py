"""Asks the model for the next action of a reading, within its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from linkstore.agents.state import Budget, Reading
from linkstore.agents.structured import Malformed, Reply, reply_of, structured
from linkstore.context import TokenCounter
from linkstore.errors import AgentError, LinkStoreError
from linkstore.plans import Operation
from linkstore.twins import Twin

Output = TypeVar("Output", bound=BaseModel)


@dataclass(slots=True)
class Spent:
    """The cost of one step of a reading so far.

    Args:
        steps: Calls of the model.
        tokens: Of prompts and outputs.
        malformed: Outputs that were not what was asked for.
    """

    steps: int = 0
    tokens: int = 0
    malformed: int = 0

    def added(self, state: Reading) -> dict[str, Any]:
        """The change of the state."""
        return {
            "steps": state["steps"] + self.steps,
            "tokens": state["tokens"] + self.tokens,
            "malformed": state["malformed"] + self.malformed,
        }


class Asker:
    """Asks one model.

    Args:
        model: A chat model with structured output.
        budget: Of the whole reading.
        counter: Counts tokens where the model does not.
    """

    def __init__(self, model: BaseChatModel, budget: Budget, counter: TokenCounter) -> None:
        self._model, self._counter = model, counter
        self.budget = budget

    def exceeded(
        self, state: Reading, spent: Spent, messages: Sequence[BaseMessage], closing: Sequence[BaseMessage]
    ) -> str:
        """The budget that one more call before the answer would exceed; empty if none.

        Args:
            state: Of the reading.
            spent: In this step.
            messages: Of the call.
            closing: The answer's, which must still be possible.
        """
        budget = self.budget
        if state["steps"] + spent.steps + 1 >= budget.steps:
            return "steps"
        if budget.seconds is not None and state["seconds"] >= budget.seconds:
            return "seconds"
        if budget.tokens is not None:
            needed = self._tokens(messages) + self._tokens(closing)
            if state["tokens"] + spent.tokens + needed > budget.tokens:
                return "tokens"
        return ""

    def asked(
        self, spent: Spent, schema: type[Output], messages: Sequence[BaseMessage]
    ) -> Operation[Output | Malformed]:
        """One call.

        Raises:
            AgentError: If the model fails.
        """
        runnable = structured(self._model, schema)
        spent.steps += 1
        try:
            given: Any = yield Twin(runnable.invoke, runnable.ainvoke, (list(messages),))
        except LinkStoreError:
            raise
        except Exception as error:
            raise AgentError(
                f"the model failed when it was asked for a {schema.__name__}: {error};"
                " with a checkpointer, invoke the reader with None and the same thread_id to go on"
            ) from error
        reply: Reply[Output] = reply_of(given, schema)
        spent.tokens += reply.tokens or self._tokens(messages) + sum(self._counter.count([reply.text]))
        spent.malformed += isinstance(reply.output, Malformed)
        return reply.output

    def _tokens(self, messages: Sequence[BaseMessage]) -> int:
        return sum(self._counter.count([str(message.text) for message in messages]))


def corrected(messages: Sequence[BaseMessage], problem: str) -> list[BaseMessage]:
    """The same request after output that could not be used."""
    return [*messages, HumanMessage(f"Your last output could not be used: {problem}\nOutput it again.")]

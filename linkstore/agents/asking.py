"""Asks the model for the next action of a reading, within its budget."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from linkstore.agents.state import Budget, Reading
from linkstore.agents.structured import Malformed, Reply, reply_of, structured
from linkstore.context import TokenCounter
from linkstore.errors import AgentError, LinkStoreError
from linkstore.plans import Operation
from linkstore.twins import OutOfTimeError, Twin, within

Output = TypeVar("Output", bound=BaseModel)


@dataclass(slots=True)
class Spent:
    """The cost of one step of a reading so far.

    Args:
        steps: Calls of the model.
        tokens: Of prompts and outputs.
        malformed: Outputs that were not what was asked for.
        began: When it began, by the clock of :func:`time.monotonic`.
    """

    steps: int = 0
    tokens: int = 0
    malformed: int = 0
    began: float = field(default_factory=time.monotonic)

    def seconds(self, state: Reading) -> float:
        """Return how many seconds the reading has worked until now."""
        return state["seconds"] + time.monotonic() - self.began

    def added(self, state: Reading) -> dict[str, Any]:
        """Return the change of the state."""
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
        self,
        state: Reading,
        spent: Spent,
        messages: Sequence[BaseMessage],
        closing: Sequence[BaseMessage] | None,
    ) -> str:
        """Return the budget that one more call would exceed, or an empty string if none.

        Args:
            state: Of the reading.
            spent: In this step.
            messages: Of the call.
            closing: The answer's, which must still be possible; None: the call is the answer's.
        """
        budget, last = self.budget, closing is None
        if state["steps"] + spent.steps + (not last) >= budget.steps:
            return "steps"
        if spent.seconds(state) >= budget.seconds_for(last=last):
            return "seconds"
        if budget.tokens is not None:
            needed = self._count_tokens(messages) + self._count_tokens(closing or ())
            if state["tokens"] + spent.tokens + needed > budget.tokens:
                return "tokens"
        return ""

    def asked(
        self,
        state: Reading,
        spent: Spent,
        schema: type[Output],
        messages: Sequence[BaseMessage],
        *,
        last: bool,
    ) -> Operation[Output | Malformed | None]:
        """Call the model once. Return None if the call was not done in time.

        Args:
            state: Of the reading.
            spent: In this step.
            schema: What it may say.
            messages: Of the call.
            last: Whether it is the answer's.

        Raises:
            AgentError: If the model fails.
        """
        runnable = structured(self._model, schema)
        spent.steps += 1
        left = self.budget.seconds_for(last=last) - spent.seconds(state)
        call = Twin(runnable.invoke, runnable.ainvoke, (list(messages),))
        try:
            given: Any = yield call if math.isinf(left) else within(left, call)
        except LinkStoreError:
            raise
        except OutOfTimeError:
            spent.tokens += self._count_tokens(messages)
            return None
        except Exception as error:
            raise AgentError(
                f"the model failed when it was asked for a {schema.__name__}: {error};"
                " with a checkpointer, invoke the reader with None and the same thread_id to go on"
            ) from error
        reply: Reply[Output] = reply_of(given, schema)
        spent.tokens += reply.tokens or self._count_tokens(messages) + sum(self._counter.count([reply.text]))
        spent.malformed += isinstance(reply.output, Malformed)
        return reply.output

    def _count_tokens(self, messages: Sequence[BaseMessage]) -> int:
        return sum(self._counter.count([str(message.text) for message in messages]))


def corrected(messages: Sequence[BaseMessage], problem: str) -> list[BaseMessage]:
    """Return the same request with a message on output that could not be used."""
    return [*messages, HumanMessage(f"Your last output could not be used: {problem}\nOutput it again.")]

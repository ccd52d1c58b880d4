"""Middleware for LangChain's agents: each model call gets the context of the user's last message.

Imported late; needs the extra ``agents``.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import AnyMessage, SystemMessage

from linkstore.context.compiled import frame_context, is_from_user
from linkstore.context.compiler import ContextCompiler
from linkstore.core.calls import Operation, arun, call, run
from linkstore.errors import BudgetError, MissingExtraError

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
except ImportError as error:
    raise MissingExtraError("the middleware of a context compiler", "agents") from error

_LOG: Final = logging.getLogger("linkstore")


class PromptMiddleware(AgentMiddleware[Any, Any, Any]):
    """Prepares the request of every model call, sync and async alike."""

    @abstractmethod
    def prepare(self, request: ModelRequest[Any]) -> Operation[ModelRequest[Any]]:
        """Return the request that is sent."""

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Prepare the request, then call the model."""
        return handler(run(self.prepare(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Prepare the request, then call the model: see :meth:`wrap_model_call`."""
        return await handler(await arun(self.prepare(request)))


class ContextMiddleware(PromptMiddleware):
    """Adds the compiled context of the user's last message to the system message of every model call.

    The messages of the agent's state stay as they are, so that contexts do not pile up in it. A call without
    a message of the user, or with one that has no text, is passed on as it is; so is one for which nothing
    fits into the budget, with a warning in the log ``linkstore``.

    Args:
        compiler: Compiles the contexts; its budget is for all that is added, with the sentence above the
            context and its frame.

    Raises:
        BudgetError: If the budget is too small for the sentence and the frame.
    """

    def __init__(self, compiler: ContextCompiler) -> None:
        super().__init__()
        self.compiler = replace(compiler, frame=frame_context)
        alone = compiler.counter.count([frame_context("")])[0]
        if alone >= compiler.budget:
            raise BudgetError(
                f"what stands above a context needs {alone} tokens, and the budget is {compiler.budget};"
                " raise the budget"
            )

    def prepare(self, request: ModelRequest[Any]) -> Operation[ModelRequest[Any]]:
        """Add the context."""
        question = find_last_question(request.messages)
        if not question:
            return request
        compiled = yield from call(self.compiler.invoke, self.compiler.ainvoke, question)
        if not compiled.text:
            if compiled.left_out:
                _LOG.warning("a model is called without a context: %s", compiled.reason)
            return request
        message = extend_message(request.system_message, frame_context(compiled.text))
        return request.override(system_message=message)


def find_last_question(messages: Sequence[AnyMessage]) -> str:
    """Return the text of the user's last message, or an empty string if there is none."""
    own = [message for message in messages if is_from_user(message)]
    return str(own[-1].text).strip() if own else ""


def extend_message(message: SystemMessage | None, text: str) -> SystemMessage:
    """Append a text to the system message. Its other parts, such as cache marks, stay."""
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": "\n\n".join(filter(None, (message.content, text)))})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})

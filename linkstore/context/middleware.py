"""Middleware for LangChain's agents: each model call gets the context of the user's last message.

Imported late; needs the extra ``agents``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import AnyMessage, SystemMessage

from linkstore.context.compiled import Compiled, frame_context, is_from_user
from linkstore.context.compiler import ContextCompiler
from linkstore.errors import BudgetError, MissingExtraError

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
except ImportError as error:
    raise MissingExtraError("the middleware of a context compiler", "agents") from error

_LOG: Final = logging.getLogger("linkstore")


class ContextMiddleware(AgentMiddleware[Any, Any, Any]):
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

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the context, then call the model."""
        question = find_last_question(request.messages)
        compiled = self.compiler.invoke(question) if question else None
        return handler(self._add_context(request, compiled))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Add the context, then call the model: see :meth:`wrap_model_call`."""
        question = find_last_question(request.messages)
        compiled = (await self.compiler.ainvoke(question)) if question else None
        return await handler(self._add_context(request, compiled))

    def _add_context(self, request: ModelRequest[Any], compiled: Compiled | None) -> ModelRequest[Any]:
        if compiled is None or not compiled.text:
            if compiled is not None and compiled.left_out:
                _LOG.warning("a model is called without a context: %s", compiled.reason)
            return request
        added = frame_context(compiled.text)
        return request.override(system_message=extend_message(request.system_message, added))


def find_last_question(messages: Sequence[AnyMessage]) -> str:
    """Return the text of the user's last message, or an empty string if there is none."""
    own = [one for one in messages if is_from_user(one)]
    return str(own[-1].text).strip() if own else ""


def extend_message(message: SystemMessage | None, text: str) -> SystemMessage:
    """Append a text to the system message. Its other parts, such as cache marks, stay."""
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": "\n\n".join(filter(None, (message.content, text)))})
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})

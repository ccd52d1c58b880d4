"""Calls of a chat model for structured output: limits of time and budget, malformed output."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.json import parse_json_markdown
from pydantic import BaseModel, ValidationError

from linkstore.core.arguments import require_model
from linkstore.core.calls import Call, Operation, await_call, make_call, request

T = TypeVar("T")
Output = TypeVar("Output", bound=BaseModel)
QUOTED_CHARACTERS: Final = 200
"""Characters of a malformed output that a message quotes."""
_IN_WORDS: Final = "Output nothing but a JSON object, without comments, for this JSON schema:\n"
_CUT_OFF: Final = frozenset({"LengthFinishReasonError", "ContentFilterFinishReasonError"})
"""Errors of the package openai for output that ended too early."""
_REFUSED: Final = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses with which a server may say that its model has no structured output."""


class CallTimeoutError(Exception):
    """A call was not done in time, and is not waited for any longer."""


def limit_time(seconds: float, requested: Call[T]) -> Call[T]:
    """Return the same call with a time limit in seconds, past which it raises CallTimeoutError.

    A blocking call that is late continues in its own thread, which does not keep the process from ending.
    """
    if math.isinf(seconds):
        return requested

    def blocking() -> T:
        context, done = copy_context(), Future[T]()

        def work() -> None:
            try:
                done.set_result(context.run(make_call, requested))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                done.set_exception(error)

        Thread(target=work, name="linkstore-call", daemon=True).start()
        if not wait_for([done], timeout=max(0.0, seconds)).done:
            raise CallTimeoutError
        return done.result()

    async def awaiting() -> T:
        limit = asyncio.timeout(max(0.0, seconds))
        try:
            async with limit:
                return await await_call(requested)
        except TimeoutError as error:
            if limit.expired():
                raise CallTimeoutError from error
            raise

    return Call(blocking, awaiting)


@dataclass(frozen=True, slots=True)
class MalformedOutput:
    """Output other than what was requested.

    Args:
        problem: What is wrong with it.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class ModelReply(Generic[Output]):
    """One reply of a model.

    Args:
        output: What was asked for, or what is wrong.
        text: The output as text.
        prompt_tokens: Tokens of the prompt as the model counts them; None if it does not say.
        output_tokens: The same of the output.
    """

    output: Output | MalformedOutput
    text: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None


class OutputModel:
    """A chat model asked for objects of a schema, in the way that it offers.

    That is structured output. A model without it, whose server refuses it, or that does not keep to it, is
    asked for JSON in words from then on. JSON in a message is taken anyway.

    Args:
        model: A chat model.

    Raises:
        ArgumentError: If it is not one.
    """

    def __init__(self, model: BaseChatModel) -> None:
        require_model("with_structured_output", model)
        self._model = model
        self._in_words = False

    def request(
        self,
        schema: type[Output],
        prompts: Sequence[Sequence[BaseMessage]],
        *,
        max_concurrency: int | None = None,
        seconds: float = math.inf,
    ) -> Operation[list[ModelReply[Output] | Exception]]:
        """Ask once for each prompt, at once. Return each reply, or the error that the call raised.

        Args:
            schema: What the model may say.
            prompts: The messages of each call.
            max_concurrency: How many calls may be under way; None, LangChain's default.
            seconds: How long each may take.

        Raises:
            CallTimeoutError: If one was not done in time.
        """
        config = RunnableConfig(max_concurrency=max_concurrency)
        requests = [list(prompt) for prompt in prompts]
        outputs: list[Any] = []
        if not self._in_words:
            try:
                structured = self._model.with_structured_output(schema, include_raw=True)
            except NotImplementedError:
                self._in_words = True
            else:
                outputs = yield from _call_all(structured, requests, config, seconds)
        refused = [
            at for at, output in enumerate(outputs) if getattr(output, "status_code", None) in _REFUSED
        ]
        if refused or self._in_words:
            asked = HumanMessage(_IN_WORDS + json.dumps(schema.model_json_schema(), ensure_ascii=False))
            places = refused or range(len(requests))
            messages = [[*requests[at], asked] for at in places]
            again = yield from _call_all(self._model, messages, config, seconds)
            outputs = outputs or [None] * len(requests)
            for at, output in zip(places, again, strict=True):
                if not isinstance(output, Exception):
                    self._in_words = True
                # Of two errors, the first says more: the second repeats what is wrong with the request.
                outputs[at] = (outputs[at] or output) if isinstance(output, Exception) else {"raw": output}
        self._in_words = self._in_words or any(isinstance(output, ValidationError) for output in outputs)
        return [_read_reply(output, schema) for output in outputs]


def _call_all(
    asked: Runnable[LanguageModelInput, Any],
    prompts: Sequence[list[BaseMessage]],
    config: RunnableConfig,
    seconds: float,
) -> Operation[list[Any]]:
    """Call a model with each prompt, for what it returns or raises."""
    if len(prompts) > 1:
        batch = Call(asked.batch, asked.abatch, (prompts, config), {"return_exceptions": True})
        return (yield from request(limit_time(seconds, batch)))
    single = Call(asked.invoke, asked.ainvoke, (prompts[0], config))
    try:
        return [(yield from request(limit_time(seconds, single)))]
    except CallTimeoutError:
        raise
    except Exception as error:  # noqa: BLE001 - returned
        return [error]


def _read_reply(given: Any, schema: type[Output]) -> ModelReply[Output] | Exception:
    """Read what a model returned: an error, or ``raw``, the message, and ``parsed`` or ``parsing_error``."""
    if isinstance(given, Exception):
        malformed = isinstance(given, ValidationError) or type(given).__name__ in _CUT_OFF
        return ModelReply(MalformedOutput(f"{given}"[: 2 * QUOTED_CHARACTERS])) if malformed else given
    raw, parsed, error = given["raw"], given.get("parsed"), given.get("parsing_error")
    text = _format_reply(raw)
    output: Output | MalformedOutput
    if isinstance(parsed, schema):
        output = parsed
    elif isinstance(raw, AIMessage) and raw.text.strip() and not raw.tool_calls:
        output = _read_json(str(raw.text), schema)
    elif error is not None:
        output = MalformedOutput(f"{error}"[: 2 * QUOTED_CHARACTERS])
    else:
        output = MalformedOutput(f"expected {schema.__name__}, got {text[:QUOTED_CHARACTERS]!r}")
    usage = raw.usage_metadata if isinstance(raw, AIMessage) else None
    return ModelReply(
        output, text, usage["input_tokens"] if usage else None, usage["output_tokens"] if usage else None
    )


def _read_json(text: str, schema: type[Output]) -> Output | MalformedOutput:
    """Read a JSON object in a text, which may stand in a block of code or after other words."""
    try:
        return schema.model_validate(parse_json_markdown(text[max(0, text.find("{")) :], parser=json.loads))
    except ValidationError as error:
        return MalformedOutput(f"{error}"[: 2 * QUOTED_CHARACTERS])
    except ValueError:
        return MalformedOutput(f"expected {schema.__name__} as JSON, got {text[:QUOTED_CHARACTERS]!r}")


def _format_reply(raw: object) -> str:
    if not isinstance(raw, AIMessage):
        return repr(raw)
    calls = [str(call["args"]) for call in (*raw.tool_calls, *raw.invalid_tool_calls)]
    return "\n".join([str(raw.text), *calls]).strip()

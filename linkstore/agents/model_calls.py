"""Calls of a chat model for structured output: repairs, retries, limits of time, errors with a next step."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, Final, Generic, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableSequence
from pydantic import BaseModel

from linkstore.agents.chat_models import METHOD_KEY, WORDS, get_base_url
from linkstore.agents.outputs import (
    QUOTED_CHARACTERS,
    Choices,
    MalformedOutputError,
    add_fields,
    make_json_schema,
    read_output,
)
from linkstore.core.arguments import require_model
from linkstore.core.calls import Call, Operation, arun, await_call, make_call, request, run
from linkstore.errors import AgentError, LinkStoreError

T = TypeVar("T")
Output = TypeVar("Output", bound=BaseModel)
TRIES: Final = 2
"""Output that is malformed is asked for once more."""
MOST_CONCURRENT: Final = 8
WAITS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before the further tries of a server that is too busy, unless it says how long."""
LONGEST_WAIT: Final = 60.0
_BUSY: Final = frozenset({429, 503, 529})
_REFUSED: Final = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses with which a server may say that its model has no structured output."""
_TOO_LONG: Final = re.compile(
    r"context[ _](?:size|length|window)|exceed_context|too long|too many tokens|maximum context",
    re.IGNORECASE,
)
_UNKNOWN_MODEL: Final = re.compile(
    r"model\b.{0,80}\b(?:not exist|not found|not available|unknown)|model_not_found"
    r"|unknown model|no such model|not found, try pulling",
    re.IGNORECASE | re.DOTALL,
)


class CallTimeoutError(Exception):
    """A call was not done in time, and is not waited for any longer."""


class PromptTooLongError(AgentError):
    """A prompt has more tokens than the model takes; the same prompt is not worth repeating."""


def limit_time(seconds: float, requested: Call[T]) -> Call[T]:
    """Return the same call with a time limit in seconds, past which it raises CallTimeoutError.

    A blocking call that is late continues in its own thread, which does not keep the process from ending.
    """
    if math.isinf(seconds):
        return requested

    def blocking() -> T:
        done = _begin(lambda: make_call(requested))
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


def _begin(work: Callable[[], T]) -> Future[T]:
    """Begin work in a thread of its own, for which neither Ctrl-C nor the end of the process waits."""
    context, done = copy_context(), Future[T]()

    def finish() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            done.set_exception(error)

    Thread(target=finish, name="linkstore-call", daemon=True).start()
    return done


@dataclass(frozen=True, slots=True)
class ModelReply(Generic[Output]):
    """The reply of a model to one prompt.

    Args:
        output: What was asked for; None if no output could be used, or a call failed.
        problem: What is wrong with the last output, or why the call failed; empty if nothing is.
        error: Why the call failed, where many are made at once; else it is raised.
        text: The output as text.
        prompt_tokens: Tokens of the prompts as the model counts them; None if it does not say.
        output_tokens: The same of the outputs.
        calls: How many calls it took.
        malformed: How many outputs could not be used.
    """

    output: Output | None
    problem: str = ""
    error: Exception | None = None
    text: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    calls: int = 0
    malformed: int = 0


class OutputModel:
    """A chat model asked for objects of a schema, in the way that it offers.

    The fields of the schema are added to the first message of each prompt. Where the model has structured
    output, and its server does not refuse it, the schema is forced as well.

    Args:
        model: A chat model.

    Raises:
        ArgumentError: If it is not one.
    """

    def __init__(self, model: BaseChatModel) -> None:
        require_model("with_structured_output", model)
        self._model = model
        self._method = (getattr(model, "metadata", None) or {}).get(METHOD_KEY)
        self._in_words = self._method == WORDS

    def request(
        self,
        schema: type[Output],
        prompt: Sequence[BaseMessage],
        *,
        choices: Choices | None = None,
        check: Callable[[Output], str] | None = None,
        tries: int = TRIES,
        seconds: float = math.inf,
    ) -> Operation[ModelReply[Output]]:
        """Ask until an output can be used, telling the model what was wrong with the one before.

        Args:
            schema: What the model may say.
            prompt: The messages of the call.
            choices: For fields by name, the values that they may have; a field without any is left out.
            check: Returns what is wrong with an output, or an empty string. It is then asked for once more;
                the last one is returned whether it passes or not.
            tries: How many outputs are asked for until one can be used; default 2.
            seconds: How long all of it may take.

        Raises:
            CallTimeoutError: If a call was not done in time.
            AgentError: If a call failed.
        """
        choices, deadline = choices or {}, time.monotonic() + seconds
        messages = base = add_fields(prompt, schema, choices)
        forced = make_json_schema(schema, choices)
        reply: ModelReply[Output] = ModelReply(None)
        for _ in range(tries):
            message = yield from self._call(forced, messages, deadline)
            output = None
            try:
                output = read_output(message, schema, choices)
                problem = check(output) if check else ""
            except MalformedOutputError as error:
                problem = f"{error}"
            reply = _add_message(reply, message, output, problem)
            if not problem:
                break
            text = f"Your last output could not be used: {problem}\nOutput the JSON object again."
            messages = [*base, HumanMessage(text)]
        return reply

    def request_all(
        self,
        schema: type[Output],
        prompts: Sequence[Sequence[BaseMessage]],
        *,
        choices: Choices | None = None,
        max_concurrency: int = MOST_CONCURRENT,
    ) -> Operation[list[ModelReply[Output]]]:
        """Ask for an output for each prompt, as :meth:`request` does, at most so many of them at once."""

        def ask(prompt: Sequence[BaseMessage]) -> Operation[ModelReply[Output]]:
            try:
                return (yield from self.request(schema, prompt, choices=choices))
            except Exception as error:  # noqa: BLE001 - returned
                return ModelReply(None, f"{error}", error)

        asking = [partial(ask, prompt) for prompt in prompts]
        batch: Call[list[ModelReply[Output]]] = Call(_run_all, _arun_all, (asking, max_concurrency))
        return (yield from request(batch))

    def _call(
        self, schema: dict[str, Any], messages: list[BaseMessage], deadline: float
    ) -> Operation[AIMessage]:
        """Call the model, with structured output as long as its server takes that."""
        structured = self._structure(schema)
        if structured is None:
            return (yield from self._call_until_ready(self._model, messages, deadline))
        try:
            return (yield from self._call_until_ready(structured, messages, deadline))
        except PromptTooLongError:
            raise
        except AgentError as error:
            status = get_status(error.__cause__)
            unknown = status == 404 and _UNKNOWN_MODEL.search(f"{error.__cause__}")
            if status not in _REFUSED or unknown:
                raise
            refusal = error
        try:
            message = yield from self._call_until_ready(self._model, messages, deadline)
        except AgentError:
            # Of two errors, the first says more: the second repeats what is wrong with the request.
            raise refusal from refusal.__cause__
        self._in_words = True
        return message

    def _structure(self, schema: dict[str, Any]) -> Runnable[LanguageModelInput, Any] | None:
        """Return the model bound to a schema, without the parser that would lose its message.

        None where it has no structured output, or is not to use it.
        """
        if self._in_words:
            return None
        options = {} if self._method is None else {"method": self._method}
        try:
            structured = self._model.with_structured_output(schema, **options)
        except NotImplementedError:
            return None
        return structured.first if isinstance(structured, RunnableSequence) else structured

    def _call_until_ready(
        self, model: Runnable[LanguageModelInput, Any], messages: list[BaseMessage], deadline: float
    ) -> Operation[AIMessage]:
        """Call the model, and wait while its server has no time."""
        waits = iter(WAITS)
        while True:
            left = deadline - time.monotonic()
            try:
                reply = yield from request(limit_time(left, Call(model.invoke, model.ainvoke, (messages,))))
                return reply if isinstance(reply, AIMessage) else AIMessage(str(reply))
            except (CallTimeoutError, LinkStoreError):
                raise
            except Exception as error:
                if (completion := getattr(error, "completion", None)) is not None:
                    return _read_completion(completion)
                usual = next(waits, None) if get_status(error) in _BUSY else None
                if usual is None:
                    raise _explain(error, self._model) from error
                pause = min(LONGEST_WAIT, _read_wait(error) or usual)
                yield from request(limit_time(left, Call(time.sleep, asyncio.sleep, (pause,))))


def _run_all(makers: Sequence[Callable[[], Operation[T]]], most: int) -> list[T]:
    """Run operations in threads that nothing joins, at most so many at a time."""
    waiting = iter(list(enumerate(makers)))
    results: dict[int, T] = {}

    def work() -> None:
        for at, make in waiting:
            results[at] = run(make())

    lanes = [_begin(work) for _ in range(min(most, len(makers)))]
    for lane in lanes:
        lane.result()
    return [results[at] for at in range(len(makers))]


async def _arun_all(makers: Sequence[Callable[[], Operation[T]]], most: int) -> list[T]:
    limit = asyncio.Semaphore(most)

    async def work(make: Callable[[], Operation[T]]) -> T:
        async with limit:
            return await arun(make())

    return list(await asyncio.gather(*map(work, makers)))


def _add_message(
    reply: ModelReply[Output], message: AIMessage, output: Output | None, problem: str
) -> ModelReply[Output]:
    """Return a reply with one more message."""
    usage: Any = message.usage_metadata or {}
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    called = [str(call["args"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]
    return ModelReply(
        output,
        problem[: 2 * QUOTED_CHARACTERS],
        text="\n".join([str(message.text), *called]).strip(),
        prompt_tokens=reply.prompt_tokens if sent is None else sent + (reply.prompt_tokens or 0),
        output_tokens=reply.output_tokens if received is None else received + (reply.output_tokens or 0),
        calls=reply.calls + 1,
        malformed=reply.malformed + bool(problem),
    )


def _read_completion(completion: Any) -> AIMessage:
    """Return the message of a completion that the package openai raises since it ended too early."""
    choice, usage = completion.choices[0], completion.usage
    message = AIMessage(choice.message.content or "", response_metadata={"finish_reason": "length"})
    if usage is not None:
        message.usage_metadata = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        }
    return message


def get_status(error: BaseException | None) -> int | None:
    """Return the status of a response of HTTP that an error tells of, None without one."""
    statuses = (getattr(own, "status_code", None) for own in (error, getattr(error, "response", None)))
    return next((status for status in statuses if isinstance(status, int)), None)


def _read_wait(error: Exception) -> float | None:
    """Return how many seconds a busy server asks to wait."""
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):  # none, or a date
            continue
    return None


def _explain(error: Exception, model: BaseChatModel) -> AgentError:
    """Return an error of a provider as ours: which model, where, its status, and the next step."""
    status, url = get_status(error), get_base_url(model)
    name = getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__
    message = " ".join(f"{error}".split()) or type(error).__name__
    step = _find_next_step(error, status, message, url)
    kind = PromptTooLongError if status in {400, 413, 422, None} and _TOO_LONG.search(message) else AgentError
    where = f" at {url}" if url else ""
    ended = f" with status {status}" if status else ""
    return kind(f"the model {name}{where} failed{ended}: {message}{f'; {step}' if step else ''}")


def _find_next_step(error: Exception, status: int | None, message: str, url: str) -> str:
    kind = type(error).__name__
    if status in {401, 403}:
        return "set the key of its provider, such as OPENAI_API_KEY; a local server takes any"
    if status == 404:
        return "check the name of the model, and that the base URL ends as its server says, such as /v1"
    if status in _BUSY:
        return "the server has no time; try again later, or allow fewer calls a second"
    if _TOO_LONG.search(message):
        return "tell the size of the model's context, or start its server with a larger one"
    if status == 400 and "temperature" in message:
        return "the model takes its own temperature alone; set that, such as 1"
    if "Timeout" in kind or "timed out" in message:
        return "allow more seconds for a call, or use a smaller model"
    if "Connect" in kind:
        return f"start the server{'' if url else ' of the model'}, or give the base URL where it listens"
    if isinstance(error, AttributeError | TypeError | KeyError):
        return "what answers there is no server of chat models; check the base URL"
    return ""

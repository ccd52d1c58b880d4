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
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
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
class MalformedOutput:
    """Output other than what was requested.

    Args:
        problem: What is wrong with it.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class ModelReply(Generic[Output]):
    """The reply of a model to one prompt.

    Args:
        output: What was asked for, or what is wrong with the last of its outputs.
        text: The output as text.
        prompt_tokens: Tokens of the prompts as the model counts them; None if it does not say.
        output_tokens: The same of the outputs.
        calls: How many calls it took.
        malformed: How many outputs could not be used.
    """

    output: Output | MalformedOutput
    text: str = ""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    calls: int = 1
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
        prompts: Sequence[Sequence[BaseMessage]],
        *,
        choices: Choices | None = None,
        check: Callable[[Output], str] | None = None,
        tries: int = TRIES,
        max_concurrency: int | None = None,
        seconds: float = math.inf,
    ) -> Operation[list[ModelReply[Output] | Exception]]:
        """Ask for an output for each prompt, at once. Return each reply, or the error that the call raised.

        Args:
            schema: What the model may say.
            prompts: The messages of each call.
            choices: For fields by name, the values that they may have; a field without any is left out.
            check: Returns what is wrong with an output, or an empty string. It is then asked for once more;
                the last one is returned whether it passes or not.
            tries: How many outputs are asked for until one can be used; default 2.
            max_concurrency: How many calls may be under way; default 8.
            seconds: How long all of it may take.

        Raises:
            CallTimeoutError: If a call was not done in time.
        """
        asked = _Request(schema, choices or {}, check, tries, time.monotonic() + seconds)
        if len(prompts) == 1:
            return [(yield from self._catch(asked, prompts[0]))]
        most = max_concurrency or MOST_CONCURRENT
        makers = [partial(self._catch, asked, prompt) for prompt in prompts]
        batch: Call[list[ModelReply[Output] | Exception]] = Call(_run_all, _arun_all, (makers, most))
        return (yield from request(batch))

    def _catch(
        self, asked: _Request[Output], prompt: Sequence[BaseMessage]
    ) -> Operation[ModelReply[Output] | Exception]:
        try:
            return (yield from self._ask(asked, prompt))
        except CallTimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - returned
            return error

    def _ask(self, asked: _Request[Output], prompt: Sequence[BaseMessage]) -> Operation[ModelReply[Output]]:
        """Ask until an output can be used, telling the model what was wrong with the one before."""
        messages = base = add_fields(prompt, asked.schema, asked.choices)
        reply: ModelReply[Output] = ModelReply(MalformedOutput("nothing was asked"), calls=0)
        for last in [False] * (asked.tries - 1) + [True]:
            message = yield from self._call(asked, messages)
            output, problem = asked.read(message)
            reply = _add_message(reply, message, output, malformed=bool(problem))
            if not problem or last:
                break
            text = f"Your last output could not be used: {problem}\nOutput the JSON object again."
            messages = [*base, HumanMessage(text)]
        return reply

    def _call(self, asked: _Request[Any], messages: list[BaseMessage]) -> Operation[AIMessage]:
        """Call the model, with structured output as long as its server takes that."""
        if not self._in_words:
            try:
                structured = self._structure(asked)
            except NotImplementedError:
                self._in_words = True
            else:
                try:
                    return (yield from self._call_until_ready(asked, structured, messages))
                except PromptTooLongError:
                    raise
                except AgentError as error:
                    if get_status(error.__cause__) not in _REFUSED or _names_unknown_model(error):
                        raise
                    refusal = error
                try:
                    message = yield from self._call_until_ready(asked, self._model, messages)
                except AgentError:
                    # Of two errors, the first says more: the second repeats what is wrong with the request.
                    raise refusal from refusal.__cause__
                self._in_words = True
                return message
        return (yield from self._call_until_ready(asked, self._model, messages))

    def _structure(self, asked: _Request[Any]) -> Runnable[LanguageModelInput, Any]:
        """Return the model bound to a schema, without the parser that would lose its message."""
        schema = make_json_schema(asked.schema, asked.choices)
        options = {} if self._method is None else {"method": self._method}
        structured = self._model.with_structured_output(schema, **options)
        return structured.first if isinstance(structured, RunnableSequence) else structured

    def _call_until_ready(
        self, asked: _Request[Any], model: Runnable[LanguageModelInput, Any], messages: list[BaseMessage]
    ) -> Operation[AIMessage]:
        """Call the model, and wait while its server has no time."""
        for number in count():
            left = asked.deadline - time.monotonic()
            try:
                reply = yield from request(limit_time(left, Call(model.invoke, model.ainvoke, (messages,))))
            except (CallTimeoutError, LinkStoreError):
                raise
            except Exception as error:
                if (completion := getattr(error, "completion", None)) is not None:
                    return _read_completion(completion)
                if get_status(error) in _BUSY and number < len(WAITS):
                    pause = min(LONGEST_WAIT, _read_wait(error) or WAITS[number])
                    yield from request(limit_time(left, Call(time.sleep, asyncio.sleep, (pause,))))
                    continue
                raise _explain(error, self._model) from error
            return reply if isinstance(reply, AIMessage) else AIMessage(str(reply))
        raise AssertionError("the loop ends by a return or an error")


@dataclass(frozen=True, slots=True)
class _Request(Generic[Output]):
    """What a model is asked for, how often, and until when."""

    schema: type[Output]
    choices: Choices
    check: Callable[[Output], str] | None
    tries: int
    deadline: float

    def read(self, message: AIMessage) -> tuple[Output | MalformedOutput, str]:
        """Return the output of a message, and what is wrong with it."""
        try:
            output = read_output(message, self.schema, self.choices)
        except MalformedOutputError as error:
            return MalformedOutput(f"{error}"[: 2 * QUOTED_CHARACTERS]), f"{error}"
        return output, self.check(output) if self.check is not None else ""


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
    reply: ModelReply[Output], message: AIMessage, output: Output | MalformedOutput, *, malformed: bool
) -> ModelReply[Output]:
    """Return a reply with one more message."""
    usage: Any = message.usage_metadata or {}
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    return replace(
        reply,
        output=output,
        text=_format_message(message),
        prompt_tokens=reply.prompt_tokens if sent is None else sent + (reply.prompt_tokens or 0),
        output_tokens=reply.output_tokens if received is None else received + (reply.output_tokens or 0),
        calls=reply.calls + 1,
        malformed=reply.malformed + malformed,
    )


def _format_message(message: AIMessage) -> str:
    calls = [str(call["args"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]
    return "\n".join([str(message.text), *calls]).strip()


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


def _names_unknown_model(error: Exception) -> bool:
    return get_status(error.__cause__) == 404 and _UNKNOWN_MODEL.search(f"{error.__cause__}") is not None


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

"""A chat model that follows a script, for tests of agents and chains without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, PrivateAttr, SkipValidation

from linkstore.core.processes import Lock

ScriptedAnswer: TypeAlias = str | AIMessage | BaseModel | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""An answer of a scripted model; see :class:`ScriptedChatModel`."""
ScriptEntry: TypeAlias = (
    ScriptedAnswer | BaseException | type[BaseException] | Callable[[Sequence[BaseMessage]], Any]
)
"""One entry of a script."""
Script: TypeAlias = Sequence[ScriptEntry] | Callable[[Sequence[BaseMessage]], Any]
TOOL_CALL: Final = "tool_call"
INVALID_TOOL_CALL: Final = "invalid_tool_call"
CHUNK_LETTERS: Final = 16
"""The number of characters of a tool call's arguments in one chunk of a stream."""


class ScriptError(Exception):
    """A scripted model has no answer left, or one that does not fit the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a scripted model.

    Args:
        messages: The messages that the model was sent.
        tools: The tools bound to the model, in OpenAI's form, including tools for structured output.
        tool_choice: The tool that the model was told to use; None: its own choice.
        options: The other arguments of the call, such as ``response_format`` or ``stop``.
    """

    messages: tuple[BaseMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: Any = None
    options: Mapping[str, Any]

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(name for tool in self.tools if (name := get_tool_name(tool)))

    def output_tool(self) -> str:
        """Return the tool whose arguments are the structured output: the chosen tool, or the only one.

        Raises:
            ScriptError: If there are several tools and none is chosen, or there is no tool.
        """
        chosen = (
            get_tool_name(self.tool_choice) if isinstance(self.tool_choice, Mapping) else self.tool_choice
        )
        if chosen in self.tool_names:
            return str(chosen)
        if len(self.tool_names) == 1:
            return self.tool_names[0]
        tools = ", ".join(self.tool_names) or "none"
        raise ScriptError(
            "the script answers with arguments of a tool that it does not name, but the tools of this call"
            f" are: {tools}; answer with tool_call(name=..., args=..., id=None)"
        )


def get_tool_name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool in OpenAI's form, or of its type for a tool built into a provider."""
    name = tool.get("function", {}).get("name") or tool.get("name") or tool.get("type")
    return name if isinstance(name, str) else None


def make_message(said: ScriptedAnswer, call: ModelCall, number: int) -> AIMessage:
    """Convert an answer to a message, in which tool calls without an id get one from the call's number.

    Raises:
        ScriptError: If this cannot be an answer to this call.
    """
    if isinstance(said, AIMessage):
        return said.model_copy()
    if isinstance(said, str):
        return AIMessage(said)
    entries: Sequence[Any] = said if isinstance(said, Sequence) else [said]
    message = AIMessage("")
    for place, entry in enumerate(entries, 1):
        kind = entry.get("type") if isinstance(entry, Mapping) else None
        id = f"call-{number}-{place}"
        if kind in (TOOL_CALL, INVALID_TOOL_CALL):
            fields: dict[str, Any] = {**entry, "id": entry.get("id") or id}
            if kind == TOOL_CALL:
                message.tool_calls.append(cast("ToolCall", {**fields, "args": dict(entry["args"])}))
            else:
                named = fields.get("name") or call.output_tool()
                message.invalid_tool_calls.append(cast("InvalidToolCall", {**fields, "name": named}))
        elif "response_format" in call.options and entry is said:
            return AIMessage(json.dumps(_make_arguments(entry), ensure_ascii=False))
        else:
            name = type(entry).__name__ if isinstance(entry, BaseModel) else call.output_tool()
            if name not in call.tool_names:
                tools = ", ".join(call.tool_names) or "none"
                raise ScriptError(
                    f"the script answers with a {name}, but the tools of this call are: {tools}"
                )
            message.tool_calls.append(tool_call(name=name, args=_make_arguments(entry), id=id))
    return message


def _make_arguments(said: object) -> dict[str, Any]:
    """Return structured output as JSON values."""
    if isinstance(said, BaseModel):
        return said.model_dump(mode="json")
    if isinstance(said, Mapping):
        return dict(said)
    raise ScriptError(
        f"{said!r} is not an answer; a script has texts, messages, tool calls, objects, errors and functions"
    )


def split_message(message: AIMessage) -> Iterator[AIMessageChunk]:
    """Split a message as a model streams it: into words of the text, then pieces of each tool call."""
    whole = not isinstance(message.content, str)
    parts = [[*message.content]] if whole else re.findall(r" ?[^ ]+| ", str(message.content))
    yield from (AIMessageChunk(content=part, id=message.id) for part in parts)
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    for index, called in enumerate(calls):
        args = called["args"]
        text = args if isinstance(args, str) else json.dumps(args or {}, ensure_ascii=False)
        pieces = [text[start : start + CHUNK_LETTERS] for start in range(0, len(text), CHUNK_LETTERS)]
        first = tool_call_chunk(name=called["name"], args="", id=called["id"], index=index)
        for piece in [first, *(tool_call_chunk(args=piece, index=index) for piece in pieces)]:
            yield AIMessageChunk(content="", id=message.id, tool_call_chunks=[piece])
    yield AIMessageChunk(
        content="",
        id=message.id,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


class ScriptedChatModel(BaseChatModel):
    """A chat model that follows a script of answers, and records its calls.

    ::

        from langchain_core.messages.tool import tool_call

        model = ScriptedChatModel(
            script=[
                tool_call(name="search", args={"question": "Who built it?"}, id=None),
                "Nobody knows.",
            ]
        )
        agent = create_agent(model, tools)

    An answer of a script is one of these:

    - a text, or an ``AIMessage``;
    - what langchain-core's ``tool_call()`` and ``invalid_tool_call()`` return, or a list of such calls, for
      several calls in one message; ``invalid_tool_call(args="{not json")`` is malformed structured output;
    - structured output: an object of the Pydantic class that is asked for, or a dict of its fields;
    - an exception, or a class of exceptions, which is raised;
    - a function of the messages, which returns one of the above. It runs where the model is called, in the
      event loop for async calls.

    A function in place of the list answers every call.

    ``bind_tools``, ``with_structured_output``, and the response formats of LangChain's ``create_agent`` work
    as with models that call tools; with ``profile={"structured_output": True}`` structured output is JSON
    text. Streams have a chunk for each word and for every few characters of arguments. Calls from several
    threads take the answers in the order in which they come. Copies of a model share script and record.
    LangChain's global cache is not used unless ``cache`` says so.

    Attributes:
        script: The answers, in order; or a function of the messages.
        model: The name of the model in traces.

    Raises:
        ScriptError: From a call, if the script has no more answers, or the next one does not fit.
    """

    script: SkipValidation[Script]
    model: str = "scripted"
    cache: BaseCache | bool | None = Field(default=False, exclude=True)
    _calls: list[ModelCall] = PrivateAttr(default_factory=list)
    _lock: Lock = PrivateAttr(default_factory=Lock)

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a ``script`` that is neither a list of answers nor a function."""
        super().model_post_init(context)
        if isinstance(self.script, str) or not (callable(self.script) or isinstance(self.script, Sequence)):
            raise ScriptError(
                f"a script is a list of answers, or a function of the messages, not {self.script!r}"
            )

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The calls so far, in order, including calls that ended with an error."""
        with self._lock:
            return tuple(self._calls)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return a model with these tools, and with the same script and record.

        Args:
            tools: Tools, functions, Pydantic classes, or dicts in OpenAI's form.
            tool_choice: The tool that must be used; recorded, and not enforced.
            kwargs: Recorded.
        """
        bound = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=bound, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = self._answer(messages, stop, kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in split_message(self._answer(messages, stop, kwargs)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.text), chunk=chunk)
            yield chunk

    def _answer(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: dict[str, Any]
    ) -> AIMessage:
        """Record a call, and return the next answer of the script as a message."""
        rest = {name: value for name, value in options.items() if name not in {"tools", "tool_choice"}}
        call = ModelCall(
            messages=tuple(messages),
            tools=tuple(options.get("tools") or ()),
            tool_choice=options.get("tool_choice"),
            options=rest | ({"stop": stop} if stop else {}),
        )
        with self._lock:
            self._calls.append(call)
            number = len(self._calls)
        return make_message(self._find_answer(call, number), call, number)

    def _find_answer(self, call: ModelCall, number: int) -> ScriptedAnswer:
        """Return the answer to the call of this number, counted from 1."""
        if callable(self.script):
            answer: Any = self.script
        elif number <= len(self.script):
            answer = self.script[number - 1]
        else:
            last = str(call.messages[-1].text)[:200] if call.messages else ""
            raise ScriptError(
                f"the script has {len(self.script)} answers, and this is call {number};"
                f" its last message is {last!r}"
            )
        if callable(answer) and not isinstance(answer, type):
            answer = answer(call.messages)
        if isinstance(answer, BaseException) or (
            isinstance(answer, type) and issubclass(answer, BaseException)
        ):
            raise answer
        return answer  # type: ignore[no-any-return]

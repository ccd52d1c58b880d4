"""Answers of a scripted model, as the messages that a real model would send."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    ToolCallChunk,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from pydantic import BaseModel

from linkstore.errors import ScriptError

Said: TypeAlias = str | AIMessage | BaseModel | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""An answer of a scripted model; see :class:`~linkstore.testing.ScriptedChatModel`."""
Answer: TypeAlias = Said | BaseException | type[BaseException] | Callable[[Sequence[BaseMessage]], Any]
"""One entry of a script."""
Script: TypeAlias = Sequence[Answer] | Callable[[Sequence[BaseMessage]], Any]
CALL: Final = "tool_call"
MALFORMED: Final = "invalid_tool_call"
PIECE: Final = 16
"""The number of characters of a tool call's arguments in one chunk of a stream."""


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
        return tuple(name for tool in self.tools if (name := tool_name(tool)))

    def output_tool(self) -> str:
        """Return the tool whose arguments are the structured output: the chosen tool, or the only one.

        Raises:
            ScriptError: If there are several tools and none is chosen, or there is no tool.
        """
        chosen = tool_name(self.tool_choice) if isinstance(self.tool_choice, Mapping) else self.tool_choice
        if chosen in self.tool_names:
            return str(chosen)
        if len(self.tool_names) == 1:
            return self.tool_names[0]
        tools = ", ".join(self.tool_names) or "none"
        raise ScriptError(
            "the script answers with arguments of a tool that it does not name, but the tools of this call"
            f" are: {tools}; answer with tool_call(name=..., args=..., id=None)"
        )


def tool_name(tool: Mapping[str, Any]) -> str | None:
    """Return the name of a tool in OpenAI's form, or of its type for a tool built into a provider."""
    name = tool.get("function", {}).get("name") or tool.get("name") or tool.get("type")
    return name if isinstance(name, str) else None


def message_of(said: Said, call: ModelCall, number: int) -> AIMessage:
    """Convert an answer to a message, in which tool calls without an id get one from the call's number.

    Raises:
        ScriptError: If this cannot be an answer to this call.
    """
    if isinstance(said, AIMessage):
        return said.model_copy()
    if isinstance(said, str):
        return AIMessage(said)
    as_text = "response_format" in call.options and not isinstance(said, Sequence)
    if as_text and _type_of(said) not in {CALL, MALFORMED}:
        return AIMessage(json.dumps(_arguments(said), ensure_ascii=False))
    entries: Sequence[object] = said if isinstance(said, Sequence) else [said]
    message = AIMessage("")
    for place, entry in enumerate(entries, 1):
        id = f"call-{number}-{place}"
        if _type_of(entry) == MALFORMED:
            message.invalid_tool_calls.append(_malformed(entry, call, id))
        else:
            message.tool_calls.append(_called(entry, call, id))
    return message


def _type_of(said: object) -> str | None:
    """Return langchain-core's name for the type of an answer, or None."""
    return said.get("type") if isinstance(said, Mapping) else None


def _malformed(said: Any, call: ModelCall, id: str) -> InvalidToolCall:
    """Make a call with arguments that are not JSON."""
    name = said.get("name") or call.output_tool()
    return invalid_tool_call(
        name=name, args=said.get("args"), id=said.get("id") or id, error=said.get("error")
    )


def _called(said: Any, call: ModelCall, id: str) -> ToolCall:
    """Make a call of a tool, also for structured output, which is such a call."""
    if _type_of(said) == CALL:
        return tool_call(name=said["name"], args=dict(said["args"]), id=said.get("id") or id)
    return tool_call(name=_output_name(said, call), args=_arguments(said), id=id)


def _output_name(said: object, call: ModelCall) -> str:
    """Return the tool that an object of structured output belongs to, which has the name of its class."""
    if not isinstance(said, BaseModel):
        return call.output_tool()
    name = type(said).__name__
    if name not in call.tool_names:
        tools = ", ".join(call.tool_names) or "none"
        raise ScriptError(f"the script answers with a {name}, but the tools of this call are: {tools}")
    return name


def _arguments(said: object) -> dict[str, Any]:
    """Return structured output as JSON values."""
    if isinstance(said, BaseModel):
        return said.model_dump(mode="json")
    if isinstance(said, Mapping):
        return dict(said)
    raise ScriptError(
        f"{said!r} is not an answer; a script has texts, messages, tool calls, objects, errors and functions"
    )


def chunks_of(message: AIMessage) -> Iterator[AIMessageChunk]:
    """Split a message as a model streams it: into words of the text, then pieces of each tool call."""
    if isinstance(message.content, str):
        words = re.findall(r" ?[^ ]+| ", message.content)
        yield from (AIMessageChunk(content=word, id=message.id) for word in words)
    else:
        yield AIMessageChunk(content=[*message.content], id=message.id)
    calls: list[ToolCall | InvalidToolCall] = [*message.tool_calls, *message.invalid_tool_calls]
    for index, called in enumerate(calls):
        for piece in _call_chunks(called, index):
            yield AIMessageChunk(content="", id=message.id, tool_call_chunks=[piece])
    yield AIMessageChunk(
        content="",
        id=message.id,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


def _call_chunks(called: ToolCall | InvalidToolCall, index: int) -> Iterator[ToolCallChunk]:
    """Yield the name, then the arguments piece by piece."""
    arguments = called["args"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    yield tool_call_chunk(name=called["name"], args="", id=called["id"], index=index)
    for start in range(0, len(text), PIECE):
        yield tool_call_chunk(args=text[start : start + PIECE], index=index)

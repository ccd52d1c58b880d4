"""Structured output of chat models: the value returned, and the problem with malformed output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from linkstore.arguments import require_model
from linkstore.errors import AgentError

Output = TypeVar("Output", bound=BaseModel)
OUTPUT_SHOWN = 200
"""Characters of a malformed output that a message quotes."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Output that is not what was asked for.

    Args:
        problem: What is wrong with it.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class Reply(Generic[Output]):
    """One reply of a model.

    Args:
        output: What was asked for, or what is wrong.
        tokens: Tokens of prompt and output as the model counts them; None if it does not say.
        text: The output as text.
    """

    output: Output | Malformed
    tokens: int | None
    text: str


def structured(model: BaseChatModel, schema: type[BaseModel]) -> Runnable[LanguageModelInput, Any]:
    """Return a runnable whose output :func:`reply_of` reads.

    Raises:
        AgentError: If the model has no structured output.
        ArgumentError: If it is not a model.
    """
    require_model("with_structured_output", model)
    try:
        return model.with_structured_output(schema, include_raw=True)
    except NotImplementedError as error:
        raise AgentError(
            f"{type(model).__name__} has no structured output; use a chat model that can call tools"
        ) from error


def reply_of(given: Mapping[str, Any], schema: type[Output]) -> Reply[Output]:
    """Read what a runnable of :func:`structured` returned."""
    raw, parsed, error = given.get("raw"), given.get("parsed"), given.get("parsing_error")
    usage = raw.usage_metadata if isinstance(raw, AIMessage) else None
    text = _text(raw)
    if isinstance(parsed, schema):
        output: Output | Malformed = parsed
    elif error is not None:
        output = Malformed(f"{error}"[: 2 * OUTPUT_SHOWN])
    else:
        output = Malformed(f"expected {schema.__name__}, got {text[:OUTPUT_SHOWN]!r}")
    return Reply(output, usage["total_tokens"] if usage else None, text)


def _text(raw: object) -> str:
    if not isinstance(raw, AIMessage):
        return repr(raw)
    calls = [str(call["args"]) for call in (*raw.tool_calls, *raw.invalid_tool_calls)]
    return "\n".join([str(raw.text), *calls]).strip()

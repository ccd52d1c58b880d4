"""Structured output of a model: its fields in words and as a JSON schema, and how it is read from a reply.

Servers force a schema upon a model, but many do not show it; so the fields stand in the prompt, and lists
have bounds, without which a small model may not end. What a reply says is taken wherever it is clear: JSON
within a block of code, after reasoning, or cut off; a number for a text, one value for a list, null for none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.utils.json import parse_partial_json
from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel, ValidationError, field_validator

from linkstore.core.text import is_unicode

Output = TypeVar("Output", bound=BaseModel)
Choices = Mapping[str, Sequence[str]]
"""For fields by name, the values that they may have; without any, the field is left out."""
QUOTED_CHARACTERS: Final = 200
"""Characters of a malformed output that a message quotes."""
MOST_ITEMS: Final = 20
"""Items of a list whose field sets no other bound."""
_REASONING: Final = re.compile(r"^.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BARE_NUMBER: Final = re.compile(r"(?<=[\[,\s])(P\d+)(?=\s*[\],])")
"""The number of a passage without quotes."""
_MOST_STARTS: Final = 50
"""Braces of a text that may begin its object."""
_MOST_PROBLEMS: Final = 3
_WORDS: Final = {"string": "text", "boolean": "true or false", "integer": "number", "number": "number"}
"""What a model is told of the types of JSON."""


LONGEST_STATEMENT: Final = 600
"""Characters of a statement."""
LONGEST_TEXT: Final = 10_000
"""Characters of a text. A longer one is malformed: all prompts that follow would carry it."""


class MalformedOutputError(ValueError):
    """Output is malformed; the message tells a model in which way."""


class Action(BaseModel):
    """Structured output of one step.

    A text of more than 10,000 characters is malformed, and one with a NUL character or a lone surrogate.
    """

    @field_validator("*")
    @classmethod
    def _check_texts(cls, value: object) -> object:
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and len(text) > LONGEST_TEXT:
                raise ValueError(f"a text has {len(text):,} characters; write at most {LONGEST_TEXT:,}")
            if isinstance(text, str) and not is_text(text):
                raise ValueError("a text has a NUL character or a lone surrogate")
        return value


def is_text(text: str) -> bool:
    """Say whether a text has neither NUL characters nor lone surrogates."""
    return "\0" not in text and is_unicode(text)


def add_fields(
    prompt: Sequence[BaseMessage], schema: type[BaseModel], choices: Choices | None = None
) -> list[BaseMessage]:
    """Return a prompt with the fields to output in its first message, a line for each."""
    task, *others = prompt
    fields = _list_fields(make_json_schema(schema, choices or {}), "")
    lines = ["Output one JSON object with these fields:", *fields]
    return [SystemMessage("\n\n".join([str(task.text), "\n".join(lines)])), *others]


def _list_fields(schema: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        value = field.get("anyOf", [field])[0]
        item = value.get("items", value)
        kind = _WORDS.get(item["type"], "object")
        if "enum" in item:
            kind = "one of " + ", ".join(item["enum"])
        if "items" in value:
            least, most = value["minItems"], value["maxItems"]
            kind = f"list of {f'{least} to' if least else 'at most'} {most}: {kind}"
        yield f'{indent}- "{name}" ({kind}): {field.get("description", "")}'.rstrip(": ")
        if "properties" in item:
            yield from _list_fields(item, f"{indent}  ")


def make_json_schema(schema: type[BaseModel], choices: Choices) -> dict[str, Any]:
    """Return the JSON schema to force upon a model: all fields required, without references and defaults."""
    title = {"title": schema.__name__, "description": " ".join((schema.__doc__ or "").split())}
    return title | _force_object(dereference_refs(schema.model_json_schema()), choices)


def _force_object(schema: Mapping[str, Any], choices: Choices) -> dict[str, Any]:
    properties = {
        name: _force_value(name, field, choices)
        | ({"description": field["description"]} if "description" in field else {})
        for name, field in schema["properties"].items()
        if choices.get(name, True)
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _force_value(name: str, schema: Mapping[str, Any], choices: Choices) -> dict[str, Any]:
    if "anyOf" in schema:
        value, null = schema["anyOf"]
        return {"anyOf": [_force_value(name, value, choices), null]}
    if schema["type"] == "object":
        return _force_object(schema, choices)
    if schema["type"] == "array":
        items = _force_value(name, schema["items"], choices)
        bounds = {"minItems": schema.get("minItems", 0), "maxItems": schema.get("maxItems", MOST_ITEMS)}
        return {"type": "array", "items": items, **bounds}
    if values := choices.get(name, schema.get("enum")):
        return {"type": "string", "enum": list(values)}
    return {key: schema[key] for key in ("type", "maxLength") if key in schema}


def read_output(message: AIMessage, schema: type[Output], choices: Choices) -> Output:
    """Read what a message says, as structured output or as a text.

    Raises:
        MalformedOutputError: If it is not what was asked for.
    """
    called = [*message.tool_calls, *message.invalid_tool_calls]
    value: Any = called[0]["args"] if called else str(message.text)
    value = value if isinstance(value, dict) else str(value or "")
    details = message.response_metadata
    cut = "length" in (details.get("finish_reason"), details.get("done_reason"))
    if isinstance(value, str):
        text = _REASONING.sub("", value)
        value, whole = _find_object(text, schema)
        cut = cut or not whole
        if value is None:
            raise MalformedOutputError(f"expected a JSON object, got {text.strip()[:QUOTED_CHARACTERS]!r}")
    made = _coerce(value, "", dereference_refs(schema.model_json_schema()), choices)
    if cut:
        made = _drop_unfinished(made, schema)
        lists = (value for value in made.values() if isinstance(value, list))
        if not any(isinstance(item, Mapping) for item in chain.from_iterable(lists)):
            raise MalformedOutputError("it was cut off at the limit of its length; write less")
    try:
        return schema.model_validate(made)
    except ValidationError as error:
        raise MalformedOutputError(_describe_problems(error)) from error


def _find_object(text: str, schema: type[BaseModel]) -> tuple[dict[str, Any] | None, bool]:
    """Find the object of a text that has fields of the schema, and say whether it is whole."""
    starts = [match.start() for match in re.finditer(r"\{", text)][:_MOST_STARTS]
    decoder = json.JSONDecoder(strict=False)
    for read, whole in (
        (lambda part: decoder.raw_decode(part)[0], True),
        (lambda part: decoder.raw_decode(_BARE_NUMBER.sub(r'"\1"', part))[0], True),
        (parse_partial_json, False),
    ):
        for start in starts:
            with suppress(ValueError, RecursionError):
                value = read(text[start:])
                inner = value.values() if isinstance(value, dict) else ()
                for candidate in (value, *inner):
                    if isinstance(candidate, dict) and schema.model_fields.keys() & candidate.keys():
                        return candidate, whole
    return None, False


def _coerce(value: Any, name: str, schema: Mapping[str, Any], choices: Choices) -> Any:
    """Return a value of the type of its field, where it is clear which is meant."""
    schema = schema.get("anyOf", [schema])[0]
    if schema["type"] == "array":
        listed = [part for part in (value if isinstance(value, list) else [value]) if part not in (None, "")]
        items = [_coerce(part, name, schema["items"], choices) for part in listed]
        distinct = [part for at, part in enumerate(items) if part not in items[:at]]
        return distinct[: schema.get("maxItems")]
    if schema["type"] == "object":
        if not isinstance(value, Mapping):
            return value
        fields = schema["properties"].items()
        return {
            own: _coerce(value[own], own, field, choices)
            for own, field in fields
            if value.get(own) is not None
        }
    values = choices.get(name, schema.get("enum"))
    if values and isinstance(value, str):
        return next((choice for choice in values if choice.casefold() == value.strip().casefold()), value)
    return str(value) if schema["type"] == "string" and isinstance(value, int | float) else value


def _drop_unfinished(made: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Leave out the items of lists that lack something, as the last of output that was cut off does."""
    try:
        schema.model_validate(made)
    except ValidationError as error:
        broken = {problem["loc"][:2] for problem in error.errors()}
        for name, value in made.items():
            if isinstance(value, list):
                made[name] = [item for at, item in enumerate(value) if (name, at) not in broken]
    return made


def _describe_problems(error: ValidationError) -> str:
    """Describe what is wrong with an output, in words for a model."""
    problems = [
        f'"{".".join(str(part) for part in problem["loc"])}": {problem["msg"]}'
        for problem in error.errors(include_url=False)
    ]
    return "; ".join(problems[:_MOST_PROBLEMS])

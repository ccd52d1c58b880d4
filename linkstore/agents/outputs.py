"""Structured output of a model: its fields in words and as a JSON schema, and how it is read from a reply.

Servers force a schema upon a model, but many do not show it; so the fields stand in the prompt, and lists
have bounds, without which a small model may not end. What a reply says is taken wherever it is clear: JSON
within a block of code, after reasoning, or cut off; a number for a text, one value for a list, null for none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

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
_WORDS: Final[Mapping[Any, str]] = {str: "text", bool: "true or false", int: "number", float: "number"}


class MalformedOutputError(ValueError):
    """Output is malformed; the message tells a model in which way."""


def add_fields(
    prompt: Sequence[BaseMessage], schema: type[BaseModel], choices: Choices | None = None
) -> list[BaseMessage]:
    """Return a prompt with the fields to output in its first message, a line for each."""
    task, *others = prompt
    lines = ["Output one JSON object with these fields:", *_list_fields(schema, choices or {}, "")]
    return [SystemMessage("\n\n".join([str(task.text), "\n".join(lines)])), *others]


def _list_fields(schema: type[BaseModel], choices: Choices, indent: str) -> Iterator[str]:
    for name, field in _select_fields(schema, choices):
        item, is_list = _read_kind(field)
        values = _list_values(item, name, choices)
        nested = isinstance(item, type) and issubclass(item, BaseModel)
        kind = "object" if nested else "one of " + ", ".join(values) if values else _WORDS.get(item, "text")
        if is_list:
            least, most = _read_bounds(field)
            kind = f"list of {f'{least} to' if least else 'at most'} {most}: {kind}"
        yield f'{indent}- "{name}" ({kind}): {field.description or ""}'.rstrip(": ")
        if nested:
            yield from _list_fields(item, choices, f"{indent}  ")


def make_json_schema(schema: type[BaseModel], choices: Choices) -> dict[str, Any]:
    """Return the JSON schema to force upon a model: all fields required, without references and defaults."""
    title = {"title": schema.__name__, "description": " ".join((schema.__doc__ or "").split())}
    return title | _make_object(schema, choices)


def _make_object(schema: type[BaseModel], choices: Choices) -> dict[str, Any]:
    properties = {
        name: _make_property(name, field, choices) for name, field in _select_fields(schema, choices)
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _make_property(name: str, field: FieldInfo, choices: Choices) -> dict[str, Any]:
    item, is_list = _read_kind(field)
    made: dict[str, Any]
    if isinstance(item, type) and issubclass(item, BaseModel):
        made = _make_object(item, choices)
    elif values := _list_values(item, name, choices):
        made = {"type": "string", "enum": values}
    else:
        made = {"type": {bool: "boolean", int: "integer", float: "number"}.get(item, "string")}
        if longest := _read_limit(field, "max_length") if made["type"] == "string" and not is_list else None:
            made["maxLength"] = longest
    if _allows_none(field.annotation):
        made = {"anyOf": [made, {"type": "null"}]}
    if is_list:
        least, most = _read_bounds(field)
        made = {"type": "array", "items": made, "minItems": least, "maxItems": most}
    return made | ({"description": field.description} if field.description else {})


def _select_fields(schema: type[BaseModel], choices: Choices) -> list[tuple[str, FieldInfo]]:
    return [(name, field) for name, field in schema.model_fields.items() if choices.get(name, True)]


def _read_kind(field: FieldInfo) -> tuple[Any, bool]:
    """Return the type of a field's values, and whether it is a list of them."""
    kind = _drop_none(field.annotation)
    return (_drop_none(get_args(kind)[0]), True) if get_origin(kind) is list else (kind, False)


def _drop_none(kind: Any) -> Any:
    """Return a type without ``None`` and without what annotates it."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    return getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind


def _allows_none(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


def _list_values(item: Any, name: str, choices: Choices) -> list[str]:
    own = map(str, get_args(item)) if get_origin(item) is Literal else ()
    return list(choices.get(name, own))


def _read_bounds(field: FieldInfo) -> tuple[int, int]:
    more = field.json_schema_extra
    least = more.get("minItems") if isinstance(more, dict) else None
    return least if isinstance(least, int) else 0, _read_limit(field, "max_length") or MOST_ITEMS


def _read_limit(field: FieldInfo, name: str) -> int | None:
    return next((limit for part in field.metadata if (limit := getattr(part, name, None)) is not None), None)


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
    made = _coerce(value, schema, choices, cut=cut)
    items = chain.from_iterable(value for value in made.values() if isinstance(value, list))
    if cut and not any(isinstance(item, Mapping) for item in items):
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
            if isinstance(value := _try_to_read(read, text[start:]), dict):
                inner = [nested for nested in value.values() if isinstance(nested, dict)]
                for candidate in (value, *inner):
                    if schema.model_fields.keys() & candidate.keys():
                        return candidate, whole
    return None, False


def _try_to_read(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except (ValueError, RecursionError):
        return None


def _coerce(value: Any, schema: type[BaseModel], choices: Choices, *, cut: bool) -> dict[str, Any]:
    """Return an object with values of the types of its fields, where it is clear which are meant.

    Of output that was cut off, the last items of lists are left out if they lack something.
    """
    made: dict[str, Any] = {}
    for name, field in schema.model_fields.items():
        raw = value.get(name)
        if raw is None:
            continue
        item, is_list = _read_kind(field)
        values = _list_values(item, name, choices)
        if is_list:
            listed = [part for part in (raw if isinstance(raw, list) else [raw]) if part not in (None, "")]
            items = [_coerce_item(part, item, values, choices, cut=cut) for part in listed]
            if cut and isinstance(item, type) and issubclass(item, BaseModel):
                items = [part for part in items if _is_valid(part, item)]
            distinct = [part for at, part in enumerate(items) if part not in items[:at]]
            made[name] = distinct[: _read_limit(field, "max_length")]
        else:
            made[name] = _coerce_item(raw, item, values, choices, cut=cut)
    return made


def _coerce_item(value: Any, item: Any, values: Sequence[str], choices: Choices, *, cut: bool) -> Any:
    if isinstance(item, type) and issubclass(item, BaseModel):
        return _coerce(value, item, choices, cut=cut) if isinstance(value, Mapping) else value
    if values and isinstance(value, str):
        return next((choice for choice in values if choice.casefold() == value.strip().casefold()), value)
    return str(value) if item is str and isinstance(value, int | float) else value


def _is_valid(value: Any, schema: type[BaseModel]) -> bool:
    try:
        schema.model_validate(value)
    except ValidationError:
        return False
    return True


def _describe_problems(error: ValidationError) -> str:
    """Describe what is wrong with an output, in words for a model."""
    problems = [
        f'"{".".join(str(part) for part in problem["loc"])}": {problem["msg"]}'
        for problem in error.errors(include_url=False)
    ]
    return "; ".join(problems[:_MOST_PROBLEMS])

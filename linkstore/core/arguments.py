"""Checks of arguments where they are given, their form as plain JSON, and what docstrings say of them."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

import orjson

from linkstore.errors import ArgumentError, DocumentError, StrategyError

T = TypeVar("T")
_MAX_QUOTED_VALUE: Final = 200
"""Characters of a value that a message quotes."""
MAX_SETTING: Final = 2**31 - 1
"""Upper limit of integer settings."""
MAX_NESTING: Final = 100
"""How many levels of lists and dicts metadata, the data of links and filters may have."""
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
"""The types of values that hold no others."""
_MAPPING: Final = (dict, Mapping)  # the first is tested quickly
_NESTING: Final = (dict, list, tuple, set, frozenset, Mapping)


def omit_none(**arguments: T | None) -> dict[str, T]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def require(kind: type | tuple[type, ...], what: str, /, **arguments: object) -> None:
    """Raise unless every argument is an instance of a class.

    Args:
        kind: The class, or several.
        what: What to pass, as the message says it, such as ``"a string"``.
        arguments: By their names.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise make_argument_error(name, what, value)


def require_having(method: str, what: str, /, **arguments: object) -> None:
    """Raise unless every argument is an object that has a method.

    A class has the methods of its objects, so it is refused, except where it is to be called itself.

    Args:
        method: Its name, or ``"__call__"`` for functions and classes that are called.
        what: What to pass, as the message says it.
        arguments: By their names.

    Raises:
        ArgumentError: If one does not have the method. The message names it.
    """
    for name, value in arguments.items():
        if not callable(getattr(value, method, None)) or (isinstance(value, type) and method != "__call__"):
            raise make_argument_error(name, what, value)


def require_list(what: str, /, **arguments: object) -> None:
    """Raise unless every argument can be iterated over and is not a string, which gives letters.

    Args:
        what: What it is a list of, such as ``"names"``.
        arguments: By their names.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, value in arguments.items():
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise make_argument_error(name, f"a list of {what}", value)


def quote_value(value: object) -> str:
    """Quote a value for a message.

    Python spells out neither integers of 4,301 digits nor deep nesting, so such values are described.
    """
    try:
        return repr(value)
    except ValueError:
        return "an integer of too many digits"
    except RecursionError:
        return "a value that is nested too deeply to show"


def is_too_deep(value: object) -> bool:
    """Say whether lists and dicts are nested in more than :data:`MAX_NESTING` levels.

    Call it once where values come in. It goes through them level by level, so that all else may recurse.
    """
    level = [value]
    for _ in range(MAX_NESTING + 1):
        held = [container for container in level if isinstance(container, _NESTING)]
        if not held:
            return False
        level = [
            item
            for container in held
            for item in (container.values() if isinstance(container, _MAPPING) else container)
        ]
    return True


def require_at_least(least: int, /, **settings: int) -> None:
    """Raise unless every setting is an integer from ``least`` to :data:`MAX_SETTING`.

    Raises:
        StrategyError: If one is not. The message names it.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise StrategyError(f"{name} must be an integer of at least {least}, not {quote_value(value)}")
        if value > MAX_SETTING:
            raise StrategyError(f"{name} must be at most {MAX_SETTING}, not {quote_value(value)}")


def require_within(low: float, high: float, /, **settings: float) -> None:
    """Raise unless every setting is a number from ``low`` to ``high``.

    Raises:
        StrategyError: If one is not. The message names it.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise StrategyError(f"{name} must be a number from {low} to {high}, not {quote_value(value)}")


def require_positive(**settings: float) -> None:
    """Raise unless every setting is a number above 0.

    Raises:
        StrategyError: If one is not. The message names it.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise StrategyError(f"{name} must be a number above 0, not {quote_value(value)}")


def require_model(method: str, model: object) -> None:
    """Raise unless the argument is a model of LangChain that has a method, and not the name of one.

    Raises:
        ArgumentError: If it is not such a model.
    """
    require_having(
        method, "a model of LangChain, such as init_chat_model('openai:gpt-4.1-mini')", model=model
    )


def as_path(name: str, value: object) -> Path:
    """Return an argument as a path.

    Raises:
        ArgumentError: If it is not a path, or is an empty string, as from a variable that was not set.
    """
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise make_argument_error(name, "the path of a file or folder", value)
    return Path(os.fsdecode(value))


def make_argument_error(name: str, what: str, value: object) -> ArgumentError:
    """Return the exception for an argument; ``what`` describes a valid value, as in :func:`require`."""
    return ArgumentError(f"{name} must be {what}, not {quote_value(value)[:_MAX_QUOTED_VALUE]}")


_SECTION: Final = re.compile(r"\n\n(?=(?:Args|Raises|Returns|Source):\n)")
_ARGUMENT: Final = re.compile(r"^ {4}(\w+)(?: \(([^)]*)\))?: (.+(?:\n {5,}.+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """What a docstring says of an argument.

    Args:
        kind: What stands in parentheses after the name; empty if nothing does.
        text: The description, on one line.
    """

    kind: str
    text: str


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, ArgumentText]]:
    """Return the description of a function, up to the first section, and the text of each argument."""
    description, *sections = _SECTION.split(inspect.getdoc(function) or "")
    arguments = "".join(section for section in sections if section.startswith("Args:"))
    argument_texts = {
        name: ArgumentText(kind, " ".join(text.split())) for name, kind, text in _ARGUMENT.findall(arguments)
    }
    return description, argument_texts


def convert_value(value: Any) -> Any:
    """Convert a value to plain JSON where there is a usual form, with new containers.

    Any other is returned as it is.
    """
    match value:
        case Enum():
            return convert_value(value.value)
        case dt.date() | dt.time():
            return value.isoformat()
        case uuid.UUID() | PurePath():
            return str(value)
        case list() | tuple():
            return [convert_value(item) for item in value]
        case set() | frozenset():
            return sorted((convert_value(item) for item in value), key=_get_sort_key)
        case Mapping():
            return {key: convert_value(item) for key, item in value.items()}
    numpy = sys.modules.get("numpy")  # where nobody imported it, nothing is of its types
    if numpy is not None and isinstance(value, numpy.generic):
        return str(value) if isinstance(value, numpy.datetime64) else value.item()
    return value


def _get_sort_key(value: Any) -> tuple[str, Any]:
    """Return a sort key: numbers by size, then strings by letters, then the rest by how it is written."""
    if isinstance(value, int | float):
        return "", value
    return (type(value).__name__, value if isinstance(value, str) else repr(value))


def convert_metadata(metadata: Mapping[str, Any], id: str) -> Mapping[str, Any]:
    """Return the metadata of a document as the store keeps it and gives it back.

    Plain JSON stays as it is. Dates, times and datetimes become ISO 8601 strings, UUIDs and paths their
    strings, enum members their values, NumPy scalars Python numbers. Tuples become lists, and sets lists
    in ascending order.

    Args:
        metadata: The metadata of a document, without its links.
        id: The document's id, for errors.

    Raises:
        DocumentError: Naming the document and the first key whose value is none of these.
    """
    try:
        return as_json(metadata)
    except ValueError as error:
        raise DocumentError(f"document {id!r} cannot be stored: metadata{error}") from error


def as_json(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a JSON object as stored, by the rules of :func:`convert_metadata`, or itself if it is plain.

    Raises:
        ValueError: For the first key whose value has no such form, or is nested too deeply. The message
            begins with ``['key']``.
    """
    if not _SCALARS.issuperset(map(type, fields.values())) and is_too_deep(fields):
        key = next(key for key, value in fields.items() if is_too_deep([value]))
        raise ValueError(
            f"[{key!r}] has more than {MAX_NESTING} levels of lists and dicts; store it flat, or as a string"
        )
    if _is_plain_json(fields):
        return fields
    converted = {key: convert_value(value) for key, value in fields.items()}
    for key, value in converted.items():
        problem = _find_entry_problem(key, value)
        if problem:
            raise ValueError(f"[{key!r}] {problem}")
    return converted


def copy_json(data: object) -> dict[str, Any]:
    """Copy a JSON object as it is stored, by the rules of :func:`convert_metadata`.

    The copy shares nothing with ``data``.

    Raises:
        ValueError: If ``data`` is no such object. The message continues the name of the argument.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f" must be a dict with string keys or None, not {quote_value(data)}")  # noqa: TRY004
    copy: dict[str, Any] = orjson.loads(orjson.dumps(as_json(data)))
    return copy


def _is_plain_json(metadata: Mapping[str, Any]) -> bool:
    """Say whether metadata comes back from JSON unchanged."""
    try:
        return bool(orjson.loads(orjson.dumps(metadata)) == metadata)
    except (TypeError, ValueError):
        return False


def _find_entry_problem(key: object, value: Any) -> str | None:
    """Return why an entry cannot be stored, or None if it can be."""
    if not isinstance(key, str):
        return "has a key that is not a string"
    try:
        written = orjson.loads(orjson.dumps({key: value}))[key]
    except (TypeError, ValueError) as error:
        return f"is not plain JSON: {error}"
    if written != value:
        return f"is not plain JSON: it would come back as {written!r}"
    return None

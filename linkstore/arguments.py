"""Checks of arguments: one of a wrong type is refused where it is given, not where it is first used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeVar

from linkstore.errors import ArgumentError

T = TypeVar("T")
_SHOWN: Final = 200
"""Characters of a value that a message quotes."""


def given(**arguments: T | None) -> dict[str, T]:
    """Those of some optional arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def require(kind: type | tuple[type, ...], what: str, /, **arguments: object) -> None:
    """Raise unless every argument is an instance of a class.

    Args:
        kind: The class, or several.
        what: What to pass, as the message says it, such as ``"a string"``.
        arguments: By their names.

    Raises:
        ArgumentError: If one is not; the message names it.
    """
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ArgumentError(_refusal(name, what, value))


def require_having(method: str, what: str, /, **arguments: object) -> None:
    """Raise unless every argument is an object with a method; a class is none, a function has ``__call__``.

    Raises:
        ArgumentError: If one has not; the message names it.
    """
    for name, value in arguments.items():
        if not callable(getattr(value, method, None)) or (isinstance(value, type) and method != "__call__"):
            raise ArgumentError(_refusal(name, what, value))


def require_list(what: str, /, **arguments: object) -> None:
    """Raise unless every argument can be iterated over, and is not a string, whose letters would be taken.

    Args:
        what: What it is a list of, such as ``"names"``.
        arguments: By their names.

    Raises:
        ArgumentError: If one is not; the message names it.
    """
    for name, value in arguments.items():
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise ArgumentError(_refusal(name, f"a list of {what}", value))


def require_model(method: str, model: object) -> None:
    """Raise unless this is a model of LangChain with a method; the name of a model is not one.

    Raises:
        ArgumentError: If it is not.
    """
    require_having(
        method, "a model of LangChain, such as init_chat_model('openai:gpt-4.1-mini')", model=model
    )


def path_of(name: str, value: object) -> Path:
    """An argument as a path.

    Raises:
        ArgumentError: If it is none; an empty string is none, which is often a variable that was not set.
    """
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ArgumentError(_refusal(name, "the path of a file or folder", value))
    return Path(os.fsdecode(value))


def _refusal(name: str, what: str, value: object) -> str:
    return f"{name} must be {what}, not {repr(value)[:_SHOWN]}"

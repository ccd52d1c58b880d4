"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from linkstore.cli.exits import UsageError

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        metavar="PLACE",
        envvar="LINKSTORE_STORE",
        help="The store: a folder, or cassandra://host:port/keyspace/table.",
    ),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The question.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def listed(values: Iterable[str]) -> tuple[str, ...]:
    """Return names given by repeating an option, separated by commas, or both."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def weighted(values: Iterable[str]) -> dict[str, float] | None:
    """Return link kinds such as ``hyperlink,section=0.5``, each with its weight, or None if none is named.

    Raises:
        UsageError: If a weight is not a number.
    """
    weights = {}
    for item in listed(values):
        kind, _, weight = item.partition("=")
        try:
            weights[kind.strip()] = float(weight) if weight else 1.0
        except ValueError as error:
            raise UsageError(f"--kinds {item!r}: the weight must be a number from 0 to 1") from error
    return weights or None


def json_object(text: str | None, option: str) -> dict[str, Any] | None:
    """Return a JSON object given as an option.

    Raises:
        UsageError: If it is not a JSON object.
    """
    import orjson

    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise UsageError(f'{option} is not valid JSON, such as \'{{"lang": "en"}}\': {error}') from error
    if not isinstance(value, dict):
        raise UsageError(f'{option} must be a JSON object such as \'{{"lang": "en"}}\', not {text}')
    return value


def json_file(path: str, option: str) -> dict[str, Any]:
    """Return a JSON object in a file.

    Raises:
        UsageError: If there is no such file, or it does not hold a JSON object.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {path} cannot be read: {error}") from error
    return json_object(text, option) or {}

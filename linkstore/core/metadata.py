"""Metadata as a store keeps them and gives them back: plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from linkstore.core.arguments import MAX_NESTING, convert_value, is_too_deep, quote_value
from linkstore.errors import DocumentError

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
"""The types of values that hold no others."""


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

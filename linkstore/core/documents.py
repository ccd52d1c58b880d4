"""Ids, metadata and links of a document, as they are stored."""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from linkstore.core.arguments import MAX_NESTING, is_too_deep, make_argument_error, quote_value, require_list
from linkstore.core.filters import Condition
from linkstore.core.links import LINKS_KEY, AnyLink, Link, as_link
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.arrays import Floats

MEMORY_KEY: Final = "memory"
"""The metadata key of a document's kind of memory: a fact, an event or a rule."""
HALF_LIFE_KEY: Final = "half_life_hours"
"""The metadata key of a document's own half-life, a number of hours greater than 0."""
ACCESS_KEY: Final = "last_access"
"""The metadata key of the last access: ISO 8601, or seconds since 1970; without an offset it is UTC."""


def is_storable(id: object) -> bool:
    """Say whether a store can hold a document with this id, even one that new documents may not have."""
    return isinstance(id, str) and _find_id_problem(id) is None


def keep_storable(what: str, given: Iterable[str]) -> list[str]:
    """Return the strings of a list that a store can hold, such as ids, since no document has the others.

    Args:
        what: What the strings are, as messages say it.
        given: The list as the caller passed it.

    Raises:
        ArgumentError: If ``given`` is not a list, or an item is not a string.
    """
    require_list("strings", **{what: given})
    listed = list(given)
    for one in listed:
        if not isinstance(one, str):
            raise make_argument_error(f"each of {what}", "a string", one)
    return list(filter(is_storable, listed))


def check_id(id: object) -> str:
    """Return an id if a document may be given it.

    Raises:
        DocumentError: If the id is not a string, is empty, or contains a NUL or a lone surrogate.
    """
    if not isinstance(id, str):
        raise DocumentError(f"a document id must be a string, not {id!r}")
    problem = _find_id_problem(id)
    if problem:
        raise DocumentError(f"the document id {id!r} is not allowed: {problem}")
    return id


def _find_id_problem(id: str) -> str | None:
    """Return why no store can hold a document with this id, or None."""
    if not id:
        return "it is empty"
    if "\0" in id:
        return "it contains a NUL character"
    if not is_unicode(id):
        return "it contains a lone surrogate, which is not valid Unicode"
    return None


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
    if is_too_deep(fields):
        key = next(key for key, value in fields.items() if is_too_deep([value]))
        raise ValueError(
            f"[{key!r}] has more than {MAX_NESTING} levels of lists and dicts; store it flat, or as a string"
        )
    if _is_plain_json(fields):
        return fields
    converted = {key: _convert_value(value) for key, value in fields.items()}
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


def _convert_value(value: Any) -> Any:
    """Convert a value to plain JSON where there is a usual form, and return any other as it is."""
    match value:
        case Enum():
            return _convert_value(value.value)
        case dt.date() | dt.time():
            return value.isoformat()
        case uuid.UUID() | PurePath():
            return str(value)
        case list() | tuple():
            return [_convert_value(item) for item in value]
        case set() | frozenset():
            return sorted((_convert_value(item) for item in value), key=_get_sort_key)
        case Mapping():
            return {key: _convert_value(item) for key, item in value.items()}
    numpy = sys.modules.get("numpy")  # where nobody imported it, nothing is of its types
    if numpy is not None and isinstance(value, numpy.generic):
        return str(value) if isinstance(value, numpy.datetime64) else value.item()
    return value


def _get_sort_key(value: Any) -> tuple[str, Any]:
    """Return a sort key: numbers by size, then strings by letters, then the rest by how it is written."""
    if isinstance(value, int | float):
        return "", value
    return (type(value).__name__, value if isinstance(value, str) else repr(value))


@dataclass(frozen=True, slots=True)
class PageDocuments:
    """An indexed page and the documents made of it; their ids must be set.

    Args:
        url: The page within its source.
        digest: Hash of what was indexed.
        documents: In order.
        vectors: What the store's embedding gave for them, of shape (documents, dimension), if they were
            embedded beforehand: see :func:`linkstore.store.operations.embed_pages`.
    """

    url: str
    digest: str
    documents: tuple[Document, ...]
    vectors: Floats | None = field(default=None, compare=False, repr=False)


def replace_kinds(
    metadata: Mapping[str, Any], kinds: Collection[str], links: Iterable[Link]
) -> list[Any] | None:
    """Return ``metadata["links"]`` with the links of some kinds replaced, or None if nothing changes.

    Args:
        metadata: Metadata of a stored document, whose links are plain dicts.
        kinds: The kinds to replace. Other links are kept in order.
        links: The new links, appended.
    """
    known: Sequence[Any] = metadata.get(LINKS_KEY) or ()
    written = [link for link in known if link["kind"] not in kinds]
    written += [link.to_dict() for link in links]
    return None if _is_same_json(written, known) else written


def convert_link_data(links: Iterable[AnyLink]) -> list[Any]:
    """Return ``metadata["links"]`` as stored: dicts as their author wrote them, with plain JSON data."""
    return [
        ({**one, "data": as_link(one).to_dict().get("data", {})} if one.get("data") else one)
        if type(one) is dict
        else as_link(one).to_dict()
        for one in links
    ]


def collect_weights(
    links: Iterable[Link], side: Literal["out", "in"], condition: Condition
) -> dict[tuple[str, str], float]:
    """Return the link groups, by kind and tag, that links whose data pass lead to on one side.

    Returns:
        For each group the highest weight of these links.
    """
    weights: dict[tuple[str, str], float] = {}
    for link in links:
        if (link.leads_out if side == "out" else link.leads_in) and condition.matches(link.data or {}):
            key = link.kind, link.tag
            weights[key] = max(link.weight, weights.get(key, 0.0))
    return weights


def _is_same_json(written: Sequence[Any], known: Sequence[Any]) -> bool:
    """Say whether links are equal, also in the types of numbers: 1, 1.0 and true are equal in Python."""
    sort = orjson.OPT_SORT_KEYS
    return written == list(known) and orjson.dumps(written, option=sort) == orjson.dumps(known, option=sort)

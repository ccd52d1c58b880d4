"""Converts a row that langchain-community wrote to a record, or gives the reason why that is not possible."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from linkstore.backends.base import Record
from linkstore.errors import DocumentError, LinkError
from linkstore.ids import check_id
from linkstore.links import LINKS_KEY, Link, links_in
from linkstore.vectors import unit_vectors

_LINKED: Final = "link"
"""The value of the entries that langchain-community adds to metadata to find documents by their links."""


def record_of(id: str, text: Any, vector: Any, attributes: str | None, entries: Any) -> Record:
    """Make a record of what a row holds.

    Args:
        id: The document's id.
        text: Its content.
        vector: Of any length but 0.
        attributes: Metadata that was not searchable, as JSON; links are among them.
        entries: Metadata that was searchable, as a map of strings.

    Raises:
        DocumentError: If it lacks its text or vector, or has metadata that is none.
        LinkError: If its links cannot be read.
    """
    check_id(id)
    if not isinstance(text, str):
        raise DocumentError("it has no text" if text is None else f"its text is {type(text).__name__}")
    if vector is None:
        raise DocumentError("it has no vector")
    metadata = {**_attributes(attributes), **dict(entries or {})}
    links = _take_links(metadata, id)
    if links:
        metadata[LINKS_KEY] = [link.to_dict() for link in links]
    unit = unit_vectors([vector], None, [id])[0]
    return Record(id=id, text=text, metadata=metadata, vector=unit, links=links)


def _attributes(text: str | None) -> dict[str, Any]:
    """The metadata in a column of JSON, if it would come back as it is."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
        same = orjson.loads(orjson.dumps(found)) == found
    except (ValueError, TypeError, RecursionError) as error:
        raise DocumentError(f"its metadata cannot be read: {error}") from error
    if not isinstance(found, dict) or not same:
        raise DocumentError("its metadata is not a JSON object that linkstore can store")
    return found


def _take_links(metadata: dict[str, Any], id: str) -> tuple[Link, ...]:
    """Take the links out of metadata, with the entries by which langchain-community finds them."""
    stored = metadata.pop(LINKS_KEY, None)
    if isinstance(stored, str):
        try:
            stored = orjson.loads(stored)
        except ValueError as error:
            raise LinkError(f"its links are not valid JSON: {_shown(stored)}") from error
    links = links_in({LINKS_KEY: stored}, id)
    for link in links:
        key = f"link:{link.kind}:{link.tag}"
        if link.leads_in and metadata.get(key) == _LINKED:
            del metadata[key]
    return links


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"

"""Ids and links of a document as they are stored, a document to be stored, and the documents of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson
from langchain_core.documents import Document

from linkstore.core.arguments import make_argument_error, require_list
from linkstore.core.filters import Condition
from linkstore.core.links import LINKS_KEY, AnyLink, Link, as_link
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError

if TYPE_CHECKING:
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
    for item in listed:
        if not isinstance(item, str):
            raise make_argument_error(f"each of {what}", "a string", item)
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


def make_document(id: str, text: str, metadata: Mapping[str, Any]) -> Document:
    """Make a document of LangChain, with metadata of its own, in half the time that its constructor takes.

    That one passes its arguments through three others, by name, before it has them validated.
    """
    fields = {"id": id, "page_content": text, "metadata": metadata}
    document: Document = Document.__pydantic_validator__.validate_python(
        fields, self_instance=Document.__new__(Document)
    )
    return document


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that was checked, not embedded yet."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class PageDocuments:
    """An indexed page and the documents made of it; their ids must be set.

    Args:
        url: The page within its source.
        digest: Hash of what was indexed.
        documents: In order.
        outline: What its source is told of it at the next run; the store does not read it.
        vectors: What the store's embedding gave for them, of shape (documents, dimension), if they were
            embedded beforehand: see :meth:`linkstore.store.pages.StorePages.embed`.
    """

    url: str
    digest: str
    documents: tuple[Document, ...]
    outline: str = ""
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
    stored_links: Sequence[Any] = metadata.get(LINKS_KEY) or ()
    written = [link for link in stored_links if link["kind"] not in kinds]
    written += [link.to_dict() for link in links]
    return None if _is_same_json(written, stored_links) else written


def convert_link_data(links: Iterable[AnyLink]) -> list[Any]:
    """Return ``metadata["links"]`` as stored: dicts as their author wrote them, with plain JSON data."""
    return [
        ({**link, "data": as_link(link).to_dict().get("data", {})} if link.get("data") else link)
        if type(link) is dict
        else as_link(link).to_dict()
        for link in links
    ]


def collect_weights(
    links: Iterable[Link], side: Literal["out", "in"], condition: Condition
) -> dict[tuple[str, str], float]:
    """Return the link groups, by kind and tag, on one side of the links whose data pass a condition.

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

"""Checks the ids of documents."""

from __future__ import annotations

from collections.abc import Iterable

from linkstore.arguments import refusal, require_list
from linkstore.errors import DocumentError
from linkstore.text import is_unicode


def is_storable(id: object) -> bool:
    """Say whether a store can hold a document with this id, even one that new documents may not have."""
    return isinstance(id, str) and _id_problem(id) is None


def storable(what: str, given: Iterable[str]) -> list[str]:
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
            raise refusal(f"each of {what}", "a string", one)
    return list(filter(is_storable, listed))


def check_id(id: object) -> str:
    """Return an id if a document may be given it.

    Raises:
        DocumentError: If the id is not a string, is empty, or contains a NUL or a lone surrogate.
    """
    if not isinstance(id, str):
        raise DocumentError(f"a document id must be a string, not {id!r}")
    problem = _id_problem(id)
    if problem:
        raise DocumentError(f"the document id {id!r} is not allowed: {problem}")
    return id


def _id_problem(id: str) -> str | None:
    """Return why no store can hold a document with this id, or None."""
    if not id:
        return "it is empty"
    if "\0" in id:
        return "it contains a NUL character"
    if not is_unicode(id):
        return "it contains a lone surrogate, which is not valid Unicode"
    return None

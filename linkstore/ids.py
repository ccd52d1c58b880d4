"""Checks the ids of documents."""

from __future__ import annotations

from collections.abc import Iterable

from linkstore.arguments import refusal, require_list
from linkstore.errors import DocumentError
from linkstore.text import is_unicode


def is_storable(id: object) -> bool:
    """Whether a store can hold a document with this id, also one that may no longer be given."""
    return isinstance(id, str) and _id_problem(id) is None


def storable(what: str, given: Iterable[str]) -> list[str]:
    """Of a list of strings those that a store can hold, such as ids; it has no document of the others.

    Args:
        what: What they are, as messages say it.
        given: As the caller passed it.

    Raises:
        ArgumentError: If it is not a list, or an item is not a string.
    """
    require_list("strings", **{what: given})
    listed = list(given)
    for one in listed:
        if not isinstance(one, str):
            raise refusal(f"each of {what}", "a string", one)
    return list(filter(is_storable, listed))


def check_id(id: object) -> str:
    """An id that a document may be given.

    Raises:
        DocumentError: If it is not a string, is empty, or contains a NUL or a lone surrogate.
    """
    if not isinstance(id, str):
        raise DocumentError(f"a document id must be a string, not {id!r}")
    problem = _id_problem(id)
    if problem:
        raise DocumentError(f"the document id {id!r} is not allowed: {problem}")
    return id


def _id_problem(id: str) -> str | None:
    """Why no store can hold a document with this id, or None."""
    if not id:
        return "it is empty"
    if "\0" in id:
        return "it contains a NUL character"
    if not is_unicode(id):
        return "it contains a lone surrogate, which is not valid Unicode"
    return None

"""The tools ``add`` and ``delete``, which a server offers only if it is told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.arguments import quoted
from linkstore.display import printable
from linkstore.errors import DocumentError, LinkError
from linkstore.links import LINKS_KEY, Link, as_link
from linkstore.plans import Operation
from linkstore.text import is_unicode
from linkstore.tools.answers import Answer
from linkstore.tools.reading import documents_of, unknown_document
from linkstore.tools.view import View

_PARTS: Final = ("kind", "tag", "direction")
"""What a link must have."""


@dataclass(frozen=True, slots=True)
class Add:
    """A request to add or replace a document."""

    document: Document


@dataclass(frozen=True, slots=True)
class Delete:
    """A request to delete a document."""

    id: str


def add(
    view: View,
    id: str,
    text: str,
    metadata: Mapping[str, Any] | None,
    links: Sequence[Mapping[str, Any]] | None,
) -> Operation[Answer]:
    """Add a document with its links, or replace the one with this id.

    Args:
        view: Of the store.
        id: Of the document.
        text: Its text.
        metadata: A JSON object.
        links: Objects with ``kind``, ``tag``, ``direction`` and, if wanted, ``label``.

    Raises:
        DocumentError: If the document cannot be stored.
        LinkError: If a link is invalid; the message names it by its place.
        SchemaError: If the schema of the store does not allow it.
    """
    if not text.strip():
        raise DocumentError("the text is blank; give the document a text")
    if not is_unicode(text):
        raise DocumentError("the text has half of a surrogate pair, which is no character; leave it out")
    known = yield from documents_of(view, [id])
    own = {name: value for name, value in (metadata or {}).items() if name != LINKS_KEY}
    if links:
        own[LINKS_KEY] = [_link(at, link).to_dict() for at, link in enumerate(links)]
    yield Add(Document(id=id, page_content=text, metadata=own))
    done = "replaced" if id in known else "added"
    return Answer(text=f"[{printable(id)}] was {done}.", data={"id": id, "done": done})


def _link(at: int, given: Mapping[str, Any]) -> Link:
    """Parse one of the links of a document.

    Raises:
        LinkError: If a part of it is missing, or there are others.
    """
    for name in _PARTS:
        if name not in given:
            raise LinkError(f"links.{at} has no {name}; a link has {', '.join(_PARTS)} and, if wanted, label")
    if others := sorted(given.keys() - {*_PARTS, "label", "weight", "data"}):
        raise LinkError(f"links.{at} has {quoted(others[0])}, which is no part of a link; leave it out")
    return as_link(given)


def delete(view: View, id: str) -> Operation[Answer]:
    """Delete a document.

    Raises:
        DocumentError: If there is no such document.
    """
    if id not in (yield from documents_of(view, [id])):
        raise unknown_document(id)
    yield Delete(id)
    return Answer(text=f"[{printable(id)}] was deleted.", data={"id": id, "done": "deleted"})

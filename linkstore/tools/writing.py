"""The tools ``add`` and ``delete``, which a server offers only if it is told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from linkstore.display import printable
from linkstore.errors import DocumentError
from linkstore.links import LINKS_KEY, as_link
from linkstore.plans import Operation
from linkstore.tools.answers import Answer
from linkstore.tools.reading import documents_of, unknown_document
from linkstore.tools.view import View


@dataclass(frozen=True, slots=True)
class Add:
    """Asks the store to add or replace a document."""

    document: Document


@dataclass(frozen=True, slots=True)
class Delete:
    """Asks the store to delete a document."""

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
        LinkError: If a link is invalid.
        SchemaError: If the schema of the store does not allow it.
    """
    if not text.strip():
        raise DocumentError("the text is blank; give the document a text")
    known = yield from documents_of(view, [id])
    own = {name: value for name, value in (metadata or {}).items() if name != LINKS_KEY}
    if links:
        own[LINKS_KEY] = [as_link(link).to_dict() for link in links]
    yield Add(Document(id=id, page_content=text, metadata=own))
    done = "replaced" if id in known else "added"
    return Answer(text=f"[{printable(id)}] was {done}.", data={"id": id, "done": done})


def delete(view: View, id: str) -> Operation[Answer]:
    """Delete a document.

    Raises:
        DocumentError: If there is no such document.
    """
    if id not in (yield from documents_of(view, [id])):
        raise unknown_document(id)
    yield Delete(id)
    return Answer(text=f"[{printable(id)}] was deleted.", data={"id": id, "done": "deleted"})

"""The tool ``read``: the text of a document, and which documents stand before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.documents import Document

from linkstore.arguments import quoted
from linkstore.backends.base import Manifest, PageEntry
from linkstore.context.framing import framed
from linkstore.display import printable
from linkstore.errors import DocumentError, StrategyError
from linkstore.filters import parse_filter
from linkstore.hits import page_of
from linkstore.ids import is_storable
from linkstore.neighbours import Neighbour, Neighbours, neighbours
from linkstore.plans import Candidates, Documents, Find, Nearest, Operation, Plan, Stored
from linkstore.requests import Engine
from linkstore.text import is_unicode
from linkstore.tools.answers import Answer, cited, identified
from linkstore.tools.limits import ToolLimits
from linkstore.tools.view import View
from linkstore.vectors import Floats, some_vector

NEXT: Final = frozenset({"next", "next_turn"})
PREVIOUS: Final = frozenset({"previous"})
"""Kinds and labels of links between neighbouring sections and turns."""
Around = tuple[str | None, str | None]
"""The ids of the documents before and after another."""


def read(view: View, id: str, offset: int, limits: ToolLimits) -> Operation[Answer]:
    """Read the text of a document.

    Args:
        view: Of the store.
        id: The document; also in the brackets that answers have, or its URL.
        offset: How many characters of its text to leave out.
        limits: Of the tools.

    Raises:
        DocumentError: If there is no such document.
        StrategyError: If the offset lies outside of the text.
    """
    document = yield from document_named(view, id)
    text = document.page_content
    last = max(0, len(text) - 1)
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= last:
        raise StrategyError(f"offset must be from 0 to {last} for this text, not {quoted(offset)}")
    previous, following = yield from _around(view, document)
    part = text[offset : offset + limits.text]
    end = offset + len(part)
    lines = [cited(document), framed([("text", part)])]
    if end < len(text):
        lines.append(f"{len(text) - end:,} more characters; read on with offset={end}.")
    lines += [f"Previous: [{printable(previous)}]"] if previous else []
    lines += [f"Next: [{printable(following)}]"] if following else []
    data = {
        **identified(document),
        "text": part,
        "offset": offset,
        "characters": len(text),
        "next_offset": end if end < len(text) else None,
        "previous": previous,
        "next": following,
    }
    return Answer(text="\n".join(lines), data=data)


def document_named(view: View, name: str) -> Operation[Document]:
    """Find a document by its id, else by its id in brackets, or by its URL.

    Raises:
        DocumentError: If there is no such document.
    """
    bare = name.strip().strip("[]<>").strip()
    known = yield from documents_of(view, [name, bare])
    found = known.get(name) or known.get(bare)
    if found is None and bare and is_unicode(bare):
        manifest: Manifest = yield Engine(view.backend.manifest())
        if manifest.dimension is not None:
            plan = _at_url(bare, some_vector(manifest.dimension))
            found = next(map(_as_document, (yield from view.answer(plan))), None)
    if found is None:
        raise unknown_document(name)
    return found


def documents_of(view: View, ids: Sequence[str]) -> Operation[dict[str, Document]]:
    """Return documents by id, without those that are not there."""
    known = tuple(filter(is_storable, ids))
    stored = yield from view.answer(_stored(known))
    return {one.id: _as_document(one) for one in stored}


def unknown_document(id: str) -> DocumentError:
    """Make the error for an id that no document has."""
    return DocumentError(
        f"no document has the id {id[:200]!r}; take ids from the brackets in the answers of search and follow"
    )


def _as_document(stored: Stored) -> Document:
    return Document(id=stored.id, page_content=stored.text, metadata=stored.metadata)


def _at_url(url: str, vector: Floats) -> Plan[list[Stored]]:
    """Return one of the documents with a URL. The vector does not rank them."""
    found: Candidates = yield Nearest(vector=vector, k=1, filter=parse_filter({"url": url}))
    return (yield Documents(refs=found.refs))  # type: ignore[no-any-return]


def _stored(ids: tuple[str, ...]) -> Plan[list[Stored]]:
    found: Candidates = yield Find(ids=ids)
    return (yield Documents(refs=found.refs))  # type: ignore[no-any-return]


def _around(view: View, document: Document) -> Operation[Around]:
    """Return the documents before and after, as the page has them, else as links say."""
    entries: list[PageEntry] = yield Engine(view.backend.pages(None, [page_of(document)]))
    beside = next((_beside(one.ids, document.id) for one in entries if document.id in one.ids), None)
    if beside is None:
        near = yield from view.answer(neighbours(document.id or ""))
        return _linked(near) if near else (None, None)
    there = yield from documents_of(view, [id for id in beside if id])
    previous, following = (id if id in there else None for id in beside)
    return previous, following


def _beside(ids: Sequence[str], id: str | None) -> Around:
    at = ids.index(id or "")
    return ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None


def _linked(near: Neighbours) -> Around:
    """Return the neighbours by links whose kind or label says that they lead to the next or previous one."""
    previous = _first(near.outgoing, PREVIOUS) or _first(near.incoming, NEXT)
    return previous, _first(near.outgoing, NEXT) or _first(near.incoming, PREVIOUS)


def _first(side: Sequence[Neighbour], names: frozenset[str]) -> str | None:
    found = (one.ids[0] for one in side if names & {one.link.kind, one.link.label} and one.ids)
    return next(found, None)

"""Documents as resources of the protocol: their addresses, and lists of them page by page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from langchain_core.documents import Document

from linkstore.backends.base import Record
from linkstore.filters import parse_filter
from linkstore.operations import as_document
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.tools.reading import documents_of
from linkstore.tools.view import View

PREFIX: Final = "linkstore:///documents/"
"""What the address of a document begins with; its id follows, percent-encoded."""
PAGE: Final = 100
"""How many documents are listed at once."""
SCANNED: Final = 1000
"""How many documents are looked through for one page where a filter hides some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of the list of all documents.

    Args:
        documents: In the order of the store.
        cursor: Where the next part begins; None after the last one.
    """

    documents: tuple[Document, ...]
    cursor: str | None


def address_of(id: str) -> str:
    """The address of a document."""
    return PREFIX + quote(id, safe="")


def id_at(address: str) -> str | None:
    """The id of the document at an address; None for an address of something else."""
    return unquote(address.removeprefix(PREFIX)) if address.startswith(PREFIX) else None


def page(view: View, cursor: str | None) -> Operation[Page]:
    """The documents from a cursor on.

    Raises:
        ValueError: If the cursor is none that an earlier page gave.
    """
    after = None if cursor is None else _decoded(cursor)
    condition = parse_filter(view.filter)
    found: list[Record] = []
    scanned = 0
    while len(found) < PAGE and scanned < SCANNED:
        records: Sequence[Record] = yield Engine(view.backend.scan(after, PAGE - len(found)))
        if not records:
            return Page(documents=tuple(map(as_document, found)), cursor=None)
        found += [record for record in records if condition.matches(record.metadata)]
        scanned += len(records)
        after = records[-1].id
    return Page(documents=tuple(map(as_document, found)), cursor=_encoded(after or ""))


def document_at(view: View, address: str) -> Operation[Document | None]:
    """The document at an address; None if there is none."""
    id = id_at(address)
    found = (yield from documents_of(view, [id])) if id else {}
    return found.get(id or "")


def _encoded(id: str) -> str:
    return base64.urlsafe_b64encode(id.encode()).decode()


def _decoded(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise ValueError(f"the cursor {cursor[:80]!r} is none of this server") from error

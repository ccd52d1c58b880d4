"""Documents as resources of the protocol: their addresses, and lists of them page by page."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
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
"""The beginning of the address of a document; its id follows, percent-encoded."""
_ADDRESS: Final = re.compile(rf"{re.escape(PREFIX)}(?P<id>[^?]+)(?:\?offset=(?P<offset>[0-9]{{1,12}}))?")
PAGE: Final = 100
"""How many documents are listed at once."""
SCANNED: Final = 1000
"""How many documents are looked through for one page where a filter hides some."""
_KEY: Final = secrets.token_bytes(32)
"""Of cursors; they are valid until the server ends."""
_MARK: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of the list of all documents.

    Args:
        documents: In the order of the store.
        cursor: Where the next part begins; None after the last one.
    """

    documents: tuple[Document, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the text of a document.

    Args:
        text: Of the part.
        left: How many characters come after it.
        following: The address of the next part; None after the last one.
    """

    text: str
    left: int
    following: str | None


def address_of(id: str) -> str:
    """Return the address of a document."""
    return PREFIX + quote(id, safe="")


def _place_at(address: str) -> tuple[str, int] | None:
    """Return the id and the first character that an address names, or None for other addresses."""
    found = _ADDRESS.fullmatch(address)
    return (unquote(found["id"]), int(found["offset"] or 0)) if found else None


def page(view: View, cursor: str | None) -> Operation[Page]:
    """List the documents from a cursor on.

    Raises:
        ValueError: If the cursor is not from an earlier page.
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


def part_at(view: View, address: str, most: int) -> Operation[Part | None]:
    """Return the part of a document's text that an address names, or None if there is none.

    Args:
        view: Of the store.
        address: Of the document, or of a further part of it.
        most: How many characters it may have.
    """
    place = _place_at(address)
    if place is None:
        return None
    id, offset = place
    found = (yield from documents_of(view, [id])).get(id)
    if found is None or offset > max(0, len(found.page_content) - 1):
        return None
    end, size = offset + most, len(found.page_content)
    return Part(
        text=found.page_content[offset:end],
        left=max(0, size - end),
        following=f"{address_of(id)}?offset={end}" if end < size else None,
    )


def _encoded(id: str) -> str:
    """Make the cursor after an id, which it must not tell: a filter may hide the document."""
    content = id.encode()
    mark = _mark(content)
    return base64.urlsafe_b64encode(mark + _masked(content, mark)).decode()


def _decoded(cursor: str) -> str:
    try:
        sealed = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeError) as error:
        raise _foreign(cursor) from error
    mark = sealed[:_MARK]
    content = _masked(sealed[_MARK:], mark)
    if not hmac.compare_digest(_mark(content), mark):
        raise _foreign(cursor)
    return content.decode()


def _mark(content: bytes) -> bytes:
    """Compute what proves that a cursor is this server's, and differs for each id."""
    return hmac.digest(_KEY, content, "sha256")


def _masked(content: bytes, mark: bytes) -> bytes:
    """Hide the content, or show it again: the same mask is applied twice."""
    mask = hashlib.shake_256(_KEY + mark).digest(len(content))
    return bytes(one ^ other for one, other in zip(content, mask, strict=True))


def _foreign(cursor: str) -> ValueError:
    return ValueError(
        f"the cursor {cursor[:80]!r} is not from this server; list the resources from the start"
    )

"""Parses XML in pieces, within limits."""

from __future__ import annotations

from typing import Final
from xml.parsers import expat

from linkstore.errors import LinkStoreError

DEEPEST: Final = 64
"""How deep elements may lie."""
LONGEST_TAG: Final = 2**20
"""Bytes of a tag or comment; expat holds all of it, and begins anew with each piece."""
_PIECE: Final = 2**16


class UnboundedXmlError(LinkStoreError, ValueError):
    """XML that would take far more time or memory than its length says."""


class BoundedParser:
    """Feeds a parser, and refuses unbounded input: document types, deep nesting, endless tags.

    Args:
        parser: Its handlers call :meth:`enter` and :meth:`leave` at the start and the end of each element.
    """

    def __init__(self, parser: expat.XMLParserType) -> None:
        self._parser = parser
        self._fed = 0
        self._depth = 0
        # Entities are defined in a document type; a few of them can stand for gigabytes.
        parser.StartDoctypeDeclHandler = _refuse_doctype

    def enter(self) -> None:
        """Count an element that begins.

        Raises:
            UnboundedXmlError: If it lies too deep.
        """
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnboundedXmlError(f"its elements lie more than {DEEPEST} deep")

    def leave(self) -> None:
        """Count an element that ends."""
        self._depth -= 1

    def feed(self, content: bytes) -> None:
        """Parse a piece.

        Raises:
            UnboundedXmlError: If a tag or comment is longer than 1 MiB, or one of the limits is passed.
            ExpatError: If it is not XML.
        """
        for start in range(0, len(content), _PIECE):
            piece = content[start : start + _PIECE]
            self._parser.Parse(piece)
            self._fed += len(piece)
            if self._fed - max(0, self._parser.CurrentByteIndex) > LONGEST_TAG:
                raise UnboundedXmlError(f"a tag or comment has more than {LONGEST_TAG:,} bytes")

    def finish(self) -> None:
        """End the parsing: nothing follows.

        Raises:
            ExpatError: If an element is still open.
        """
        self._parser.Parse(b"", True)


def _refuse_doctype(*_: object) -> None:
    raise UnboundedXmlError("it declares a document type, which could define entities without end")

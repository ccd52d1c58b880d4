"""The limits of an embedded store; a change that exceeds one is refused before any of it is written."""

from __future__ import annotations

from typing import Final

from linkstore.errors import DocumentError, StoreLimitError

MOST_KEYS: Final = 2**31 - 2
"""The most document versions ever written, and link groups ever made: both have 32-bit numbers."""
MOST_TEXT_BYTES: Final = 16 << 20
"""The largest text of a document, and the largest metadata and links as JSON, in bytes of UTF-8."""
MOST_WORDS_BYTES: Final = 2 * MOST_TEXT_BYTES
"""The most bytes of one document's words: case folding turns a few characters into up to eighteen."""


def check_sizes(id: str, **sizes: int) -> None:
    """Refuse a document that is too large.

    Args:
        id: The document's id.
        sizes: Bytes of UTF-8 of each part of the document, by the part's name.

    Raises:
        DocumentError: If a part is too large; the message names the document and the limit.
    """
    for part, size in sizes.items():
        most = MOST_WORDS_BYTES if part == "words" else MOST_TEXT_BYTES
        if size > most:
            raise DocumentError(
                f"document {id!r} cannot be stored: of {part} it has {size:,} bytes, and at most"
                f" {most:,} are allowed; split it into chunks"
            )


def check_keys(what: str, last: int) -> None:
    """Refuse a change that would need keys beyond the limit.

    Args:
        what: What the keys number, in words.
        last: The last key that the change would assign.

    Raises:
        StoreLimitError: If ``last`` exceeds the limit, which the message names.
    """
    if last > MOST_KEYS:
        raise StoreLimitError(
            f"the store would have numbered {last:,} {what} since it was made, and at most {MOST_KEYS:,}"
            " can be: copy its documents into a new store"
        )

"""What an embedded store can hold at most; more is refused before anything of a change is written."""

from __future__ import annotations

from typing import Final

from linkstore.errors import DocumentError, StoreLimitError

MOST_KEYS: Final = 2**31 - 2
"""Document versions ever written, and link groups ever made: both are numbered in 32 bits."""
MOST_TEXT_BYTES: Final = 16 << 20
"""One document's text, and its metadata and links as JSON, in bytes of UTF-8."""
MOST_WORDS_BYTES: Final = 2 * MOST_TEXT_BYTES
"""The words of one document: a few characters fold to eighteen others."""


def check_sizes(id: str, **sizes: int) -> None:
    """Refuse a document that is too large.

    Args:
        id: Of the document.
        sizes: Bytes of UTF-8, by what is so large.

    Raises:
        DocumentError: Naming the document and the limit.
    """
    for part, size in sizes.items():
        most = MOST_WORDS_BYTES if part == "words" else MOST_TEXT_BYTES
        if size > most:
            raise DocumentError(
                f"document {id!r} cannot be stored: of {part} it has {size:,} bytes, and at most"
                f" {most:,} are allowed; split it into chunks"
            )


def check_keys(what: str, last: int) -> None:
    """Refuse a change after which keys would not fit.

    Args:
        what: Is numbered.
        last: The last number that would be given out.

    Raises:
        StoreLimitError: Naming the limit.
    """
    if last > MOST_KEYS:
        raise StoreLimitError(
            f"the store would have numbered {last:,} {what} since it was made, and at most {MOST_KEYS:,}"
            " can be: copy its documents into a new store"
        )

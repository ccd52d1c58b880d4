"""The pieces of a line of Markdown, and how a dialect of Markdown changes them."""

from __future__ import annotations

import re
from html import escape
from typing import Final, NamedTuple

from pyromark import Markdown, Options

_NOT_IN_URLS: Final = re.compile(r"""[\x00-\x20\x7f"<>\\^`{|}]""")


class Piece(NamedTuple):
    """An inline element of a line of Markdown."""

    kind: str
    """``text``; ``literal``, a text without markup in it; ``code``, ``html``, ``break``; ``link`` and
    ``image``, and the ``end`` of either."""
    value: str
    """Its text; of a link or image, where it leads."""
    start: int = 0
    """The beginning of a text in the source, in bytes."""
    end: int = 0
    """The end of the text, in bytes."""
    type: str = ""
    """The sort of a link or image: ``wiki``, ``labelled`` for a wikilink with a label, else empty."""
    title: str = ""
    """Of a link or image; may be empty."""


class Dialect:
    """CommonMark with tables and struck-out text. Subclasses say what else there is."""

    parser: Markdown = Markdown(options=Options.ENABLE_TABLES | Options.ENABLE_STRIKETHROUGH)

    def line(self, run: list[Piece]) -> list[Piece]:
        """Return the pieces of a line that are shown.

        Args:
            run: The pieces of a paragraph, heading, table cell or item.
        """
        return run

    def block_id(self, run: list[Piece]) -> str | None:
        """Take the id that a block gives itself off its end and return it, None if there is none."""
        del run
        return None

    def text(self, piece: Piece, source: bytes, *, first: bool) -> str:
        """Render a text as HTML.

        Args:
            piece: The text.
            source: Of the page.
            first: Whether it begins a line.
        """
        del source, first
        return escape(piece.value, quote=False)

    def links_in(self, text: str) -> int:
        """Return how many links a text may become, at most."""
        del text
        return 0

    def href(self, piece: Piece) -> str | None:
        """Return the target of a link, or None if it has none."""
        return encoded(piece.value)

    def label(self, piece: Piece) -> str | None:
        """Return the text that replaces the label of a link, or None to keep the label."""
        del piece
        return None


COMMONMARK: Final = Dialect()


def encoded(url: str) -> str:
    """Percent-encode the characters that must not be in a URL."""
    return _NOT_IN_URLS.sub(lambda found: f"%{ord(found[0]):02X}", url)

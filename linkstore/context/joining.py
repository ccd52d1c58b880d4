"""Joins chunks of a page that follow each other in a context into one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkstore.context.duplicates import overlap

_GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that a document adds to a context.

    Args:
        id: The document.
        text: Its text, without what the document before says already.
        joined: Whether it continues that document, with no header or separator between.
    """

    id: str
    text: str
    joined: bool


def joined(
    ordered: Sequence[str], texts: Mapping[str, str], follows: Mapping[str, frozenset[str]]
) -> list[Piece]:
    """Turn documents in their order into pieces.

    A document that follows the one before it on its page continues it: an overlap is written once, and so is
    the heading that both begin with.

    Args:
        ordered: Ids.
        texts: By id.
        follows: For each document those that it may continue.
    """
    pieces: list[Piece] = []
    for at, name in enumerate(ordered):
        before = ordered[at - 1] if at else None
        if before is not None and before in follows.get(name, ()):
            pieces.append(Piece(name, continued(texts[before], texts[name]), joined=True))
        else:
            pieces.append(Piece(name, texts[name], joined=False))
    return pieces


def continued(before: str, text: str) -> str:
    """Return the second text without what the first ends with, or without a heading that both begin with."""
    size = overlap(before, text)
    if size:
        return text[size:]
    heading, gap, body = text.partition(_GAP)
    if gap and body and before.startswith(heading + _GAP):
        return _GAP + body
    return _GAP + text

"""A text as one byte string that can be searched for whole words, and the mapping back to the text.

Every word stands between two spaces of its own: ``"Mercury, Nevada"`` becomes `` mercury  nevada ``. A search
for `` nevada `` then finds only whole words, and finds phrases whatever characters are between their words in
the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final
from unicodedata import category

import numpy as np

from linkstore.text import fold, tokens, written_words

_IN_WORDS: Final = string.ascii_lowercase + string.digits + "_'"
_ASCII_TO_WORDS: Final = bytes(
    ord(low) if (low := chr(code).lower()) in _IN_WORDS else ord(" ") for code in range(128)
)
_TO_WORDS: Final = _ASCII_TO_WORDS + bytes(range(128, 256))
_LONE_APOSTROPHE: Final = re.compile(rb"'(?:(?![a-z0-9_\x80-\xff])|(?<![a-z0-9_\x80-\xff]'))")
_JAMO: Final = range(0x1100, 0x1200)
"""Hangul letters, which join their neighbours when text is normalised."""


@lru_cache(maxsize=2)
def haystack(text: str) -> bytes:
    """Return the words of ``linkstore.text.tokens``, each between two spaces, as UTF-8, empty if none.

    Most texts are folded character by character, several times as fast as by ``tokens``. Texts in which
    characters change in number or join their neighbours are left to ``tokens``. The last texts are
    remembered, so that several extractors may ask one after the other.
    """
    words = _spaced(text)
    found = [word.encode() for word in tokens(text)] if words is None else words.split()
    return b" %b " % b"  ".join(found) if found else b""


def needle(words: str) -> bytes:
    """Return the bytes that find these words, which are joined by single spaces, in a haystack."""
    return b" %b " % words.replace(" ", "  ").encode()


def as_written(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[str | None]:
    """Yield how the words found in a text's haystack are written in the text.

    Args:
        text: As it was given to :func:`haystack`.
        matches: (start, end) of whole words in the haystack, ascending and apart.

    Yields:
        For each the stretch of the text, or None where the words of the text and those of the haystack
        do not correspond, as with letters that fold into several words.
    """
    if not matches:
        return
    words = haystack(text)
    starts, ends, sure = _places(text)
    aligned = sure or len(starts) == words.count(b"  ") + 1
    at, number = 0, 0
    for start, end in matches:
        number += words.count(b"  ", at, start + 1)
        at = start
        last = number + words.count(b"  ", start, end)
        written = text[starts[number] : ends[last]] if aligned else None
        if written is not None and not sure and haystack(written) != words[start:end]:
            written = None
        yield written


@lru_cache(maxsize=2)
def _spaced(text: str) -> bytes | None:
    """Fold a text, with a space for each character outside of words, or return None if that is not enough."""
    if not text.isascii():
        for character in set(text):
            if character > "\x7f":
                plain = _folded(character)
                if plain is None:
                    return None
                text = text.replace(character, plain)
    words = text.encode().translate(_TO_WORDS)
    return _LONE_APOSTROPHE.sub(b" ", words) if b"'" in words else words


@lru_cache(maxsize=1 << 16)
def _folded(character: str) -> str | None:
    """Return the character that another folds to, a space outside of words, None if it folds to several."""
    if character == "\u2019":
        return "'"
    if category(character).startswith("M") or ord(character) in _JAMO:
        return None
    folded = fold(f"a{character}a")[1:-1]
    if not folded:
        return None
    if not tokens(folded):
        return "'" if folded == "'" else None if "'" in folded else " "
    return folded if len(folded) == 1 else None


def _places(text: str) -> tuple[Sequence[int], Sequence[int], bool]:
    """Return the start and end of each word of a text, and whether its haystack surely has the same words."""
    words = _spaced(text)
    if words is None:
        spans = [match.span() for match in written_words(text)]
        return [start for start, _ in spans], [end for _, end in spans], False
    octets = np.frombuffer(b" %b " % words, dtype=np.uint8)
    inside = octets != ord(" ")
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    if len(words) != len(text):  # from octets to characters: those that continue one do not count
        edges -= np.cumsum((octets & 0xC0) == 0x80)[edges]
    return edges[::2], edges[1::2], True  # type: ignore[return-value]

"""The words of a text as one byte string in which whole words can be searched, and the way back.

Every word stands between two spaces of its own: ``"Mercury, Nevada"`` becomes `` mercury  nevada ``. A search
for `` nevada `` then finds words only, never parts of words, and finds whole phrases whatever stands between
their words in the text.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from linkstore.text import tokens

_WORD: Final = re.compile(r"\w+(?:['\u2019]\w+)*")
_IN_WORDS: Final = string.ascii_lowercase + string.digits + "_'"
_TO_WORDS: Final = (
    bytes(ord(low) if (low := chr(code).lower()) in _IN_WORDS else ord(" ") for code in range(128))
    + b" " * 128
)
_LONE_APOSTROPHE: Final = re.compile(rb"'(?:(?![a-z0-9_])|(?<![a-z0-9_]'))")
_PLAIN: Final = {"\u2019": "'", **dict.fromkeys("\u2018\u201c\u201d\u2013\u2014\u2026\u00a0", " ")}
"""Typography of texts that are else ASCII, by what it means for words; each a character for a character."""


@lru_cache(maxsize=2)
def haystack(text: str) -> bytes:
    """The words of ``linkstore.text.tokens``, each between two spaces, as UTF-8; empty if there is none.

    ASCII texts go at some 50 MB a second and core, others at the speed of ``tokens``, a tenth of it. The
    last texts are remembered, so that several extractors may ask one after the other.
    """
    words = _spaced(text)
    found = [word.encode() for word in tokens(text)] if words is None else words.split()
    return b" %b " % b"  ".join(found) if found else b""


def needle(words: str) -> bytes:
    """What to search for in a haystack to find these words, which are joined by single spaces."""
    return b" %b " % words.replace(" ", "  ").encode()


def as_written(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[str | None]:
    """How the words found in a text's haystack are written in it.

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
    starts, ends = _places(text)
    aligned = len(starts) == words.count(b"  ") + 1
    at, number = 0, 0
    for start, end in matches:
        number += words.count(b"  ", at, start + 1)
        at = start
        last = number + words.count(b"  ", start, end)
        written = text[starts[number] : ends[last]] if aligned else None
        if written is not None and not written.isascii() and haystack(written) != words[start:end]:
            written = None
        yield written


def _spaced(text: str) -> bytes | None:
    """The text with a space for whatever is no part of a word, byte for character; None if not ASCII."""
    if not text.isascii():
        for typography, plain in _PLAIN.items():
            text = text.replace(typography, plain)
        if not text.isascii():
            return None
    words = text.encode().translate(_TO_WORDS)
    return _LONE_APOSTROPHE.sub(b" ", words) if b"'" in words else words


def _places(text: str) -> tuple[Sequence[int], Sequence[int]]:
    """Where each word of a text starts and ends."""
    words = _spaced(text)
    if words is None:
        spans = [match.span() for match in _WORD.finditer(text)]
        return [start for start, _ in spans], [end for _, end in spans]
    inside = np.frombuffer(b" %b " % words, dtype=np.uint8) != ord(" ")
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return edges[::2], edges[1::2]  # type: ignore[return-value]

"""Phrases in texts: found as whole words, many at once, whatever stands between their words.

A text is one byte string in which every word stands between two spaces of its own: ``"Mercury, Nevada"``
becomes `` mercury  nevada ``. A search for `` nevada `` then finds only whole words. Many phrases are found
in one pass (A. Aho and M. Corasick, CACM 18(6), 1975), and can be mapped back to how the text writes them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final
from unicodedata import category

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, MatchKind

from linkstore.core.text import STOP_WORDS, find_words, fold, tokenize

_IN_WORDS: Final = string.ascii_lowercase + string.digits + "_'"
_ASCII_TO_WORDS: Final = bytes(
    ord(low) if (low := chr(code).lower()) in _IN_WORDS else ord(" ") for code in range(128)
)
_TO_WORDS: Final = _ASCII_TO_WORDS + bytes(range(128, 256))
_LONE_APOSTROPHE: Final = re.compile(rb"'(?:(?![a-z0-9_\x80-\xff])|(?<![a-z0-9_\x80-\xff]'))")
_JAMO: Final = range(0x1100, 0x1200)
"""Hangul letters, which join their neighbours when text is normalised."""
SHORTEST_NAME: Final = 4
"""Letters of the shortest name, spaces between words among them."""
MOST_NAME_WORDS: Final = 8
"""Words of the longest name; the length of what a query is searched for."""
LONGEST_NAME_WORD: Final = 64
"""Longer runs of letters are hashes, encoded data and the like."""
_BRACKET: Final = re.compile(r"\s*\([^()]*\)\s*$")


@lru_cache(maxsize=2)
def make_haystack(text: str) -> bytes:
    """Return the words of ``linkstore.core.text.tokenize``, each between two spaces, as UTF-8, empty if none.

    Most texts are folded character by character, several times as fast as by ``tokens``. Texts in which
    characters change in number or join their neighbours are left to ``tokens``. The last texts are
    remembered, so that several extractors may ask one after the other.
    """
    words = _space_words(text)
    encoded = [word.encode() for word in tokenize(text)] if words is None else words.split()
    return b" %b " % b"  ".join(encoded) if encoded else b""


def make_needle(words: str) -> bytes:
    """Return the bytes that find these words, joined by single spaces, in a haystack."""
    return b" %b " % words.replace(" ", "  ").encode()


def find_written_forms(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[str | None]:
    """Yield how the words found in a text's haystack are written in the text.

    Args:
        text: As it was given to :func:`make_haystack`.
        matches: (start, end) of whole words in the haystack, ascending and apart.

    Yields:
        For each the stretch of the text, or None where the words of the text and those of the haystack
        do not correspond, as with letters that fold into several words.
    """
    if not matches:
        return
    words = make_haystack(text)
    starts, ends, sure = _find_places(text)
    aligned = sure or len(starts) == words.count(b"  ") + 1
    at, number = 0, 0
    for start, end in matches:
        number += words.count(b"  ", at, start + 1)
        at = start
        last = number + words.count(b"  ", start, end)
        written = text[starts[number] : ends[last]] if aligned else None
        if written is not None and not sure and make_haystack(written) != words[start:end]:
            written = None
        yield written


@lru_cache(maxsize=2)
def _space_words(text: str) -> bytes | None:
    """Fold a text, with a space for each character outside of words, or return None if that is not enough."""
    if not text.isascii():
        for character in set(text):
            if character > "\x7f":
                plain = _fold_character(character)
                if plain is None:
                    return None
                text = text.replace(character, plain)
    words = text.encode().translate(_TO_WORDS)
    return _LONE_APOSTROPHE.sub(b" ", words) if b"'" in words else words


@lru_cache(maxsize=1 << 16)
def _fold_character(character: str) -> str | None:
    """Return the character that another folds to, a space outside of words, None if it folds to several."""
    if character == "\u2019":
        return "'"
    if category(character).startswith("M") or ord(character) in _JAMO:
        return None
    folded = fold(f"a{character}a")[1:-1]
    if not folded:
        return None
    if not tokenize(folded):
        return "'" if folded == "'" else None if "'" in folded else " "
    return folded if len(folded) == 1 else None


def _find_places(text: str) -> tuple[Sequence[int], Sequence[int], bool]:
    """Return the start and end of each word of a text, and whether its haystack surely has the same words."""
    words = _space_words(text)
    if words is None:
        spans = [match.span() for match in find_words(text)]
        return [start for start, _ in spans], [end for _, end in spans], False
    octets = np.frombuffer(b" %b " % words, dtype=np.uint8)
    inside = octets != ord(" ")
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    if len(words) != len(text):  # from octets to characters: those that continue one do not count
        edges -= np.cumsum((octets & 0xC0) == 0x80)[edges]
    return edges[::2], edges[1::2], True  # type: ignore[return-value]


class Automaton:
    """Finds any of a set of names in a text, however many there are, in time that follows the text alone.

    Args:
        names: Words joined by single spaces.
    """

    __slots__ = ("_names", "_search")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Final = tuple(names)
        self._search: Final = BytesAhoCorasick(
            [make_needle(name) for name in self._names], matchkind=MatchKind.LeftmostLongest
        )

    def find(self, text: str) -> list[tuple[str, int, int]]:
        """Return (name, start, end) in the text's haystack, from left to right, the longest at each place."""
        matches = self._search.find_matches_as_indexes(make_haystack(text))
        return [(self._names[number], start, end) for number, start, end in matches]

    def occurs(self, text: str) -> bool:
        """Say whether the text contains any of the names."""
        return bool(self._names) and bool(self._search.find_matches_as_indexes(make_haystack(text)))


@lru_cache(maxsize=4096)
def make_name_tag(name: str) -> str | None:
    """Return the tag of a name, or None for one too trivial to mean anything in a text.

    A bracket at the end tells names apart and does not belong to them: "Mercury (planet)" is called
    "Mercury". The rest is folded into words by ``linkstore.core.text.tokenize``, joined by single spaces.
    It must have at least 4 letters and at most 8 words, one of which is neither a stop word nor a number.
    """
    words = tokenize(_BRACKET.sub("", name))
    tag = " ".join(words)
    if len(tag) < SHORTEST_NAME or len(words) > MOST_NAME_WORDS or max(map(len, words)) > LONGEST_NAME_WORD:
        return None
    return tag if any(word not in STOP_WORDS and not word.isnumeric() for word in words) else None

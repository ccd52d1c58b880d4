"""Finds many names in one pass over a text (A. Aho and M. Corasick, CACM 18(6), 1975)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from linkstore_extractors._haystack import haystack, needle


class Automaton:
    """Finds any of a set of names in a text, however many there are, in time that follows the text alone.

    Args:
        names: Words joined by single spaces.
    """

    __slots__ = ("_names", "_search")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Final = tuple(names)
        self._search: Final = BytesAhoCorasick(
            [needle(name) for name in self._names], matchkind=MatchKind.LeftmostLongest
        )

    def find(self, text: str) -> list[tuple[str, int, int]]:
        """Return (name, start, end) in the text's haystack, from left to right, the longest at each place."""
        matches = self._search.find_matches_as_indexes(haystack(text))
        return [(self._names[number], start, end) for number, start, end in matches]

    def occurs(self, text: str) -> bool:
        """Say whether the text contains any of the names."""
        return bool(self._names) and bool(self._search.find_matches_as_indexes(haystack(text)))

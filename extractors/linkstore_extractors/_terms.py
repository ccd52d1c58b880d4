"""Words and phrases that could be keywords: tokens between stop words and punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langchain_core.documents import Document

from linkstore.text import STOP_WORDS, fold, word_pattern

_SENTENCE_ENDS: Final = frozenset(".!?…:\n")
_LONGEST_WORD: Final = 64
"""Longer runs of letters are hashes, encoded data and the like."""
MAX_WORDS: Final = 3

_folded = lru_cache(maxsize=1 << 16)(fold)


@dataclass(slots=True)
class Run:
    """Words of a text that follow each other with no stop word or punctuation between them.

    Args:
        start: How many words of the text stand before it, stop words included.
        opens: Whether its first word opens a sentence.
        words: The words, folded.
        raws: The words as written.
    """

    start: int
    opens: bool
    words: list[str]
    raws: list[str]


def text_of(source: Document | str) -> str:
    """Return the text of a source."""
    return source if isinstance(source, str) else source.page_content


def runs(text: str) -> list[Run]:
    """Split a text into runs, in order. Hyphens join words, other punctuation and blank lines part them."""
    found: list[Run] = []
    run: Run | None = None
    opens, position = True, 0
    for raw in _token(word_pattern(text)).findall(text):
        if not (raw[0].isalnum() or raw[0] == "_"):
            run = None
            opens = opens or raw[0] in _SENTENCE_ENDS
            continue
        word = _folded(raw)
        if not word or word in STOP_WORDS or len(raw) > _LONGEST_WORD:
            run = None
        elif run is None:
            run = Run(position, opens, [word], [raw])
            found.append(run)
        else:
            run.words.append(word)
            run.raws.append(raw)
        opens = False
        position += 1
    return found


@lru_cache(maxsize=256)
def _token(word: str) -> re.Pattern[str]:
    """Compile a pattern of words, blank lines, and punctuation other than hyphens and apostrophes."""
    return re.compile(rf"{word}|\n\s*\n|[^\w\s\-'\u2019]")


def stands_alone(word: str) -> bool:
    """Say whether a word can be a keyword without others: no number, no single letter."""
    return len(word) > 1 and (word.isalpha() or not (word.isdecimal() or word.strip("_") == ""))


def candidates(found: Iterable[Run]) -> set[str]:
    """Return all words and all phrases of two and three words. A phrase does not begin with a number."""
    terms: set[str] = set()
    for run in found:
        one = two = ""
        for word in run.words:
            if stands_alone(word):
                terms.add(word)
            if two:
                terms.add(f"{two} {word}")
            two = f"{one} {word}" if one and not one.isdecimal() else ""
            if two:
                terms.add(two)
            one = word
    return terms

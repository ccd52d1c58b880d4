"""Capitalised phrases, which may name people, places, works and organisations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import normalize

from linkstore.text import STOP_WORDS, tokens

MOST_WORDS: Final = 8
"""Longer phrases are headlines."""
_CAPITAL: Final = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0386-\u038f\u0391-\u03ab\u0400-\u042f\u0531-\u0556]"
"""Capital letters of Latin, Greek, Cyrillic and Armenian."""
_SMALL: Final = (
    "al|and|av|bin|da|de|del|della|den|der|des|di|do|dos|du|el|et|ibn|la|las|le|les|los|of|ten|ter|the"
    "|van|von|zu|zur"
)
"""Words that may stand inside a name, as in "Leonardo da Vinci" or "University of the West".

Not "in", "on" and the like, which more often stand between two names: "Steven Spielberg in New York"."""
_WORD: Final = (
    rf"{_CAPITAL}\w*(?:['\u2019.-]\w+)*"
    rf"(?:(?:(?<=\b{_CAPITAL})|(?<=\b(?:Dr|Ft|Jr|Mr|Mt|Sr|St)))\.)?"
)
"""A full stop belongs to an initial and to a few abbreviations; after all others a sentence ends."""
_GAP: Final = "[ \u00a0\n]"
_PHRASE: Final = re.compile(rf"\b{_WORD}(?:{_GAP}(?:(?:(?:{_SMALL}){_GAP}){{0,2}}{_WORD}|\d{{4}}\b))+")

_SMALL_WORDS: Final = re.compile(rf"(?:{_GAP}(?:{_SMALL})(?={_GAP}))+{_GAP}")


def phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield the capitalised phrases of at least two words, in order, as (tag, as written).

    Words follow each other with a single space or line break between. Up to two small words ("of the") and
    years may stand inside. The words between small words form a phrase too, since only the sense tells
    "University of the West Indies" from "Home of the Space Needle". Words that open sentences ("The",
    "After") and numbers are taken off the front.
    """
    for match in _PHRASE.finditer(normalize("NFC", text)):
        whole = match[0]
        yield from _tagged(whole)
        parts = _SMALL_WORDS.split(whole)
        if len(parts) > 1:
            for part in parts:
                yield from _tagged(part)


def _tagged(phrase: str) -> Iterator[tuple[str, str]]:
    written = _without_openers(phrase)
    if written is not None:
        words = tokens(written)
        if len(words) <= MOST_WORDS:
            yield " ".join(words), written


def _without_openers(phrase: str) -> str | None:
    """Strip stop words and numbers from the front of a phrase, or return None if not two words are left."""
    word, *others = phrase.split(None, 1)
    while others and (word.lower() in STOP_WORDS or word.isdigit()):
        phrase = others[0]
        word, *others = phrase.split(None, 1)
    return phrase if others else None

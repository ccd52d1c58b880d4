"""Answers that are a name, as "Frank Herbert." after "Who wrote Dune?".

What looks like a name may be an acknowledgement ("Perfect.", "Keine Ahnung."). So an answer is a name only if
the question asked for one, and if another text has it as a name: an earlier turn, or the knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from linkstore.memory.turns import Turn

SHORT: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
_LONGEST: Final = 6
"""Maximum number of words of a name."""
_INSIDE_NAMES: Final = "a and da das de del der di du la le of on the und upon van von y"
_INSIDE: Final = frozenset(_INSIDE_NAMES.split())
"""Words without a capital that names have inside."""
_BEFORE: Final = re.compile(r"^(?:(?:at|in|the|under) )+(?=[^\W\d_])", re.IGNORECASE)
_WHO: Final = re.compile(r"^\W*(?:(?:and|so|but)\W+)*who(?:m|se)?\b|\bwhom?\W*$", re.IGNORECASE)
_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\b(?:where|capital|city|continent|country|county|island|place|state|town|village)\b", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"[.!?\u2026]\s*$|\b(?:i|me|my|please|us|we|you|your)\b", re.IGNORECASE)
_OPENING: Final = ".!?:;\n\"'\u201c\u201e\u00ab(-*\u2022"
"""Signs after which any word has a capital."""


def answered_name(turn: Turn) -> str | None:
    """Return the name that the answer of a turn may be, or None if nothing was asked for or it names nothing.

    A query asks by a word like "which", or by key words that are no sentence ("capital of australia").
    """
    name = _BEFORE.sub("", (turn.response or "").strip().rstrip(".! "))
    words = name.split(" ")
    if len(words) > _LONGEST or not (_ASKS.search(turn.query) or not _SENTENCE.search(turn.query)):
        return None
    if not all(_is_proper(word) or word in _INSIDE for word in words):
        return None
    return name if name[0].isupper() and _is_proper(words[-1]) else None


def has_name(texts: Iterable[str], name: str) -> bool:
    """Say whether a text has this name: in its spelling, and not only where every word has a capital."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        text[: found.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for found in pattern.finditer(text)
    )


def asks_for_person(query: str) -> bool:
    """Say whether the answer to a query is a person."""
    return _WHO.search(query) is not None


def asks_for_place(query: str) -> bool:
    """Say whether the answer to a query is a place."""
    return _PLACE.search(query) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and "\n" not in word

"""Replaces a pronoun at the beginning of a sentence by the subject of its section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from linkstore.lexical import name_of

_BRACKET: Final = re.compile(r"\s*\([^()]*\)\s*$")
_OPENING: Final = re.compile(
    r"^(?P<before>(?:(?:In|On|At|By|After|Before|During|Since|Until)\b[^,.;]{1,60},\s+)?)"
    r"(?P<pronoun>He|She|It|They|His|Her|Its|Their|he|she|it|they|his|her|its|their)\b(?!')"
)
_EXPLETIVE: Final = re.compile(
    r"(?:is|was|has been|may be|seems|appears|takes|took)\s+(?:\w+\s+){0,3}?"
    r"(?:that|to|whether|why|who|when)\b"
)
"""What follows an "it" that stands for nothing: "It is known that …"."""
_FAMILIES: Final = (("he", "his", "him"), ("she", "her", "hers"), ("it", "its"), ("they", "their", "them"))
_ANY: Final = re.compile(
    rf"(?<![\w'\u2019])(?:{'|'.join(word for family in _FAMILIES for word in family)})(?![\w'\u2019])"
)
_OWNING: Final = frozenset({"his", "its", "their"})
_LONGEST: Final = 80


def subject_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the subject of a chunk: the title of its page, else its innermost heading, else None."""
    title = metadata.get("title")
    name = title if isinstance(title, str) and title.strip() else name_of(metadata)
    short = " ".join(_BRACKET.sub("", name).split())
    return short if 0 < len(short) <= _LONGEST else None


def pronouns_of(text: str) -> frozenset[str]:
    """Return the pronouns that mean what a text is about: those of the gender and number it uses most."""
    counts = Counter(_ANY.findall(text.lower()))
    return frozenset(max(_FAMILIES, key=lambda family: sum(counts[one] for one in family)))


def with_subject(sentence: str, subject: str | None, pronouns: frozenset[str]) -> str:
    """Replace a pronoun that opens a sentence by the subject, unless the sentence names the subject itself.

    The first pronoun, at the start or after an opening such as "In 1962,", most often means what the section
    is about. Those further on are left, since they more often mean something in the sentence.
    """
    found = _OPENING.match(sentence)
    if found is None or subject is None or subject in sentence:
        return sentence
    pronoun, rest = found["pronoun"].lower(), sentence[found.end() :]
    if pronoun not in pronouns:
        return sentence
    if pronoun == "it" and _EXPLETIVE.match(rest.lstrip()):
        return sentence
    owns = pronoun in _OWNING or (pronoun == "her" and _owns(rest))
    if pronoun == "her" and not owns:
        return sentence
    return f"{found['before']}{subject}{chr(39) + 's' if owns else ''}{rest}"


def _owns(rest: str) -> bool:
    """Say whether a noun follows, so that "her" is a possessive."""
    return re.match(r"\s+[A-Za-z]", rest) is not None

"""What an answer names: whether a pronoun after it can mean the whole answer, or a part of it."""

from __future__ import annotations

import re
from typing import Final

from linkstore.lexical import terms
from linkstore.text import fold

_SHORT: Final = 8
"""Maximum number of words of an answer that may be a name."""
_SURELY: Final = 3
"""Maximum number of words of such an answer."""
_PHRASES: Final = """
    ah ahead certainly course exactly fine glad gladly go good great indeed maybe nice no noted of ok okay
    perhaps please probably right sure sorry thanks thank true welcome yes you
"""
_POLITE: Final = frozenset(_PHRASES.split())
"""Words that alone name nothing, but agree or thank."""
_VERBS: Final = """
    am are became been began built can could did do does had has have is led made may might must sang said
    should was went were will won would wrote
"""
_VERBAL: Final = frozenset(_VERBS.split())
"""Words that make a sentence of an answer."""
_LEADING: Final = "about after at before by during for from in near on over since under with"
_PREPOSITIONS: Final = frozenset(_LEADING.split())
_INDEFINITE: Final = frozenset({"a", "an", "some", "another"})
"""Words before a thing of a kind, which is described and not named: "A play"."""
_AT_PLACE: Final = re.compile(r"^(?:in|at|on|from|near)\s+", re.IGNORECASE)
_ASKS_WHO: Final = re.compile(r"^\W*(?:(?:and|so|but)\b\W*)*who(?:m|se)?\b", re.IGNORECASE)
_ASKS_NAME: Final = re.compile(
    r"^\W*(?:(?:and|so|but)\b\W*)*(?:which|who|what(?! (?:is|are|was|were)\b))\b", re.IGNORECASE
)


def is_name(answer: str) -> bool:
    """Whether a short answer is a name, and so the likeliest thing that is referred to next."""
    words = answer.rstrip(".! ").split()
    if not 0 < len(words) <= _SHORT or answer.rstrip().endswith("?") or not terms(answer):
        return False
    folded = [fold(word.strip(",.!")) for word in words]
    if all(word in _POLITE for word in folded) or folded[0] in _PREPOSITIONS or is_quantity(answer):
        return False
    if folded[0] in _INDEFINITE:
        return False  # a description
    if any(word in _VERBAL or (word.endswith("ed") and word in words) for word in folded[1:]):
        return False  # a sentence
    content = [word for word in words if terms(word)]
    return len(words) <= _SURELY or sum(not word[0].islower() for word in content) * 2 > len(content)


def is_quantity(answer: str) -> bool:
    """Whether an answer is a number of something, as "about 460 kilometres"."""
    words = [word for word in answer.rstrip(".! ").split() if terms(word)]
    units = [word for word in words if not word[0].isdigit()]
    return 0 < len(units) < len(words) and all(unit[0].islower() for unit in units)


def place_of(answer: str) -> str | None:
    """The place that a short answer names: "In Oslo" names Oslo; None for any other answer."""
    bare = _AT_PLACE.sub("", answer.strip()).rstrip(".! ")
    return bare if is_name(bare) and bare.removeprefix("the ")[:1].isupper() else None


def asks_for_person(query: str) -> bool:
    """Whether the answer to a query is a person."""
    return _ASKS_WHO.match(query) is not None


def asks_for_name(query: str) -> bool:
    """Whether a query asks for a thing or a person, with which its answer likely begins."""
    return _ASKS_NAME.match(query) is not None


def may_be_persons(name: str) -> bool:
    """Whether a name may be that of a person: it has neither a number nor an abbreviation in capitals.

    Initials, which have full stops, are not an abbreviation.
    """
    return not any(
        re.search(r"\d", word) or (len(word) > 1 and word.isupper() and "." not in word)
        for word in name.split()
    )

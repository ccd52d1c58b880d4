"""Questions that continue an earlier one: ellipsis ("And in 3.12?") and descriptions ("the statement").

The rules are made for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Final

from linkstore.memory.entities import EntityFinder
from linkstore.memory.turns import Turn
from linkstore.text import STOP_WORDS, fold

_LEAD: Final = re.compile(r"^\W*(?:(?:and|but|or|also|so|what about|how about)\b\W*)+", re.IGNORECASE)
_TAIL: Final = re.compile(r",? (?:too|also|as well|then|instead)$", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?!\w)")
_DESCRIPTION: Final = re.compile(
    r"\bthe ([a-z][\w-]{3,})\b(?! (?:of|that|which)\b)( ones?\b)?", re.IGNORECASE
)
_DEMONSTRATIVE: Final = re.compile(r"\b(?:this|that) ([a-z][\w-]{3,})\b", re.IGNORECASE)
_NAMED: Final = r"(?<![\w.-])([A-Z][\w.-]*(?: [A-Z\d][\w.-]*)*) (?:is|was) (?:an?|the) (?:[\w-]+ )?"
_ONES: Final = frozenset({" one", " ones"})
_PREPOSITIONS: Final = (
    r"(?P<preposition>in|on|at|for|from|with|by|to|of|inside|outside|within|without|under|over|before|after|"
    r"during|between|through|against|about|as|like|than|since|until|via)"
)
_PREPOSITION: Final = re.compile(rf"\W*{_PREPOSITIONS}\b", re.IGNORECASE)
_PHRASE: Final = re.compile(
    rf"{_PREPOSITIONS} (?:the |an? )?(?P<thing>[^\W\d_][\w-]*(?: [\w-]+)?)", re.IGNORECASE
)
_LONGEST: Final = 4
"""Words of a part that takes the place of another."""
_MOST_TURNS: Final = 3
"""How many turns ago a thing may have been named in full."""


def continued(stated: str, question: str, entities: EntityFinder) -> str | None:
    """An elliptic question in full: the question it goes on with, with its own part in the place of another.

    None where no part of the earlier question is like the new one.
    """
    part = _TAIL.sub("", _LEAD.sub("", question).strip().rstrip("?!. "))
    return (
        _number_replaced(stated, part)
        or _phrase_replaced(stated, part)
        or _name_replaced(stated, part, entities)
    )


def is_phrase(question: str) -> bool:
    """Whether a question is a preposition and a thing, as "In 3.14?", which is a part of another question."""
    return _PREPOSITION.match(question) is not None


def described(question: str, before: Sequence[Turn]) -> str:
    """A question with descriptions in full: "the statement" is "the match statement" that was spoken of.

    "That tutorial" gets the name of what was said to be one.
    """
    beside = cache(partial(_word_beside, before))  # a question may repeat a noun

    def called(match: re.Match[str]) -> str:
        pattern = re.compile(rf"{_NAMED}{re.escape(match.group(1))}(?!\w)")
        found = next(filter(None, map(pattern.search, _latest(before))), None)
        return match.group() if found is None else f"the {match.group(1)} {found.group(1)}"

    def full(match: re.Match[str]) -> str:
        noun, ones = match.group(1), (match.group(2) or "").lower()
        if ones in _ONES:
            following = beside(rf"\b{re.escape(noun)} ([\w-]+)")
            return match.group() if following is None else f"the {noun} {following}"
        preceding = beside(rf"(?<![\w.-])([\w.-]+) {re.escape(noun)}\b")
        if preceding is None or re.search(rf"\b{re.escape(preceding)}\b", question):
            return match.group()
        return f"the {preceding} {noun}"

    return _DESCRIPTION.sub(full, _DEMONSTRATIVE.sub(called, question))


def _number_replaced(stated: str, part: str) -> str | None:
    """The earlier question with the number of the new part in place of the last one of the same form."""
    numbers = _NUMBER.findall(part)
    if len(numbers) != 1 or len(part.split()) > _LONGEST:
        return None
    alike = [one for one in _NUMBER.finditer(stated) if one.group().count(".") == numbers[0].count(".")]
    words = re.findall(r"[^\W\d_]+", part)
    if not alike or any(len(word) > 3 and word.lower() not in stated.lower() for word in words):
        return None
    start, end = alike[-1].span()
    return f"{stated[:start]}{numbers[0]}{stated[end:]}"


def _phrase_replaced(stated: str, part: str) -> str | None:
    """The earlier question with the new part in place of one with the same preposition: "in spinach"."""
    found = _PHRASE.fullmatch(part)
    if found is None:
        return None
    preposition, proper = found["preposition"].lower(), found["thing"][0].isupper()
    thing = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*" if proper else r"[a-z][\w-]*"
    alike = list(re.finditer(rf"\b(?i:{preposition}) (?:the |an? )?{thing}(?!\w)", stated))
    if not alike:
        return None
    start, end = alike[-1].span()
    return f"{stated[:start]}{preposition}{part[found.end('preposition') :]}{stated[end:]}"


def _name_replaced(stated: str, part: str, entities: EntityFinder) -> str | None:
    """The earlier question with the new part in place of a name like it: of the same kind of thing."""
    words = part.split()
    if not 0 < len(words) <= _LONGEST or fold(words[0]) in STOP_WORDS - {"the", "a", "an"}:
        return None
    bare = re.sub(r"^(?:the|an?) ", "", part, flags=re.IGNORECASE)
    kind = re.escape(bare.split()[-1])
    same = re.search(rf"(?<=\bthe )[\w.-]+ {kind}(?!\w)", stated, re.IGNORECASE)
    if same is not None and len(bare.split()) > 1:
        return f"{stated[: same.start()]}{bare}{stated[same.end() :]}"
    names = list(entities(stated))
    alike = [name for name in names if fold(name.split()[-1]) == fold(bare.split()[-1])]
    proper = [name for name in names if name[0].isupper()]
    if not alike and len(proper) == 1 and all(word[0].isupper() for word in bare.split()):
        alike = proper
    if not alike and len(bare.split()) == 1 and bare.islower():
        alike = [name.split()[0] for name in names[:1] if name.islower()]
    return stated.replace(alike[0], bare, 1) if alike else None


def _word_beside(before: Sequence[Turn], pattern: str) -> str | None:
    """The word that stands beside another in the latest text that has both; None where it says nothing."""
    for text in _latest(before):
        for match in re.finditer(pattern, text, re.IGNORECASE):
            word = match.group(1)
            if fold(word) not in STOP_WORDS and len(word) > 2:
                return word
    return None


def _latest(before: Sequence[Turn]) -> Iterator[str]:
    for turn in reversed(before[-_MOST_TURNS:]):
        yield turn.response or ""
        yield turn.query

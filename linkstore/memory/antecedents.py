"""What a pronoun refers to: the entities of the last turns, ranked by salience.

The ranking is a simplified one of S. Lappin and H. Leass, "An Algorithm for Pronominal Anaphora Resolution",
Computational Linguistics 20(4), 1994: how lately and how often an entity is mentioned, whether it comes
first, and whether a person stands behind a preposition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from linkstore.memory.answers import (
    asks_for_name,
    asks_for_person,
    is_name,
    may_be_persons,
)
from linkstore.memory.entities import EntityFinder
from linkstore.memory.salience import ELSEWHERE
from linkstore.memory.turns import Turn
from linkstore.text import fold

_PERSONAL: Final = frozenset({"he", "him", "his", "she", "her", "hers"})
_PLURAL: Final = frozenset({"they", "them", "their", "theirs", "these", "those"})
_ANSWERED: Final = 1.0
"""Added weight of the thing that an answer begins with, if the question asked for a name."""
_WHO: Final = 5.0
"""Added weight of the person that an answer begins with, if the question asked who."""
_FIRST: Final = 1.25
"""Factor for the first entity of a text, which is its subject more often than others."""
_OBLIQUE: Final = 0.5
"""Factor for a person behind a preposition; Lappin and Leass give it 40, where a subject has 80."""
_BEHIND: Final = re.compile(
    r"\b(?:of|with|by|to|for|from|in|at|on|against|between|under|like|as|than|about|after|before|into|over"
    r"|through|via|versus|towards?|without|among|upon)\s+(?:[^\W\d_]+\s+)?$",
    re.IGNORECASE,
)
"""A preposition, and one more word at most, at the end of a text."""
_NEAR: Final = 40
"""How many characters before a name are searched for a preposition."""
_FADING: Final = 0.6
"""Factor for each turn since an entity was mentioned."""
_RESPONSE: Final = 0.4
"""Factor for an entity of a response; one of a query has 1."""


def antecedent(
    pronoun: str, before: Sequence[Turn], entities: EntityFinder, focus: str | None
) -> tuple[str | None, bool]:
    """The referent of a pronoun, and whether it is certain because the last answer was only this name.

    Args:
        pronoun: In lower case.
        before: The turns before, in order; at least one.
        entities: Gives the entities of a text.
        focus: What the last question was about, as far as its references said.
    """
    answer, asked = (before[-1].response or "").strip(), before[-1].query
    if is_name(answer) and _may_be(answer, pronoun, asked):
        return answer.rstrip(".! "), True
    spelled, weights = _weighed(pronoun, before, entities)
    weights = _whole(weights, spelled)
    if asks_for_name(asked) and (first := next(iter(entities(answer)), None)):
        who = pronoun in _PERSONAL and asks_for_person(asked)
        weights[fold(first)] = weights.get(fold(first), 0.0) + (_WHO if who else _ANSWERED)
        spelled.setdefault(fold(first), first)
    weights = _fitting(weights, spelled, pronoun, _persons(before, entities))
    if focus is not None and fold(focus) not in map(fold, entities(before[-1].query)):
        weights[fold(focus)] = weights.get(fold(focus), 0.0) + 1.0
        spelled.setdefault(fold(focus), focus)
    best = max(weights, key=lambda key: weights[key], default=None)
    return (None if best is None else _in_full(spelled[best], before)), False


def _may_be(answer: str, pronoun: str, asked: str) -> bool:
    """Whether a pronoun can mean the name that was answered: a person or a thing."""
    if pronoun in _PERSONAL:
        return answer[:1].isupper() and may_be_persons(answer)
    return not asks_for_person(asked)


def _weighed(
    pronoun: str, before: Sequence[Turn], entities: EntityFinder
) -> tuple[dict[str, str], dict[str, float]]:
    """The entities of turns by their folded names: how they are written, and how salient they are."""
    spelled: dict[str, str] = {}
    weights: dict[str, float] = {}
    last = before[-1].segment
    for age, turn in enumerate(reversed(before)):
        near = _FADING**age * (1.0 if turn.segment == last else ELSEWHERE)
        response = turn.response or ""
        for text, share in ((turn.query, 1.0), (response, _RESPONSE)):
            for at, name in enumerate(entities(text)):
                key = fold(name)
                spelled.setdefault(key, name)
                repeated = 1 + min(_mentions(key, response), 3) / 4
                weight = share * near * repeated * _prominence(name, at, pronoun)
                weight *= _OBLIQUE if pronoun in _PERSONAL and _is_oblique(name, text) else 1.0
                weights[key] = weights.get(key, 0.0) + weight
    return spelled, weights


def _mentions(key: str, text: str) -> int:
    """How often a text has the words of a folded name."""
    return len(re.findall(rf"(?<!\w){re.escape(key)}(?!\w)", fold(text)))


def _prominence(name: str, at: int, pronoun: str) -> float:
    """The evidence from the form and the position of a name."""
    proper = 1.5 if name[:1].isupper() else 1.0
    agrees = 2.0 if pronoun in _PLURAL and fold(name).endswith("s") else 1.0
    return proper * agrees * (1.0 if at else _FIRST)


def _is_oblique(name: str, text: str) -> bool:
    """Whether a preposition stands before the first mention of a name.

    It says nothing in a question, whose subject often stands there: "What is the syntax of f-strings?"
    """
    at = -1 if "?" in text else text.find(name)
    return at > 0 and _BEHIND.search(text, max(0, at - _NEAR), at) is not None


def _whole(weights: Mapping[str, float], spelled: Mapping[str, str]) -> dict[str, float]:
    """The weights of names, with those of parts of a proper name given to the longer one.

    What a question calls "Which PEP" its answer calls "PEP 427", and a person is soon called by one name.
    """
    whole = dict(weights)
    for key in sorted(weights, key=len):
        longer = [
            one
            for one in whole
            if spelled[one][:1].isupper() and (one.startswith(f"{key} ") or one.endswith(f" {key}"))
        ]
        if longer:
            whole[max(longer, key=lambda one: whole[one])] += whole.pop(key)
    return whole


def _persons(before: Sequence[Turn], entities: EntityFinder) -> frozenset[str]:
    """The folded names with which answers to "who" begin."""
    answers = (turn.response or "" for turn in before if asks_for_person(turn.query))
    firsts = (next(iter(entities(answer)), "") for answer in answers)
    return frozenset(fold(name) for name in firsts if name[:1].isupper())


def _fitting(
    weights: dict[str, float], spelled: Mapping[str, str], pronoun: str, known: frozenset[str]
) -> dict[str, float]:
    """The entities that a pronoun can mean, persons or things; all, if none can."""
    if pronoun in _PERSONAL:
        weights = {key: value for key, value in weights.items() if spelled[key][:1].isupper()} or weights
        return {key: value for key, value in weights.items() if may_be_persons(spelled[key])} or weights
    return {key: value for key, value in weights.items() if key not in known} or weights


def _in_full(name: str, before: Sequence[Turn]) -> str:
    """A name with what belongs to it: "Treaty" of "the Treaty of Tordesillas", "strings" of "f-strings"."""
    after = r"(?: (?:of|de|van|von)(?: the)? [A-Z][\w-]+)+" if name[:1].isupper() else ""
    whole = re.compile(rf"(?<!\w){'' if after else '[a-z]-'}{re.escape(name)}{after}(?!\w)")
    texts = (text for turn in reversed(before) for text in (turn.query, turn.response or ""))
    return next((found.group() for found in map(whole.search, texts) if found), name)

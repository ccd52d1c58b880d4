"""What a question refers to: pronouns, ellipsis and positions in a list, resolved by rules.

The rules go through the last turns in order, as the conversation did, so that a reference to a reference is
resolved too, and nothing about it has to be stored. They are made for English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from linkstore.lexical import terms
from linkstore.memory.answers import place_of
from linkstore.memory.antecedents import antecedent
from linkstore.memory.continuing import continued, described, is_phrase
from linkstore.memory.entities import LONGEST_TEXT, EntityFinder
from linkstore.memory.listed import item_meant, several_meant
from linkstore.memory.turns import Turn

_PRONOUN: Final = re.compile(
    r"\b(its|it|their|theirs|they|them|his|he|him|hers|her|she|this one|that one|this|that|these|those|"
    r"the (?:former|latter|same)|such)\b(?!['\u2019]s\s+(?:say|talk|go)\b)",
    re.IGNORECASE,
)
_OTHER_SIGN: Final = re.compile(
    r"\b(there|one|ones|another|others?|same|first|second|third|former|latter|then|also|too|else)\b",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"^\W*(and|but|or|so|what about|how about|why|ok|okay|no|yes|also|really|wow|i see|then)\b", re.IGNORECASE
)
_THERE: Final = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?! (?:is|are|was|were|any)\b)", re.IGNORECASE
)
_ELLIPSIS: Final = re.compile(r"^\W*(and|but|or|what about|how about|also)\b", re.IGNORECASE)
_DUMMY: Final = re.compile(
    r"\b(?:is|was|does|did|will|would|can|could) it"
    r" (?:possible|true|necessary|important|take|make sense|mean|rain)\b"
    r"|\bit (?:is|was|seems|looks|sounds)\b(?= (?:that|like|as))",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"[,;:]|\b(?:and|but|or|if|when|while|because|before|after|since|until|that|which|who|of|for)\b",
    re.IGNORECASE,
)
_POSSESSIVE: Final = frozenset({"its", "their", "theirs", "his", "hers"})
_DETERMINERS: Final = frozenset({"this", "that", "these", "those", "such"})
_FEWEST_WORDS: Final = 3
"""A question with fewer words that say something depends on what was said before."""
_SENTENCE: Final = 4
"""Words of a question that is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A question with its references resolved.

    Args:
        text: The question; references are replaced, or what they refer to is added.
        depends: Whether it can only be understood from what was said before.
        bare: Whether that is only because it is too short for a sentence, as "kubernetes?": no word of it
            refers to something, and it may as well begin a new subject.
        whole: Whether the text is the earlier question with a part replaced, as "And in 3.12?" asks.
        exact: Whether all references were replaced by a thing that was named, so that the text stands alone.
        focus: What the question is about, as far as its references say; None without any.
    """

    text: str
    depends: bool = False
    bare: bool = False
    whole: bool = False
    exact: bool = False
    focus: str | None = None


def resolve(question: str, recent: Sequence[Turn], entities: EntityFinder) -> Resolved:
    """Resolve the references of a question in the light of the last turns, in order.

    Of what was said, the first 8,000 characters of each text are looked at. A longer question stays as it is.
    """
    if len(question) > LONGEST_TEXT:
        return Resolved(text=question)
    recent = list(map(_beginning, recent))
    stated, focus, since = "", None, 0
    for at, turn in enumerate(recent):
        seen = _resolved(turn.query, recent[since:at], entities, stated, focus)
        if entities(turn.query) and not _has_sign(turn.query):
            stated, focus = turn.query, None
            since = at  # what it names is what is spoken of from here on
        stated = seen.text if not seen.depends or seen.exact else stated or turn.query
        focus = seen.focus
    found = _resolved(question, recent[since:], entities, stated, focus)
    return replace(found, text=described(question, recent)) if found.text == question else found


def _beginning(turn: Turn) -> Turn:
    """A turn with the beginnings of long texts."""
    response = None if turn.response is None else turn.response[:LONGEST_TEXT]
    return replace(turn, query=turn.query[:LONGEST_TEXT], response=response)


def depends_on_history(question: str) -> bool:
    """Whether a question has a sign that it can only be understood from what was said before."""
    return _has_sign(question) or (len(terms(question)) < _FEWEST_WORDS and _is_fragment(question))


def _has_sign(question: str) -> bool:
    """Whether a question has a word that refers to something said before."""
    signs = (_PRONOUN, _OTHER_SIGN, _LEAD)
    return any(sign.search(question) for sign in signs)


def _resolved(
    question: str, before: Sequence[Turn], entities: EntityFinder, stated: str, focus: str | None
) -> Resolved:
    listed = item_meant(question, before, entities) or several_meant(question, before, entities)
    if listed is not None:
        phrase, item = listed
        return Resolved(text=question.replace(phrase, item, 1), depends=True, exact=True, focus=item)
    if not before or not depends_on_history(question):
        return Resolved(text=question)
    pronoun = _referring(question, entities)
    if pronoun is not None:
        meant, named = antecedent(pronoun, before, entities, focus)
        if meant is not None:
            text = _substituted(question, meant)
            return Resolved(text=text, depends=True, exact=named, focus=meant)
    place = place_of(before[-1].response or "") if pronoun is None and _THERE.search(question) else None
    if place is not None:
        text = _THERE.sub(lambda _: f"in {place}", question, count=1)
        return Resolved(text=text, depends=True, exact=True, focus=focus)
    bare, whole, text = _is_bare(question), None, question
    if stated and (_ELLIPSIS.search(question) or not entities(question) or _is_fragment(question)):
        whole = continued(stated, question, entities)
        text = whole or f"{stated.rstrip(' ?.!')}: {question.strip()}"
    return Resolved(text=text, depends=True, bare=bare, whole=whole is not None and not bare, focus=focus)


def _is_fragment(question: str) -> bool:
    """Whether a question is too short for a sentence."""
    return len(question.split()) < _SENTENCE


def _is_bare(question: str) -> bool:
    """Whether a question says something, and has no sign that it refers to something said before."""
    return bool(terms(question)) and not _has_sign(question) and not is_phrase(question)


def _referring(question: str, entities: EntityFinder) -> str | None:
    """The first pronoun that refers to something outside of the question."""
    dummies = [match.span() for match in _DUMMY.finditer(question)]
    for match in _PRONOUN.finditer(question):
        if any(start <= match.start() < end for start, end in dummies):
            continue
        word = match.group().lower()
        followed = question[match.end() :].lstrip()[:1].isalpha()
        if word in _DETERMINERS and followed and word in {"that", "such"}:
            continue
        ends = [clause.start() for clause in _CLAUSE.finditer(question[: match.start()])]
        if ends and any(name[:1].isupper() for name in entities(question[: ends[-1]])):
            return None  # what it refers to stands before it, in another clause
        return word
    return None


def _substituted(question: str, meant: str) -> str:
    """A question with its pronouns replaced."""
    dummies = [match.span() for match in _DUMMY.finditer(question)]

    def replaced(match: re.Match[str]) -> str:
        word = match.group().lower()
        if any(start <= match.start() < end for start, end in dummies):
            return match.group()
        followed = question[match.end() :].lstrip()[:1].isalpha()
        if word in _POSSESSIVE or (word == "her" and followed):
            return f"{meant}'s"
        if word in _DETERMINERS and followed:
            return match.group()
        return meant

    text = _PRONOUN.sub(replaced, question)
    return text if meant in text else f"{text.rstrip(' ?.!')} ({meant})?"

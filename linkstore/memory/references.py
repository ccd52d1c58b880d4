"""What a question refers to: the one reference that rules for English can be sure of.

A pronoun means the name that the last answer was, if the question before asked for one and the name is known.
Any other reference stays as it is: a search reads the question together with what was said before
(:mod:`linkstore.memory.search`), and so does the model that reads the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.core.text import STOP_WORDS
from linkstore.memory.names import PARTICLES, find_names, read_words
from linkstore.memory.turns import Turn

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
LONGEST_QUESTION: Final = 8_000
"""Characters of a question and of an answer that the rules read; a longer question stays as it is."""
_FEWEST_WORDS: Final = 3
"""A question with fewer words that say something depends on what was said before."""
_SENTENCE_WORDS: Final = 4
"""Words of a question that is a sentence."""
_SIGN: Final = re.compile(
    r"\b(?:its|it|their|theirs|they|them|his|he|him|hers|her|she|this|that|these|those|"
    r"the (?:former|latter|same)|such)\b(?!['\u2019]s\s+(?:say|talk|go)\b)"
    r"|\b(?:there|one|ones|another|others?|same|first|second|third|former|latter|then|also|too|else)\b"
    r"|^\W*(?:and|but|or|so|what about|how about|why|ok|okay|no|yes|really|wow|i see)\b",
    re.IGNORECASE,
)
"""A word that refers to something said before, or may do so."""
_PRONOUN: Final = re.compile(
    r"\b(it|its|he|him|his|she|her|hers|they|them|their|theirs)\b(?!['\u2019](?!s\b))", re.IGNORECASE
)
_POSSESSIVE: Final = frozenset({"its", "his", "hers", "their", "theirs"})
_PERSONAL: Final = frozenset({"he", "him", "his", "she", "her", "hers"})
_NOTHING: Final = re.compile(
    r"\b(?:is|was|will|would|does|can|could|may|might|isn't|wasn't|be|it'?s)\s+it\s+(?:be\s+|not\s+|also\s+)*"
    r"(?:(?!meant|made|built|going|\w+ed)\w+\s+){0,3}?(?:to|that|if|when|how|whether|like)\b"
    r"|\b(?:does|did|will|would|can) it (?:take|matter|help|hurt|make sense|rain|snow|seem|look|mean)\b"
    r"|\bit (?:is|was|'s|seems|looks|takes|depends|would be|will be) (?:\w+ )?(?:that|to|if|like)\b"
    r"|\b(?:time|date|day|late|early|cold|warm|hot|dark|weather|rain\w*|snow\w*|true) (?:is|was|will) it\b"
    r"|\bit is\W*$|\bworth it\b"
    r"|\b(?:is|was|will) it (?:cold|warm|hot|dark|late|early|sunny|rain\w*|snow\w*|true|time|there)\b",
    re.IGNORECASE,
)
""""It" that means nothing, as in "Is it cold?" and "Is it possible to leave?"."""
_WHO: Final = re.compile(
    r"(?:^|[.!?,]\s)\W*(?:(?:and|so|but|then)\W+)*who(?! (?:has|likes?|lives?|works?|turns?|wants?)\b)"
    r"(?:m|se)?\b|\bwhom?\W*$",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_MOST_NAME_WORDS: Final = 6
_INSIDE: Final = PARTICLES | {"a", "and", "das", "on", "the", "und", "upon"}
"""Words without a capital that names have inside."""
_PREPOSITION: Final = re.compile(r"^(?:(?:at|in|the|under) )+(?=[^\W\d_])", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?\u2026]\s*$|\b(?:i|me|my|please|us|we|you|your)\b", re.IGNORECASE)
_OPENING: Final = ".!?:;\n\"'\u201c\u201e\u00ab(-*\u2022"
"""Signs after which any word has a capital."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
    """A question with the references resolved that are certain.

    Args:
        text: The question; the same text if none is certain.
        depends: Whether it has a sign that it can only be understood from what was said before.
        name: The name that the last answer was; None if it was none.
        named: Whether a pronoun of the question may mean this name.
    """

    text: str
    depends: bool = False
    name: str | None = None
    named: bool = False


def resolve_references(question: str, recent: Sequence[Turn], name: str | None = None) -> ResolvedQuestion:
    """Resolve the references of a question that are certain in the light of the last turns, in order.

    Args:
        question: As it was asked.
        recent: The last turns.
        name: The name that the last answer was; None if it was none.
    """
    if not recent or len(question) > LONGEST_QUESTION or not depends_on_history(question):
        return ResolvedQuestion(text=question)
    named = name is not None and _may_mean_answer(question, recent[-1].query)
    text = _insert_answer(question, name, recent[-1].query) if name is not None and named else question
    return ResolvedQuestion(text=text, depends=True, name=name, named=named)


def depends_on_history(question: str) -> bool:
    """Say whether a question has a sign that it can only be understood from what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def corrects(query: str) -> bool:
    """Say whether a query puts right what was said before, as "I meant Northern Sky" does."""
    return re.search(r"\bi mean", query, re.IGNORECASE) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


def _decline(name: str, match: re.Match[str]) -> str:
    """Return a name in the case of the pronoun that it takes the place of."""
    after = re.match(r"\s+([a-z][\w-]*)", match.string[match.end() :])
    owns = after is not None and after[1] not in STOP_WORDS | read_words("no_noun")
    word = match[1].lower()
    return f"{name}'s" if word in _POSSESSIVE or (word == "her" and owns) else name


def find_answered_name(turn: Turn) -> str | None:
    """Return the name that the answer of a turn may be, or None if nothing was asked for or it names nothing.

    A query asks by a word like "which", or by key words that are no sentence ("capital of australia").
    """
    name = _PREPOSITION.sub("", (turn.response or "").strip().rstrip(".! "))
    words = name.split(" ")
    if len(words) > _MOST_NAME_WORDS or not (_ASKS.search(turn.query) or not _SENTENCE.search(turn.query)):
        return None
    if not all(_is_proper(word) or word in _INSIDE for word in words):
        return None
    return name if name[0].isupper() and _is_proper(words[-1]) else None


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and "\n" not in word


def has_name(texts: Iterable[str], name: str) -> bool:
    """Say whether a text has this name: in its spelling, and not only where every word has a capital."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        text[: found.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for found in pattern.finditer(text)
    )


def _list_meant(asked: str) -> frozenset[str]:
    """Return the pronouns that may mean the name that was answered when this was asked."""
    return _PERSONAL if _WHO.search(asked) else frozenset(("it", "its"))


def _may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a question may refer to the name that was answered when another question was asked."""
    return any(word.lower() in _list_meant(asked) for word in _PRONOUN.findall(question))


def _insert_answer(question: str, name: str, asked: str) -> str:
    """Replace the pronouns of a question by the name that was answered, if that is sure."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    if not used <= _list_meant(asked) or _NOTHING.search(question) or find_names(question):
        return question
    return _PRONOUN.sub(lambda match: _decline(name, match), question)

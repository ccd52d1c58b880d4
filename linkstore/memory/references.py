"""References in a question: to what was said before, and to the name just answered.

Nothing is replaced in a question. A search reads it together with what was said before
(:mod:`linkstore.memory.search`), and so does the model that reads the prompt. One thing is known by its form:
the last answer was a name if the question before asked for one and the name is known. A pronoun that may mean
it is searched for together with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.memory.names import PARTICLES

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
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
_PERSONS: Final = re.compile(r"\b(?:he|him|his|she|her|hers)\b", re.IGNORECASE)
_THINGS: Final = re.compile(r"\b(?:it|its)\b", re.IGNORECASE)
_WHO: Final = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
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
    """A question, and what it refers to.

    Args:
        text: The question, as a rewriter resolved it if there is one.
        depends: Whether it has a sign that it can only be understood from what was said before.
        name: The name that the last answer was; None if it was none.
        named: Whether a pronoun of the question may mean this name.
    """

    text: str
    depends: bool = False
    name: str | None = None
    named: bool = False


def may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a pronoun of a question may mean the name that was answered to another question."""
    meant = _PERSONS if _WHO.search(asked) else _THINGS
    return meant.search(question) is not None


def depends_on_history(question: str) -> bool:
    """Return whether a question has a sign of depending on what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


def find_answered_name(query: str, response: str | None) -> str | None:
    """Return the name that an answer may be, or None if nothing was asked for or it names nothing.

    A query asks by a word like "which", or by key words that are no sentence ("capital of australia").
    """
    name = _PREPOSITION.sub("", (response or "").strip().rstrip(".! "))
    words = name.split(" ")
    if len(words) > _MOST_NAME_WORDS or not (_ASKS.search(query) or not _SENTENCE.search(query)):
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
        text[: match.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for match in pattern.finditer(text)
    )

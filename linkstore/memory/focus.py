"""Focus: what a conversation is about at a question that does not say so.

Source: B. Grosz, A. Joshi and S. Weinstein, "Centering: A Framework for Modeling the Local Coherence of
Discourse", Computational Linguistics 21(2), 1995; S. Brennan, M. Friedman and C. Pollard, "A Centering
Approach to Pronouns", ACL 1987. What a question names comes before what its answer names, the first before
the later, and the latest turn before those before it. What refers back goes on with what is first; another
name moves the focus, and a part of a name, or "the first one", returns to what was spoken of earlier.

Nothing is written into the question: what is in focus is searched for beside it. A turn is stored with what
it meant only if it refers back by a word that can mean nothing else.

One more thing is known by its form: the last answer was a name if the question before asked for one, and the
name is known. A pronoun that may mean it is searched for together with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.core.text import STOP_WORDS, fold, tokenize
from linkstore.memory.names import EntityFinder, read_words
from linkstore.memory.turns import Turn

MOST_THINGS: Final = 8
"""How many things a session is about at once, the latest."""
MOST_KEY_WORDS: Final = 2
"""A question of so many words, each of which says something, names a thing in lower case."""
_REFERS: Final = re.compile(
    r"\b(?:its|(?<!what time is )it(?! (?:is |was )?(?:true|possible) | (?:rain|snow)s?\b)|theirs?|they"
    r"|them|he|him|his|she|hers?)\b|\b(?:this|that|these|those)"
    r"(?= (?:is|are|was|were|will|can|costs?|takes?|works?|means?|one)\b|['\u2019]s|\W*$)"
    r"|\b(?:er|sie|ihn|ihre?[nmrs]?|seine?[nmrs]?|dessen|deren|da(?:von|mit|zu|f\u00fcr)|das(?=\W*$)"
    r"|(?:ist|hat|kann|kostet|wird|macht) es|ils?(?! y a| faut)|elles?|lui|leurs?|celui-ci|celle-ci|\u00e7a"
    r"|\u00e9l|ellas?|ellos?|suyo)\b|^\W*(?:and|und|et|y)\b.*\?\W*$",
    re.IGNORECASE,
)
"""A word of English, German, French or Spanish that means something that was said, or "And ...?"."""
_INDEFINITE: Final = re.compile(r"\b(?:an?|another|eine?[nmrs]?|une?|una) \w+", re.IGNORECASE)
_DEFINITE: Final = re.compile(r"\b(?:the|my|our|this|that|der|die|das|dem|den|le|la|el) (\w+)", re.IGNORECASE)
_NOUN: Final = re.compile(r" ([a-z][\w-]+)")
_RETURNS: Final = re.compile(
    r"\b(?:the (?:first|former|(?P<second>second)|(?P<other>other|previous))(?: one|(?=\W*$|[:,]))"
    r"|zum ersten|au premier|al primero)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """What a text is about.

    Args:
        things: The first is what it is most about.
        assumed: Whether it names none of them in full.
        refers: Whether it has a word that refers to something said before.
    """

    things: tuple[str, ...] = ()
    assumed: bool = False
    refers: bool = False


def name_things(text: str, finder: EntityFinder) -> tuple[str, ...]:
    """Return what a text names, in order, each with a noun after it ("Halden pump" in "the Halden pump")."""
    things: list[str] = []
    for name in finder(text):
        start = text.find(name)
        before = tokenize(text[: max(start, 0)])[-1:]
        if name.istitle() and name.isalpha() and not read_words("quantifiers").isdisjoint(before):
            continue  # a noun of German
        after = (
            _NOUN.match(text, start + len(name)) if not read_words("determiners").isdisjoint(before) else None
        )
        things.append(f"{name} {after[1]}" if after and after[1] not in STOP_WORDS else name)
    return tuple(dict.fromkeys(things))


def refers_back(text: str) -> bool:
    """Say whether a text has a word that can only mean what was said before."""
    return _REFERS.search(text) is not None


def list_things(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return what turns were about, the latest first."""
    spoken = [turn for turn in turns if not turn.is_note]
    things = [thing for turn in reversed(spoken) for thing in turn.focus]
    spelled: dict[str, str] = {}
    for thing in things:
        spelled.setdefault(fold(thing), thing)
    return tuple(spelled.values())[:MOST_THINGS]


def find_focus(text: str, finder: EntityFinder, turns: Sequence[Turn]) -> Focus:
    """Return what a text is about, after some turns."""
    before, refers, returned = list_things(turns), refers_back(text), _RETURNS.search(text)
    named = [name for name in name_things(text, finder) if returned is None or name not in returned[0]]
    whole = [next((thing for thing in before if _split(name) <= _split(thing)), name) for name in named]
    if whole:
        goes_on = before[:1] if refers and _REFERS.search(text.partition(named[0])[0]) else ()
        return Focus(things=tuple(dict.fromkeys((*goes_on, *whole))), refers=refers)
    if returned and len(before) > 1:
        thing = before[-2] if returned["second"] else before[1] if returned["other"] else before[-1]
        return Focus(things=(thing,), assumed=True, refers=True)
    words = {word for word in _split(_INDEFINITE.sub(" ", text)) if word not in STOP_WORDS}
    part = [thing for thing in before if words & _split(thing)][:1]
    definite = {fold(word) for word in _DEFINITE.findall(text)}
    refers |= any(definite & _split(thing) for thing in part)
    if not refers and not part and len(words) == len(tokenize(text)) <= MOST_KEY_WORDS:
        return Focus()  # "kubernetes?" names something itself
    return Focus(things=tuple(part) or before[:1], assumed=True, refers=refers)


def _split(text: str) -> set[str]:
    return {part for word in tokenize(text) for part in (word, *word.split("-")) if part}


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
    if not all(_is_proper(word) or word in read_words("inside") for word in words):
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

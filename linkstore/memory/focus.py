"""Focus: the subject of a conversation where a question names none.

Source: B. Grosz, A. Joshi and S. Weinstein, "Centering: A Framework for Modeling the Local Coherence of
Discourse", Computational Linguistics 21(2), 1995; S. Brennan, M. Friedman and C. Pollard, "A Centering
Approach to Pronouns", ACL 1987. What a question names comes before what its answer names, the first before
the later, and the latest turn before those before it. What refers back goes on with what is first; another
name moves the focus, and a part of a name, or "the first one", returns to what was spoken of earlier.

Nothing is written into the question: what is in focus is searched for beside it. A turn is stored with what
it meant only if it refers back by a word that can mean nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.core.text import STOP_WORDS, fold, tokenize
from linkstore.memory.names import EntityFinder, read_words, select_distinct_names
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
    """Say whether a text has a word for something said before."""
    return _REFERS.search(text) is not None


def list_things(turns: Iterable[Turn]) -> tuple[str, ...]:
    """Return what turns were about, the latest first."""
    spoken = [turn for turn in turns if not turn.is_note]
    return select_distinct_names([thing for turn in reversed(spoken) for thing in turn.focus])[:MOST_THINGS]


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

"""Finds entities in what people say, without a model and without capitals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from linkstore.text import STOP_WORDS, fold, written_words

EntityFinder = Callable[[str], Sequence[str]]
"""Gives the entities that a text mentions, in order."""
LONGEST_TEXT: Final = 8_000
"""Characters of a text that are searched for entities and references."""
_LONGEST: Final = 4
"""Words of an entity."""
_NOUNS_AND_VERBS: Final = """
    add advice agree allow answer apply ask avoid back become begin believe bit bring buy call care
    cause change come common compare consider create day describe detail deal definition difference
    effect example exist expect explain fact feel feeling find first follow get give go guy happen hear
    help hope idea impact improve include information issue keep kind know last learn leave let
    life list live look love make makes mean meaning mention need number one opinion order part
    people person place please plan problem provide put question reason recommend
    remember right say says second see seem show since something someone sort sound start stay step
    still stop stuff support take talk tell thank thing think thought time topic total try turn two type
    understand want wants way week wonder work year
"""
_OTHERS: Final = """
    able actually another available aware away bad best better big came could different difficult discuss
    doing done exactly famous far fine found fun gave getting given glad goes going gone good got great guess
    happened hard heard hello helpful hey hi high important including instead interested interesting
    involved known large later lately least less little long looking lot lots made main making mentioned
    new next nice no oh ok okay old possible really recent recently regarding related said saw set
    short simple small started sure taken today tomorrow tonight told took tried true trying usually
    wanted well went wonderful worked working worry wow wrong yeah yes yesterday
"""
_GENERIC: Final = frozenset(
    (*_NOUNS_AND_VERBS.split(), *_OTHERS.split(), *(f"{word}s" for word in _NOUNS_AND_VERBS.split()))
)
"""Words that name nothing by themselves."""
_INITIAL: Final = re.compile(r"(?:.*\.)?[^\W\d_]")
"""A word that ends with one letter of its own, as in "J." and "J.R." """


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a text, or several with full stops between them, as "sys.monitoring"."""

    text: str
    start: int
    end: int

    @property
    def is_proper(self) -> bool:
        """Whether it begins with a capital or a digit."""
        return self.text[:1].isupper() or self.text[:1].isdigit()


def entities_in(text: str) -> tuple[str, ...]:
    """Find the entities that a text mentions, in order, each once.

    An entity is a run of up to four words that are neither function words nor among the most general verbs
    and nouns. It needs no capital; a run of capitalised words inside a longer run is an entity of its own.
    Words with full stops between them are one word ("sys.monitoring"), and so are initials and the name
    after them ("H. G. Wells").
    """
    text = text[:LONGEST_TEXT]
    found: dict[str, str] = {}
    run: list[_Word] = []
    for word in _words(text):
        if run and not (_names(word.text) and _adjacent(text, run[-1], word)):
            found |= {fold(name): name for name in _names_of(run, text) if fold(name) not in found}
            run = []
        if _names(word.text):
            run.append(word)
    found |= {fold(name): name for name in _names_of(run, text) if fold(name) not in found}
    return tuple(found.values())


def _words(text: str) -> Iterator[_Word]:
    """Yield the words of a text. Those with a full stop and nothing else between them are one."""
    start = end = -1
    for match in written_words(text):
        if end >= 0 and text[end : match.start()] != ".":
            yield _Word(text[start:end], start, end)
            start = match.start()
        elif end < 0:
            start = match.start()
        end = match.end()
    if end >= 0:
        yield _Word(text[start:end], start, end)


def _adjacent(text: str, word: _Word, following: _Word) -> bool:
    """Say whether a name can go on with the following word."""
    between = text[word.end : following.start].strip(" -")
    return not between or (between == "." and following.is_proper and _is_initial(word.text))


def _is_initial(word: str) -> bool:
    return word[-1:].isupper() and _INITIAL.fullmatch(word) is not None


def _names(word: str) -> bool:
    """Say whether a word may be part of a name."""
    folded = fold(word).removesuffix("'s")
    if folded in STOP_WORDS or folded in _GENERIC or not any(map(str.isalnum, folded)):
        return False
    return len(folded) > 2 or word[:1].isupper() or word[:1].isdigit()


def _names_of(run: Sequence[_Word], text: str) -> list[str]:
    """Return the names in a run of words: its parts with and without capitals, at most four words each."""
    names = []
    for _, part in groupby(run, key=lambda word: word.is_proper):
        shown = list(part)
        ends = (shown[at : at + _LONGEST] for at in range(0, len(shown), _LONGEST))
        names += [" ".join(text[words[0].start : words[-1].end].split()) for words in ends]
    return names

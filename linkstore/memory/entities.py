"""Entities of what people say, found without a model and without capitals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

from linkstore.text import STOP_WORDS, fold, written_words

EntityFinder = Callable[[str], Sequence[str]]
"""Gives the entities that a text mentions, in order."""
LONGEST_TEXT: Final = 8_000
"""Characters of a text that are searched for entities and references."""
_LONGEST: Final = 4
"""Words of an entity."""
_GENERAL: Final = """
    able actually add advice agree allow answer apply ask available avoid aware away back bad become
    begin believe best better big bit bring buy call came care cause change come common compare consider
    could create day days describe detail details deal definition different difference differences
    difficult discuss doing done effect effects example examples exactly exist expect explain fact
    famous far feel feeling find fine first follow found fun gave get gets getting give given glad go
    goes going gone good got great guess guy happen happened hard hear heard hello help helpful hey hi
    high hope idea important impact improve include including information instead interested interesting
    involved issue issues keep kind kinds know known large last later lately learn least leave less let
    life list little live long look looking looks lot lots love made main make makes making mean meaning
    means mention mentioned need needs new next nice no number oh ok okay old old one ones opinion order
    part parts people person place please plan possible problem problems provide put question really
    reason reasons recent recently recommend regarding related remember right said saw say says second
    see seem seems set short show simple since small something someone sort sound sounds start started
    stay step steps still stop stuff support sure take taken talk tell thank thanks thing things think
    thought time times today tomorrow tonight told took topic total tried true try trying turn two type
    types understand usually want wanted wants way ways week weeks well went wonder wonderful work
    worked working works worry wow wrong yeah year years yes yesterday
"""
_GENERIC: Final = frozenset(_GENERAL.split())
"""Words that name nothing by themselves."""


def entities_in(text: str) -> tuple[str, ...]:
    """The entities that a text mentions, in order, each once.

    An entity is a run of up to four words that are neither function words nor among the most general verbs
    and nouns. It needs no capital; a run of capitalised words inside a longer run is an entity of its own.
    """
    words = [(match.group(), match.start(), match.end()) for match in written_words(text[:LONGEST_TEXT])]
    found: dict[str, str] = {}
    run: list[tuple[str, int, int]] = []
    for word in [*words, ("", -1, -1)]:
        adjacent = bool(run) and text[run[-1][2] : word[1]].strip(" -") == "" and word[1] >= 0
        if run and not (adjacent and _names(word[0])):
            for name in _names_of(run):
                found.setdefault(fold(name), name)
            run = []
        if _names(word[0]):
            run.append(word)
    return tuple(found.values())


def _names(word: str) -> bool:
    """Whether a word may be part of a name."""
    folded = fold(word).removesuffix("'s")
    if (
        folded in STOP_WORDS
        or {folded, folded.removesuffix("s")} & _GENERIC
        or not any(map(str.isalnum, folded))
    ):
        return False
    return len(folded) > 2 or word[:1].isupper() or word[:1].isdigit()


def _names_of(run: Sequence[tuple[str, int, int]]) -> list[str]:
    """The names in a run of words: its parts with and without capitals, none longer than four words."""
    names = []
    for _, part in groupby(run, key=lambda word: word[0][:1].isupper() or word[0][:1].isdigit()):
        shown = [word for word, _, _ in part]
        names += [" ".join(shown[at : at + _LONGEST]) for at in range(0, len(shown), _LONGEST)]
    return names

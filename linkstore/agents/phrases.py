"""Key elements of a sentence without a model: names, and runs of words between stop words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from linkstore.text import STOP_WORDS, fold

MOST: Final = 5
"""Key elements of a sentence: names first, then phrases of several words, then words."""
_ENOUGH: Final = 2
"""Single words are key elements only of sentences with fewer names and phrases."""
MOST_WORDS: Final = 4
"""Words of the longest phrase."""
_LONG: Final = 8
"""Maximum number of words of a name."""
_SMALL: Final = frozenset({"of", "the", "de", "da", "di", "du", "la", "le", "van", "von", "der", "del"})
"""Words that may stand inside a name."""
_ENGLISH: Final = """
    across along also among around became become began begin called came early first former found given got
    had known large last late later made major make makes many member members named near new next
    number often old part released second several since still take taken three took two used usually well went
    year years
"""
_COMMON: Final = frozenset(_ENGLISH.split())
"""Words that too many facts contain to be key elements."""
_TOKEN: Final = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_PHRASE: Final = re.compile(rf"N(?:[cs]{{0,2}}N)*|[TCc]{{2,{MOST_WORDS}}}|T")
"""In the sorts of a sentence's words, one letter each: a name, several words, or a single one that tells."""
_NAME: Final = re.compile("N(?:[cs]{0,2}N)*")
_FURTHER: Final = re.compile("[cs]{0,2}N")


def key_elements(sentence: str) -> list[str]:
    """Return the most telling names and phrases, each once: names, phrases of several words, words."""
    words = _TOKEN.findall(sentence)
    sorts = "".join(map(_sort, words))
    names: dict[str, None] = {}
    several: dict[str, None] = {}
    single: dict[str, None] = {}
    end = 0
    while found := _PHRASE.search(sorts, end):
        start, end = found.span()
        if sorts[start] == "N":
            end = end if end - start <= _LONG else _cut(sorts, start)
            names[" ".join(words[start:end])] = None
        elif end - start > 1:
            several[" ".join(words[start:end])] = None
        else:
            single[words[start]] = None
    telling = len(names) + len(several)
    most = MOST if telling < _ENOUGH else min(MOST, telling)
    return [*names, *several, *single][:most]


def _cut(sorts: str, start: int) -> int:
    """Return where to end a name that would be too long: where it has eight words or more."""
    head = _NAME.match(sorts, start, start + _LONG - 1)
    last = _FURTHER.match(sorts, start if head is None else head.end())
    return start + _LONG if last is None else last.end()


@lru_cache(maxsize=1 << 16)
def _sort(word: str) -> str:
    """Return the sort of a word, or of a sign.

    ``N`` is part of a name, ``c`` and ``s`` may stand inside one, ``T`` is a key element alone; ``T``, ``C``
    and ``c`` are parts of phrases; other words, and signs, are a full stop.
    """
    if not (word[0].isalnum() or word[0] == "_"):
        return "."
    folded = fold(word)
    if folded in STOP_WORDS:
        return "s" if word in _SMALL else "."
    if word[0].isupper():
        return "N"
    if folded in _COMMON:
        return "."
    if word in _SMALL:
        return "c"
    return "T" if _tells(word) else "C"


def _tells(word: str) -> bool:
    """Say whether a word can be a key element alone: no past or progressive verb, no number but a year."""
    if word.isdecimal():
        return len(word) == 4
    return len(word) > 3 and not word.endswith(("ed", "ing", "ly"))

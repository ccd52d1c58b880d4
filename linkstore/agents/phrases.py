"""Key elements of a sentence without a model: names, and runs of words between stop words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from linkstore.text import STOP_WORDS, fold

MOST: Final = 5
"""Key elements of a sentence: names first, then phrases of several words, then words."""
_ENOUGH: Final = 2
"""Single words are key elements only of sentences with fewer names and phrases."""
MOST_WORDS: Final = 4
"""Words of the longest phrase; names may have twice as many."""
_SMALL: Final = frozenset({"of", "the", "de", "da", "di", "du", "la", "le", "van", "von", "der", "del"})
"""Words that may stand inside a name."""
_ENGLISH: Final = """
    across along also among around became become began begin called came early first former found given got
    had known large last late later made major make makes many member members named near new next
    number often old part released second several since still take taken three took two used usually well went
    year years
"""
_COMMON: Final = frozenset(_ENGLISH.split())
"""Words that are in so many facts that they lead nowhere."""
_TOKEN: Final = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_CONTENT, _STOP, _NAME, _MARK = range(4)


def key_elements(sentence: str) -> list[str]:
    """The most telling names and phrases, each once: names, phrases of several words, words."""
    found = dict(_phrases(_TOKEN.findall(sentence)))
    telling = [phrase for phrase, rank in found.items() if rank < 2]
    most = MOST if len(telling) < _ENOUGH else min(MOST, len(telling))
    return sorted(found, key=found.__getitem__)[:most]


def _phrases(words: list[str]) -> Iterator[tuple[str, int]]:
    """The phrases of a sentence in order, each with its rank: 0 for names, 1 for several words, 2 for one."""
    sorts = [_sort(word) for word in words]
    at = 0
    while at < len(words):
        if sorts[at] == _NAME:
            end = _name_end(words, sorts, at)
            yield " ".join(words[at:end]), 0
        elif sorts[at] == _CONTENT:
            end = _run_end(sorts, at)
            if end > at + 1:
                yield " ".join(words[at:end]), 1
            elif _tells(words[at]):
                yield words[at], 2
        else:
            end = at + 1
        at = end


def _name_end(words: list[str], sorts: list[int], start: int) -> int:
    end = start + 1
    while end - start < 2 * MOST_WORDS:
        after = end
        while after < len(words) and after - end < 2 and words[after] in _SMALL:
            after += 1
        if after >= len(words) or sorts[after] != _NAME:
            break
        end = after + 1
    return end


def _run_end(sorts: list[int], start: int) -> int:
    end = start
    while end < len(sorts) and end - start < MOST_WORDS and sorts[end] == _CONTENT:
        end += 1
    return end


def _tells(word: str) -> bool:
    """Whether a word can be a key element alone: no verb in the past or progressive, no number but a year."""
    if word.isdecimal():
        return len(word) == 4
    return len(word) > 3 and not word.endswith(("ed", "ing", "ly"))


@lru_cache(maxsize=1 << 16)
def _sort(word: str) -> int:
    if not (word[0].isalnum() or word[0] == "_"):
        return _MARK
    folded = fold(word)
    if folded in STOP_WORDS:
        return _STOP
    if word[0].isupper():
        return _NAME
    return _STOP if folded in _COMMON else _CONTENT

"""Who speaks: people whose turns begin with their name, as in "Ann: I have moved to Oslo".

Half of the turns contain the name of a speaker, so the name would outweigh the rest of a question. So a
question is searched for without the names of speakers, and the turns of the speaker that it names count more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import category

from linkstore.core.arrays import Ints
from linkstore.core.lexical import extract_terms
from linkstore.core.plans import Plan, Resolve
from linkstore.core.text import find_words, fold
from linkstore.memory.turns import SPEAKER

_SIZES: Final = (2, 3, 4)
"""Characters of a name in a text without spaces."""
_MOST_PIECES: Final = 96
"""How many words and parts of words of a question are looked up."""
_LONGEST_NAME: Final = 60
_MOST_WORDS: Final = 3
"""Words of a name."""
_HEAD: Final = re.compile(rf"([^:\uff1a\n]{{1,{_LONGEST_NAME}}})(?::\s|\uff1a)")
"""What stands before a colon; nothing need follow a wide one."""
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text in scripts that leave no space between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


def read_speaker(query: str) -> str | None:
    """Return the speaker of a turn: the name before a colon at its beginning, or None.

    Its words begin with capitals, where their script has capitals.
    """
    found = _HEAD.match(query)
    words = found[1].split(" ") if found else []
    return " ".join(words) if 0 < len(words) <= _MOST_WORDS and all(map(_may_be_name, words)) else None


def _may_be_name(word: str) -> bool:
    if not word[:1].isalpha() or word[0].islower():
        return False
    return all(
        one.isalnum() or one in ".'\u2019-_\u30fb\u200c\u200d" or category(one)[0] == "M" for one in word
    )


def find_named_speakers(question: str, owner: str) -> Plan[list[str]]:
    """Return the words of a question that are the name of somebody who speaks to an owner, or part of one.

    Words with capitals are looked up, in scripts without capitals all words, and where words are not told
    apart by spaces, all short parts of the text.
    """
    said = [re.sub(r"['\u2019]s$", "", match[0]) for match in find_words(question)]
    words = [word for word in said if not word[0].islower() and extract_terms(word)]
    for run in _UNSPACED.findall(question):
        words += (run[at : at + size] for at in range(len(run)) for size in _SIZES)
    words = list(dict.fromkeys(words))[:_MOST_PIECES]
    groups: Ints = yield Resolve(tags=tuple((SPEAKER, f"{owner}#{fold(word)}") for word in words))
    return [word for word, group in zip(words, groups.tolist(), strict=True) if group >= 0]


def remove_names(question: str, names: Iterable[str]) -> str:
    """Remove some words from a question. Return it as it is if no other word says anything."""
    names = list(names)
    unspaced = [name for name in names if _UNSPACED.search(name)]
    either = "|".join(map(re.escape, (name for name in names if name not in unspaced)))
    rest = question
    if either:
        rest = re.sub(rf"(?<![\w-])(?:{either})(?:['\u2019]s)?(?![\w-])", " ", rest)
    for name in unspaced:
        rest = rest.replace(name, " ")
    rest = " ".join(rest.split()) if names else question
    return rest if extract_terms(rest) else question

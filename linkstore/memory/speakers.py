"""Speakers: people whose turns begin with their name, as in "Ann: I have moved to Oslo".

Half of the turns contain the name of a speaker, so the name would outweigh the rest of a question. So a
question is searched for without the names of speakers, and the turns of the speaker that it names count more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import category

from linkstore.errors import CapabilityError
from linkstore.lexical import terms
from linkstore.plans import Documents, Lexical, Plan, Stored, Worded

SPEAKER: Final = "speaker"
"""The key of a turn's metadata that names who speaks."""
_PROBED: Final = 8
"""How many turns are read to see whether a word is the name of a speaker."""
_SIZES: Final = (2, 3, 4)
"""Characters of a name in a text without spaces."""
_MOST: Final = 4
"""How many words of a question may be names of speakers."""
_READ: Final = 32
"""How many turns are read to see who speaks, where no capital shows what may be a name."""
_PIECES: Final = 96
"""How many words and parts of words are looked up for that."""
_LONGEST_NAME: Final = 60
"""Characters of a name."""
_MOST_WORDS: Final = 3
"""Words of a name."""
_HEAD: Final = re.compile(rf"([^:\uff1a\n]{{1,{_LONGEST_NAME}}})(?::\s|\uff1a)")
"""What stands before a colon; nothing need follow a wide one."""
_WORD: Final = re.compile(r"(?<![\w-])[^\W\d_][\w-]*")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Text in scripts that leave no space between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""


def speaker_of(query: str) -> str | None:
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


def speakers_named(question: str) -> Plan[dict[str, str]]:
    """Return the words of a question that are part of a speaker's name, as written there, with that name.

    Those with capitals are looked up, each as a word of turns. Of the turns that match it best, which are
    short ones, one begins with it if it is the name of a speaker. In scripts without capitals all words are
    looked up, and where these are not told apart by spaces, all short parts of the text.
    """
    named: dict[str, str] = {}
    words = list(dict.fromkeys(_WORD.findall(question)))
    for word in [word for word in words if terms(word) and word[0].isupper()][:_MOST]:
        for speaker in (yield from _speakers_with(terms(word), _PROBED)):
            if set(terms(word)) <= set(terms(speaker)):
                named.setdefault(word, speaker)
    pieces = _without_case(question)
    if pieces:
        for speaker in (yield from _speakers_with(pieces, _READ)):
            if set(terms(speaker)) <= {*pieces}:
                named.setdefault(speaker, speaker)
    return named


def _speakers_with(words: tuple[str, ...], k: int) -> Plan[list[str]]:
    """Return the speakers of the turns that match words best."""
    try:
        found: Worded = yield Lexical(terms=words, k=k)
    except CapabilityError:
        return []  # the search does not look up words either
    turns: list[Stored] = yield Documents(refs=found.refs)
    return list(dict.fromkeys(filter(None, (turn.metadata.get(SPEAKER) for turn in turns))))


def _without_case(question: str) -> tuple[str, ...]:
    """Return the words of a question in scripts without capitals, and the parts that may be words."""
    found = []
    for word in terms(question):
        if word[0].isalpha() and not word[0].islower():
            found.append(word)
            for run in _UNSPACED.findall(word):
                found += (run[at : at + size] for at in range(len(run)) for size in _SIZES)
    return tuple(dict.fromkeys(found))[:_PIECES]


def without_names(question: str, names: Iterable[str]) -> str:
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
    return rest if terms(rest) else question

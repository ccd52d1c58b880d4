"""Who speaks: people whose turns begin with their name, as in "Ann: I have moved to Oslo".

The name of a speaker is part of half of the turns, and outweighs what a question asks about. So a question is
searched for without the names of speakers, and the turns of the one that it names count more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from linkstore.errors import CapabilityError
from linkstore.lexical import terms
from linkstore.plans import Documents, Lexical, Plan, Stored, Worded

SPEAKER: Final = "speaker"
"""The key of a turn's metadata that names who speaks."""
_PROBED: Final = 8
"""How many turns are read to see whether a word is the name of a speaker."""
_MOST: Final = 4
"""How many words of a question may be names of speakers."""
_PREFIX: Final = re.compile(r"(?P<name>[^\W\d_][\w.'\u2019-]*(?: [^\W\d_][\w.'\u2019-]*){0,2}):\s")
_WORD: Final = re.compile(r"(?<![\w-])[^\W\d_][\w-]*")


def speaker_of(query: str) -> str | None:
    """The speaker of a turn: the name before a colon at its beginning; None without one."""
    found = _PREFIX.match(query)
    if found is None or not query[0].isupper() or any(word[0].islower() for word in found["name"].split()):
        return None
    return found["name"]


def speakers_named(question: str) -> Plan[dict[str, str]]:
    """The words of a question that are part of a speaker's name, as written there, with that name.

    Those with capitals are looked up, each as a word of turns. Of the turns that match it best, which are
    short ones, one begins with it if it is the name of a speaker.
    """
    words = [word for word in dict.fromkeys(_WORD.findall(question)) if terms(word) and not word[0].islower()]
    named: dict[str, str] = {}
    for word in words[:_MOST]:
        try:
            found: Worded = yield Lexical(terms=terms(word), k=_PROBED)
        except CapabilityError:
            return {}  # nor does the search look words up
        turns: list[Stored] = yield Documents(refs=found.refs)
        for speaker in (turn.metadata.get(SPEAKER) for turn in turns):
            if speaker and set(terms(word)) <= set(terms(speaker)):
                named.setdefault(word, speaker)
    return named


def without_names(question: str, names: Iterable[str]) -> str:
    """A question without some words; the question as it is if no other word says anything."""
    either = "|".join(map(re.escape, names))
    if not either:
        return question
    rest = " ".join(re.sub(rf"(?<![\w-])(?:{either})(?:['\u2019]s)?(?![\w-])", " ", question).split())
    return rest if terms(rest) else question

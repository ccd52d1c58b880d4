"""Entities in what people say, found without a model and without capitals, and who speaks.

Speakers are people whose turns begin with their name, as in "Ann: I have moved to Oslo". Half of the turns
contain the name of a speaker, so the name would outweigh the rest of a question. So a question is searched
for without the names of speakers, and the turns of the speaker that it names count more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final
from unicodedata import category

from linkstore.core.lexical import extract_terms
from linkstore.core.plans import Documents, Lexical, LexicalMatches, Plan, StoredDocument
from linkstore.core.text import STOP_WORDS, find_words, fold
from linkstore.errors import CapabilityError

EntityFinder = Callable[[str], Sequence[str]]
"""Gives the entities that a text mentions, in order."""
LONGEST_TEXT: Final = 8_000
"""Characters of a text that are searched for entities and references."""
_MOST_ENTITY_WORDS: Final = 4
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
_OTHER_WORDS: Final = """
    able actually another available aware away bad best better big came could different difficult discuss
    doing done exactly famous far fine found fun gave getting given glad goes going gone good got great guess
    happened hard heard hello helpful hey hi high important including instead interested interesting
    involved known large later lately least less little long looking lot lots made main making mentioned
    new next nice no oh ok okay old possible really recent recently regarding related said saw set
    short simple small started sure taken today tomorrow tonight told took tried true trying usually
    wanted well went wonderful worked working worry wow wrong yeah yes yesterday
"""
_GENERIC_WORDS: Final = frozenset(
    (*_NOUNS_AND_VERBS.split(), *_OTHER_WORDS.split(), *(f"{word}s" for word in _NOUNS_AND_VERBS.split()))
)
"""Words that name nothing by themselves."""
_INITIAL: Final = re.compile(r"(?:.*\.)?[^\W\d_]")
"""A word that ends with one letter of its own, as in "J." and "J.R." """
SPEAKER: Final = "speaker"
"""The key of a turn's metadata that names who speaks."""
_PROBED_TURNS: Final = 8
"""How many turns are read to see whether a word is the name of a speaker."""
_SIZES: Final = (2, 3, 4)
"""Characters of a name in a text without spaces."""
_MOST_SPEAKER_WORDS: Final = 4
"""How many words of a question may be names of speakers."""
_READ_TURNS: Final = 32
"""How many turns are read to see who speaks, where no capital shows what may be a name."""
_MOST_PIECES: Final = 96
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


def find_entities(text: str) -> tuple[str, ...]:
    """Find the entities that a text mentions, in order, each once.

    An entity is a run of up to four words that are neither function words nor among the most general verbs
    and nouns. It needs no capital; a run of capitalised words inside a longer run is an entity of its own.
    Words with full stops between them are one word ("sys.monitoring"), and so are initials and the name
    after them ("H. G. Wells").
    """
    text = text[:LONGEST_TEXT]
    found: dict[str, str] = {}
    run: list[_Word] = []
    for word in _split_words(text):
        if run and not (_is_part_of_name(word.text) and _is_adjacent(text, run[-1], word)):
            found |= {fold(name): name for name in _read_names(run, text) if fold(name) not in found}
            run = []
        if _is_part_of_name(word.text):
            run.append(word)
    found |= {fold(name): name for name in _read_names(run, text) if fold(name) not in found}
    return tuple(found.values())


def _split_words(text: str) -> Iterator[_Word]:
    """Yield the words of a text. Those with a full stop and nothing else between them are one."""
    start = end = -1
    for match in find_words(text):
        if end >= 0 and text[end : match.start()] != ".":
            yield _Word(text[start:end], start, end)
            start = match.start()
        elif end < 0:
            start = match.start()
        end = match.end()
    if end >= 0:
        yield _Word(text[start:end], start, end)


def _is_adjacent(text: str, word: _Word, following: _Word) -> bool:
    """Say whether a name can go on with the following word."""
    between = text[word.end : following.start].strip(" -")
    return not between or (between == "." and following.is_proper and _is_initial(word.text))


def _is_initial(word: str) -> bool:
    return word[-1:].isupper() and _INITIAL.fullmatch(word) is not None


def _is_part_of_name(word: str) -> bool:
    """Say whether a word may be part of a name."""
    folded = fold(word).removesuffix("'s")
    if folded in STOP_WORDS or folded in _GENERIC_WORDS or not any(map(str.isalnum, folded)):
        return False
    return len(folded) > 2 or word[:1].isupper() or word[:1].isdigit()


def _read_names(run: Sequence[_Word], text: str) -> list[str]:
    """Return the names in a run of words: its parts with and without capitals, at most four words each."""
    names = []
    for _, part in groupby(run, key=lambda word: word.is_proper):
        shown = list(part)
        ends = (shown[at : at + _MOST_ENTITY_WORDS] for at in range(0, len(shown), _MOST_ENTITY_WORDS))
        names += [" ".join(text[words[0].start : words[-1].end].split()) for words in ends]
    return names


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


def find_named_speakers(question: str) -> Plan[dict[str, str]]:
    """Return the words of a question that are part of a speaker's name, as written there, with that name.

    Those with capitals are looked up, each as a word of turns. Of the turns that match it best, which are
    short ones, one begins with it if it is the name of a speaker. In scripts without capitals all words are
    looked up, and where these are not told apart by spaces, all short parts of the text.
    """
    named: dict[str, str] = {}
    words = list(dict.fromkeys(_WORD.findall(question)))
    for word in [word for word in words if extract_terms(word) and word[0].isupper()][:_MOST_SPEAKER_WORDS]:
        for speaker in (yield from _find_speakers(extract_terms(word), _PROBED_TURNS)):
            if set(extract_terms(word)) <= set(extract_terms(speaker)):
                named.setdefault(word, speaker)
    pieces = _split_uncased(question)
    if pieces:
        for speaker in (yield from _find_speakers(pieces, _READ_TURNS)):
            if set(extract_terms(speaker)) <= {*pieces}:
                named.setdefault(speaker, speaker)
    return named


def _find_speakers(words: tuple[str, ...], k: int) -> Plan[list[str]]:
    """Return the speakers of the turns that match words best."""
    try:
        found: LexicalMatches = yield Lexical(terms=words, k=k)
    except CapabilityError:
        return []  # the search does not look up words either
    turns: list[StoredDocument] = yield Documents(refs=found.refs)
    return list(dict.fromkeys(filter(None, (turn.metadata.get(SPEAKER) for turn in turns))))


def _split_uncased(question: str) -> tuple[str, ...]:
    """Return the words of a question in scripts without capitals, and the parts that may be words."""
    found = []
    for word in extract_terms(question):
        if word[0].isalpha() and not word[0].islower():
            found.append(word)
            for run in _UNSPACED.findall(word):
                found += (run[at : at + size] for at in range(len(run)) for size in _SIZES)
    return tuple(dict.fromkeys(found))[:_MOST_PIECES]


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

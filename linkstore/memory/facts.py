"""Facts that give way: the statements of a turn, and earlier turns with another value.

The rule is for plain cases in English: the same subject and relation with another value of the same shape,
where there is one value at a time ("My phone number is …", "I live in …", "The review is on …"). What a
person or thing is besides ("My wife is now pregnant.") takes the place of nothing. A model, or an
application, may say more: see :meth:`~linkstore.memory.ConversationMemory.add`.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from linkstore.core.text import STOP_WORDS, fold, split_sentences, tokenize
from linkstore.memory.names import compile_words, find_names, read_speaker, read_words

_MOST_SENTENCES: Final = 8
"""How many sentences of a turn are read, the first ones."""
_LONGEST: Final = 300
"""Characters of a sentence that may be a plain statement."""
_SUPPOSED: Final = re.compile(
    r"\b(?:if|whether|unless|wish|would|might|could|may|wenn|ob|w\u00fcrde|k\u00f6nnte|w\u00e4re|si)\b"
    r"|^[\"'\u201c\u201e\u00ab]|\b(?:said|says|sagt|sagte|dit|dice|dijo|asked|wrote)\b\W*:",
    re.IGNORECASE,
)
"""What stands in a sentence that states nothing itself."""
_DENIES: Final = re.compile(r"n['\u2019]t\b|\b(?:not|never|nicht|keine?[nmrs]?|ne|pas|no)\b", re.IGNORECASE)
_BESIDE: Final = re.compile(r"\b(?:too|also|as well|auch|aussi|tambi\u00e9n)\b", re.IGNORECASE)
_CLAUSES: Final = re.compile(
    r"[,:;]\s+(?:(?:and|but|so)\s+)?"
    r"|(?:^|\s)(?:actually|and|btw|but|by the way|hey|no|oh|ok|okay|so|sorry|that|wait|well|yes)\s+"
    r"(?=(?:i|we|my|our|your|his|her|their|the)\b)",
    re.IGNORECASE,
)
"""What stands between two clauses, or before a statement: "By the way, …", "btw …", "I read that …"."""
_OWN_WORDS: Final = r"(?:my|our|your|his|her|their|the)(?= )"
_NO_NAMES: Final = STOP_WORDS | {"things", "everything", "something", "nothing", "life"}
_STATE: Final = re.compile(
    rf"^(?P<subject>{_OWN_WORDS}(?: [\w'\u2019.&-]+){{1,6}}?|[A-Z][\w'\u2019-]*(?: [\w'\u2019-]+){{0,4}}?)"
    r" (?P<verb>(?:has been|have been|is|are|was|were|has|have|will|takes? place|costs?|ends?|starts?|begins?"
    r"|opens?|closes?|leaves?|departs?|arrives?|runs?|goes|pays?|lives?|works?|weighs?|belongs?)"
    r"(?: (?:in|on|at|to|from|by|with|for|until))?)\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_SELF: Final = re.compile(
    r"^(?P<subject>i|we)(?:['\u2019](?:m|re|ve)|\s+(?:am|are|have))?"
    r"\s+(?:(?:already|currently|finally|just|now|recently) )?"
    r"(?P<verb>moved to|(?:live|living) in|(?:work|working) (?:at|for)|(?:stay|staying|study) at|weigh)"
    r"\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
"""What one person does of one thing at a time."""
_SAME: Final = {
    "moved to": "live in",
    "living in": "live in",
    "working at": "work at",
    "work for": "work at",
    "working for": "work at",
    "staying at": "stay at",
}
"""Relations that are the same."""
_OPINION: Final = re.compile(
    r"^(?:(?:i|we) (?:think|guess|believe|heard|read|suppose|mean)|it turn(?:s|ed) out"
    r"|(?:the|my|our) \w+ (?:says|said)) (?:that )?",
    re.IGNORECASE,
)
_TAKES_OVER: Final = re.compile(r"\b(?:(?:takes?|taken|took) over|replace[sd]|succeed(?:s|ed)) \b")
_TITLE: Final = re.compile(r"(?:Mrs?|Ms|Dr|Prof|Herr|Frau|Mme|M|Sra?)\.?|Mister|Doctor|Professor")
_PREPOSITIONS: Final = frozenset({"in", "on", "at", "from"})
_LEADING: Final = _PREPOSITIONS | {"to", "a", "an", "the"}
_FEW: Final = 3
"""Number of words of a short value."""
_LONGER: Final = "longer"
"""The shape of what a speaker says of himself in more words, which may say when or where else."""
_LONGEST_SUBJECT: Final = 6
"""Number of words before the verb."""
_OPENING: Final = 3
"""Two clauses without a sure subject are about the same if they begin with so many equal words."""


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A plain statement.

    Args:
        key: Subject and relation, folded.
        value: The rest, folded.
        shape: What the value is: a number of something, a time or a name behind some word, a person; "" for
            what there may be several of at a time.
    """

    key: str
    value: str
    shape: str

    def supersedes(self, earlier: FactStatement) -> bool:
        """Say whether an earlier statement of the same subject and relation is no longer so."""
        if self.key != earlier.key or self.value in earlier.value or earlier.value in self.value:
            return False  # of something else, or the same, more or less exactly
        return self.shape not in ("", _LONGER) and earlier.shape in (self.shape, _LONGER)


def read_statements(text: str) -> tuple[FactStatement, ...]:
    """Return the plain statements in what somebody said; questions and requests state nothing."""
    statements: list[FactStatement] = []
    for sentence in split_sentences(text)[:_MOST_SENTENCES]:
        normalized = " ".join(sentence.split())
        if normalized.endswith("?") or len(normalized) > _LONGEST or not is_plain(normalized):
            continue
        stated = (_read_statement(part.rstrip(".! "), normalized) for part in _CLAUSES.split(normalized))
        statements += (statement for statement in stated if statement is not None)
    return tuple(statements)


def states_only(text: str) -> bool:
    """Say whether a text is one plain statement of a short value, and nothing beside."""
    statements = read_statements(text)
    alone = len(split_sentences(text)) == 1 and _CLAUSES.search(text) is None
    return alone and len(statements) == 1 and _is_short(statements[0].value)


def is_about_past(text: str) -> bool:
    """Say whether a text tells what was so before, as "I used to" does."""
    return compile_words("former").search(text) is not None


def asks_for_past(question: str) -> bool:
    """Say whether a question asks for what was so before, as "Where did I work?" does."""
    return (
        is_about_past(question) or re.search(r"\b(?:did|was|were|had)\b", question, re.IGNORECASE) is not None
    )


def says_change(text: str) -> bool:
    """Return whether a text has a word for a change, such as "now"."""
    return compile_words("changes").search(text) is not None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement is about.

    Args:
        owner: "i" and the like; or whose it is: "my", "my neighbour's"; or "".
        words: Its other words, folded, without those that say nothing.
        head: The last of them before "of" and the like; "" without others.
    """

    owner: str
    words: frozenset[str] = frozenset()
    head: str = ""

    def is_same(self, other: Subject) -> bool:
        """Say whether both are surely the same: of one owner, or else in the same words."""
        alike = self.words <= other.words or other.words <= self.words
        nobody = not (self.owner and other.owner) and self.words == other.words
        return self.head == other.head and alike and (self.owner == other.owner or nobody)


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of what somebody said.

    Args:
        words: Its words, folded.
        subject: What it is about, where that is sure: what stands before a common verb.
        speaker: Who said it, folded, if the text says so. Two speakers mean somebody else by "I" and "my".
    """

    words: tuple[str, ...]
    subject: Subject | None
    speaker: str

    def is_about_same(self, earlier: Clause, *, changes: bool) -> bool:
        """Return whether this clause is surely about the same thing as an earlier one.

        It is if both have one subject, or if it tells what became of the other's subject: "We moved the
        launch to July". Without a sure subject, the other one is about the same if it has this one's, or if
        both begin alike: "Send invoices to".

        With ``changes``, this clause says that something changed.
        """
        own, other = self.subject, earlier.subject
        if self.speaker != earlier.speaker:
            return False
        if other is None:
            mentions = bool(own and changes and own.words and own.words <= {*earlier.words})
            return mentions or (own is None and self.words[:_OPENING] == earlier.words[:_OPENING])
        if own is None:
            return False
        if other.words and other.words <= {*self.words} and own.words.isdisjoint(other.words):
            moved = own.owner in read_words("persons") and (
                changes or (other.head, "to") in pairwise(self.words)
            )
            return moved or _TAKES_OVER.search(" ".join(self.words)) is not None
        return own.is_same(other)

    @property
    def slot(self) -> tuple[str, ...]:
        """What the speaker says of himself: the verb, after "am" the article too, and what it is for."""
        words = [word for word in self.words if word not in read_words("adverbs")]
        if self.subject is None or self.subject.owner not in read_words("speakers") or not words:
            return ()
        person, _, ending = words[0].partition("'")
        rest = (
            [ending, *words[1:]]
            if ending
            else words
            if person in read_words("without_subject")
            else words[1:]
        )
        article = [word for word in rest[1:2] if word in read_words("articles")]
        use = rest[rest.index("for") + 1 :][:1] if "for" in rest else []
        return ("be", *article, *use) if rest[:1] in (["m"], ["am"]) else (*rest[:1], *use)


def is_plain(text: str) -> bool:
    """Say whether a text states something itself: nothing supposed, quoted or said by somebody else."""
    return _SUPPOSED.search(text) is None


def denies_other(text: str, other: str) -> bool:
    """Say whether a text denies something other than another text."""
    words = {*tokenize(other)} - STOP_WORDS - read_words("persons") - read_words("behind")
    return _DENIES.search(text) is not None and not any(word in words for word in tokenize(text)[-3:])


def states_own(text: str) -> bool:
    """Say whether a speaker states something of himself."""
    return (
        is_plain(text) and _DENIES.search(text) is None and any(clause.slot for clause in read_clauses(text))
    )


def asks_about_self(question: str) -> bool:
    """Say whether a question asks for something of the speaker."""
    words = {part for word in tokenize(question) for part in (word, word.partition("'")[0])}
    return not words.isdisjoint(
        read_words("speakers") | read_words("without_subject") | {"my", "mein", "meine", "mon", "ma", "mi"}
    )


def is_about_other(text: str, own: str, asked: Collection[str]) -> bool:
    """Say whether a text denies something other than a statement, or is about something else."""
    clauses = list(read_clauses(text))
    if any(clause.slot for clause in clauses):
        return denies_other(text, own)
    subjects = [clause.subject for clause in clauses if clause.subject is not None]
    return bool(subjects) and all(subject.words and subject.words.isdisjoint(asked) for subject in subjects)


def says_beside(text: str) -> bool:
    """Say whether a text adds something to what was said, as "too" does."""
    return _BESIDE.search(text) is not None


def read_clauses(text: str) -> Iterator[Clause]:
    """Yield the clauses of what somebody said."""
    speaker = read_speaker(text)
    if speaker is not None and says_change(speaker):
        speaker = None  # "Correction: …"
    statement = text if speaker is None else text[len(speaker) + 1 :]
    for sentence in split_sentences(statement)[:_MOST_SENTENCES]:
        for clause in _CLAUSES.split(_OPINION.sub("", sentence.strip())):
            words = tokenize(clause)
            words = words[1:] if words[:1] and words[0] in read_words("adverbs") else words
            yield Clause(words, _read_subject(words), fold(speaker or ""))


def _is_verb(word: str) -> bool:
    """Say whether a word is a verb as it follows a subject, and hardly anything else."""
    return word in read_words("verbs") or re.fullmatch(r"\w{3,}ed", word) is not None


def _read_subject(words: Sequence[str]) -> Subject | None:
    first = words[0].partition("'")[0] if words else ""
    if first in read_words("persons"):
        return Subject(first)
    if first in read_words("without_subject"):
        return Subject("yo")
    named = words[1:] if first in read_words("owners") or first in read_words("articles") else words
    end = next((at for at in range(1, len(named)) if _is_verb(named[at])), _LONGEST_SUBJECT + 1)
    if end > _LONGEST_SUBJECT:
        return None
    before = next((at for at in range(1, end) if named[at] in read_words("behind")), end)
    owners = [word for word in named[:end] if word.endswith("'s")]
    others = frozenset(word for word in named[:end] if word not in STOP_WORDS and word not in owners)
    owner = " ".join([first] * (first in read_words("owners")) + owners)
    return Subject(owner, others, named[before - 1]) if others else None


def _read_statement(clause: str, sentence: str) -> FactStatement | None:
    match = _SELF.match(clause)
    if match is not None:
        verb, value = fold(match["verb"]), fold(match["value"])
        if verb == "moved to" and not _is_home(match["value"], sentence):
            return None
        shape = "one" if _is_short(value) else _LONGER
        return FactStatement(f"{fold(match['subject'])} {_SAME.get(verb, verb)}", value, shape)
    match = _STATE.match(clause)
    if match is None:
        return None
    subject, verb = match["subject"], fold(match["verb"])
    if not re.match(_OWN_WORDS, subject, re.IGNORECASE) and not _is_name(subject):
        return None
    verb = re.sub(r"^(?:is|are|was|were|has been|have been|will)\b.*", "is", verb)
    return FactStatement(f"{fold(subject)} {verb}", fold(match["value"]), _find_shape(match["value"]))


def _is_short(value: str) -> bool:
    """Say whether a value is a few words, none of which may lead on to something else."""
    words = [word for word in tokenize(value) if word not in read_words("adverbs")]
    while words and words[0] in _LEADING:
        words = words[1:]
    return 0 < len(words) <= _FEW and STOP_WORDS.isdisjoint(words)


def _is_home(value: str, sentence: str) -> bool:
    """Return whether somebody who moved to this place lives there now.

    It is a name, and surely that of a place.
    """
    named = find_names(f"to {value}")
    if not named or not value.startswith(named[0].text):
        return False
    return fold(named[0].text) in _list_places() or compile_words("homes").search(sentence) is not None


@cache
def _list_places() -> frozenset[str]:
    """Return the names of places in the time zone database of this machine, folded."""
    keys = zoneinfo.available_timezones()
    return frozenset(fold(part.replace("_", " ")) for key in keys for part in key.split("/"))


def _is_name(subject: str) -> bool:
    """Say whether a subject is a name, and no other word that has a capital because it is the first."""
    named = find_names(f"of {subject}")
    return bool(named) and named[0].text == subject and fold(subject) not in _NO_NAMES


def _find_shape(value: str) -> str:
    words = [word for word in value.split() if fold(word) not in read_words("adverbs")]
    before = fold(words[0]) if len(words) > 1 and fold(words[0]) in _PREPOSITIONS else ""
    first, *rest = words[1:] if before else words or [""]
    if first[:1].isdigit():
        return " ".join(["number", before, *map(fold, rest)])
    if fold(first) in read_words("times"):
        return f"time {before}"
    if before:
        return f"name {before}" if first[:1].isupper() else ""
    is_person = _TITLE.fullmatch(first) or (first[:1].isupper() and fold(first) in read_words("given"))
    return "person" if is_person else ""

"""Facts that give way: what a turn states, and which earlier turns state something else of the same.

The rule is for plain cases in English: the same subject and relation with another value, where there is one
value at a time ("My phone number is …", "I live in …", "The review is on …"); and any value if the new turn
says that something changed ("now", "no longer", "instead", "since Monday"). A model, or an application, may
say more: see :meth:`~linkstore.memory.ConversationMemory.add`.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from functools import cache
from typing import Final

from linkstore.core.text import STOP_WORDS, fold, split_sentences
from linkstore.memory.names import find_names

_MOST_SENTENCES: Final = 8
"""How many sentences of a turn are read, the first ones."""
_LONGEST: Final = 300
"""Characters of a sentence that may be a plain statement."""
_CHANGE: Final = re.compile(
    r"\b(?:now|nowadays|no longer|any ?more|instead|since|from now on|these days|after all|as of|actually"
    r"|correction|mistake|typo|changed|moved|switched|new|change of plan|update|starting|not|became|turned"
    r"|sold|quit|stopped|upgraded|migrated|cancell?ed|postponed)\b",
    re.IGNORECASE,
)
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
_HOME: Final = re.compile(
    r"\b(?:address|apartment|city|country|countryside|flat|home|house|island|landlord|neighbou?rhood|rent|suburb"
    r"|town|village)s?\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A plain statement.

    Args:
        key: Subject and relation, folded.
        value: The rest, folded.
        changes: Whether it says that something is not what it was.
        shape: What the value is: a number, a name behind some word; "" for other words. There is one of each
            at a time; of other words there may be several, unless something changed.
    """

    key: str
    value: str
    changes: bool
    shape: str

    def supersedes(self, earlier: FactStatement) -> bool:
        """Say whether an earlier statement of the same subject and relation is no longer so."""
        if self.key != earlier.key or self.value in earlier.value or earlier.value in self.value:
            return False  # of something else, or the same, more or less exactly
        return self.changes or (self.shape != "" and self.shape == earlier.shape)


def read_statements(text: str) -> tuple[FactStatement, ...]:
    """Return the plain statements in what somebody said; questions and requests state nothing."""
    statements: list[FactStatement] = []
    for sentence in split_sentences(text)[:_MOST_SENTENCES]:
        said = " ".join(sentence.split())
        if said.endswith("?") or len(said) > _LONGEST:
            continue
        stated = (_read_statement(part.rstrip(".! "), said) for part in _CLAUSES.split(said))
        statements += (statement for statement in stated if statement is not None)
    return tuple(statements)


def says_change(text: str) -> bool:
    """Say whether a text has a word that says that something is not what it was, as "now" does."""
    return _CHANGE.search(text) is not None


def _read_statement(clause: str, sentence: str) -> FactStatement | None:
    match = _SELF.match(clause)
    if match is not None:
        verb, value = fold(match["verb"]), fold(match["value"])
        if verb == "moved to" and not _is_home(match["value"], sentence):
            return None
        return FactStatement(f"{fold(match['subject'])} {_SAME.get(verb, verb)}", value, False, "one")
    match = _STATE.match(clause)
    if match is None:
        return None
    subject, verb = match["subject"], fold(match["verb"])
    if not re.match(_OWN_WORDS, subject, re.IGNORECASE) and not _is_name(subject):
        return None
    verb = re.sub(r"^(?:is|are|was|were|has been|have been|will)\b.*", "is", verb)
    shape, changes = _find_shape(match["value"]), says_change(sentence)
    return FactStatement(f"{fold(subject)} {verb}", fold(match["value"]), changes, shape)


def _is_home(value: str, sentence: str) -> bool:
    """Say whether somebody who moved to this lives there now: it is a name, and surely that of a place."""
    named = find_names(f"to {value}")
    if not named or not value.startswith(named[0].text):
        return False
    return fold(named[0].text) in _list_places() or _HOME.search(sentence) is not None


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
    if value[0].isdigit():
        return "number"
    before = re.match(r"(?:in|on|at|from|a|an|the)\b", value, re.IGNORECASE)
    return f"name {before[0].lower() if before else ''}" if re.search(r"\b[A-Z]|\d", value) else ""

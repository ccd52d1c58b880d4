"""Facts that give way: what a turn states, and which earlier turns state something else of the same.

The rule is for plain cases in English: the same subject and relation with another value, where there is one
value at a time ("My phone number is …", "I live in …", "The review is on …"); and any relation if the new
turn says that something changed ("now", "no longer", "instead", "since Monday"). A model, or an application,
may say more: see :meth:`~linkstore.memory.ConversationMemory.add`.
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
_LEAD: Final = re.compile(
    r"^(?:[^,:;]{1,60}[,:;]\s+(?:but |and |so )?"
    r"|(?:(?:actually|and|btw|but|by the way|correction|fyi|hey|hi|no|note|oh|ok|okay|so|sorry|update|wait"
    r"|well|yeah|yes)\b[\s,:]*)+"
    r"|(?:i (?:read|heard|think|believe)|it turns out|please note|remember) that\s+)",
    re.IGNORECASE,
)
"""What may stand before a statement: "By the way, …", "btw …", "I read that …", "Change of plan: …"."""
_CUT: Final = re.compile(
    r",\s+not\b|\s+(?:now\b|since\b|as of\b|these days|after all|from now on|instead\b|any ?more)",
    re.IGNORECASE,
)
_PART: Final = re.compile(r",? (?:and|so|but) (?=(?:my|our|your|the|i|we) )|:\s+|, (?=i )", re.IGNORECASE)
_OWN_WORDS: Final = r"(?:my|our|your|his|her|their|the|this|that)\b."
_NO_NAMES: Final = STOP_WORDS | {"things", "everything", "something", "nothing", "life"}
_OWN: Final = r"(?:my|our|your|his|her|their|the|this|that)(?: [\w'\u2019.&-]+){1,6}?"
_SUBJECT: Final = rf"(?P<subject>{_OWN}|[A-Z][\w'\u2019-]*(?: [\w'\u2019-]+){{0,4}}?)"
_STATE: Final = re.compile(
    rf"^{_SUBJECT} (?P<verb>(?:has been|have been|is|are|was|were|has|have|will|takes? place|costs?|ends?"
    r"|starts?|begins?|opens?|closes?|leaves?|departs?|arrives?|runs?|goes|pays?|lives?|works?|weighs?|belongs?)"
    r"(?: (?:called|named|set|written|located|based|moved|postponed|extended|due|now))?"
    r"(?: (?:in|on|at|to|from|by|with|for|until))?)\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_SELF: Final = re.compile(
    r"^(?P<subject>i|we)(?:['\u2019](?:m|re)|(?:['\u2019]ve|\s+have)(?=[\w\s]{1,12}\bmoved\b))?"
    r"\s+(?:(?:already|currently|finally|just|now|recently) )?(?P<verb>(?:don't |do not |am |are )?"
    r"(?:live|work|drive|weigh|play|use|go|stay|study|sleep|speak|prefer|take|own|moved|allergic|staying|living|working|a|an)"
    r"(?: (?:in|on|at|to|for|as|with|from|the gym on))?)\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_SAME: Final = {
    "moved to": "live in", "living in": "live in", "am live in": "live in", "working at": "work at",
    "work for": "work at", "working for": "work at", "an": "a", "am an": "a",
    "am a": "a", "staying at": "stay at", "are staying at": "stay at", "am allergic to": "allergic to",
}  # fmt: skip
"""Relations that are the same."""
_SINGLE: Final = frozenset({"live in", "work at", "weigh", "stay at", "study at"})
"""What one person does or is of one thing at a time."""
_HOME: Final = re.compile(
    r"\b(?:address|apartment|city|country|countryside|flat|home|house|island|landlord|neighbou?rhood|rent|suburb"
    r"|town|village)s?\b",
    re.IGNORECASE,
)
_DAY: Final = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b\d{4}-\d\d-\d\d\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_TIME: Final = re.compile(r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?(?:am|pm)\b|\bnoon\b|\bmidnight\b", re.IGNORECASE)
_COUNTED: Final = re.compile(
    r"^(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve)\s+(\w+)"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A plain statement.

    Args:
        key: Subject and relation, folded.
        value: The rest, folded.
        changes: Whether it says that something is not what it was.
        shape: What the value is: a day, a time, a number, a name; "" for other words. There is one of each
            at a time; of other words there may be several, unless something changed.
        denies: Whether it says that this is not so.
    """

    key: str
    value: str
    changes: bool
    shape: str
    denies: bool = False

    def supersedes(self, earlier: Statement) -> bool:
        """Say whether an earlier statement of the same subject and relation is no longer so."""
        if self.key != earlier.key:
            return False
        if self.denies:
            return earlier.value.startswith(self.value)
        if self.value == earlier.value:
            return earlier.denies
        if self.value in earlier.value or earlier.value in self.value:
            return False  # the same, more or less exactly
        return self.changes or (self.shape != "" and self.shape == earlier.shape)


def read_statements(text: str) -> tuple[Statement, ...]:
    """Return the plain statements in what somebody said; questions and requests state nothing."""
    found: list[Statement] = []
    for sentence in split_sentences(text)[:_MOST_SENTENCES]:
        said = " ".join(sentence.split())
        if said.endswith("?") or len(said) > _LONGEST:
            continue
        parts = _PART.split(said)
        stated = [one for part in reversed(parts) if (one := _read_statement(part, said)) is not None]
        whole = _read_statement(_LEAD.sub("", said), said) or _read_statement(said, said)
        found += stated or ([whole] if whole is not None else [])
    return tuple(found)


def says_change(text: str) -> bool:
    """Say whether a text has a word that says that something is not what it was, as "now" does."""
    return _CHANGE.search(text) is not None


def _read_statement(part: str, sentence: str) -> Statement | None:
    part = part.strip().rstrip(".! ")
    match = _SELF.match(part) or _STATE.match(part)
    if match is None:
        return None
    subject, verb = fold(match["subject"]), fold(match["verb"])
    if match.re is _STATE and not re.match(_OWN_WORDS, subject) and not _opens_with_name(match["subject"]):
        return None
    written = _CUT.split(match["value"], maxsplit=1)[0].strip(" .,!;")
    value, shape, changes = fold(written), _find_shape(written), says_change(sentence)
    denies = re.match(r"(?:don't|do not) ", verb) is not None or value.startswith("not ")
    value = value.removeprefix("not ")
    if subject in {"i", "we"}:
        verb = re.sub(r"^(?:don't|do not|am|are) ", "", verb)
        if verb == "moved to" and not _is_home(written, sentence):
            return None
        verb = _SAME.get(verb, verb)
        return Statement(f"{subject} {verb}", value, False, "one" if verb in _SINGLE else "", denies)
    verb = re.sub(r"^(?:are|was|were|has been|have been|will)\b", "is", verb)
    counted = _COUNTED.match(value)
    if verb in {"has", "have"}:
        verb = f"has {counted[1]}" if counted else "has"
        return Statement(f"{subject} {verb}", value, changes, "number" if counted else "")
    if verb.startswith("is"):
        verb = "is"
    return Statement(f"{subject} {verb}", value, changes, shape, denies)


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


def _opens_with_name(subject: str) -> bool:
    """Say whether a subject is a name, and no other word that has a capital because it is the first."""
    named = find_names(f"of {subject}")
    return bool(named) and named[0].text == subject and fold(subject) not in _NO_NAMES


def _find_shape(value: str) -> str:
    if _DAY.search(value):
        return "day"
    if _TIME.search(value):
        return "time"
    if value[0].isdigit():
        return "number"
    before = re.match(r"(?:in|on|at|from|a|an|the)\b", value, re.IGNORECASE)
    return f"name {before[0].lower() if before else ''}" if re.search(r"\b[A-Z]|\d", value) else ""

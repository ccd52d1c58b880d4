"""What a question refers to: a few references that rules for English can be sure of.

Whatever they are not sure of stays as it is: a search reads the question together with what was said before
(:mod:`linkstore.memory.views`), and a model reads the conversation. The rules are:

- a pronoun means the name that the last answer was (:mod:`linkstore.memory.answers`);
- a pronoun means what the last question asked to be told about ("What is X?"), if the answer agrees;
- "the second one" means that item of the list that the last answer was;
- "And in 3.12?" is the last question with another number, "And the with statement?" with another word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.lexical import terms
from linkstore.memory.answers import asks_for_person, asks_for_place
from linkstore.memory.listed import item_meant
from linkstore.memory.turns import Turn
from linkstore.text import fold

LONGEST_QUESTION: Final = 8_000
"""Characters of a question and of an answer that the rules read; a longer question stays as it is."""
_SIGN: Final = re.compile(
    r"\b(?:its|it|their|theirs|they|them|his|he|him|hers|her|she|this|that|these|those|"
    r"the (?:former|latter|same)|such)\b(?!['\u2019]s\s+(?:say|talk|go)\b)"
    r"|\b(?:there|one|ones|another|others?|same|first|second|third|former|latter|then|also|too|else)\b"
    r"|^\W*(?:and|but|or|so|what about|how about|why|ok|okay|no|yes|really|wow|i see)\b",
    re.IGNORECASE,
)
"""A word that refers to something said before, or may do so."""
_FEWEST_WORDS: Final = 3
"""A question with fewer words that say something depends on what was said before."""
_SENTENCE_WORDS: Final = 4
"""Words of a question that is a sentence."""
_THING: Final = frozenset({"it", "its"})
_MAN: Final = frozenset({"he", "him", "his"})
_WOMAN: Final = frozenset({"she", "her", "hers"})
_PRONOUN: Final = re.compile(r"\b(it|its|he|him|his|she|her|hers)\b(?!['\u2019])", re.IGNORECASE)
_ANY_PRONOUN: Final = re.compile(
    rf"{_PRONOUN.pattern}|\b(?:they|them|their|theirs|these|those)\b", re.IGNORECASE
)
_POSSESSIVE: Final = frozenset({"its", "his", "hers"})
_UNSURE: Final = re.compile(
    r"\bit\b.*\b(?:to|that|if|when|like|there)\b|\b(?:time|day|date|late|early|cold|warm|hot|dark|sunny|weather"
    r"|rain\w*|snow\w*|true|there|this|that|these|those|they|them|their)\b",
    re.IGNORECASE,
)
"""Signs that "it" may mean nothing, as in "Is it cold?", or that more is referred to."""
_THERE: Final = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?=\W*$)", re.IGNORECASE)
_NAMED: Final = re.compile(r"(?<=[\w,;] )[A-Z]")
"""A name in a question: what a pronoun beside it means may be that."""
_TOPIC: Final = re.compile(
    r"\W*(?:(?P<asks>what|who)(?:['\u2019]s| is| was)"
    r"|(?:please )?(?:tell me (?:more )?about|explain|describe))"
    r" (?:an? |the )?(?P<topic>[^\W_][\w'.+#/-]*(?: [\w'.+#/-]+){0,5}?)[\s?.!]*",
    re.IGNORECASE,
)
_RELATION: Final = re.compile(
    r"\b(?:about|and|as|at|between|by|for|from|in|like|my|of|on|or|our|to|up|with|your)\b", re.IGNORECASE
)
_IN_NAMES: Final = frozenset({"da", "de", "du", "la", "of", "the", "van", "von"})
_GOES_ON: Final = re.compile(
    r"\W*(?:and |but |so )?(?:how|why|is|was|does|did|can|could|has|will)\b", re.IGNORECASE
)
_LEAD: Final = re.compile(r"^\W*(?:(?:and|but|or|so|what about|how about)\b\W*)+", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?!\w)")
_KIND: Final = re.compile(r"the ([\w.-]+) ([a-z]{3,})", re.IGNORECASE)
_PART: Final = 4
"""Words of a part that takes the place of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A question with the references resolved that are certain.

    Args:
        text: The question; the same text if none is certain.
        depends: Whether it has a sign that it can only be understood from what was said before.
        whole: Whether the text is the earlier question with a part replaced, as "And in 3.12?" asks.
        exact: Whether the text stands alone: all that it refers to is named in it.
        name: The name that the last answer was; None if it was none.
        named: Whether a pronoun of the question may mean this name.
    """

    text: str
    depends: bool = False
    whole: bool = False
    exact: bool = False
    name: str | None = None
    named: bool = False


def resolve(question: str, recent: Sequence[Turn], name: str | None = None) -> Resolved:
    """Resolve the references of a question that are certain in the light of the last turns, in order.

    Args:
        question: As it was asked.
        recent: The last turns.
        name: The name that the last answer was; None if it was none.
    """
    if not recent or len(question) > LONGEST_QUESTION or not depends_on_history(question):
        return Resolved(text=question)
    last = recent[-1]
    answer = (last.response or "")[:LONGEST_QUESTION]
    listed = item_meant(question, answer)
    if listed is not None:
        return Resolved(text=question.replace(*listed, 1), depends=True, exact=True)
    if name is not None:
        text = _with_name(question, name, last.query)
        named = _may_mean_answer(question, last.query)
        return Resolved(text=text or question, depends=True, name=name, named=named)
    topic = _topic(recent)
    if topic is not None and (text := _with_topic(question, *topic)) is not None:
        return Resolved(text=text, depends=True)
    continued = _continued(_stated(recent), question)
    return Resolved(text=continued or question, depends=True, whole=continued is not None)


def depends_on_history(question: str) -> bool:
    """Say whether a question has a sign that it can only be understood from what was said before."""
    short = len(terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def says_little_alone(question: str) -> bool:
    """Say whether a question names nothing, and has a pronoun or too few words for a sentence."""
    if _NAMED.search(question) or not _SIGN.search(question):
        return False
    return len(terms(question)) < _FEWEST_WORDS or _ANY_PRONOUN.search(question) is not None


def _may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a question may refer to the name that was answered when another question was asked."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    return bool(used & _answering(asked)) or (_THERE.search(question) is not None and asks_for_place(asked))


def _answering(asked: str) -> frozenset[str]:
    """Return the pronouns that can mean the answer to a question."""
    return _MAN | _WOMAN if asks_for_person(asked) else _THING


def _with_name(question: str, name: str, asked: str) -> str | None:
    """Replace a pronoun or "there" in a question by the name that was answered, if that is sure."""
    if _THERE.search(question) and not _PRONOUN.search(question):
        return _THERE.sub(lambda _: f"in {name}", question, count=1)
    return _substituted(question, _answering(asked), name)


def _topic(recent: Sequence[Turn]) -> tuple[str, str, str] | None:
    """Return the topic spoken of, the word by which it was asked for, and what was answered, if sure.

    The topic stays through remarks, and through questions of how and why that name nothing.
    """
    said = ""
    for turn in reversed(recent):
        query, answer = turn.query[:LONGEST_QUESTION], (turn.response or "")[:LONGEST_QUESTION]
        found = _TOPIC.fullmatch(query)
        if found is not None:
            topic, asks = found["topic"].rstrip("."), (found["asks"] or "").lower()
            sure = _is_name(topic) and not re.match(r"[^.!]*\?", answer)
            sure = sure or (_begins_with(answer, topic) and not _RELATION.search(topic))
            return (topic, asks, f"{answer} {said}") if sure else None
        goes_on = _GOES_ON.match(query) and _PRONOUN.search(query) and not _NAMED.search(query)
        if not goes_on and (query.rstrip().endswith("?") or len(query.split()) >= _SENTENCE_WORDS):
            return None
        said = f"{answer} {said}"
    return None


def _is_name(topic: str) -> bool:
    """Say whether all words of a topic are of a name, as in "Treaty of Tordesillas"."""
    words = topic.split()
    return topic[0].isupper() and all(
        word[0].isupper() or word[0].isdigit() or word in _IN_NAMES for word in words
    )


def _begins_with(answer: str, topic: str) -> bool:
    """Say whether an answer begins with what it tells about."""
    return re.match(rf"\W*(?:the |an? )?{re.escape(fold(topic))}(?!\w)", fold(answer)) is not None


def _with_topic(question: str, topic: str, asks: str, answered: str) -> str | None:
    """Replace a pronoun in a question by the topic spoken of, if what was answered has the same pronoun."""
    used = {word.lower() for word in _PRONOUN.findall(answered)}
    persons = used & (_MAN | _WOMAN)
    if asks != "who" and not persons:
        return _substituted(question, _THING, topic)
    for meant, others in ((_MAN, _WOMAN), (_WOMAN, _MAN)):
        if asks != "what" and used & meant and not used & others:
            return _substituted(question, meant, topic)
    return None


def _substituted(question: str, meant: frozenset[str], name: str) -> str | None:
    """Replace the pronouns of a question. Return None if it has others too, or what they mean is not sure."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    if not used or not used <= meant or _UNSURE.search(question) or _NAMED.search(question):
        return None

    def replaced(match: re.Match[str]) -> str:
        word = match.group().lower()
        followed = question[match.end() :].lstrip()[:1].isalpha()
        return f"{name}'s" if word in _POSSESSIVE or (word == "her" and followed) else name

    return _PRONOUN.sub(replaced, question)


def _stated(recent: Sequence[Turn]) -> str:
    """Return the last question in full, or an empty string if that is not sure."""
    stated = ""
    for turn in recent:
        query = turn.query[:LONGEST_QUESTION]
        stated = (_continued(stated, query) or "") if depends_on_history(query) else query
    return stated


def _continued(stated: str, question: str) -> str | None:
    """Complete an elliptic question: the one before with another number, or another word before a noun.

    Return None where the question before does not have exactly one part like the new one.
    """
    part = _LEAD.sub("", question).strip().rstrip("?!. ")
    if not stated or not 0 < len(part.split()) <= _PART:
        return None
    numbers, kind = _NUMBER.findall(part), _KIND.fullmatch(part)
    if len(numbers) == 1:
        words = set(map(str.lower, re.findall(r"[^\W\d_]+", part)))
        known = set(map(str.lower, re.findall(r"[^\W\d_]+", stated))) | {"for", "in"}
        form = numbers[0].count(".")
        alike = [one for one in _NUMBER.finditer(stated) if one.group().count(".") == form]
        replaced = numbers[0] if words <= known else None
    else:
        noun = re.escape(kind[2]) if kind else None
        alike = list(re.finditer(rf"(?<=\bthe )[\w.-]+(?= {noun}\b)", stated)) if kind else []
        replaced = kind[1] if kind else None
    if replaced is None or len(alike) != 1:
        return None
    return f"{stated[: alike[0].start()]}{replaced}{stated[alike[0].end() :]}"

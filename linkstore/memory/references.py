"""What a question refers to: the references that rules for English can be sure of.

"The second one" means that item of the list that the last answer was, and "And in 3.12?" is the last question
with another number. A pronoun means the name that the last answer was, if the question before asked for one
and the name is known; any other stays as it is: a search reads the question together with what was said
before (:mod:`linkstore.memory.search`), and so does the model that reads the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.core.text import STOP_WORDS
from linkstore.memory.names import PARTICLES, find_names, read_words
from linkstore.memory.turns import Turn

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
LONGEST_QUESTION: Final = 8_000
"""Characters of a question and of an answer that the rules read; a longer question stays as it is."""
_FEWEST_WORDS: Final = 3
"""A question with fewer words that say something depends on what was said before."""
_SENTENCE_WORDS: Final = 4
"""Words of a question that is a sentence."""
_SIGN: Final = re.compile(
    r"\b(?:its|it|their|theirs|they|them|his|he|him|hers|her|she|this|that|these|those|"
    r"the (?:former|latter|same)|such)\b(?!['\u2019]s\s+(?:say|talk|go)\b)"
    r"|\b(?:there|one|ones|another|others?|same|first|second|third|former|latter|then|also|too|else)\b"
    r"|^\W*(?:and|but|or|so|what about|how about|why|ok|okay|no|yes|really|wow|i see)\b",
    re.IGNORECASE,
)
"""A word that refers to something said before, or may do so."""
_PRONOUN: Final = re.compile(
    r"\b(it|its|he|him|his|she|her|hers|they|them|their|theirs)\b(?!['\u2019](?!s\b))", re.IGNORECASE
)
_POSSESSIVE: Final = frozenset({"its", "his", "hers", "their", "theirs"})
_PERSONAL: Final = frozenset({"he", "him", "his", "she", "her", "hers"})
_NOTHING: Final = re.compile(
    r"\b(?:is|was|will|would|does|can|could|may|might|isn't|wasn't|be|it'?s)\s+it\s+(?:be\s+|not\s+|also\s+)*"
    r"(?:(?!meant|made|built|going|\w+ed)\w+\s+){0,3}?(?:to|that|if|when|how|whether|like)\b"
    r"|\b(?:does|did|will|would|can) it (?:take|matter|help|hurt|make sense|rain|snow|seem|look|mean)\b"
    r"|\bit (?:is|was|'s|seems|looks|takes|depends|would be|will be) (?:\w+ )?(?:that|to|if|like)\b"
    r"|\b(?:time|date|day|late|early|cold|warm|hot|dark|weather|rain\w*|snow\w*|true) (?:is|was|will) it\b"
    r"|\bit is\W*$|\bworth it\b"
    r"|\b(?:is|was|will) it (?:cold|warm|hot|dark|late|early|sunny|rain\w*|snow\w*|true|time|there)\b",
    re.IGNORECASE,
)
""""It" that means nothing, as in "Is it cold?" and "Is it possible to leave?"."""
_WHO: Final = re.compile(
    r"(?:^|[.!?,]\s)\W*(?:(?:and|so|but|then)\W+)*who(?! (?:has|likes?|lives?|works?|turns?|wants?)\b)"
    r"(?:m|se)?\b|\bwhom?\W*$",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\b(?:where|capital|city|continent|country|county|island|place|state|town|village)\b", re.IGNORECASE
)
_THERE: Final = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?=\W*$)", re.IGNORECASE)
_MOST_NAME_WORDS: Final = 6
_INSIDE: Final = PARTICLES | {"a", "and", "das", "on", "the", "und", "upon"}
"""Words without a capital that names have inside."""
_PREPOSITION: Final = re.compile(r"^(?:(?:at|in|the|under) )+(?=[^\W\d_])", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?\u2026]\s*$|\b(?:i|me|my|please|us|we|you|your)\b", re.IGNORECASE)
_OPENING: Final = ".!?:;\n\"'\u201c\u201e\u00ab(-*\u2022"
"""Signs after which any word has a capital."""
_ORDINALS: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_POSITION_PHRASE: Final = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}) (?:one|option|item|of (?:them|those|these))\b"
    rf"|\b(?:number|the) ({'|'.join(_ORDINALS)}|[1-5])(?=\W*$)"
    r"|\bthe (former|latter)\b",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"^\s*[-*\u2022]\s+(\S.*)$", re.MULTILINE)
_NUMBERED_ITEM: Final = re.compile(r"(?:^|\s)(\d{1,2})[.)]\s+(\S.*?)(?=\s\d{1,2}[.)]\s|\n|$)")
_ITEM_NAME: Final = r"[A-Z][\w'-]*(?:\.(?=\s[A-Z]))?(?: (?:van|de|of|[A-Z\d][\w.'-]*[\w'-]))*"
_SERIES: Final = re.compile(rf"^({_ITEM_NAME}(?:, {_ITEM_NAME})*),? (?:and|or) ({_ITEM_NAME})\W*$")
_REST: Final = re.compile(r"\s[-\u2013\u2014]+\s|[:,;(]|\.(?:\s|$)|\s(?:on|by|for|is|are|which|that)\s")
_LONGEST_ITEM: Final = 60
"""Characters of an item; a longer one has no name that could take the place of its position."""
_LEAD: Final = re.compile(r"^\W*(?:(?:and|but|or|so|what about|how about)\b\W*)+", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?!\w)")
_MOST_PART_WORDS: Final = 4
"""Words of a part that takes the place of another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuestion:
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


def resolve_references(question: str, recent: Sequence[Turn], name: str | None = None) -> ResolvedQuestion:
    """Resolve the references of a question that are certain in the light of the last turns, in order.

    Args:
        question: As it was asked.
        recent: The last turns.
        name: The name that the last answer was; None if it was none.
    """
    if not recent or len(question) > LONGEST_QUESTION or not depends_on_history(question):
        return ResolvedQuestion(text=question)
    last = recent[-1]
    listed = find_meant_item(question, (last.response or "")[:LONGEST_QUESTION])
    if listed is not None:
        return ResolvedQuestion(text=question.replace(*listed, 1), depends=True, exact=True)
    if name is not None:
        named = _may_mean_answer(question, last.query)
        text = _insert_answer(question, name, last.query)
        if text is not None or named:
            return ResolvedQuestion(text=text or question, depends=True, name=name, named=named)
    continued = _replace_number(last.meaning or last.query, question)
    return ResolvedQuestion(text=continued or question, depends=True, whole=continued is not None, name=name)


def depends_on_history(question: str) -> bool:
    """Say whether a question has a sign that it can only be understood from what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def corrects(query: str) -> bool:
    """Say whether a query puts right what was said before, as "I meant Northern Sky" does."""
    return re.search(r"\bi mean", query, re.IGNORECASE) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


def _decline(name: str, match: re.Match[str]) -> str:
    """Return a name in the case of the pronoun that it takes the place of."""
    after = re.match(r"\s+([a-z][\w-]*)", match.string[match.end() :])
    owns = after is not None and after[1] not in STOP_WORDS | read_words("no_noun")
    word = match[1].lower()
    return f"{name}'s" if word in _POSSESSIVE or (word == "her" and owns) else name


def find_answered_name(turn: Turn) -> str | None:
    """Return the name that the answer of a turn may be, or None if nothing was asked for or it names nothing.

    A query asks by a word like "which", or by key words that are no sentence ("capital of australia").
    """
    name = _PREPOSITION.sub("", (turn.response or "").strip().rstrip(".! "))
    words = name.split(" ")
    if len(words) > _MOST_NAME_WORDS or not (_ASKS.search(turn.query) or not _SENTENCE.search(turn.query)):
        return None
    if not all(_is_proper(word) or word in _INSIDE for word in words):
        return None
    return name if name[0].isupper() and _is_proper(words[-1]) else None


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and "\n" not in word


def has_name(texts: Iterable[str], name: str) -> bool:
    """Say whether a text has this name: in its spelling, and not only where every word has a capital."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        text[: found.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for found in pattern.finditer(text)
    )


def _may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a question may refer to the name that was answered when another question was asked."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    return bool(used & (_PERSONAL if _WHO.search(asked) else {"it", "its"})) or (
        _THERE.search(question) is not None and _PLACE.search(asked) is not None
    )


def _insert_answer(question: str, name: str, asked: str) -> str | None:
    """Replace the pronouns of a question, or "there", by the name that was answered, if that is sure."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    if not used:
        return (
            _THERE.sub(lambda _: f"in {name}", question, count=1)
            if _may_mean_answer(question, asked)
            else None
        )
    meant = _PERSONAL if _WHO.search(asked) else {"it", "its"}
    if not used <= meant or _NOTHING.search(question) or find_names(question):
        return None
    return _PRONOUN.sub(lambda match: _decline(name, match), question)


def find_meant_item(question: str, answer: str) -> tuple[str, str] | None:
    """Return the phrase of a question that names an item of an answer by its position, and the item.

    None if there is no such phrase, or the answer is not one list that has the position.
    """
    match = _POSITION_PHRASE.search(question)
    if match is None:
        return None
    named = next(filter(None, match.groups())).lower()
    items = list_items(answer)
    of_two = named in {"former", "latter"}
    position = (
        int(named == "latter") if of_two else _ORDINALS.get(named, int(named) - 1 if named.isdigit() else 0)
    )
    if len(items) <= max(position, 1) or (of_two and len(items) != 2):
        return None
    item = items[position]
    return (match.group(), item) if len(item) <= _LONGEST_ITEM else None


def list_items(text: str) -> list[str]:
    """Return the items of the list in a text: numbered from one, with bullets, or names ("A, B and C").

    There are none if there are several lists. An item ends before a dash, a colon, a comma and the like.
    """
    numbered = _NUMBERED_ITEM.findall(text)
    bullets = _BULLET.findall(text)
    if numbered and not bullets:
        counted = [int(number) for number, _ in numbered] == list(range(1, len(numbered) + 1))
        return [_cut_item(item) for _, item in numbered] if counted else []
    if bullets:
        return [] if numbered else list(map(_cut_item, bullets))
    series = _SERIES.match(text.strip())
    return [] if series is None else [*series[1].split(", "), series[2]]


def _cut_item(item: str) -> str:
    return _REST.split(item, maxsplit=1)[0].strip(" *_`\"'.")


def _replace_number(stated: str, question: str) -> str | None:
    """Return the last question with another number, as "And in 3.12?" asks, if it has one like it."""
    part = _LEAD.sub("", question).strip().rstrip("?!. ")
    numbers = _NUMBER.findall(part)
    if len(numbers) != 1 or len(part.split()) > _MOST_PART_WORDS or len(stated) > LONGEST_QUESTION:
        return None
    words = set(map(str.lower, re.findall(r"[^\W\d_]+", part)))
    known = set(map(str.lower, re.findall(r"[^\W\d_]+", stated))) | {"for", "in"}
    form = numbers[0].count(".")
    alike = [one for one in _NUMBER.finditer(stated) if one.group().count(".") == form]
    if len(alike) != 1 or not words <= known:
        return None
    return f"{stated[: alike[0].start()]}{numbers[0]}{stated[alike[0].end() :]}"

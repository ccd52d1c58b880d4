"""What a question refers to: a few references that rules for English can be sure of.

Whatever they are not sure of stays as it is: a search reads the question together with what was said before
(:mod:`linkstore.memory.search`), and a model reads the conversation. The rules are:

- a pronoun means the name that the last answer was, as "Frank Herbert." after "Who wrote Dune?". What looks
  like a name may be an acknowledgement ("Perfect.", "Keine Ahnung."); so it is one only if the question asked
  for one, and if another text has it as a name: an earlier turn, or the knowledge;
- a pronoun means what the last question asked to be told about ("What is X?"), if the answer agrees;
- "the second one" means that item of the list that the last answer was;
- "And in 3.12?" is the last question with another number, "And the with statement?" with another word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.core.text import fold
from linkstore.memory.turns import Turn

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
_MOST_NAME_WORDS: Final = 6
"""Maximum number of words of a name."""
_INSIDE_NAMES: Final = "a and da das de del der di du la le of on the und upon van von y"
_INSIDE: Final = frozenset(_INSIDE_NAMES.split())
"""Words without a capital that names have inside."""
_PREPOSITION: Final = re.compile(r"^(?:(?:at|in|the|under) )+(?=[^\W\d_])", re.IGNORECASE)
_WHO: Final = re.compile(r"^\W*(?:(?:and|so|but)\W+)*who(?:m|se)?\b|\bwhom?\W*$", re.IGNORECASE)
_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_PLACE: Final = re.compile(
    r"\b(?:where|capital|city|continent|country|county|island|place|state|town|village)\b", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"[.!?\u2026]\s*$|\b(?:i|me|my|please|us|we|you|your)\b", re.IGNORECASE)
_OPENING: Final = ".!?:;\n\"'\u201c\u201e\u00ab(-*\u2022"
"""Signs after which any word has a capital."""
_ORDINALS: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_NUMBER_WORDS: Final = {name: at for at, name in enumerate(("one", "two", "three", "four", "five"))}
_POSITIONS: Final = {
    **_ORDINALS,
    **_NUMBER_WORDS,
    **{str(at + 1): at for at in range(5)},
    "former": 0,
    "latter": 1,
}
_OF_TWO: Final = ("former", "latter")
_POSITION_PHRASE: Final = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}) (?:one|option|item|of (?:them|those|these))\b"
    rf"|\b(?:number|the) ({'|'.join(_ORDINALS)}|{'|'.join(_NUMBER_WORDS)}|[1-5])(?=\W*$)"
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
_MOST_PART_WORDS: Final = 4
"""Words of a part that takes the place of another."""


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


def has_name(texts: Iterable[str], name: str) -> bool:
    """Say whether a text has this name: in its spelling, and not only where every word has a capital."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        text[: found.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for found in pattern.finditer(text)
    )


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and "\n" not in word


def find_meant_item(question: str, answer: str) -> tuple[str, str] | None:
    """Return the phrase of a question that names an item of an answer by its position, and the item.

    None if there is no such phrase, or the answer is not one list that has the position.
    """
    match = _POSITION_PHRASE.search(question)
    if match is None:
        return None
    named = next(filter(None, match.groups())).lower()
    items = list_items(answer)
    position = _POSITIONS[named]
    if len(items) <= max(position, 1) or (named in _OF_TWO and len(items) != len(_OF_TWO)):
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
    answer = (last.response or "")[:LONGEST_QUESTION]
    listed = find_meant_item(question, answer)
    if listed is not None:
        return ResolvedQuestion(text=question.replace(*listed, 1), depends=True, exact=True)
    if name is not None:
        text = _insert_name(question, name, last.query)
        named = _may_mean_answer(question, last.query)
        return ResolvedQuestion(text=text or question, depends=True, name=name, named=named)
    topic = _find_topic(recent)
    if topic is not None and (text := _insert_topic(question, *topic)) is not None:
        return ResolvedQuestion(text=text, depends=True)
    continued = _complete_question(_complete_last_question(recent), question)
    return ResolvedQuestion(text=continued or question, depends=True, whole=continued is not None)


def depends_on_history(question: str) -> bool:
    """Say whether a question has a sign that it can only be understood from what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def says_little_alone(question: str) -> bool:
    """Say whether a question names nothing, and has a pronoun or too few words for a sentence."""
    if _NAMED.search(question) or not _SIGN.search(question):
        return False
    return len(extract_terms(question)) < _FEWEST_WORDS or _ANY_PRONOUN.search(question) is not None


def _may_mean_answer(question: str, asked: str) -> bool:
    """Say whether a question may refer to the name that was answered when another question was asked."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    return bool(used & _list_answer_pronouns(asked)) or (
        _THERE.search(question) is not None and _PLACE.search(asked) is not None
    )


def _list_answer_pronouns(asked: str) -> frozenset[str]:
    """Return the pronouns that can mean the answer to a question."""
    return _MAN | _WOMAN if _WHO.search(asked) else _THING


def _insert_name(question: str, name: str, asked: str) -> str | None:
    """Replace a pronoun or "there" in a question by the name that was answered, if that is sure."""
    if _THERE.search(question) and not _PRONOUN.search(question):
        return _THERE.sub(lambda _: f"in {name}", question, count=1)
    return _replace_pronouns(question, _list_answer_pronouns(asked), name)


def _find_topic(recent: Sequence[Turn]) -> tuple[str, str, str] | None:
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


def _insert_topic(question: str, topic: str, asks: str, answered: str) -> str | None:
    """Replace a pronoun in a question by the topic spoken of, if what was answered has the same pronoun."""
    used = {word.lower() for word in _PRONOUN.findall(answered)}
    persons = used & (_MAN | _WOMAN)
    if asks != "who" and not persons:
        return _replace_pronouns(question, _THING, topic)
    for meant, others in ((_MAN, _WOMAN), (_WOMAN, _MAN)):
        if asks != "what" and used & meant and not used & others:
            return _replace_pronouns(question, meant, topic)
    return None


def _replace_pronouns(question: str, meant: frozenset[str], name: str) -> str | None:
    """Replace the pronouns of a question. Return None if it has others too, or what they mean is not sure."""
    used = {word.lower() for word in _PRONOUN.findall(question)}
    if not used or not used <= meant or _UNSURE.search(question) or _NAMED.search(question):
        return None

    def replaced(match: re.Match[str]) -> str:
        word = match.group().lower()
        followed = question[match.end() :].lstrip()[:1].isalpha()
        return f"{name}'s" if word in _POSSESSIVE or (word == "her" and followed) else name

    return _PRONOUN.sub(replaced, question)


def _complete_last_question(recent: Sequence[Turn]) -> str:
    """Return the last question in full, or an empty string if that is not sure."""
    stated = ""
    for turn in recent:
        query = turn.query[:LONGEST_QUESTION]
        stated = (_complete_question(stated, query) or "") if depends_on_history(query) else query
    return stated


def _complete_question(stated: str, question: str) -> str | None:
    """Complete an elliptic question: the one before with another number, or another word before a noun.

    Return None where the question before does not have exactly one part like the new one.
    """
    part = _LEAD.sub("", question).strip().rstrip("?!. ")
    if not stated or not 0 < len(part.split()) <= _MOST_PART_WORDS:
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

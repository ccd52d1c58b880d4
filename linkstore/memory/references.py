"""What a question refers to: the references that rules for English can be sure of.

A pronoun means what the last exchange is about: what its query names and its answer speaks of, or what its
answer names if the query asked for it. If that exchange names nothing that the pronoun can mean, as after
"Thanks!", it means what the one before is about. Wherever two things could be meant, the question stays as it
is: a search reads it together with what was said before (:mod:`linkstore.memory.search`).

"The second one" means that item of the list that the last answer was, and "And in 3.12?" is the last question
with another number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from linkstore.core.lexical import extract_terms
from linkstore.core.text import STOP_WORDS, fold, tokenize
from linkstore.memory.mentions import (
    PARTICLES,
    Kind,
    Mention,
    find_mentions,
    is_english,
    read_words,
    stem_plural,
)
from linkstore.memory.turns import Turn

SHORT_ANSWER: Final = 8
"""Maximum number of words of an answer that says little: a name, a number, an acknowledgement."""
LONGEST_QUESTION: Final = 8_000
"""Characters of a question and of an answer that the rules read; a longer question stays as it is."""
_MOST_BACK: Final = 4
"""How many exchanges are looked at, the last first."""
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
_MEANT: Final[dict[str, frozenset[Kind]]] = {
    **dict.fromkeys(("it", "its"), frozenset({"thing", "unknown"})),
    **dict.fromkeys(("he", "him", "his"), frozenset({"he", "person", "unknown"})),
    **dict.fromkeys(("she", "her", "hers"), frozenset({"she", "person", "unknown"})),
    **dict.fromkeys(("they", "them", "their", "theirs"), frozenset({"many", "thing", "unknown"})),
}
"""What each pronoun may mean."""
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
_CLAUSE: Final = re.compile(
    r"[,;]|\b(?:after|and|because|before|but|if|once|or|so|that|when|while)\b", re.IGNORECASE
)
"""What may stand between a noun and a pronoun that means it; within a clause it means something else."""
_WHO: Final = re.compile(
    r"(?:^|[.!?,]\s)\W*(?:(?:and|so|but|then)\W+)*who(?! (?:has|likes?|lives?|works?|turns?|wants?)\b)"
    r"(?:m|se)?\b|\bwhom?\W*$",
    re.IGNORECASE,
)
_WHO_IS: Final = re.compile(r"\bwho(?:'s| is| was| are| were) (?=(?-i:[A-Z]))", re.IGNORECASE)
_WHICH: Final = re.compile(
    r"^\W*(?:recommend|suggest|name)\b"
    r"|\b(?:which|what(?:'s| is| was) the|what (?!(?:is|are|was|were|do|does|did|has|have|had|can|could|will"
    r"|would|should|about|if|happen\w*|count\w*|mean\w*|else|to|a|an|i)\b)[a-z]+)\b",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_QUESTION: Final = re.compile(
    r"\?|^\W*(?:(?:and|so|but|ok|okay)\W+)*(?:who|whom|whose|which|what|where|when|why|how|is|are|was|were|do"
    r"|does|did|has|have|had|can|could|will|would|should|tell|explain|describe|define|state|show|give)\b",
    re.IGNORECASE,
)
"""A text that asks for something."""
_PLACE: Final = re.compile(
    r"\b(?:where|capital|city|continent|country|county|island|place|state|town|village)\b", re.IGNORECASE
)
_THERE: Final = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?=\W*$)", re.IGNORECASE)
_REFUSAL: Final = re.compile(
    r"\bI (?:do not|don['\u2019]t|can['\u2019]t|cannot|could not|couldn['\u2019]t|am not able)\b"
    r"|\b(?:I['\u2019]m|I am) (?:afraid|unable)",
    re.IGNORECASE,
)
"""An answer that does not answer."""
_REMARK: Final = re.compile(
    r"\W*(?:ok|okay|thanks?(?: you)?|great|nice|cool|got it|i see|perfect|yes|no|sure|please|wow|good|hello"
    r"|hi|hm+|right|still \w+)\b[^?]{0,24}$",
    re.IGNORECASE,
)
"""A query that changes no subject."""
_ARTICLE: Final = re.compile(r"^\W*(?:(?:the|a|an|yes|no|sure|well|[a-z]+ly,)\b\W*)*", re.IGNORECASE)
_TOPICAL: Final = frozenset({"", "of", "with", "for", "about"})
"""Prepositions after which stands what a query is about."""
_CHANGES_SUBJECT: Final = re.compile(
    r"\W*(?:and|what about|how about)\s+(?:(?:the|an?|my|our)\s+)?"
    r"([\w'\u2019-]+(?: [\w'\u2019-]+){0,3})\W*\?",
    re.IGNORECASE,
)
"""A query that is another subject for the question before: "And solar panels?"."""
_COMPARES: Final = re.compile(r"\b(?:compare|between|versus|vs|difference|or)\b", re.IGNORECASE)
_VERBS: Final = frozenset(
    ("does", "goes", "happens", "has", "means", "needs", "says", "takes", "uses", "was", "works")
)
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
    text = _resolve_pronouns(question, recent)
    if text != question:
        return ResolvedQuestion(text=text, depends=True, name=name)
    continued = _replace_number(last.meaning or last.query, question)
    return ResolvedQuestion(text=continued or question, depends=True, whole=continued is not None, name=name)


def depends_on_history(question: str) -> bool:
    """Say whether a question has a sign that it can only be understood from what was said before."""
    short = len(extract_terms(question)) < _FEWEST_WORDS and len(question.split()) < _SENTENCE_WORDS
    return short or _SIGN.search(question) is not None


def says_little(answer: str) -> bool:
    """Say whether an answer is too short to say what it is about, as "Got it." and "Yes, in 1912." are."""
    return len(answer.split()) <= SHORT_ANSWER


def _resolve_pronouns(question: str, recent: Sequence[Turn]) -> str:
    """Replace each pronoun whose meaning is certain by what it means."""
    meant: dict[str, str | None] = {}
    skipped = [match.span() for match in _NOTHING.finditer(question)]
    own = find_mentions(question)
    asks = _QUESTION.search(question) is not None
    personal = any(word.lower() in _PERSONAL for word in _PRONOUN.findall(question))

    def replaced(match: re.Match[str]) -> str:
        word = match[1].lower()
        several = word == "them" and question[: match.start()].endswith("of ")  # things said one by one
        if several or any(start <= match.start() < end for start, end in skipped):
            return match[0]
        if word not in _PERSONAL and not asks:
            return match[0]  # in a statement it may be anything that was said
        between = (question[one.start + len(one.text) : match.start()] for one in own if _fits(one, word))
        if any(_CLAUSE.search(text) for text in between):
            return match[0]  # it may mean what the clause before names
        group = next(iter(sorted(_MEANT[word] - {"unknown", "person"})))
        if group not in meant:
            # What somebody did need not concern what the conversation is about.
            meant[group] = _find_antecedent(word, recent, kept_only=personal and word not in _PERSONAL)
        antecedent = meant[group]
        return match[0] if antecedent is None else _decline(antecedent, match)

    return _PRONOUN.sub(replaced, question)


def _decline(name: str, match: re.Match[str]) -> str:
    """Return a name in the case of the pronoun that it takes the place of."""
    after = re.match(r"\s+([a-z][\w-]*)", match.string[match.end() :])
    owns = after is not None and after[1] not in STOP_WORDS | read_words("no_noun")
    word = match[1].lower()
    return f"{name}'s" if word in _POSSESSIVE or (word == "her" and owns) else name


def _fits(mention: Mention, pronoun: str) -> bool:
    kinds = _MEANT[pronoun]
    if pronoun in {"they", "them", "their", "theirs"}:
        return mention.kind == "many" or (mention.is_name and mention.kind in kinds)
    return mention.kind in kinds or (mention.kind == "place" and "thing" in kinds)


def _find_antecedent(pronoun: str, recent: Sequence[Turn], *, kept_only: bool) -> str | None:
    """Return what a pronoun means if that is certain: what the latest exchange that fits is about.

    With ``kept_only``, only what the same pronoun meant there.
    """
    people: dict[str, Kind] = {}
    for turn in recent:
        calls = {word.lower() for word in _PRONOUN.findall(turn.query)}
        for one in find_mentions(turn.meaning or turn.query):
            known = one.kind in {"he", "she", "person"}
            meant = calls & _PERSONAL and one.text not in turn.query  # it took the place of "he" or "she"
            if one.is_name and (known or meant):
                people[fold(one.text)] = one.kind if known else "person"
    for turn in list(reversed(recent))[:_MOST_BACK]:
        query, answer = (
            (turn.meaning or turn.query)[:LONGEST_QUESTION],
            (turn.response or "")[:LONGEST_QUESTION],
        )
        if _REMARK.match(query) and not any(one.is_name for one in find_mentions(query)):
            continue
        if not is_english(f"{query} {answer}"):
            return None
        kept = _find_kept(pronoun, turn, people)
        if kept_only:
            return kept
        found = kept or _find_topic(pronoun, query, answer, people, resolved=turn.meaning is not None)
        person = pronoun in _PERSONAL
        if found and not person and not kept and not _is_asked_about(query, found):
            return None
        if found is not None or not (person or query.rstrip().endswith("?")):
            return found or None
    return None


def _is_asked_about(query: str, found: str) -> bool:
    """Say whether a query asks about a thing, or states something of one that it names.

    What somebody has, and the common nouns of a statement or a wish, are not what it is about.
    """
    if _QUESTION.search(query):
        own = rf"\b(?:my|our|your) (?:\w+ )?{re.escape(found.removeprefix('the '))}\b"
        return not found.islower() or re.search(own, query, re.IGNORECASE) is None
    return not found.islower() and query.find(found) > 0


def _find_kept(pronoun: str, turn: Turn, people: Mapping[str, Kind]) -> str | None:
    """Return what the same pronoun meant in the query of a turn, if it had it."""
    if turn.meaning is None or not _MEANT[pronoun] & {
        kind for word in _PRONOUN.findall(turn.query) for kind in _MEANT[word.lower()] - {"unknown", "person"}
    }:
        return None
    fresh = [one for one in find_mentions(turn.meaning) if one.is_name and one.text not in turn.query]
    fitting = [
        one for one in fresh if _fits(replace(one, kind=people.get(fold(one.text), one.kind)), pronoun)
    ]
    return fitting[0].text if len(fitting) == 1 else None


def _find_topic(
    pronoun: str, query: str, answer: str, people: Mapping[str, Kind], *, resolved: bool
) -> str | None:
    """Return what an exchange is about: "" if that is not certain, None if it is about nothing that fits."""
    if _REFUSAL.search(answer) or re.fullmatch(r"[^.!?]*\?\s*", answer):
        return ""  # nothing was said of what the query is about
    changed = _CHANGES_SUBJECT.fullmatch(query)
    if changed and pronoun not in _PERSONAL and not find_mentions(query):
        several = pronoun in {"they", "them", "their", "theirs"}
        return changed[1] if changed[1].endswith("s") == several else ""
    asked, said = (
        [
            one
            for mention in find_mentions(text)
            if _fits(one := replace(mention, kind=people.get(fold(mention.text), mention.kind)), pronoun)
        ]
        for text in (query, answer)
    )
    said = _drop_other_gender(said, answer, pronoun)
    asked = _drop_other_gender(asked, f"{query}\n{answer}", pronoun)
    common = set(re.findall(r"\b[^\W\d_A-Z]\w+", query))
    said = [one for one in said if not (one.opens and one.text.lower() in common)]
    names = _merge([one for one in asked if one.is_name])
    names = [one for one in names if " " in one.text or not one.opens] or names
    answered = [one for one in said if one.is_name and not any(_same(one, other) for other in names)]
    if says_little(answer):
        answered = []  # it may be no name: see find_answered_name
        asks = _WHO if pronoun in _PERSONAL else _WHICH
        if asks.search(query) and not _WHO_IS.search(query):
            return ""
    if pronoun in _PERSONAL:
        return _choose_person(query, names, _merge(answered), asked, answer)
    if pronoun in {"they", "them", "their", "theirs"}:
        return _choose_group(query, names, asked, answer)
    return _choose_thing(query, names, answered, asked, answer, resolved=resolved)


def _choose_person(
    query: str, names: Sequence[Mention], answered: Sequence[Mention], asked: Sequence[Mention], answer: str
) -> str | None:
    sure = [one for one in answered if one.kind != "unknown"]
    exact = [one for one in answered if one.kind in {"he", "she"}]
    first = min(answered, key=lambda one: one.start, default=None)
    if _WHO_IS.search(query) and len(names) == 1:
        return names[0].text
    if _WHO.search(query):
        if len(exact) == 1 or first is not None:
            return (exact if len(exact) == 1 else answered)[0].text
        return "" if names else None
    known = [one for one in names if one.kind != "unknown"]
    if len(known) == 1 and (not sure or _speaks_of(answer, known[0])):
        return known[0].text
    if known:
        return ""
    if len(sure) == 1 or (sure and _opens_with(answer, sure[0])):
        return sure[0].text
    known_well = [one for one in names if " " in one.text or (not answered and _opens_with(answer, one))]
    if not sure and len(names) == 1 and not names[0].before and known_well:
        return names[0].text
    if first is not None and not sure and " " in first.text and _opens_with(answer, first):
        return first.text
    roles = [one for one in asked if not one.is_name]
    if sure or len(roles) > 1:
        return ""
    return f"the {roles[0].text}" if roles else None


def _choose_group(query: str, names: Sequence[Mention], asked: Sequence[Mention], answer: str) -> str | None:
    if _WHO.search(query):
        return ""
    bare = _find_bare_topic(query, answer)
    if bare is not None:
        return bare if _is_plural(bare, answer) else ""
    if len(names) == 1 and _opens_with(answer, names[0]):
        asked = [one for one in asked if f"{one.text} {names[0].text}" not in query]  # "the band Abba"
    several = [one for one in asked if one.kind == "many"]
    spoken = [one for one in several if one.is_name or _speaks_of(answer, one)]
    if len(spoken) == 1 and len(names) <= 1:
        return spoken[0].text if spoken[0].is_name else f"the {spoken[0].text}"
    plain = [
        word
        for word in re.findall(r"\b[a-z]{4,}s\b", query)
        if len(extract_terms(word)) and word not in _VERBS
    ]
    if len(plain) == 1 and not names and stem_plural(plain[0]) in map(stem_plural, tokenize(answer)):
        return str(plain[0])
    if (
        len(names) == 1
        and not several
        and not plain
        and (not names[0].opens or _opens_with(answer, names[0]))
    ):
        return names[0].text
    return "" if several or names or plain else None


def _choose_thing(
    query: str,
    names: Sequence[Mention],
    answered: Sequence[Mention],
    asked: Sequence[Mention],
    answer: str,
    *,
    resolved: bool,
) -> str | None:
    first = min(answered, key=lambda one: one.start, default=None)
    asks_which = _WHICH.search(query) is not None and not _WHO.search(query) and not resolved
    phrases = [one for one in asked if not one.is_name]
    if re.match(r"(?:I|We) [^?]*\b(?:an?|my|our) [\w -]+ (?:about|of|on) (?:the )?[A-Z][^?]*$", query):
        return ""  # "a talk about the Marshall Plan"
    if asks_which and first is not None and first.head in map(stem_plural, tokenize(answer)[:4]):
        return first.text
    bare = _find_bare_topic(query, answer)
    if bare is not None and not _is_plural(bare, answer):
        return bare
    direct = [one for one in names if one.before in _TOPICAL and one.kind != "place"]
    near = [one for one in answered if one.sentence < 2 and not one.before and one.kind == "thing"]
    rivals = [one for one in near if not one.opens or " " in one.text]
    if len(direct) > 1 and not _COMPARES.search(query):
        direct = [one for one in direct if _opens_with(answer, one)]
    if len(direct) == 1:
        called = _WHO.search(query) and re.search(r"\bit\b", re.split(r"(?<=[.!?])\s", answer)[0])
        sure = resolved or _opens_with(answer, direct[0]) or not rivals or called
        return _extend(direct[0], query, answer) if sure else ""
    spoken = [
        one
        for one in phrases
        if not one.before and _speaks_of(answer, one) and not _is_one_of_two(one.text, query)
    ]
    if len(spoken) == 1 and not rivals and not names:
        return f"the {spoken[0].text}"
    nothing = not phrases and not names and re.search(r"\bits?\b", query, re.IGNORECASE)
    if nothing and first is not None and _opens_with(answer, first):
        return first.text
    return "" if phrases or rivals or names else None


def _drop_other_gender(mentions: Sequence[Mention], text: str, pronoun: str) -> list[Mention]:
    """Leave out people whom the text calls by the other pronoun, in their sentence or the next."""
    if pronoun in {"it", "its", "they", "them", "their", "theirs"}:
        return list(mentions)
    other = r"\b(?:she|her|hers)\b" if pronoun in {"he", "him", "his"} else r"\b(?:he|him|his)\b"

    def is_other(name: str) -> bool:
        parts = [part[part.find(name) :] for part in text.split("\n") if name in part]
        after = [" ".join(re.split(r"(?<=[.!?])\s", part, maxsplit=2)[:2]) for part in parts]
        return any(re.search(other, one, re.IGNORECASE) for one in after)

    return [one for one in mentions if one.kind not in {"person", "unknown"} or not is_other(one.text)]


def _merge(mentions: Iterable[Mention]) -> list[Mention]:
    """Return distinct names, a part of a longer one as the longer one."""
    kept: list[Mention] = []
    for one in mentions:
        at = next((at for at, other in enumerate(kept) if _same(one, other)), None)
        if at is None:
            kept.append(one)
        elif len(one.text) > len(kept[at].text):
            kept[at] = one
    return kept


def _same(one: Mention, other: Mention) -> bool:
    mine, others = set(tokenize(one.text)), set(tokenize(other.text))
    return mine <= others or others <= mine


def _speaks_of(answer: str, mention: Mention) -> bool:
    """Say whether an answer has the last word of a mention, in either number."""
    return mention.head in {stem_plural(word) for word in tokenize(answer)}


def _opens_with(answer: str, mention: Mention) -> bool:
    """Say whether the first thing that an answer names is this one."""
    words = [stem_plural(word) for word in tokenize(answer)]
    said = [one for one in find_mentions(answer) if one.is_name]
    return (bool(said) and _same(said[0], mention)) or mention.head in words[:3]


def _is_one_of_two(text: str, query: str) -> bool:
    """Say whether a query names something beside another, as in "a tent and a stove"."""
    beside = rf"\b{re.escape(text)} (?:and|or)\b|\b(?:and|or) (?:\w+ )?{re.escape(text)}\b"
    return re.search(beside, query, re.IGNORECASE) is not None


def _extend(mention: Mention, query: str, answer: str) -> str:
    """Return a name with the noun after it, where the answer has both: "the Riemann hypothesis"."""
    after = re.search(rf"{re.escape(mention.text)} ([a-z]{{3,}})\b", query)
    if after and re.search(rf"{re.escape(mention.text)} {after[1]}\b", answer):
        return f"the {mention.text} {after[1]}"
    return mention.text


def _find_bare_topic(query: str, answer: str) -> str | None:
    """Return the words with which an answer begins, if the query asks about them, as it writes them."""
    words = [(match[0], stem_plural(fold(match[0]))) for match in re.finditer(r"[\w'\u2019-]+", query)]
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", answer)[:2]:
        said = [stem_plural(word) for word in tokenize(_ARTICLE.sub("", sentence))]
        stem = said[0] if said and len(extract_terms(said[0])) == 1 else None
        at = next((at for at, (_, one) in enumerate(words) if one == stem), None)
        if stem is None or at is None:
            continue
        phrase = next((one for one in find_mentions(query) if not one.is_name and one.head == stem), None)
        if phrase is not None:
            return f"the {phrase.text}" if not phrase.before else None
        end = at + 1
        while end < len(words) and said[end - at : end - at + 1] == [words[end][1]]:
            end += 1
        text = " ".join(word for word, _ in words[at:end])
        if _is_one_of_two(text, query):
            return None
        return None if text[0].isupper() and end == at + 1 else text
    return None


def _is_plural(topic: str, answer: str) -> bool:
    """Say whether words name several things: by their ending, unless the answer goes on with "is"."""
    single = rf"\b{re.escape(topic)} (?:is|was|has|does)\b"
    return topic.endswith("s") and not re.search(single, answer, re.IGNORECASE)


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
    if not used <= meant or _NOTHING.search(question) or any(one.is_name for one in find_mentions(question)):
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

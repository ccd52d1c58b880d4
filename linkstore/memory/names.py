"""The names in a text, in English as people type it, without a model; entities, answers, and who speaks.

Entities are names, and things with names of their own, such as files and modules. A finder of your own, such
as one over spaCy or GLiNER, takes the place of :func:`find_entities` by ``ConversationMemory(entities=...)``.

People whose turns begin with their name, as in "Ann: I have moved to Oslo", are speakers. Half of the turns
contain the name of a speaker, so the name would outweigh the rest of a question. So a question is searched
for without the names of speakers, and the turns of the speaker that it names count more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from operator import attrgetter
from typing import Final, NamedTuple
from unicodedata import category

from linkstore.core.lexical import extract_terms
from linkstore.core.plans import Plan, Resolve, ask
from linkstore.core.text import STOP_WORDS, UNSPACED, find_words, fold, tokenize
from linkstore.embeddings.wordllama import load_wordllama_tokenizer

LONGEST_TEXT: Final = 8_000
"""Characters of a text that are searched for what it names."""
FEWEST_WORDS: Final = 5
"""A text with fewer words is taken for English; two less of a question, which has more of them."""
ENGLISH_SHARE: Final = 0.15
"""The least share of stop words in an English text."""
MOST_CAPITALS: Final = 0.25
"""With a larger share of capitals inside sentences they are those of nouns, and of no names."""
_WORD: Final = (
    r"(?:Mr|Mrs|Ms|Dr|Prof|St)\.|(?:[A-Z]\.)+(?=\s?[A-Z])"
    r"|[^\W\d_][\w\u2019'&-]*(?:\.(?=\w)[\w\u2019'-]+)*|\d[\w.,/-]*\w|\d"
)
_TOKEN: Final = re.compile(rf"({_WORD})|(\n+|[¿¡]|[.!?:;…](?=\s|$)|[^\w\s])")
_ENDS: Final = ".!?:;…\n¿¡"
"""Signs that end a sentence."""


@cache
def read_words(name: str) -> frozenset[str]:
    """Return one of the lists of words beside this module."""
    text = files("linkstore.memory").joinpath("words.txt").read_text(encoding="utf-8")
    lists = dict(line.split(": ", 1) for line in text.splitlines())
    return frozenset(word.replace("_", " ") for word in fold(lists[name]).split())


@cache
def compile_words(name: str) -> re.Pattern[str]:
    """Return the pattern of the words of a list, each as a whole, in any case."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(read_words(name))))})\b", re.IGNORECASE)


class Name(NamedTuple):
    """A name as a text writes it, without a determiner and a possessive ending, and where it begins."""

    text: str
    start: int

    @property
    def places(self) -> range:
        """Its characters in the text."""
        return range(self.start, self.start + len(self.text))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    first: bool

    @property
    def folded(self) -> str:
        return re.sub(r"'(?:s|d|ll|m|re|ve)$", "", fold(self.text)).rstrip(".")

    @property
    def is_word(self) -> bool:
        return self.text[0].isalnum()

    @property
    def is_capital(self) -> bool:
        """Whether it may belong to a name: it has a capital or a digit in it."""
        return (self.text[0].isdigit() or any(map(str.isupper, self.text))) and self.folded not in (
            "i",
            "we",
            "you",
        )


def is_english(text: str) -> bool:
    """Say whether a text has as many of the commonest words as English has, or has too few words to say."""
    words = tokenize(text[:LONGEST_TEXT])
    foreign = sum(word in read_words("foreign") for word in words)
    fewest = FEWEST_WORDS - 2 * text.rstrip().endswith("?")
    if len(words) < fewest:
        return not foreign
    return sum(word in STOP_WORDS for word in words) - foreign >= ENGLISH_SHARE * len(words)


def find_names(text: str) -> tuple[Name, ...]:
    """Return the names in a text, in order.

    Capitals say little in a text of another language: its first words are in no list, and in German every
    noun has one. There only what stands inside a sentence is a name, and if many words have capitals, only
    what has a digit or further capitals.
    """
    tokens = list(_split(text[:LONGEST_TEXT]))
    inside = [token.text for token in tokens if token.is_word and not token.first]
    plain = sum(word.istitle() for word in inside) > MOST_CAPITALS * len(inside)
    english = is_english(text)
    loud = sum(map(str.isupper, inside)) > 0.5 * len(inside)  # "WHERE IS MY PARCEL"
    names: list[Name] = []
    at = 0
    while at < len(tokens):
        end = _end_name(tokens, at)
        if end is None:
            at += 1
            continue
        first_word = tokens[at].text
        written = text[tokens[at].start : tokens[end - 1].start + len(tokens[end - 1].text)]
        is_plain_word = first_word.istitle() and not written[-1].isdigit()
        unsure = not english and (tokens[at].first or (plain and is_plain_word))
        if not unsure and not (loud and first_word.isupper() and first_word.isalpha()):
            names.append(Name(re.sub(r"['\u2019]s$", "", written), tokens[at].start))
        at = end
    return tuple(names)


def _split(text: str) -> Iterator[_Token]:
    """Yield the words and signs of a text; the first words of its sentences may have capitals as any may."""
    first = True
    for match in _TOKEN.finditer(text):
        if match[1]:
            word = match[1].rstrip("\u2019'-.") if len(match[1]) > 2 else match[1]
            yield _Token(word, match.start(), first)
            first = False
        else:
            sign = match[2][0]
            yield _Token(sign, match.start(), first)
            first = sign in _ENDS or (first and sign in "*_\"'“”„«(-•")


def _end_name(tokens: list[_Token], at: int) -> int | None:
    """Return where the name that begins at a token ends, or None if none does."""
    first_token = tokens[at]
    if not first_token.is_word or not first_token.is_capital or first_token.folded in read_words("times"):
        return None
    if (
        first_token.text[0].isdigit()
        and not any(map(str.isalpha, first_token.text))
        and "-" not in first_token.text
    ):
        return None
    end = at + 1
    while end < len(tokens) and end - at < _MOST_NAME_WORDS:
        after = tokens[end]
        if not after.is_word or tokens[end - 1].text.endswith(("'s", "\u2019s")):
            break
        if after.is_capital and after.folded not in read_words("times"):
            end += 1
        elif after.folded in read_words("particles") and end + 1 < len(tokens) and tokens[end + 1].is_capital:
            end += 2
        else:
            break
    if first_token.first and (
        first_token.folded in read_words("openers") or first_token.folded in STOP_WORDS
    ):
        return None  # a name after it is found by itself
    if (
        first_token.first
        and end == at + 1
        and ((first_token.text.istitle() and _says_something(tokens, end)) or _is_common(first_token.folded))
    ):
        return None
    return None if all(token.folded in STOP_WORDS for token in tokens[at:end]) else end


def _says_something(tokens: list[_Token], end: int) -> bool:
    """Say whether the first word of a sentence is all of it, as "Lovely!", or has an object: "Undo it"."""
    if end == len(tokens) or tokens[end].text in _ENDS:
        return True
    return tokens[end].folded in read_words("objects")


@lru_cache(maxsize=4096)
def _is_common(word: str) -> bool:
    """Say whether a word is so common in lower case that the tokenizer of the default embedding knows it."""
    is_common = load_wordllama_tokenizer().token_to_id(f"\u2581{word}") is not None
    return is_common and word not in read_words("given")


SPEAKER: Final = "speaker"
"""The kind of the links by which turns are found by who speaks, and the key of metadata with the name."""
EntityFinder = Callable[[str], Sequence[str]]
"""Gives the entities that a text mentions, in order."""
MOST_ENTITIES: Final = 32
"""How many entities of a turn are linked, the first ones."""
_IDENTIFIER: Final = re.compile(
    r"(?<![\w./-])(?=[\w./-]*[a-z])"
    r"(?:[\w-]+(?:[./_-][\w-]+)*\.(?:[a-z][a-z0-9]{1,4})|\w+(?:\.\w+)+|\w*\d\w*(?:-\w+)+"
    r"|[^\W_]+(?:_[^\W_]+)+)(?![\w/-])"
)
"""A file, a function, a part number: words joined by dots, underscores, or hyphens with a digit in them."""


def find_entities(text: str) -> tuple[str, ...]:
    """Find the entities that a text mentions, in order, each once.

    An entity is a name ("Ada Lovelace", "PEP 615"), or an identifier ("sys.monitoring",
    "Q4-2023-report.pdf"). Common words are none, nor are parts of these, and a name has no possessive ending.
    """
    names = [Name(match[0], match.start()) for match in _IDENTIFIER.finditer(text[:LONGEST_TEXT])]
    taken = {at for name in names for at in name.places}
    names += [name for name in find_names(text) if taken.isdisjoint(name.places)]
    ordered = sorted(names, key=attrgetter("start"))
    return select_distinct_names([name.text for name in ordered if any(map(str.isalpha, name.text))])


def has_words(text: str) -> bool:
    """Say whether a text has anything to recall or to remember."""
    return any(map(str.isalnum, text))


def select_distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a word in them, each spelling once, the first :data:`MOST_ENTITIES`."""
    spelled: dict[str, str] = {}
    for name in names:
        if has_words(name):
            spelled.setdefault(fold(name), " ".join(name.split()))
    return tuple(spelled.values())[:MOST_ENTITIES]


_SIZES: Final = (2, 3, 4)
"""Characters of a name in a text without spaces."""
_MOST_PIECES: Final = 96
"""How many words and parts of words of a question are looked up."""
_LONGEST_NAME: Final = 60
_MOST_WORDS: Final = 3
"""Words of a name."""
_HEAD: Final = re.compile(rf"([^:\uff1a\n]{{1,{_LONGEST_NAME}}})(?::\s|\uff1a)")
"""What stands before a colon; nothing need follow a wide one."""
_UNSPACED: Final = re.compile(f"[{UNSPACED}]+")


def read_speaker(query: str) -> str | None:
    """Return the speaker of a turn: the name before a colon at its beginning, or None.

    Its words begin with capitals, where their script has capitals.
    """
    match = _HEAD.match(query)
    words = match[1].split(" ") if match else []
    return " ".join(words) if 0 < len(words) <= _MOST_WORDS and all(map(_may_be_name, words)) else None


def _may_be_name(word: str) -> bool:
    if not word[:1].isalpha() or word[0].islower():
        return False
    return all(
        character.isalnum() or character in ".'\u2019-_\u30fb\u200c\u200d" or category(character)[0] == "M"
        for character in word
    )


def make_speaker_tags(owner: str, speaker: str | None) -> tuple[str, ...]:
    """Return the tags by which a speaker is found: the whole name, and each word of it."""
    words = [] if speaker is None else [speaker, *speaker.split()]
    return tuple(dict.fromkeys(f"{owner}#{fold(word)}" for word in words))


def find_named_speakers(question: str, owner: str) -> Plan[list[str]]:
    """Return the words of a question that name a speaker to an owner, in full or in part.

    Words with capitals are looked up, in scripts without capitals all words, and where words are not told
    apart by spaces, all short parts of the text.
    """
    candidates = [re.sub(r"['\u2019]s$", "", match[0]) for match in find_words(question)]
    words = [word for word in candidates if not word[0].islower() and extract_terms(word)]
    for run in _UNSPACED.findall(question):
        words += (run[at : at + size] for at in range(len(run)) for size in _SIZES)
    words = list(dict.fromkeys(words))[:_MOST_PIECES]
    groups = yield from ask(Resolve(tags=tuple((SPEAKER, f"{owner}#{fold(word)}") for word in words)))
    return [word for word, group in zip(words, groups.tolist(), strict=True) if group >= 0]


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


_ASKS: Final = re.compile(r"\b(?:who|whom|whose|which|what|where|name)\b", re.IGNORECASE)
_MOST_NAME_WORDS: Final = 6
_PREPOSITION: Final = re.compile(r"^(?:(?:at|in|the|under) )+(?=[^\W\d_])", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?\u2026]\s*$|\b(?:i|me|my|please|us|we|you|your)\b", re.IGNORECASE)
_OPENING: Final = ".!?:;\n\"'\u201c\u201e\u00ab(-*\u2022"
"""Signs after which any word has a capital."""


def find_answered_name(query: str, response: str | None) -> str | None:
    """Return the name that an answer may be, or None if nothing was asked for or it names nothing.

    A query asks by a word like "which", or by key words that are no sentence ("capital of australia").
    """
    name = _PREPOSITION.sub("", (response or "").strip().rstrip(".! "))
    words = name.split(" ")
    if len(words) > _MOST_NAME_WORDS or not (_ASKS.search(query) or not _SENTENCE.search(query)):
        return None
    if not all(_is_proper(word) or word in read_words("inside") for word in words):
        return None
    return name if name[0].isupper() and _is_proper(words[-1]) else None


def _is_proper(word: str) -> bool:
    return (word[:1].isupper() or word[:1].isdigit()) and "\n" not in word


def has_name(texts: Iterable[str], name: str) -> bool:
    """Say whether a text has this name: in its spelling, and not only where every word has a capital."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        text[: match.start()].rstrip(" ")[-1:] not in ("", *_OPENING)
        for text in texts
        for match in pattern.finditer(text)
    )

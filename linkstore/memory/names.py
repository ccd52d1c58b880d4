"""The names in a text, in English as people type it, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from linkstore.core.text import STOP_WORDS, fold, tokenize
from linkstore.embeddings.wordllama import load_wordllama_tokenizer

LONGEST_TEXT: Final = 8_000
"""Characters of a text that are searched for what it names."""
FEWEST_WORDS: Final = 5
"""A text with fewer words is taken for English; two less of a question, which has more of them."""
ENGLISH_SHARE: Final = 0.15
"""The least share of stop words in an English text."""
MOST_CAPITALS: Final = 0.25
"""With a larger share of capitals inside sentences they are those of nouns, and of no names."""
_MOST_NAME_WORDS: Final = 6
_WORD: Final = (
    r"(?:Mr|Mrs|Ms|Dr|Prof|St)\.|(?:[A-Z]\.)+(?=\s?[A-Z])"
    r"|[^\W\d_][\w\u2019'&-]*(?:\.(?=\w)[\w\u2019'-]+)*|\d[\w.,/-]*\w|\d"
)
_TOKEN: Final = re.compile(rf"({_WORD})|(\n+|[.!?:;…](?=\s|$)|[^\w\s])")
PARTICLES: Final = frozenset(("da", "de", "del", "der", "di", "du", "la", "le", "of", "van", "von", "y", "&"))
"""Words inside names."""
_WEAK_INSIDE: Final = frozenset(("and", "for", "the", "to", "without"))
"""Words that stand more often between two names than inside one."""
_QUANTIFIERS: Final = frozenset(("a", "an", "any", "each", "every", "no", "some", "what", "which"))
"""Words before which a word in capitals is of a kind, and no name: "which PEP"."""
_DETERMINERS: Final = frozenset(
    ("a", "an", "the", "my", "our", "your", "his", "her", "their", "its", "this", "that", "these", "those")
)


_OBJECTS: Final = frozenset(("both", "it", "them", "me", "us"))
_SPEAKERS: Final = frozenset(("i", "we", "you"))
"""Those who speak; "I'd" and "We'll" are no parts of names."""


@cache
def read_words(name: str) -> frozenset[str]:
    """Return one of the lists of English words beside this module."""
    for line in files("linkstore.memory").joinpath("english.txt").read_text(encoding="utf-8").splitlines():
        key, _, listed = line.partition(": ")
        if key == name:
            return frozenset(map(fold, listed.split()))
    raise KeyError(name)


class Name(NamedTuple):
    """A name as a text writes it, without a determiner and a possessive ending, and where it begins."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    sentence: int
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
        return (self.text[0].isdigit() or any(map(str.isupper, self.text))) and self.folded not in _SPEAKERS


def stem_plural(word: str) -> str:
    """Return a word without a plural ending."""
    if len(word) > 3 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_english(text: str) -> bool:
    """Say whether a text has as many of the commonest words as English has, or has too few words to say."""
    words = tokenize(text[:LONGEST_TEXT])
    fewest = FEWEST_WORDS - 2 * text.rstrip().endswith("?")
    return len(words) < fewest or sum(one in STOP_WORDS for one in words) >= ENGLISH_SHARE * len(words)


def find_names(text: str) -> tuple[Name, ...]:
    """Return the names in a text, in order.

    Capitals say little in a text of another language: its first words are in no list, and in German every
    noun has one. There only what stands inside a sentence is a name, and if many words have capitals, only
    what has a digit or further capitals.
    """
    tokens = list(_split(text[:LONGEST_TEXT]))
    inside = [one.text for one in tokens if one.is_word and not one.first]
    plain = sum(one.istitle() for one in inside) > MOST_CAPITALS * len(inside)
    english = is_english(text)
    loud = sum(map(str.isupper, inside)) > 0.5 * len(inside)  # "WHERE IS MY PARCEL"
    found: list[Name] = []
    at = 0
    while at < len(tokens):
        end = _end_name(tokens, at)
        if end is None:
            at += 1
            continue
        one = tokens[at].text
        unsure = not english and (tokens[at].first or (plain and one.istitle()))
        if not unsure and not (loud and one.isupper() and one.isalpha()) and _is_of_one(tokens, at, end):
            written = text[tokens[at].start : tokens[end - 1].end]
            found.append(Name(re.sub(r"['\u2019]s$", "", written), tokens[at].start))
        at = end
    return tuple(found)


def _split(text: str) -> Iterator[_Token]:
    sentence, first = 0, True
    for match in _TOKEN.finditer(text):
        if match[1]:
            word = match[1].rstrip("\u2019'-.") if len(match[1]) > 2 else match[1]
            yield _Token(word, match.start(), match.start() + len(word), sentence, first)
            first = False
        elif match[2][0] in ".!?:;…\n":
            if not first:
                sentence += 1
            first = True
        else:
            yield _Token(match[2][0], match.start(), match.end(), sentence, first)
            first = first and match[2][0] in "*_\"'“”„«(-•"


def _end_name(tokens: list[_Token], at: int) -> int | None:
    """Return where the name that begins at a token ends, or None if none does."""
    one = tokens[at]
    if not one.is_word or not one.is_capital or one.folded in read_words("times"):
        return None
    if one.text[0].isdigit() and not any(map(str.isalpha, one.text)) and "-" not in one.text:
        return None
    end = at + 1
    while end < len(tokens) and end - at < _MOST_NAME_WORDS and tokens[end].sentence == one.sentence:
        after = tokens[end]
        gap = tokens[end - 1].text.lower() in read_words("titles")
        if not after.is_word or tokens[end - 1].text.endswith(("'s", "\u2019s")):
            break
        if after.is_capital and after.folded not in read_words("times") and (not after.first or gap):
            end += 1
        elif (
            after.folded in PARTICLES | _WEAK_INSIDE
            and end + 1 < len(tokens)
            and tokens[end + 1].is_capital
            and (after.folded not in _WEAK_INSIDE or _is_joined(tokens, end))
        ):
            end += 2
        else:
            break
    if one.first and (one.folded in read_words("openers") or one.folded in STOP_WORDS):
        return None  # a name after it is found by itself
    if one.first and end == at + 1 and _says_something(tokens, end):
        return None
    if end == at + 1 and (
        one.folded in read_words("origins") or (at and tokens[at - 1].folded in _QUANTIFIERS)
    ):
        return None
    doubtful = (
        one.first and one.folded not in read_words("no_person") and one.folded not in read_words("titles")
    )
    return None if doubtful and (end == at + 1 or one.text.isalpha()) and _is_common(one.folded) else end


def _says_something(tokens: list[_Token], end: int) -> bool:
    """Say whether the first word of a sentence is all of it, as "Lovely!", or has an object: "Undo it"."""
    if end == len(tokens) or tokens[end].sentence != tokens[end - 1].sentence:
        return True
    return tokens[end].folded in _DETERMINERS | _OBJECTS


@lru_cache(maxsize=4096)
def _is_common(word: str) -> bool:
    """Say whether a word is so common in lower case that the tokenizer of the default embedding knows it."""
    known = load_wordllama_tokenizer().token_to_id(f"\u2581{word}") is not None
    return known and word not in read_words("given")


def _is_joined(tokens: list[_Token], end: int) -> bool:
    """Say whether a weak word stands inside a name, as in "Couch to 5K" and "Doctors Without Borders"."""
    word = tokens[end].text
    return word[0].isupper() or (word in {"to", "the"} and tokens[end + 1].text[0].isdigit())


def _is_of_one(tokens: list[_Token], at: int, end: int) -> bool:
    """Say whether words with capitals name one thing, and no kind, as "a traditional IRA" does."""
    if all(token.folded in STOP_WORDS for token in tokens[at:end]):
        return False
    before = [one.folded for one in tokens[max(0, at - 3) : at] if one.sentence == tokens[at].sentence]
    role = before[-1:] and before[-1] in read_words("roles")  # "the band Abba"
    if not role and len(before) > 1 and before[-2] in {"a", "an", "the"} and _is_noun(tokens, at - 1):
        return False
    return not (before[-1:] and before[-1] in {"a", "an", "my", "our", "your"} and _is_noun(tokens, end))


def _is_noun(tokens: list[_Token], at: int) -> bool:
    """Say whether a word may go on with a phrase, as a noun does."""
    return (
        at < len(tokens)
        and tokens[at].is_word
        and not tokens[at].first
        and not tokens[at].is_capital
        and tokens[at].folded not in read_words("no_noun") | STOP_WORDS
        and not tokens[at].text.endswith(("ly", "ing", "ed"))
    )

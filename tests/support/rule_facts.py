"""Facts without a model, by rules for English: the baseline of the benchmark of the reader.

A fact is a sentence. A pronoun that opens it is replaced by the subject of its section. Its key elements are
names, and runs of words between stop words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.agents.facts import Extracted, Fact
from linkstore.core.calls import run_in_thread
from linkstore.core.lexical import get_document_name
from linkstore.core.processes import infrequent_gc
from linkstore.core.text import STOP_WORDS, fold, tokenize

SHORTEST: Final = 3
"""Sentences of fewer words say nothing alone."""


class RuleExtractor:
    """Extracts facts with rules for English, without a model.

    Each sentence of at least three words is a fact. A pronoun that opens it is replaced by the subject of its
    section: the title of the page, else the heading. Its key elements are names (words with capitals), then
    the other phrases between stop words, then the subject.
    """

    @property
    def name(self) -> str:
        """The rules, with their version."""
        return "rules 1"

    def prompt_tokens(self, chunks: Sequence[Document]) -> int:
        """None: no model is called."""
        return 0

    def extract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """The facts of each chunk."""
        with infrequent_gc():
            return [facts_of(chunk) for chunk in chunks]

    async def aextract(self, chunks: Sequence[Document]) -> list[Extracted]:
        """The facts of each chunk."""
        return await run_in_thread(self.extract, chunks)


def facts_of(chunk: Document) -> tuple[Fact, ...]:
    """The facts of a chunk, in order."""
    subject = subject_of(chunk.metadata)
    headings, pronouns = _heading_words(chunk), pronouns_of(chunk.page_content)
    found = dict.fromkeys(
        with_subject(sentence, subject, pronouns)
        for sentence in sentences(chunk.page_content)
        if len(words := sentence.split()) >= SHORTEST and not _is_heading(words, headings)
    )
    own = [subject] if subject else []
    return tuple(Fact(text=text, key_elements=(*key_elements(text), *own)) for text in found)


def _is_heading(words: Sequence[str], headings: frozenset[str]) -> bool:
    """Whether a sentence has words of title and headings only; most have another among the first ones."""
    return all(map(headings.issuperset, map(_folded, words)))


@lru_cache(maxsize=1 << 16)
def _folded(word: str) -> tuple[str, ...]:
    return tokenize(word)


def _heading_words(chunk: Document) -> frozenset[str]:
    """The words of title and headings; a sentence of nothing else is a heading."""
    title, headings = chunk.metadata.get("title"), chunk.metadata.get("headings")
    names = [title, *(headings if isinstance(headings, list) else ())]
    return frozenset(word for name in names if isinstance(name, str) for word in tokenize(name))


LONGEST: Final = 600
"""Longer sentences, in characters, are tables and code; they are cut between words."""
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|Mt|Ft|Jr|Sr|No|Nos|Vol|vs|etc|cf|ca|c|b|d|approx|Inc|Ltd|Co|Corp"
    r"|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov|Sen|Rep|Pres|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Fig|Eq)"
    r"|\b[a-z]\.[a-z])\.$"
)
"""A full stop that does not end a sentence, at the end of the text before it."""
_END: Final = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s+[\"'\u201c\u2018(\[]*[A-Z0-9\u00c0-\u00de\u0391-\u042f])"
)
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*\u2022#|]|\d+[.)])\s)")
_MARK: Final = re.compile(r"^(?:[-*\u2022#|]+|\d+[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text in order, white space folded; lines of a list are sentences of their own."""
    for block in _BLOCK.split(text):
        folded = _MARK.sub("", " ".join(block.split()))
        for sentence in _of_block(folded):
            yield from _in_parts(sentence)


def _of_block(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        sentence = text[start : end.end()]
        if not _ABBREVIATED.search(sentence[-12:]):
            yield sentence.strip()
            start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def _in_parts(sentence: str) -> Iterator[str]:
    """The sentence, in parts of at most :data:`LONGEST` characters."""
    while len(sentence) > LONGEST:
        at = sentence.rfind(" ", 1, LONGEST)
        at = at if at > 0 else LONGEST
        yield sentence[:at]
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence


_BRACKET: Final = re.compile(r"\s*\([^()]*\)\s*$")
_OPENING: Final = re.compile(
    r"^(?P<before>(?:(?:In|On|At|By|After|Before|During|Since|Until)\b[^,.;]{1,60},\s+)?)"
    r"(?P<pronoun>He|She|It|They|His|Her|Its|Their|he|she|it|they|his|her|its|their)\b(?!')"
)
_EXPLETIVE: Final = re.compile(
    r"(?:is|was|has been|may be|seems|appears|takes|took)\s+(?:\w+\s+){0,3}?"
    r"(?:that|to|whether|why|who|when)\b"
)
"""What follows an "it" that stands for nothing: "It is known that …"."""
_FAMILIES: Final = (("he", "his", "him"), ("she", "her", "hers"), ("it", "its"), ("they", "their", "them"))
_ANY: Final = re.compile(
    rf"(?<![\w'\u2019])(?:{'|'.join(word for family in _FAMILIES for word in family)})(?![\w'\u2019])"
)
_OWNING: Final = frozenset({"his", "its", "their"})
_LONGEST_SUBJECT: Final = 80


def subject_of(metadata: Mapping[str, Any]) -> str | None:
    """The subject of a chunk: the title of its page, else its innermost heading; None without either."""
    title = metadata.get("title")
    name = title if isinstance(title, str) and title.strip() else get_document_name(metadata)
    short = " ".join(_BRACKET.sub("", name).split())
    return short if 0 < len(short) <= _LONGEST_SUBJECT else None


def pronouns_of(text: str) -> frozenset[str]:
    """The pronouns that mean what a text is about: those of the gender and number that it uses most."""
    counts = Counter(_ANY.findall(text.lower()))
    return frozenset(max(_FAMILIES, key=lambda family: sum(counts[one] for one in family)))


def with_subject(sentence: str, subject: str | None, pronouns: frozenset[str]) -> str:
    """The sentence with a pronoun at its opening replaced; unchanged if it names the subject itself.

    Only the first pronoun, at the start or after an opening such as "In 1962,", most often means what the
    section is about. Those further on are left, since they more often mean something in the sentence.
    """
    found = _OPENING.match(sentence)
    if found is None or subject is None or subject in sentence:
        return sentence
    pronoun, rest = found["pronoun"].lower(), sentence[found.end() :]
    if pronoun not in pronouns:
        return sentence
    if pronoun == "it" and _EXPLETIVE.match(rest.lstrip()):
        return sentence
    owns = pronoun in _OWNING or (pronoun == "her" and _owns(rest))
    if pronoun == "her" and not owns:
        return sentence
    return f"{found['before']}{subject}{chr(39) + 's' if owns else ''}{rest}"


def _owns(rest: str) -> bool:
    """Whether a noun follows, so that "her" is a possessive."""
    return re.match(r"\s+[A-Za-z]", rest) is not None


MOST: Final = 5
"""Key elements of a sentence: names first, then phrases of several words, then words."""
_ENOUGH: Final = 2
"""Single words are key elements only of sentences with fewer names and phrases."""
MOST_WORDS: Final = 4
"""Words of the longest phrase."""
_LONG: Final = 8
"""Maximum number of words of a name."""
_SMALL: Final = frozenset({"of", "the", "de", "da", "di", "du", "la", "le", "van", "von", "der", "del"})
"""Words that may stand inside a name."""
_ENGLISH: Final = """
    across along also among around became become began begin called came early first former found given got
    had known large last late later made major make makes many member members named near new next
    number often old part released second several since still take taken three took two used usually well went
    year years
"""
_COMMON: Final = frozenset(_ENGLISH.split())
"""Words that too many facts contain to be key elements."""
_TOKEN: Final = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_PHRASE: Final = re.compile(rf"N(?:[cs]{{0,2}}N)*|[TCc]{{2,{MOST_WORDS}}}|T")
"""In the sorts of a sentence's words, one letter each: a name, several words, or a single one that tells."""
_NAME: Final = re.compile("N(?:[cs]{0,2}N)*")
_FURTHER: Final = re.compile("[cs]{0,2}N")


def key_elements(sentence: str) -> list[str]:
    """The most telling names and phrases, each once: names, phrases of several words, words."""
    words = _TOKEN.findall(sentence)
    sorts = "".join(map(_sort, words))
    names: dict[str, None] = {}
    several: dict[str, None] = {}
    single: dict[str, None] = {}
    end = 0
    while found := _PHRASE.search(sorts, end):
        start, end = found.span()
        if sorts[start] == "N":
            end = end if end - start <= _LONG else _cut(sorts, start)
            names[" ".join(words[start:end])] = None
        elif end - start > 1:
            several[" ".join(words[start:end])] = None
        else:
            single[words[start]] = None
    telling = len(names) + len(several)
    most = MOST if telling < _ENOUGH else min(MOST, telling)
    return [*names, *several, *single][:most]


def _cut(sorts: str, start: int) -> int:
    """Where a name ends that would be too long: where it has eight words or more."""
    head = _NAME.match(sorts, start, start + _LONG - 1)
    last = _FURTHER.match(sorts, start if head is None else head.end())
    return start + _LONG if last is None else last.end()


@lru_cache(maxsize=1 << 16)
def _sort(word: str) -> str:
    """The sort of a word, or of a sign.

    ``N`` is part of a name, ``c`` and ``s`` may stand inside one, ``T`` is a key element alone; ``T``, ``C``
    and ``c`` are parts of phrases; other words, and signs, are a full stop.
    """
    if not (word[0].isalnum() or word[0] == "_"):
        return "."
    folded = fold(word)
    if folded in STOP_WORDS:
        return "s" if word in _SMALL else "."
    if word[0].isupper():
        return "N"
    if folded in _COMMON:
        return "."
    if word in _SMALL:
        return "c"
    return "T" if _tells(word) else "C"


def _tells(word: str) -> bool:
    """Whether a word can be a key element alone: no verb in the past or progressive, no number but a year."""
    if word.isdecimal():
        return len(word) == 4
    return len(word) > 3 and not word.endswith(("ed", "ing", "ly"))

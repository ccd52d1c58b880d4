"""Mentions: links a text to the documents whose titles it contains.

All names are found in one pass over a text (A. Aho and M. Corasick, CACM 18(6), 1975). The text is searched
as one byte string in which every word stands between two spaces of its own: ``"Mercury, Nevada"`` becomes
`` mercury  nevada ``. A search for `` nevada `` then finds only whole words, and finds phrases whatever
characters are between their words in the text.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from unicodedata import category

import numpy as np
from ahocorasick_rs import BytesAhoCorasick, MatchKind
from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.core.text import STOP_WORDS, find_words, fold, tokenize
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import Review

_IN_WORDS: Final = string.ascii_lowercase + string.digits + "_'"
_ASCII_TO_WORDS: Final = bytes(
    ord(low) if (low := chr(code).lower()) in _IN_WORDS else ord(" ") for code in range(128)
)
_TO_WORDS: Final = _ASCII_TO_WORDS + bytes(range(128, 256))
_LONE_APOSTROPHE: Final = re.compile(rb"'(?:(?![a-z0-9_\x80-\xff])|(?<![a-z0-9_\x80-\xff]'))")
_JAMO: Final = range(0x1100, 0x1200)
"""Hangul letters, which join their neighbours when text is normalised."""
SHORTEST_NAME: Final = 4
"""Letters of the shortest name, spaces between words among them."""
MOST_NAME_WORDS: Final = 8
"""Words of the longest name; the length of what a query is searched for."""
LONGEST_NAME_WORD: Final = 64
"""Longer runs of letters are hashes, encoded data and the like."""
_BRACKET: Final = re.compile(r"\s*\([^()]*\)\s*$")


@lru_cache(maxsize=2)
def make_haystack(text: str) -> bytes:
    """Return the words of ``linkstore.core.text.tokenize``, each between two spaces, as UTF-8, empty if none.

    Most texts are folded character by character, several times as fast as by ``tokens``. Texts in which
    characters change in number or join their neighbours are left to ``tokens``. The last texts are
    remembered, so that several extractors may ask one after the other.
    """
    words = _space_words(text)
    found = [word.encode() for word in tokenize(text)] if words is None else words.split()
    return b" %b " % b"  ".join(found) if found else b""


def make_needle(words: str) -> bytes:
    """Return the bytes that find these words, which are joined by single spaces, in a haystack."""
    return b" %b " % words.replace(" ", "  ").encode()


def find_written_forms(text: str, matches: Sequence[tuple[int, int]]) -> Iterator[str | None]:
    """Yield how the words found in a text's haystack are written in the text.

    Args:
        text: As it was given to :func:`make_haystack`.
        matches: (start, end) of whole words in the haystack, ascending and apart.

    Yields:
        For each the stretch of the text, or None where the words of the text and those of the haystack
        do not correspond, as with letters that fold into several words.
    """
    if not matches:
        return
    words = make_haystack(text)
    starts, ends, sure = _find_places(text)
    aligned = sure or len(starts) == words.count(b"  ") + 1
    at, number = 0, 0
    for start, end in matches:
        number += words.count(b"  ", at, start + 1)
        at = start
        last = number + words.count(b"  ", start, end)
        written = text[starts[number] : ends[last]] if aligned else None
        if written is not None and not sure and make_haystack(written) != words[start:end]:
            written = None
        yield written


@lru_cache(maxsize=2)
def _space_words(text: str) -> bytes | None:
    """Fold a text, with a space for each character outside of words, or return None if that is not enough."""
    if not text.isascii():
        for character in set(text):
            if character > "\x7f":
                plain = _fold_character(character)
                if plain is None:
                    return None
                text = text.replace(character, plain)
    words = text.encode().translate(_TO_WORDS)
    return _LONE_APOSTROPHE.sub(b" ", words) if b"'" in words else words


@lru_cache(maxsize=1 << 16)
def _fold_character(character: str) -> str | None:
    """Return the character that another folds to, a space outside of words, None if it folds to several."""
    if character == "\u2019":
        return "'"
    if category(character).startswith("M") or ord(character) in _JAMO:
        return None
    folded = fold(f"a{character}a")[1:-1]
    if not folded:
        return None
    if not tokenize(folded):
        return "'" if folded == "'" else None if "'" in folded else " "
    return folded if len(folded) == 1 else None


def _find_places(text: str) -> tuple[Sequence[int], Sequence[int], bool]:
    """Return the start and end of each word of a text, and whether its haystack surely has the same words."""
    words = _space_words(text)
    if words is None:
        spans = [match.span() for match in find_words(text)]
        return [start for start, _ in spans], [end for _, end in spans], False
    octets = np.frombuffer(b" %b " % words, dtype=np.uint8)
    inside = octets != ord(" ")
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    if len(words) != len(text):  # from octets to characters: those that continue one do not count
        edges -= np.cumsum((octets & 0xC0) == 0x80)[edges]
    return edges[::2], edges[1::2], True  # type: ignore[return-value]


class Automaton:
    """Finds any of a set of names in a text, however many there are, in time that follows the text alone.

    Args:
        names: Words joined by single spaces.
    """

    __slots__ = ("_names", "_search")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Final = tuple(names)
        self._search: Final = BytesAhoCorasick(
            [make_needle(name) for name in self._names], matchkind=MatchKind.LeftmostLongest
        )

    def find(self, text: str) -> list[tuple[str, int, int]]:
        """Return (name, start, end) in the text's haystack, from left to right, the longest at each place."""
        matches = self._search.find_matches_as_indexes(make_haystack(text))
        return [(self._names[number], start, end) for number, start, end in matches]

    def occurs(self, text: str) -> bool:
        """Say whether the text contains any of the names."""
        return bool(self._names) and bool(self._search.find_matches_as_indexes(make_haystack(text)))


def find_names(document: Document) -> tuple[str, ...]:
    """Return the names of a document's page, from ``metadata["title"]`` and the list ``metadata["aliases"]``.

    Values that are not strings are passed over: metadata is the user's own.
    """
    metadata = document.metadata
    aliases = metadata.get("aliases")
    given: Iterable[Any] = (metadata.get("title"), *(aliases if isinstance(aliases, list | tuple) else ()))
    found = (make_name_tag(name) for name in given if isinstance(name, str))
    return tuple(dict.fromkeys(tag for tag in found if tag is not None))


@lru_cache(maxsize=4096)
def make_name_tag(name: str) -> str | None:
    """Return the tag of a name, or None for one too trivial to mean anything in a text.

    A bracket at the end tells names apart and does not belong to them: "Mercury (planet)" is called
    "Mercury". The rest is folded into words by ``linkstore.core.text.tokenize``, joined by single spaces.
    It must have at least 4 letters and at most 8 words, one of which is neither a stop word nor a number.
    """
    words = tokenize(_BRACKET.sub("", name))
    tag = " ".join(words)
    if len(tag) < SHORTEST_NAME or len(words) > MOST_NAME_WORDS or max(map(len, words)) > LONGEST_NAME_WORD:
        return None
    return tag if any(word not in STOP_WORDS and not word.isnumeric() for word in words) else None


def bears_names(document: Document) -> bool:
    """Say whether links to the names of its page lead to this document.

    Of a page that was divided into chunks, only the first chunk bears the names. Its ``metadata["url"]`` is
    that of the page, and its id is not numbered (``page~2``). Otherwise all chunks of a page would bear its
    name.
    """
    page = document.metadata.get("page")
    if not isinstance(page, str):
        return True
    return document.metadata.get("url", page) == page and f"{page}~" not in (document.id or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionSettings:
    """The rules for mentions.

    Args:
        shared: A name that more documents bear names none of them.
        weight: Of the links that texts have to the names in them.
        kind: Kind of the links. Queries are searched for names of the kind ``"mention"``.

    Raises:
        ExtractionError: If a setting is out of range.
    """

    shared: int = 5
    weight: float = 1.0
    kind: str = "mention"

    def __post_init__(self) -> None:
        if self.shared < 1 or not 0 < self.weight <= 1 or not self.kind:
            raise ExtractionError("shared must be at least 1, weight above 0 and up to 1, kind not empty")


DEFAULTS: Final = MentionSettings()


class MentionExtractor:
    """Titles and aliases named in texts: ``observe`` all documents, then ``extract`` each.

    **Names.** A document bears its ``metadata["title"]`` and each of the list ``metadata["aliases"]``,
    without a bracket at the end: "Mercury (planet)" is called "Mercury". It has an incoming link for each,
    whose tag is the words of the name (``text.tokenize``) joined by spaces. Of a page in chunks, the
    first bears them. Left out, because they would be found everywhere and mean nothing:

    - names of fewer than 4 letters, and of stop words and numbers alone ("It", "1984", "The The");
    - names of more than 8 words, which are sentences.

    **Mentions.** A text has an outgoing link for each name in it, as whole words, whatever stands between
    them; the label is how the first of them is written. Of names that overlap the longest counts, reading
    from left to right: "New York City" does not mention "New York". Not a mention is

    - a single word written without a capital, in scripts that have capitals: "mercury", "time";
    - a name that more than ``shared`` documents bear, since it leads anywhere;
    - a name that only the document itself, or its own page, bears.

    Args:
        settings: What counts as a mention.
    """

    source = Document

    def __init__(self, settings: MentionSettings = DEFAULTS) -> None:
        self._settings = settings
        self._bearers: Counter[str] = Counter()
        self._known: Automaton | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kind of the links."""
        return frozenset({self._settings.kind})

    def keys(self, document: Document) -> frozenset[str]:
        """Return the names that lead to the document."""
        return frozenset(find_names(document)) if bears_names(document) else frozenset()

    def observe(self, sources: Iterable[Document]) -> None:
        """Learn the names of these documents. A document observed twice bears its names twice."""
        self._known = None
        for source in sources:
            self._bearers.update(self.keys(source))

    def review(self, before: Mapping[str, int], after: Mapping[str, int]) -> Review:
        """Find the texts that hold a name whose count of bearers changed, by an automaton of just those."""
        names = {*before, *after}
        changed = Automaton(sorted(name for name in names if before.get(name, 0) != after.get(name, 0)))

        def may_have_changed(document: Document) -> bool:
            self.observe((document,))
            return changed.occurs(document.page_content)

        return may_have_changed

    def extract(self, source: Document) -> tuple[Link, ...]:
        """Return the document's names, then the names in its text, each in order of appearance."""
        own = find_names(source)
        links = []
        if bears_names(source):
            links += [Link.incoming(kind=self._settings.kind, tag=name) for name in own]
        alone = {name for name in own if self._bearers[name] <= 1}
        links += [
            Link.outgoing(kind=self._settings.kind, tag=name, label=label, weight=self._settings.weight)
            for name, label in self._mentions(source.page_content).items()
            if name not in alone
        ]
        return tuple(links)

    def _mentions(self, text: str) -> dict[str, str]:
        """Return the names that a text mentions, with how the first mention is written."""
        if self._known is None:
            shared = self._settings.shared
            self._known = Automaton(name for name, count in self._bearers.items() if count <= shared)
        matches = self._known.find(text)
        written = find_written_forms(text, [(start, end) for _, start, end in matches])
        mentions: dict[str, str] = {}
        for (name, _, _), label in zip(matches, written, strict=True):
            if name not in mentions and (" " in name or _is_name(label)):
                mentions[name] = label or name
        return mentions


def _is_name(word: str | None) -> bool:
    """Say whether a word is written as a name is: with a capital, or in a script that has none."""
    return word is not None and (word != word.lower() or word == word.upper())

"""Words and BM25: the definition of lexical search for every backend.

Source: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations
and Trends in Information Retrieval 3(4), 2009; with the floor that SQLite's FTS5 gives the inverse document
frequency, so that a word in most documents never counts against one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, filterfalse
from typing import Any, Final, TypeVar
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from linkstore.core.text import STOP_WORDS, split_unspaced, tokenize

K1: Final = 1.2
"""How soon more of the same word stops counting."""
B: Final = 0.75
"""How much a document's length counts, from 0 to 1."""
MIN_IDF: Final = 1e-6
NAME_COUNTS: Final = 2
"""How often the words of a document's name count, in addition to those of its text."""
OTHER_NAME_FIELDS: Final = ("name", "label", "alias", "aliases", "names")
"""Metadata fields that hold another name of a document, or a list of names."""
_NUMBER: Final = re.compile(r"\d{5,20}|(?=\d*[^\W\d])(?=\w*\d\w*\d\w*\d)\w{4,20}")
_ACCENTS: Final = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_INFLECTED: Final = re.compile("(?P<russian>[\u0430-\u044f\u0451]+)|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)")
"""Words whose letters say how to stem them. Those with a letter that Russian lacks are of other languages."""
POSTINGS: Final = 20_000
"""Maximum number of documents, in total, in which the words of a question are looked up."""
MAX_QUESTION_WORDS: Final = 128
"""Number of different words of a question that are looked up, the first ones."""
MAX_QUESTION_CHARACTERS: Final = 16_384
"""Number of characters of a question that are searched for words and names."""
MAX_WORD_LENGTH: Final = 64
"""Longer words, in characters, are ignored."""
Counts = TypeVar("Counts", float, npt.NDArray[np.float64])


def extract_terms(text: str) -> tuple[str, ...]:
    """Return the words that lexical search compares, in order: folded, without stop words.

    A possessive 's is dropped and so are apostrophes and the accents of Latin letters, which people often do
    not type. Russian and Greek words count by their stems. ``split_unspaced`` of :mod:`linkstore.core.text`
    says what becomes of scripts without spaces.
    """
    if not text:  # as most names are
        return ()
    words: Sequence[str] = tuple(filterfalse(STOP_WORDS.__contains__, tokenize(text)))
    joined = "".join(words)
    if "'" in joined:
        words = [word.removesuffix("'s").replace("'", "") if "'" in word else word for word in words]
    if not joined.isascii():
        bare = _ACCENTS.sub("", normalize("NFD", " ".join(words)))
        words = split_unspaced(normalize("NFC", bare).split(" "))
    if max(map(len, words), default=0) > MAX_WORD_LENGTH:
        words = [word for word in words if len(word) <= MAX_WORD_LENGTH]
    return tuple(words if joined.isascii() else map(_stem, words))


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Return the stem of a Russian or Greek word by Snowball, and any other word as it is."""
    match = _INFLECTED.fullmatch(word)
    if match is None:
        return word
    from Stemmer import Stemmer

    return str(Stemmer(match.lastgroup).stemWord(word)) or word  # a new one, since it has a state


def extract_question_terms(text: str) -> tuple[tuple[str, ...], int]:
    """Return the words of a question to look up, each once, in order, and how many more there are.

    Work for a question is bounded, however long it is: see :data:`MAX_QUESTION_WORDS` and
    :data:`MAX_QUESTION_CHARACTERS`, past which words are not counted.
    """
    asked = tuple(dict.fromkeys(extract_terms(text[:MAX_QUESTION_CHARACTERS])))
    return asked[:MAX_QUESTION_WORDS], max(0, len(asked) - MAX_QUESTION_WORDS)


def get_document_name(metadata: Mapping[str, Any]) -> str:
    """Return a document's name: the last of its ``headings``, else its ``title``, else an empty string."""
    headings = metadata.get("headings")
    name = headings[-1] if isinstance(headings, list) and headings else metadata.get("title")
    return name if isinstance(name, str) else ""


def get_last_id_part(id: str) -> str:
    """Return what stands behind the last ``/``, ``#`` or ``:`` of an id."""
    return id[max(id.rfind("/"), id.rfind("#"), id.rfind(":")) + 1 :]


def is_number(word: str) -> bool:
    """Say whether a word is a number by which a thing is known, and no amount or year.

    It has five digits, or three and a letter.
    """
    return _NUMBER.fullmatch(word) is not None


def list_other_names(metadata: Mapping[str, Any], id: str) -> list[str]:
    """Return the other names of a document: in :data:`OTHER_NAME_FIELDS`, and a number that ends its id.

    An id that is a number is found as it is.
    """
    names: list[str] = []
    for field in filter(metadata.__contains__, OTHER_NAME_FIELDS):
        value = metadata[field]
        names += [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]
    part = get_last_id_part(id)
    if part != id and is_number(part):
        names.append(part)
    return names


def extract_document_terms(text: str, metadata: Mapping[str, Any], id: str) -> tuple[str, ...]:
    """Return the words of a document: of its name, :data:`NAME_COUNTS` times, and of its text.

    Words of its other names are added that neither has, so that it is found by them; each counts once.
    """
    written = (*extract_terms(get_document_name(metadata)) * NAME_COUNTS, *extract_terms(text))
    others = dict.fromkeys(chain.from_iterable(map(extract_terms, list_other_names(metadata, id))))
    return (*written, *(term for term in others if term not in written)) if others else written


def inverse_frequency(documents: int, having: int) -> float:
    """Return the inverse document frequency of a word that ``having`` of the documents have."""
    return max(MIN_IDF, math.log((documents - having + 0.5) / (having + 0.5)))


def bm25_weight(count: Counts, length: Counts, average: float) -> Counts:
    """Return the weight of ``count`` times a word in a document of ``length`` words, for an average length.

    Counts and lengths may be float64 arrays, for many documents at once.
    """
    return (count * (K1 + 1.0)) / (count + K1 * (1 - B + B * length / average))


def select_affordable(having: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Return the words to look up, and those left out because too many documents have them.

    Words are taken rarest first, then by spelling, while the documents that have them add up to at most
    :data:`POSTINGS`, and the first is always taken. If it alone has more, an engine may look at only
    about as many of its documents, a random sample. Words that no document has are in neither list.

    Args:
        having: For each word of the question, in order, how many documents have it.
    """
    affordable: set[str] = set()
    total = 0
    for count, word in sorted(zip(having.values(), having, strict=True)):
        total += count
        if count and (total <= POSTINGS or not affordable):
            affordable.add(word)
    taken: list[str] = []
    left: list[str] = []
    for word, count in having.items():
        if count:
            (taken if word in affordable else left).append(word)
    return taken, left

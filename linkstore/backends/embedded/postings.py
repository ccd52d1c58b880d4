"""Lexical search within a scope: BM25 over only the documents that pass a filter.

FTS5's ``bm25()`` counts all documents. So this module reads the postings from FTS5's vocabulary table, which
omits deleted documents, and scores them as defined in :mod:`linkstore.lexical`. It adds up the terms of a
score in the same order as FTS5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import apsw
import numpy as np

from linkstore.lexical import POSTINGS, affordable, inverse_frequency, weight
from linkstore.vectors import Bools, Floats, Ints

_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_instance USING fts5vocab('main', 'word', 'instance')"
)
_INSTANCES: Final = "SELECT doc FROM temp.word_instance WHERE term = ?"
_PAGE: Final = 65_536


@dataclass(frozen=True, slots=True)
class Posting:
    """The documents that contain a word.

    Args:
        keys: (n,) document keys, ascending.
        counts: (n,) how often each document contains the word.
    """

    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class Scored:
    """Documents that contain at least one of the words.

    Args:
        keys: (n,) document keys, ascending.
        scores: (n,) BM25.
        left_out: Words that were not looked up, because too many documents contain them.
    """

    keys: Ints
    scores: Floats
    left_out: tuple[str, ...]


def score(
    connection: apsw.Connection,
    words: Sequence[str],
    holds: Callable[[Ints], Bools],
    documents: int,
    lengths: Callable[[Ints], Ints],
    average: Callable[[], float],
) -> Scored:
    """Score all documents of a scope that contain at least one of the words.

    Args:
        connection: In a read transaction.
        words: The words of the query, in its order.
        holds: Tells which documents are in the scope.
        documents: How many documents are in the scope.
        lengths: Returns how many words each document has.
        average: Returns how many words a document of the scope has on average.
    """
    connection.execute(_VOCABULARY)
    found = {word: _posting(connection, word, holds, POSTINGS + 1) for word in dict.fromkeys(words)}
    having = {word: min(len(posting.keys), POSTINGS + 1) for word, posting in found.items()}
    taken, left = affordable(having)
    postings = [
        found[word] if having[word] <= POSTINGS else _posting(connection, word, holds) for word in taken
    ]
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *(posting.keys for posting in postings)]))
    scores, sizes = np.zeros(len(keys)), lengths(keys).astype(np.float64)
    mean = average() if len(keys) else 1.0
    for posting in postings:
        at = np.searchsorted(keys, posting.keys)
        frequency = inverse_frequency(documents, len(posting.keys))
        scores[at] += frequency * weight(posting.counts.astype(np.float64), sizes[at], mean)
    return Scored(keys, scores.astype(np.float32), tuple(left))


def _posting(
    connection: apsw.Connection, word: str, holds: Callable[[Ints], Bools], enough: int | None = None
) -> Posting:
    """Read which documents of the scope contain a word, and stop after more than ``enough`` documents."""
    keys: list[Ints] = []
    counts: list[Ints] = []
    instances = chain.from_iterable(connection.execute(_INSTANCES, (word,)))
    while enough is None or sum(map(len, keys)) <= enough:
        page = np.fromiter(islice(instances, _PAGE), np.int64)
        if not len(page):
            break
        distinct, often = np.unique(page, return_counts=True)
        kept = holds(distinct)
        distinct, often = distinct[kept], often[kept]
        if keys and len(distinct) and keys[-1][-1] == distinct[0]:
            counts[-1][-1] += often[0]  # a page may end within a document
            distinct, often = distinct[1:], often[1:]
        if len(distinct):
            keys.append(distinct)
            counts.append(often)
    if not keys:
        return Posting(np.empty(0, np.int64), np.empty(0, np.int64))
    return Posting(np.concatenate(keys), np.concatenate(counts))

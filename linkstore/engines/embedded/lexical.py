"""Lexical search: the postings are those of SQLite's FTS5, the scores are computed here.

The index is given not the text but the words of each document, split by linkstore and joined by spaces.
FTS5's ``ascii`` tokenizer then splits only at these spaces: it keeps letters, digits, ``_`` and all
non-ASCII characters together. Its ``bm25()`` counts all documents, and a search those of its scope. So this
module reads the postings from FTS5's vocabulary table, which omits deleted documents, and adds up the scores.
Without a scope this takes about as long as ``bm25()``: see docs/decisions/0007-scopes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Floats, Ints, find_distinct, mark_first
from linkstore.core.lexical import (
    POSTINGS,
    bm25_weight,
    extract_document_terms,
    inverse_frequency,
    select_affordable,
)

WORD_TABLE: Final = (
    "CREATE VIRTUAL TABLE word USING"
    " fts5(terms, content='', contentless_delete=1, tokenize=\"ascii tokenchars '_'\");"
)
INSERT_WORDS: Final = "INSERT INTO word (rowid, terms) VALUES (?, ?)"
DELETE_WORDS: Final = "DELETE FROM word WHERE rowid = ?"
SELECT_UNINDEXED: Final = "SELECT id FROM document WHERE key NOT IN (SELECT id FROM word_docsize)"
_HAVING: Final = f"SELECT count(*) FROM (SELECT 1 FROM word WHERE word MATCH ? LIMIT {POSTINGS + 1})"
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.word_instance USING fts5vocab('main', 'word', 'instance')"
)
_INSTANCES: Final = (
    "SELECT group_concat(doc) FROM (SELECT doc FROM temp.word_instance WHERE term = ? LIMIT ? OFFSET ?)"
)
"""One row, which takes half the time of a row for each instance."""
_PAGE: Final = 65_536
_NO_ROWS: Final = np.empty(0, np.int64)


def rebuild_word_index(connection: apsw.Connection) -> None:
    """Rebuild the index of words from all documents."""
    connection.execute("DROP TABLE IF EXISTS word")
    connection.execute(WORD_TABLE)
    readable = "iif(json_valid(metadata), metadata, '{}')"
    documents = connection.execute(f"SELECT key, text, {readable}, id FROM document")
    connection.executemany(INSERT_WORDS, _make_word_rows(documents))


def _make_word_rows(documents: Iterable[Any]) -> Iterator[tuple[int, str]]:
    for key, text, metadata, id in documents:
        yield key, " ".join(extract_document_terms(text, orjson.loads(metadata), id))


def parse_length(size: bytes) -> int:
    """Return how many words a document has, given ``sz`` of the index's table of sizes: SQLite's varint."""
    length = 0
    for byte in size:  # 7 bits in each, highest first
        length = length << 7 | byte & 0x7F
    return length


class Posting(NamedTuple):
    """The documents of a scope that contain a word.

    Attributes:
        rows: (n,) their rows, ascending.
        counts: (n,) how often each contains the word.
        change: The last change of the state that was read.
        whole: Whether all of them were read.
    """

    rows: Ints
    counts: Ints
    change: int
    whole: bool

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return self.rows.nbytes + self.counts.nbytes


def score_documents(
    connection: apsw.Connection,
    words: Sequence[str],
    read: Callable[[str, int | None], Posting],
    documents: int,
    lengths: Callable[[Ints], Ints],
    average: float,
    *,
    scoped: bool,
) -> tuple[Ints, Floats, dict[str, int], list[str]]:
    """Score all documents of a scope that contain at least one of the words.

    Args:
        connection: In a read transaction.
        words: The words of the query, in its order.
        read: Returns the posting of a word, which may stop after more than so many documents.
        documents: How many documents are in the scope.
        lengths: Returns how many words each document has, by row.
        average: How many words a document of the scope has on average.
        scoped: Whether the scope hides anything. If not, FTS5 counts the documents of a large store.

    Returns:
        The rows (n,) of the documents, ascending; their scores (n,); how many documents of the scope have
        each word that was looked up; and the other words, which too many documents contain.
    """
    having: dict[str, int] = {}
    for word in words:
        # To count takes half as long as to read, but nearly all words of a small store are read anyway.
        if scoped or (documents <= POSTINGS and sum(having.values()) <= POSTINGS):
            having[word] = min(len(read(word, POSTINGS + 1).rows), POSTINGS + 1)
        else:  # words have no quotation marks
            having[word] = connection.execute(_HAVING, (f'"{word}"',)).get
    taken, left = select_affordable(having)
    nowhere = Posting(_NO_ROWS, _NO_ROWS, 0, whole=True)
    matches, counted, *_ = zip(nowhere, *map(read, taken, repeat(None)), strict=True)
    rows, where = find_distinct(np.concatenate(matches))
    counts = np.concatenate(counted).astype(np.float64)
    weights = bm25_weight(counts, lengths(rows).astype(np.float64)[where], average)
    sizes = list(map(len, matches))
    frequency = np.repeat(list(map(partial(inverse_frequency, documents), sizes)), sizes)
    scores = np.bincount(where, frequency * weights, len(rows))
    return (
        rows,
        scores.astype(np.float32),
        dict(zip(taken, map(having.__getitem__, taken), strict=True)),
        left,
    )


def read_posting(
    connection: apsw.Connection,
    word: str,
    locate: Callable[[Ints], tuple[Ints, Bools]],
    change: int,
    enough: int | None,
) -> Posting:
    """Read which documents of the scope contain a word.

    Args:
        connection: In a read transaction.
        word: The word.
        locate: Returns the rows of documents, by key, and which of them are in the scope.
        change: The last change of the state that the transaction sees.
        enough: Stop after more than so many documents.
    """
    connection.execute(_VOCABULARY)
    rows = counts = instances = _NO_ROWS
    limit, more = 64 * _PAGE if enough is None else _PAGE, True
    while more and (enough is None or len(rows) <= enough):
        listed = connection.execute(_INSTANCES, (word, limit, len(instances))).get or ""
        page = np.fromstring(listed, np.int64, sep=",")
        more = len(page) == limit
        instances = np.concatenate((instances, page))  # a page may end within a document
        limit = min(4 * limit, 64 * _PAGE)  # SQLite passes over earlier pages each time
        first = np.flatnonzero(mark_first(instances))
        rows, kept = locate(instances[first])
        rows, counts = rows[kept], (np.append(first[1:], len(instances)) - first)[kept]
    return Posting(rows, counts, change, not more)

"""Lexical search by SQLite's FTS5, whose ``bm25()`` computes the score that :mod:`linkstore.lexical` defines.

The index is given not the text but the words of each document, split by linkstore and joined by spaces.
FTS5's ``ascii`` tokenizer then splits only at these spaces: it keeps letters, digits, ``_`` and all
non-ASCII characters together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.lexical import POSTINGS, document_terms
from linkstore.vectors import Floats, Ints

TABLE: Final = (
    "CREATE VIRTUAL TABLE word USING"
    " fts5(terms, content='', contentless_delete=1, tokenize=\"ascii tokenchars '_'\");"
)
INSERT: Final = "INSERT INTO word (rowid, terms) VALUES (?, ?)"
DELETE: Final = "DELETE FROM word WHERE rowid = ?"
UNINDEXED: Final = "SELECT id FROM document WHERE key NOT IN (SELECT id FROM word_docsize)"
_HAVING: Final = f"SELECT count(*) FROM (SELECT 1 FROM word WHERE word MATCH ? LIMIT {POSTINGS + 1})"
_MATCHING: Final = "SELECT rowid, bm25(word) AS score FROM word WHERE word MATCH ? ORDER BY score LIMIT ?"
_LENGTHS: Final = "SELECT id, sz FROM word_docsize WHERE id BETWEEN ? AND ?"


def joined(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the words of a document, joined as the index expects them."""
    return " ".join(document_terms(text, metadata))


def index_all(connection: apsw.Connection) -> None:
    """Rebuild the index of words from all documents."""
    connection.execute("DROP TABLE IF EXISTS word")
    connection.execute(TABLE)
    documents = connection.execute("SELECT key, text, metadata FROM document WHERE json_valid(metadata)")
    connection.executemany(INSERT, _rows(documents))


def merge(connection: apsw.Connection) -> None:
    """Erase the words of removed documents from the index."""
    connection.execute("INSERT INTO word (word) VALUES ('optimize')")


def _rows(documents: Iterable[Any]) -> Iterator[tuple[int, str]]:
    for key, text, metadata in documents:
        yield key, joined(text, orjson.loads(metadata))


def having(connection: apsw.Connection, words: Sequence[str]) -> dict[str, int]:
    """Count the documents that contain each word, up to ``POSTINGS + 1``."""
    return {word: connection.execute(_HAVING, (_quoted(word),)).get for word in dict.fromkeys(words)}


def matching(connection: apsw.Connection, words: Sequence[str], limit: int) -> tuple[Ints, Floats]:
    """Return the keys (n,) and scores (n,) of the best ``limit`` documents with at least one of the words."""
    rows: list[Any] = connection.execute(_MATCHING, (" OR ".join(map(_quoted, words)), limit)).fetchall()
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    return keys, np.array([-score for _, score in rows], dtype=np.float32)


def lengths(connection: apsw.Connection, first: int, last: int) -> tuple[Ints, Ints]:
    """Return the document keys (n,) from ``first`` to ``last``, and how many words each document has (n,)."""
    rows: list[Any] = connection.execute(_LENGTHS, (first, last)).fetchall()
    keys = np.array([key for key, _ in rows], dtype=np.int64)
    sizes = np.array([len(packed) for _, packed in rows], dtype=np.int64)
    packed = np.frombuffer(b"".join([packed for _, packed in rows]), np.uint8).astype(np.int64)
    starts, found = np.cumsum(sizes) - sizes, np.zeros(len(rows), np.int64)
    for place in range(int(sizes.max(initial=0))):  # SQLite's varints: 7 bits per byte, highest first
        there = place < sizes
        found[there] = (found[there] << 7) | (packed[starts[there] + place] & 0x7F)
    return keys, found


def _quoted(word: str) -> str:
    return f'"{word}"'  # words contain no quotation marks

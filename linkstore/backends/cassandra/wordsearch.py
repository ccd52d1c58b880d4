"""Reads which documents contain the words of a query, starting with the rarest words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from linkstore.backends.cassandra import derived_cql
from linkstore.backends.cassandra.corpus import (
    MOST_COUNTED,
    Corpus,
    Totals,
    count,
    count_within,
    how_many,
    rows_a_part,
)
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.postingreading import PostingRow, Reading, by_state, place, read_within
from linkstore.backends.cassandra.postings import EVERY_DOCUMENT, HEAD, PARTS, Partition, partitions_of
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.lexical import LONGEST_WORD, POSTINGS, affordable
from linkstore.plans import Operation

FIRST: Final = 500
"""Number of documents of a word that are read first; enough to estimate the total within 5 %."""
_SURELY: Final = 0.75
"""The actual number is at least this share of the estimate: 5.5 standard errors below it."""


@dataclass(slots=True)
class WordRows:
    """The documents of a word that were read.

    Args:
        word: The word.
        parts: Rows by partition.
        unfinished: Partitions with more rows.
    """

    word: str
    parts: dict[Partition, list[PostingRow]]
    unfinished: set[Partition] = field(default_factory=set)

    @property
    def rows(self) -> Iterator[PostingRow]:
        """All rows that were read."""
        return (row for rows in self.parts.values() for row in rows)

    @property
    def read(self) -> int:
        """Number of rows that were read."""
        return sum(map(len, self.parts.values()))

    def having(self, share: float = 1.0) -> int:
        """Return the number of documents with the word.

        If not all were read, this is ``share`` of an estimate of the number.
        """
        low = 0
        for partition, rows in self.parts.items():
            if partition in self.unfinished:
                hashes = np.frombuffer(b"".join([head for head, _ in rows]), HEAD)["hash"]
                low += max(len(np.unique(hashes)), int(share * how_many(hashes, len(rows))))
            else:
                low += len({id for _, id in rows})
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The postings read for a question.

    Args:
        taken: The words that are looked up, in the order asked, each with its documents: with all of them
            unless it is the only one and too many have it.
        left: Words that were left out because too many documents have them.
        totals: Totals of all documents.
    """

    taken: Sequence[WordRows]
    left: Sequence[str]
    totals: Totals


class WordSearch:
    """Looks up words.

    :func:`linkstore.lexical.affordable` decides which words are left out. Their documents are not all read,
    because the first ones are enough to estimate the number. Of a word that is alone and has too many, the
    first ones are a random sample.

    Args:
        tables: The tables of the store.
        buckets: Number of partitions of a word.
        corpus: The number of documents.
    """

    def __init__(self, tables: Tables, buckets: int, corpus: Corpus) -> None:
        self._tables = tables
        self._buckets = buckets
        self._corpus = corpus

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[Lookup]:
        """Read the documents of the words that are not left out, and count all documents if necessary.

        Only documents of the scope are read and counted.
        """
        asked = [word for word in dict.fromkeys(words) if 0 < len(word) <= LONGEST_WORD]
        if not asked:
            return Lookup(taken=(), left=(), totals=Totals())
        everything = scope.everything
        found, totals = yield from (
            self._read_first(asked) if everything else self._read_first_within(asked, scope)
        )
        while True:
            having = {word: min(rows.having(_SURELY), POSTINGS + 1) for word, rows in found.items()}
            taken, left = affordable(having)
            unfinished = [
                rows for word in taken if (rows := found[word]).unfinished and rows.read <= POSTINGS
            ]
            if not unfinished:
                return Lookup(taken=[found[word] for word in taken], left=left, totals=totals)
            yield from (
                self._read_more(unfinished) if everything else self._read_more_within(unfinished, scope)
            )

    def _read_first(self, words: Sequence[str]) -> Operation[tuple[Mapping[str, WordRows], Totals]]:
        """Read the first documents of each word, and the count of all."""
        totals, a_part = self._corpus.known(), rows_a_part(self._buckets)
        limits = dict.fromkeys(words, -(-FIRST // self._buckets))
        if totals is None:
            limits[EVERY_DOCUMENT] = a_part
        keys = [(word, one) for word in limits for one in partitions_of(word, self._buckets)]
        text = derived_cql.read_first_postings(self._tables)
        answers = yield from self._read(
            [Statement(cql=text, values=(*at, word, limits[word])) for word, at in keys]
        )
        found = {word: WordRows(word, {}) for word in limits}
        for (word, at), rows in zip(keys, answers, strict=True):
            found[word].parts[at] = by_state(rows)
            if len(rows) == limits[word]:
                found[word].unfinished.add(at)
        every = found.pop(EVERY_DOCUMENT, None)
        if every is not None:
            totals = count([[head for head, _ in rows] for rows in every.parts.values()], a_part)
            self._corpus.learn(totals)
        return found, totals or Totals()

    @property
    def _a_part(self) -> int:
        """How many more documents of a partition are read at once: of all, enough to leave the word out."""
        return POSTINGS // self._buckets + 1

    def _read_more(self, words: Sequence[WordRows]) -> Operation[None]:
        """Read more documents of words: all, or as many as a search reads at most."""
        keys = [(rows, at) for rows in words for at in sorted(rows.unfinished)]
        text, limit = derived_cql.read_next_postings(self._tables), self._a_part
        answers = yield from self._read(
            [
                Statement(cql=text, values=(*at, rows.word, *place(rows.parts[at][-1]), limit))
                for rows, at in keys
            ]
        )
        for (rows, at), more in zip(keys, answers, strict=True):
            rows.parts[at] += by_state(more)
            if len(more) < limit:
                rows.unfinished.discard(at)

    def _read_first_within(
        self, words: Sequence[str], scope: Scope
    ) -> Operation[tuple[Mapping[str, WordRows], Totals]]:
        """Read the first documents of each word, and the count of all, within a scope."""
        limit = -(-FIRST // self._buckets)
        readings = [Reading(word, at, limit) for word in words for at in partitions_of(word, self._buckets)]
        yield from read_within(self._tables, readings, scope)
        found = {word: WordRows(word, {}) for word in words}
        for one in readings:
            found[one.word].parts[one.partition] = one.rows
            if one.more:
                found[one.word].unfinished.add(one.partition)
        return found, (yield from self._totals_within(scope))

    def _totals_within(self, scope: Scope) -> Operation[Totals]:
        """Return the number of documents in a scope, counting them unless the number is known."""
        totals = self._corpus.known(scope.condition)
        if totals is None:
            a_part, parts = rows_a_part(self._buckets), partitions_of(EVERY_DOCUMENT, self._buckets)
            readings = [Reading(EVERY_DOCUMENT, at, a_part) for at in parts]
            yield from read_within(self._tables, readings, scope, MOST_COUNTED // (PARTS * self._buckets))
            totals = count_within(readings)
            self._corpus.learn(totals, scope.condition)
        return totals

    def _read_more_within(self, words: Sequence[WordRows], scope: Scope) -> Operation[None]:
        """Read more documents of words, as :meth:`_read_more`, within a scope."""
        keys = [(rows, at) for rows in words for at in sorted(rows.unfinished)]
        readings = [Reading(rows.word, at, self._a_part, last=rows.parts[at][-1]) for rows, at in keys]
        yield from read_within(self._tables, readings, scope)
        for (rows, at), one in zip(keys, readings, strict=True):
            rows.parts[at] += one.rows
            if not one.more:
                rows.unfinished.discard(at)

    def _read(self, statements: Sequence[Statement]) -> Operation[list[list[Any]]]:
        answers: list[list[Any]] = yield Requests(statements=tuple(statements), what="look words up")
        return answers

"""Lexical search: statistics, postings of the rarest words first, BM25, confirmed documents.

The number of documents and their average length, as counted by one client.

Reads which documents contain the words of a query, starting with the rarest words.

Lexical search in a store that indexes words, and an error in one that does not.

Documents with any of some words: scored from the postings, confirmed by reading the documents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from linkstore.core.arrays import Ints
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.lexical import (
    MAX_WORD_LENGTH,
    POSTINGS,
    bm25_weight,
    inverse_frequency,
    select_affordable,
)
from linkstore.core.plans import Lexical, LexicalMatches, Operation, finish_ranking, rank_best
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.postings import (
    EVERY_DOCUMENT,
    EVERY_DOCUMENT_SHARDS,
    POSTING_HEAD,
    DocumentWords,
    PostingReading,
    ReadPosting,
    WordPartition,
    compute_stamp,
    list_partitions,
    locate_posting,
    read_postings_within,
    split_states,
)
from linkstore.engines.cassandra.reading import MetDocuments
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import DocumentRow
from linkstore.engines.cassandra.scopes import Scope
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.cassandra.tables import StoreSettings
from linkstore.errors import CapabilityError, FilterError

MAX_ALWAYS_COUNTED: Final = 1_000
"""Up to this many documents are counted again for every query."""
COUNT_LIFETIME: Final = 60.0
"""For more documents, a count stays valid for this many seconds."""
COUNT_SAMPLE_SIZE: Final = 20_000
"""More documents than about this many are not counted but estimated, from a sample of this size."""
MAX_COUNTED: Final = 100_000
"""To count the documents of a scope, at most this many are read; beyond that, the count is an estimate."""
MAX_REMEMBERED_COUNTS: Final = 1_000
"""For how many scopes the last count is kept."""
MAX_SCOPE_CHECKS: Final = 10_000
"""A change is followed by at most this many checks of a document against a scope, about 10 µs each."""
_HASH_RANGE: Final = float(1 << 64)
CountedDocument = tuple[str, int]
"""A document: its metadata without links, as JSON, and its number of words."""


@dataclass(frozen=True, slots=True)
class CorpusTotals:
    """Totals over all documents.

    Args:
        documents: Number of documents.
        words: Number of words in all documents.
    """

    documents: float = 0.0
    words: float = 0.0

    @property
    def average(self) -> float:
        """Average number of words in a document."""
        return self.words / self.documents if self.words > 0 and self.documents > 0 else 1.0


class CorpusStatistics:
    """The last count, updated when this client writes.

    Threads may use it without a lock. At worst, a write of one thread is missing until the next count.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[Condition, CorpusTotals, float]] = {}

    def known(self, scope: Condition = EVERYTHING) -> CorpusTotals | None:
        """Return the last count of the documents in a scope, or None if it is not recent enough."""
        last = self._last.get(scope.key)
        if last is None:
            return None
        _, totals, until = last
        return totals if totals.documents > MAX_ALWAYS_COUNTED and time.monotonic() < until else None

    def learn(self, totals: CorpusTotals, scope: Condition = EVERYTHING) -> None:
        """Store a new count."""
        if len(self._last) >= MAX_REMEMBERED_COUNTS:
            self._last = {}
        self._last[scope.key] = scope, totals, time.monotonic() + COUNT_LIFETIME

    def add(self, written: Sequence[CountedDocument], replaced: Sequence[CountedDocument]) -> None:
        """Add documents that were written to the counts, and subtract those that they replaced.

        If these are too many, the counts of scopes are discarded instead.
        """
        now = time.monotonic()
        last = {key: count for key, count in self._last.items() if now < count[2]}
        if len(last) * (len(written) + len(replaced)) > MAX_SCOPE_CHECKS:
            last = {key: count for key, count in last.items() if key == EVERYTHING.key}
        self._last = {
            key: (scope, _update_totals(totals, scope, written, replaced), until)
            for key, (scope, totals, until) in last.items()
        }


def _update_totals(
    totals: CorpusTotals,
    scope: Condition,
    written: Sequence[CountedDocument],
    replaced: Sequence[CountedDocument],
) -> CorpusTotals:
    """Return the totals of a scope after a change."""
    added, gone = (_list_lengths_within(scope, documents) for documents in (written, replaced))
    return CorpusTotals(totals.documents + len(added) - len(gone), totals.words + sum(added) - sum(gone))


def _list_lengths_within(scope: Condition, documents: Sequence[CountedDocument]) -> list[int]:
    """Return the lengths of the documents in a scope."""
    return [
        length for attributes, length in documents if scope.always or scope.matches(orjson.loads(attributes))
    ]


def compute_sample_size(buckets: int) -> int:
    """Return the number of documents that are sampled in each partition."""
    return -(-COUNT_SAMPLE_SIZE // (EVERY_DOCUMENT_SHARDS * buckets))


def estimate_count(hashes: npt.NDArray[np.uint64], most: int) -> float:
    """Estimate the number of documents in a partition from its first hashes.

    The result is exact if there are fewer than ``most``. Hashes are distributed uniformly, so the ``n``-th
    smallest hash divided by the range of hashes estimates ``n`` divided by their number. Source: Z.
    Bar-Yossef et al., "Counting Distinct Elements in a Data Stream", RANDOM 2002; in the unbiased form of
    K. Beyer et al., "On Synopses for Distinct-Value Estimation under Multiset Operations", SIGMOD 2007. The
    standard error is a little over 1/sqrt(n).

    Args:
        hashes: (n,) ascending.
        most: Number of hashes that were requested.
    """
    distinct = len(np.unique(hashes))
    if len(hashes) < most:
        return distinct
    return (distinct - 1) / ((float(hashes[-1]) + 1) / _HASH_RANGE)


def count_documents(parts: Sequence[Sequence[bytes]], most: int) -> CorpusTotals:
    """Compute the totals of all documents from the first ``most`` heads of each part."""
    documents = words = 0.0
    for part in parts:
        heads = np.frombuffer(b"".join(part), POSTING_HEAD)
        _, places = np.unique(heads["hash"], return_index=True)
        number = estimate_count(heads["hash"], most)
        documents += number
        words += float(heads["length"][places].sum()) * (number / max(1, len(places)))
    return CorpusTotals(documents, words)


def count_documents_within(readings: Sequence[PostingReading]) -> CorpusTotals:
    """Compute a scope's totals from the first documents of each part and the share of it that was read."""
    documents = words = 0.0
    for part in readings:
        heads = np.frombuffer(b"".join([head for head, _ in part.rows]), POSTING_HEAD)
        hashes, places = np.unique(heads["hash"], return_index=True)
        number = float(len(hashes))
        if len(part.rows) >= part.wanted:
            number = estimate_count(heads["hash"], len(heads))
        elif part.more and part.last is not None:
            (last,) = np.frombuffer(part.last[0], POSTING_HEAD)["hash"]
            number /= (float(last) + 1) / _HASH_RANGE
        documents += number
        words += float(heads["length"][places].sum()) * (number / max(1, len(places)))
    return CorpusTotals(documents, words)


FIRST_POSTINGS: Final = 500
"""Number of documents of a word that are read first; enough to estimate the total within 5 %."""
_SURE_SHARE: Final = 0.75
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
    parts: dict[WordPartition, list[ReadPosting]]
    unfinished: set[WordPartition] = field(default_factory=set)

    @property
    def rows(self) -> Iterator[ReadPosting]:
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
                hashes = np.frombuffer(b"".join([head for head, _ in rows]), POSTING_HEAD)["hash"]
                low += max(len(np.unique(hashes)), int(share * estimate_count(hashes, len(rows))))
            else:
                low += len({id for _, id in rows})
        return low


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLookup:
    """The postings read for a question.

    Args:
        taken: The words that are looked up, in the order asked, each with its documents: with all of them
            unless it is the only one and too many have it.
        left: Words that were left out because too many documents have them.
        totals: Totals of all documents.
    """

    taken: Sequence[WordRows]
    left: Sequence[str]
    totals: CorpusTotals


class WordSearch:
    """Looks up words.

    :func:`.select_affordable` decides which words are left out. Not all of their documents are read,
    because the first ones are enough to estimate the number. Of a word that is alone and has too many, the
    first ones are a random sample.

    Args:
        tables: The tables of the store.
        buckets: Number of partitions of a word.
        corpus: The number of documents.
    """

    def __init__(self, tables: Tables, buckets: int, corpus: CorpusStatistics) -> None:
        self._tables = tables
        self._buckets = buckets
        self._corpus = corpus

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[WordLookup]:
        """Read the documents of the words that are not left out, and count all documents if necessary.

        Only documents of the scope are read and counted.
        """
        asked = [word for word in dict.fromkeys(words) if 0 < len(word) <= MAX_WORD_LENGTH]
        if not asked:
            return WordLookup(taken=(), left=(), totals=CorpusTotals())
        everything = scope.everything
        found, totals = yield from (
            self._read_first(asked) if everything else self._read_first_within(asked, scope)
        )
        while True:
            having = {word: min(rows.having(_SURE_SHARE), POSTINGS + 1) for word, rows in found.items()}
            taken, left = select_affordable(having)
            unfinished = [
                rows for word in taken if (rows := found[word]).unfinished and rows.read <= POSTINGS
            ]
            if not unfinished:
                return WordLookup(taken=[found[word] for word in taken], left=left, totals=totals)
            yield from (
                self._read_more(unfinished) if everything else self._read_more_within(unfinished, scope)
            )

    def _read_first(self, words: Sequence[str]) -> Operation[tuple[Mapping[str, WordRows], CorpusTotals]]:
        """Read the first documents of each word, and the count of all."""
        totals, a_part = self._corpus.known(), compute_sample_size(self._buckets)
        limits = dict.fromkeys(words, -(-FIRST_POSTINGS // self._buckets))
        if totals is None:
            limits[EVERY_DOCUMENT] = a_part
        keys = [(word, one) for word in limits for one in list_partitions(word, self._buckets)]
        text = cql.read_first_postings(self._tables)
        answers = yield from self._read(
            [Statement(cql=text, values=(*at, word, limits[word])) for word, at in keys]
        )
        found = {word: WordRows(word, {}) for word in limits}
        for (word, at), rows in zip(keys, answers, strict=True):
            found[word].parts[at] = split_states(rows)
            if len(rows) == limits[word]:
                found[word].unfinished.add(at)
        every = found.pop(EVERY_DOCUMENT, None)
        if every is not None:
            totals = count_documents([[head for head, _ in rows] for rows in every.parts.values()], a_part)
            self._corpus.learn(totals)
        return found, totals or CorpusTotals()

    @property
    def _a_part(self) -> int:
        """How many more documents of a partition are read at once: of all, enough to leave the word out."""
        return POSTINGS // self._buckets + 1

    def _read_more(self, words: Sequence[WordRows]) -> Operation[None]:
        """Read more documents of words: all, or as many as a search reads at most."""
        keys = [(rows, at) for rows in words for at in sorted(rows.unfinished)]
        text, limit = cql.read_next_postings(self._tables), self._a_part
        answers = yield from self._read(
            [
                Statement(cql=text, values=(*at, rows.word, *locate_posting(rows.parts[at][-1]), limit))
                for rows, at in keys
            ]
        )
        for (rows, at), more in zip(keys, answers, strict=True):
            rows.parts[at] += split_states(more)
            if len(more) < limit:
                rows.unfinished.discard(at)

    def _read_first_within(
        self, words: Sequence[str], scope: Scope
    ) -> Operation[tuple[Mapping[str, WordRows], CorpusTotals]]:
        """Read the first documents of each word, and the count of all, within a scope."""
        limit = -(-FIRST_POSTINGS // self._buckets)
        readings = [
            PostingReading(word, at, limit) for word in words for at in list_partitions(word, self._buckets)
        ]
        yield from read_postings_within(self._tables, readings, scope)
        found = {word: WordRows(word, {}) for word in words}
        for one in readings:
            found[one.word].parts[one.partition] = one.rows
            if one.more:
                found[one.word].unfinished.add(one.partition)
        return found, (yield from self._totals_within(scope))

    def _totals_within(self, scope: Scope) -> Operation[CorpusTotals]:
        """Return the number of documents in a scope, counting them unless the number is known."""
        totals = self._corpus.known(scope.condition)
        if totals is None:
            a_part, parts = compute_sample_size(self._buckets), list_partitions(EVERY_DOCUMENT, self._buckets)
            readings = [PostingReading(EVERY_DOCUMENT, at, a_part) for at in parts]
            yield from read_postings_within(
                self._tables, readings, scope, MAX_COUNTED // (EVERY_DOCUMENT_SHARDS * self._buckets)
            )
            totals = count_documents_within(readings)
            self._corpus.learn(totals, scope.condition)
        return totals

    def _read_more_within(self, words: Sequence[WordRows], scope: Scope) -> Operation[None]:
        """Read more documents of words, as :meth:`_read_more`, within a scope."""
        keys = [(rows, at) for rows in words for at in sorted(rows.unfinished)]
        readings = [PostingReading(rows.word, at, self._a_part, last=rows.parts[at][-1]) for rows, at in keys]
        yield from read_postings_within(self._tables, readings, scope)
        for (rows, at), one in zip(keys, readings, strict=True):
            rows.parts[at] += one.rows
            if not one.more:
                rows.unfinished.discard(at)

    def _read(self, statements: Sequence[Statement]) -> Operation[list[list[Any]]]:
        answers: list[list[Any]] = yield Requests(statements=tuple(statements), what="look words up")
        return answers


class WordIndex:
    """The words of one store, which indexes them or not, as fixed when it is created.

    Args:
        tables: The tables of the store.
        recorded: The settings of the store.
        settings: The settings of the backend.
        corpus: The number of documents.
    """

    def __init__(
        self, tables: Tables, recorded: StoreSettings, settings: CassandraSettings, corpus: CorpusStatistics
    ) -> None:
        self.scan_limit = settings.scan_limit
        self._tables = tables
        self._indexed = recorded.lexical
        self._search = WordSearch(tables, recorded.buckets, corpus)

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[WordLookup]:
        """Look up words, see :meth:`WordSearch.look_up`.

        Raises:
            CapabilityError: If the store has no lexical search. The message says why and what to do.
        """
        if not self._indexed:
            raise CapabilityError(
                f"the store {self._tables.name!r} has no lexical search, because it was created with"
                " lexical=False; create it again without that setting, or use a strategy that does not need"
                " lexical search, such as Eager"
            )
        return (yield from self._search.look_up(words, scope))


_MATCHES_PER_READ: Final = 1_000
"""The most documents that are read at once."""
_MATCHES_READ_GROWTH: Final = 4
"""If documents differ from their entries, the number read at once grows by this factor."""


class LexicalCandidates:
    """Possible matches: an entry for each document and each of its states that has one of the words.

    A posting may belong to a former state of its document, or to one that is being written. The current state
    of a document always has all of its postings, so the document scores at most as high as the best of its
    entries. Documents are read, best first, until the requested number is confirmed.

    Args:
        known: The documents met by the plan.
        found: The postings.
        fetch: The fetch to answer.
        scan_limit: Maximum number of documents to read.
    """

    def __init__(self, known: MetDocuments, found: WordLookup, fetch: Lexical, scan_limit: int) -> None:
        self._known = known
        self._fetch = fetch
        self._may_read = scan_limit
        self._left = tuple(found.left)
        self._sampled = tuple(rows.word for rows in found.taken if rows.unfinished)
        self._words = [rows.word for rows in found.taken]
        having = [rows.having() for rows in found.taken]
        documents = max([round(found.totals.documents), *having])  # the count may be older than the postings
        self._average = found.totals.average
        self._frequency = [inverse_frequency(documents, each) for each in having]
        self._score_all(found)
        self._settled = np.zeros(len(self.refs), np.bool_)
        self._wanted = fetch.k

    def undecided(self) -> list[int]:
        """Return the documents to read next, none if the best are known.

        Raises:
            FilterError: If more documents would have to be read than the limit allows.
        """
        self._update()
        if self._settled[self._best(self._fetch.k)].all():
            return []
        if self._may_read <= 0:
            raise FilterError(
                f"the filter leaves fewer than {self._fetch.k} of the documents that match the words best,"
                " and to look at all takes more than scan_limit: ask for rarer words, or raise scan_limit"
            )
        first = self._best(self._wanted)
        unread = list(dict.fromkeys(self.refs[first[~self._settled[first]]].tolist()))[
            : min(_MATCHES_PER_READ, self._may_read)
        ]
        self._wanted *= _MATCHES_READ_GROWTH
        self._may_read -= len(unread)
        return unread

    def worded(self) -> LexicalMatches:
        """Return the best documents in order, once nothing is undecided."""
        order = self._best(self._fetch.k)
        refs, score = self.refs[order], self._score[order]
        return LexicalMatches(refs=refs, score=score, left_out=self._left, sampled=self._sampled)

    def _score_all(self, found: WordLookup) -> None:
        """Compute the score of each pair of a document and a state."""
        ids = [id for word in found.taken for _, id in word.rows]
        heads = np.frombuffer(b"".join([head for word in found.taken for head, _ in word.rows]), POSTING_HEAD)
        refs, stamps = self._known.refs(ids), heads["stamp"].astype(np.uint64)
        first, entry = _find_distinct_pairs(refs, stamps)
        scores, start = np.zeros(len(first)), 0
        for word, frequency in zip(found.taken, self._frequency, strict=True):
            part = slice(start, start := start + sum(map(len, word.parts.values())))
            counts, lengths = (heads[field][part].astype(np.float64) for field in ("count", "length"))
            scores[entry[part]] += frequency * bm25_weight(counts, lengths, self._average)
        self.refs: Ints = refs[first]
        self._stamp, self._score = stamps[first], scores.astype(np.float32)

    def _update(self) -> None:
        """Process the documents read since the last call, and keep at most one entry for each."""
        news = np.flatnonzero(~self._settled & self._known.read(self.refs))
        kept = np.ones(len(self.refs), np.bool_)
        for ref in dict.fromkeys(self.refs[news].tolist()):
            entries = news[self.refs[news] == ref]
            kept[entries] = False
            row = self._known.rows[ref]
            if row is not None and self._fetch.filter.matches(row.metadata()):
                right = entries[self._stamp[entries] == compute_stamp(row.text, row.metadata())]
                at = right[0] if len(right) else entries[0]
                if not len(right):
                    self._score[at] = self._score_row(row)
                kept[at] = self._score[at] > 0
                self._settled[at] = True
        self.refs, self._stamp = self.refs[kept], self._stamp[kept]
        self._score, self._settled = self._score[kept], self._settled[kept]

    def _score_row(self, row: DocumentRow) -> np.float32:
        """Return the score of a document that changed after its postings were read.

        The score is 0 if the document has none of the words.
        """
        words = DocumentWords.of(row.id, row.text, row.metadata())
        return np.float32(
            sum(
                frequency * bm25_weight(words.counts[word], words.length, self._average)
                for word, frequency in zip(self._words, self._frequency, strict=True)
                if word in words.counts
            )
        )

    def _best(self, take: int) -> Ints:
        return finish_ranking(rank_best(self._score, take), lambda at: self._known.ids_of(self.refs[at]))


def _find_distinct_pairs(refs: Ints, stamps: npt.NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Find distinct pairs of a ref and a stamp.

    Returns the first position of each pair, and the number of the pair at each position.
    """
    order = np.lexsort((stamps, refs))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(refs[order]) != 0) | (stamps[order][1:] != stamps[order][:-1])
    pair = np.empty(len(order), np.int64)
    pair[order] = np.cumsum(new) - 1
    return order[new], pair

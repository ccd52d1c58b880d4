"""Lexical search: postings of the rarest words first, BM25, documents that confirm the best.

The postings of a word in a partition are in the order of a hash of their documents' ids. So the first ones
tell how many there are, and those of a word that every document has count the documents of the store. Within
a scope, postings are read page by page, and those of other documents are skipped. The further postings of a
word that was split are in several partitions, by ranges of the hash, which are read one after another as if
they were one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arrays import Ints
from linkstore.core.calls import drive
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.lexical import (
    MAX_WORD_LENGTH,
    POSTINGS,
    bm25_weight,
    extract_document_terms,
    inverse_frequency,
    select_affordable,
)
from linkstore.core.plans import EngineOperation, Lexical, LexicalMatches, rank_best
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import SINGLE_STATE_OFFSET, DocumentVersion, unpack_set
from linkstore.engines.cassandra.derived import (
    EVERY_DOCUMENT,
    EVERY_DOCUMENT_SHARDS,
    HASH_BYTES,
    POSTING_HEAD,
    WORD_BUCKETS,
    compute_stamp,
    find_range,
    list_shards,
)
from linkstore.engines.cassandra.reading import PlanDocuments, ReadScope, remember
from linkstore.engines.cassandra.statements import Requests, Statement, send
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
FIRST_POSTINGS: Final = 500
"""Number of documents of a word that are read first; enough to estimate the total within 5 %."""
_SURE_SHARE: Final = 0.75
"""The actual number is at least this share of the estimate: 5.5 standard errors below it."""
_LARGEST_POSTING_PAGE: Final = 5_000
_POSTING_PAGE_GROWTH: Final = 4
_MATCHES_PER_READ: Final = 1_000
"""The most documents that are read at once."""
_MATCHES_READ_GROWTH: Final = 4
"""If documents differ from their entries, the number read at once grows by this factor."""
_HASH_RANGE: Final = float(1 << 64)
ReadPosting = tuple[bytes, str]
"""Head of a state, and document id."""
ServerPosting = tuple[bytes, str, bytes | None]
"""Hash of the document id, document id, states."""
_STATE_BYTES: Final = POSTING_HEAD.itemsize - HASH_BYTES


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
    """The last counts of documents, by scope. The one of all documents follows what this client writes.

    Threads may use it without a lock. At worst, a write of one thread is missing until the next count.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[CorpusTotals, float]] = {}

    def get_totals(self, scope: Condition = EVERYTHING) -> CorpusTotals | None:
        """Return the last count of the documents in a scope, or None if it is not recent enough."""
        totals, until = self._last.get(scope.key, (CorpusTotals(), 0.0))
        return totals if totals.documents > MAX_ALWAYS_COUNTED and time.monotonic() < until else None

    def learn(self, totals: CorpusTotals, scope: Condition = EVERYTHING) -> None:
        """Store a new count."""
        remember(self._last, scope.key, (totals, time.monotonic() + COUNT_LIFETIME), MAX_REMEMBERED_COUNTS)

    def add(self, documents: int, words: int) -> None:
        """Add numbers of documents and words, negative where more were removed, to the count of all."""
        if last := self._last.get(EVERYTHING.key):
            totals, until = last
            totals = CorpusTotals(totals.documents + documents, totals.words + words)
            self._last[EVERYTHING.key] = totals, until


@dataclass(slots=True)
class PostingReading:
    """The postings of a word that were read in a partition, or in the further ones of a word that was split.

    Args:
        word: The word.
        shard: The shard.
        wanted: Number of rows of the scope to read.
        most: Number of rows to look at, including those outside the scope. None: any.
        bucket: The bucket to read next: 0, or one of the further ones.
        is_split: Whether the first bucket has the mark of a split.
        rows: The rows of the scope that were read.
        looked_at: Number of rows that were read, including those outside the scope.
        last: The last row that was read, empty before the first.
        more: Whether there may be more.
    """

    word: str
    shard: int
    wanted: int
    most: int | None = None
    bucket: int = 0
    is_split: bool = False
    rows: list[ReadPosting] = field(default_factory=list)
    looked_at: int = 0
    last: ReadPosting = b"", ""
    more: bool = True

    @property
    def unfinished(self) -> bool:
        """Whether more rows must be read."""
        enough = len(self.rows) >= self.wanted
        return self.more and not enough and (self.most is None or self.looked_at < self.most)

    @property
    def heads(self) -> npt.NDArray[np.void]:
        """The heads of the rows that were read, with their fields."""
        return np.frombuffer(b"".join([head for head, _ in self.rows]), POSTING_HEAD)

    def make_statement(self, size: int) -> Statement:
        """Return the statement that reads the next rows."""
        head, id = self.last
        values = (self.shard, self.bucket, self.word, head[:HASH_BYTES], id, size)
        return Statement(cql=cql.READ_POSTINGS, values=values)

    def take(self, rows: Sequence[ServerPosting], held: set[str] | None, asked: int) -> None:
        """Add rows in a scope (None: all), which answer a request for ``asked`` rows."""
        self.more = len(rows) == asked
        if rows and not rows[0][1]:
            self.is_split, rows = True, rows[1:]
        self.looked_at += len(rows)
        postings = [(hashed + state, id) for hashed, id, states in rows for state in _split_states(states)]
        if postings:
            self.last = postings[-1]
        self.rows += postings if held is None else [row for row in postings if row[1] in held]
        if len(self.rows) >= self.wanted:
            # Same rows as in a store with only the scope's documents; the last document with all its states.
            end = self.wanted
            while end < len(self.rows) and self.rows[end][1] == self.rows[end - 1][1]:
                end += 1
            del self.rows[end:]
            self.last, self.more = self.rows[-1], True
            self.bucket = find_range(self.last[0]) if self.bucket else 0
        elif not self.more and 0 < self.bucket < WORD_BUCKETS:
            self.bucket, self.more = self.bucket + 1, True

    def count(self, share: float = 1.0) -> float:
        """Return the number of documents; if not all were read, ``share`` of an estimate of it.

        Hashes are distributed uniformly, so the ``n``-th smallest hash divided by the range of hashes
        estimates ``n`` divided by their number. Source: Z. Bar-Yossef et al., "Counting Distinct Elements in
        a Data Stream", RANDOM 2002; in the unbiased form of K. Beyer et al., "On Synopses for Distinct-Value
        Estimation under Multiset Operations", SIGMOD 2007, which leaves out the last document where reading
        ended with it. The standard error is a little over 1/sqrt(n).
        """
        distinct = len(np.unique(self.heads["hash"]))
        if not self.more:
            return distinct
        ended_with_it = len(self.rows) >= self.wanted
        last = int.from_bytes(self.last[0][:HASH_BYTES], "big")
        return max(distinct, share * (distinct - ended_with_it) / ((last + 1) / _HASH_RANGE))

    def total(self) -> CorpusTotals:
        """Return the numbers of documents and of their words, estimated if not all were read."""
        _, places = np.unique(self.heads["hash"], return_index=True)
        documents, words = self.count(), float(self.heads["length"][places].sum())
        return CorpusTotals(documents, words * documents / max(1, len(places)))


def _split_states(packed: bytes | None) -> list[bytes]:
    """Return the states of a posting; a damaged or missing one is as that of no document."""
    if packed and len(packed) == SINGLE_STATE_OFFSET + _STATE_BYTES:
        return [packed[SINGLE_STATE_OFFSET:]]
    return [
        state if len(state) == _STATE_BYTES else bytes(_STATE_BYTES) for state in unpack_set(packed) or [b""]
    ]


def count_documents(readings: Iterable[PostingReading]) -> CorpusTotals:
    """Compute the totals of all partitions."""
    totals = [reading.total() for reading in readings]
    return CorpusTotals(sum(total.documents for total in totals), sum(total.words for total in totals))


@dataclass(frozen=True, slots=True)
class WordRows:
    """The documents of a word that were read, by partition."""

    word: str
    parts: list[PostingReading]

    @property
    def rows(self) -> Iterator[ReadPosting]:
        """All rows that were read."""
        return (row for part in self.parts for row in part.rows)

    @property
    def read(self) -> int:
        """Number of rows that were read."""
        return sum(len(part.rows) for part in self.parts)

    @property
    def unfinished(self) -> list[PostingReading]:
        """The partitions with more rows."""
        return [part for part in self.parts if part.more]

    def follow_splits(self) -> None:
        """Read the further partitions too where a partition has the mark of a split."""
        begun = {part.shard for part in self.parts if part.bucket}
        for part in [part for part in self.parts if part.is_split and part.shard not in begun]:
            self.parts.append(PostingReading(self.word, part.shard, part.wanted, part.most, bucket=1))

    def count_documents(self, share: float = 1.0) -> int:
        """Return the number of documents with the word, see :meth:`PostingReading.count`."""
        return int(sum(part.count(share) for part in self.parts))


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
        shards: Number of partitions of words.
        corpus: The number of documents.
        indexed: Whether the store has words, as fixed when it is created.
    """

    def __init__(self, shards: int, corpus: CorpusStatistics, *, indexed: bool) -> None:
        self._shards = shards
        self._corpus = corpus
        self._indexed = indexed
        self._splits: frozenset[tuple[int, str]] = frozenset()
        """Shards and words whose further partitions are read at once, since they were met before."""

    def look_up(self, words: Sequence[str], scope: ReadScope) -> EngineOperation[WordLookup]:
        """Read the documents of the words that are not left out, and count all documents if necessary.

        Only documents of the scope are read and counted.

        Raises:
            CapabilityError: If the store has no lexical search. The message says why and what to do.
        """
        if not self._indexed:
            raise CapabilityError(
                "this store has no lexical search, because it was created with"
                " lexical=False; create it again without that setting, or use a strategy that does not need"
                " lexical search, such as Eager"
            )
        asked = [word for word in dict.fromkeys(words) if 0 < len(word) <= MAX_WORD_LENGTH]
        if not asked:
            return WordLookup(taken=(), left=(), totals=CorpusTotals())
        word_rows = {word: self._begin(word, FIRST_POSTINGS) for word in asked}
        totals = self._corpus.get_totals(scope.condition)
        counts = COUNT_SAMPLE_SIZE // EVERY_DOCUMENT_SHARDS, MAX_COUNTED // EVERY_DOCUMENT_SHARDS
        counting = [] if totals else [self._begin(EVERY_DOCUMENT, *counts)]
        yield from self._read([*word_rows.values(), *counting], scope)
        if totals is None:
            totals = count_documents(counting[0].parts)
            self._corpus.learn(totals, scope.condition)
        while True:
            having = {
                word: min(rows.count_documents(_SURE_SHARE), POSTINGS + 1) for word, rows in word_rows.items()
            }
            taken, left = select_affordable(having)
            growing = [word_rows[word] for word in taken if word_rows[word].read <= POSTINGS]
            unfinished = [part for rows in growing for part in rows.unfinished]
            if not unfinished:
                return WordLookup(taken=[word_rows[word] for word in taken], left=left, totals=totals)
            for part in unfinished:
                part.wanted = len(part.rows) + POSTINGS + 1  # of all, enough to leave it out
            yield from self._read(growing, scope)

    def _begin(self, word: str, wanted: int, most: int | None = None) -> WordRows:
        shards = list_shards(word, self._shards)
        rows = WordRows(word, [PostingReading(word, shard, wanted, most) for shard in shards])
        for part in rows.parts:
            part.is_split = (part.shard, word) in self._splits
        rows.follow_splits()
        return rows

    def _read(self, words: Sequence[WordRows], scope: ReadScope) -> EngineOperation[None]:
        """Read until each reading has the wanted rows, or looked at enough, or there are no more.

        A count does not have to read all documents of a scope, so they do not count to its limit.
        """
        growth = 1
        while open_ := [part for rows in words for part in rows.parts if part.unfinished]:
            sizes = [_choose_page_size(reading, growth, scope) for reading in open_]
            statements = tuple(
                reading.make_statement(size) for reading, size in zip(open_, sizes, strict=True)
            )
            answers = yield from send(Requests(statements=statements, what="look words up"))
            held = None
            if not scope.everything:
                of = list(zip(open_, answers, strict=True))
                charged = [id for reading, rows in of if reading.most is None for _, id, _ in rows]
                sampled = [id for reading, rows in of if reading.most is not None for _, id, _ in rows]
                held = yield from scope.of(charged)
                held |= yield from scope.of(sampled, sample=True)
            for reading, rows, size in zip(open_, answers, sizes, strict=True):
                reading.take(rows, held, size)
            for word in words:
                word.follow_splits()
            growth *= _POSTING_PAGE_GROWTH
        self._splits |= {(part.shard, part.word) for rows in words for part in rows.parts if part.is_split}


def _choose_page_size(reading: PostingReading, growth: int, scope: ReadScope) -> int:
    """Return how many rows to read next: all that are wanted, or a page if some will be skipped."""
    if scope.everything:
        return reading.wanted - len(reading.rows)
    return min(reading.wanted * growth, _LARGEST_POSTING_PAGE)


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

    def __init__(self, known: PlanDocuments, found: WordLookup, fetch: Lexical, scan_limit: int) -> None:
        self._known = known
        self._fetch = fetch
        self._may_read = scan_limit
        self._left = tuple(found.left)
        self._sampled = tuple(rows.word for rows in found.taken if rows.unfinished)
        self._words = [rows.word for rows in found.taken]
        having = [rows.count_documents() for rows in found.taken]
        self._having = dict(zip(self._words, having, strict=True))
        # the count may be older than the postings
        self._documents = max([round(found.totals.documents), *having])
        self._average = found.totals.average
        self._frequency = [inverse_frequency(self._documents, each) for each in having]
        self._score_all(found)
        self._settled = np.zeros(len(self.refs), np.bool_)
        self._wanted = fetch.k

    def find_changed(self) -> list[int]:
        """Return the documents that were read without their text, but need it because it changed."""
        read = ~self._settled & self._known.were_read(self.refs)
        rows = ((ref, self._known.rows[ref]) for ref in dict.fromkeys(self.refs[read].tolist()))
        return [
            ref
            for ref, row in rows
            if row is not None and row.unread and compute_stamp(row) not in self._stamp[self.refs == ref]
        ]

    def list_undecided(self) -> list[int]:
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

    def matches(self) -> LexicalMatches:
        """Return the best documents in order, once nothing is undecided."""
        order = self._best(self._fetch.k)
        refs, score = self.refs[order], self._score[order]
        return LexicalMatches(
            refs=refs,
            score=score,
            left_out=self._left,
            sampled=self._sampled,
            document_frequency=self._having,
            documents=self._documents,
        )

    def _score_all(self, found: WordLookup) -> None:
        """Compute the score of each pair of a document and a state."""
        ids = [id for word in found.taken for _, id in word.rows]
        heads = np.frombuffer(b"".join([head for word in found.taken for head, _ in word.rows]), POSTING_HEAD)
        refs, stamps = self._known.refs(ids), heads["stamp"].astype(np.uint64)
        distinct, number = np.unique(stamps, return_inverse=True)
        _, first, entry = np.unique(refs * len(distinct) + number, return_index=True, return_inverse=True)
        scores, start = np.zeros(len(first)), 0
        for word, frequency in zip(found.taken, self._frequency, strict=True):
            part = slice(start, start := start + word.read)
            counts, lengths = (heads[field][part].astype(np.float64) for field in ("count", "length"))
            scores[entry[part]] += frequency * bm25_weight(counts, lengths, self._average)
        self.refs: Ints = refs[first]
        self._stamp, self._score = stamps[first], scores.astype(np.float32)

    def _update(self) -> None:
        """Process the documents read since the last call, and keep at most one entry for each."""
        news = np.flatnonzero(~self._settled & self._known.were_read(self.refs))
        kept = np.ones(len(self.refs), np.bool_)
        for ref in dict.fromkeys(self.refs[news].tolist()):
            entries = news[self.refs[news] == ref]
            kept[entries] = False
            row = self._known.rows.get(ref)
            if row is not None and self._fetch.filter.matches(row.metadata()):
                right = entries[self._stamp[entries] == compute_stamp(row)]
                at = right[0] if len(right) else entries[0]
                if not len(right):
                    self._score[at] = self._score_row(row)
                kept[at] = self._score[at] > 0
                self._settled[at] = True
        self.refs, self._stamp = self.refs[kept], self._stamp[kept]
        self._score, self._settled = self._score[kept], self._settled[kept]

    def _score_row(self, row: DocumentVersion) -> np.float32:
        """Return the score of a document that changed after its postings were read.

        The score is 0 if the document has none of the words.
        """
        terms = extract_document_terms(row.text, row.metadata(), row.id)
        counts = Counter(terms)
        return np.float32(
            sum(
                frequency * bm25_weight(counts[word], len(terms), self._average)
                for word, frequency in zip(self._words, self._frequency, strict=True)
                if word in counts
            )
        )

    def _best(self, take: int) -> Ints:
        return drive(rank_best(self._score, take), lambda at: self._known.ids_of(self.refs[at]))

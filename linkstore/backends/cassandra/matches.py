"""Documents with any of some words: scored from the postings, confirmed by reading the documents."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.backends.cassandra.postings import HEAD, DocumentWords, stamp_of
from linkstore.backends.cassandra.reading import Documents
from linkstore.backends.cassandra.rows import DocumentRow
from linkstore.backends.cassandra.wordsearch import Lookup
from linkstore.errors import FilterError
from linkstore.lexical import inverse_frequency, weight
from linkstore.order import best, with_ids
from linkstore.plans import Lexical, Worded
from linkstore.vectors import Ints

_AT_ONCE: Final = 1_000
"""The most documents that are read at once."""
_FASTER: Final = 4
"""If documents differ from their entries, the number read at once grows by this factor."""


class Matches:
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

    def __init__(self, known: Documents, found: Lookup, fetch: Lexical, scan_limit: int) -> None:
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
            : min(_AT_ONCE, self._may_read)
        ]
        self._wanted *= _FASTER
        self._may_read -= len(unread)
        return unread

    def worded(self) -> Worded:
        """Return the best documents in order, once nothing is undecided."""
        order = self._best(self._fetch.k)
        refs, score = self.refs[order], self._score[order]
        return Worded(refs=refs, score=score, left_out=self._left, sampled=self._sampled)

    def _score_all(self, found: Lookup) -> None:
        """Compute the score of each pair of a document and a state."""
        ids = [id for word in found.taken for _, id in word.rows]
        heads = np.frombuffer(b"".join([head for word in found.taken for head, _ in word.rows]), HEAD)
        refs, stamps = self._known.refs(ids), heads["stamp"].astype(np.uint64)
        first, entry = _distinct(refs, stamps)
        scores, start = np.zeros(len(first)), 0
        for word, frequency in zip(found.taken, self._frequency, strict=True):
            part = slice(start, start := start + sum(map(len, word.parts.values())))
            counts, lengths = (heads[field][part].astype(np.float64) for field in ("count", "length"))
            scores[entry[part]] += frequency * weight(counts, lengths, self._average)
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
                right = entries[self._stamp[entries] == stamp_of(row.text, row.metadata())]
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
                frequency * weight(words.counts[word], words.length, self._average)
                for word, frequency in zip(self._words, self._frequency, strict=True)
                if word in words.counts
            )
        )

    def _best(self, take: int) -> Ints:
        return with_ids(best(self._score, take), lambda at: self._known.ids_of(self.refs[at]))


def _distinct(refs: Ints, stamps: npt.NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Find distinct pairs of a ref and a stamp.

    Returns the first position of each pair, and the number of the pair at each position.
    """
    order = np.lexsort((stamps, refs))
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(refs[order]) != 0) | (stamps[order][1:] != stamps[order][:-1])
    pair = np.empty(len(order), np.int64)
    pair[order] = np.cumsum(new) - 1
    return order[new], pair

"""Whether a store has lexical search, and what does it there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from linkstore.backends.base import Finding
from linkstore.backends.cassandra import schema
from linkstore.backends.cassandra.corpus import Corpus
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.schema import Recorded, WordState
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.wordinspection import WordInspection
from linkstore.backends.cassandra.wordsearch import Lookup, WordSearch
from linkstore.backends.cassandra.wordwriting import WordWriter
from linkstore.errors import CapabilityError
from linkstore.plans import Operation

_OR: Final = "or take a strategy that needs no lexical search, such as Eager"
_WHY_NOT: Final = {
    "none": f"it was made with lexical=False; make it anew without that, {_OR}",
    "absent": f"it was made before linkstore indexed words: repair it once (linkstore repair), {_OR}",
    "building": f"its words are being indexed, or that was interrupted: repair it again, {_OR}",
}
_UNINDEXED: Final = Finding(problem="stores made before words were indexed; repair indexes them", count=1)


class Words:
    """The words of one store.

    A store has postings from its beginning, or never, or, if it is of an earlier version, once it is
    repaired. Until it is settled which, it is asked before each change and each search.

    Args:
        tables: Of the store.
        fetcher: Reads what was stored.
        recorded: What the store says of itself.
        settings: Of the backend.
    """

    def __init__(
        self, tables: Tables, fetcher: Fetcher, recorded: Recorded, settings: CassandraSettings
    ) -> None:
        self.scan_limit = settings.scan_limit
        self._tables = tables
        self._state: WordState = recorded.words
        self._wanted = settings.lexical
        corpus = Corpus()
        self._search = WordSearch(tables, recorded.buckets, corpus)
        self._writer = WordWriter(tables, fetcher, corpus, recorded.buckets, settings.ttl)
        self._inspection = WordInspection(tables, fetcher, recorded.buckets)

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[Lookup]:
        """See :meth:`WordSearch.look_up`.

        Raises:
            CapabilityError: If the store has no lexical search; the message says why and what to do.
        """
        state = yield from self._now()
        if state in _WHY_NOT:
            raise CapabilityError(
                f"the store {self._tables.name!r} cannot be searched by words: {_WHY_NOT[state]}"
            )
        return (yield from self._search.look_up(words, scope))

    def writer(self) -> Operation[WordWriter | None]:
        """What writes postings, if the store has some."""
        return self._writer if (yield from self._now()) in {"built", "building"} else None

    def verify(self) -> Operation[Sequence[Finding]]:
        """Hold the postings against the documents."""
        state = yield from self._now()
        if state == "built":
            return (yield from self._inspection.compare()).findings()
        return () if self._left_out(state) else (_UNINDEXED,)

    def repair(self, now: int) -> Operation[Sequence[Finding]]:
        """Delete postings that no document stands behind, write those that are missing; what was found."""
        state = yield from self._now()
        if self._left_out(state):
            return ()
        if state == "absent":
            yield from schema.begin_words(self._tables, now)
        comparison = yield from self._inspection.compare()
        yield from self._inspection.mend(comparison, now)
        if state == "built":
            return comparison.findings()
        yield from schema.end_words(self._tables, now + 1)
        return (_UNINDEXED,)

    def _left_out(self, state: WordState) -> bool:
        return state == "none" or (state == "absent" and not self._wanted)

    def _now(self) -> Operation[WordState]:
        """Which it is, as long as that may change."""
        if self._state in {"absent", "building"}:
            self._state = (yield from schema.read(self._tables)).words
        return self._state

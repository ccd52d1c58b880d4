"""Whether a store has lexical search, and what does it there."""

from __future__ import annotations

from collections.abc import Sequence

from linkstore.backends.cassandra.corpus import Corpus
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.schema import Recorded
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.wordsearch import Lookup, WordSearch
from linkstore.errors import CapabilityError
from linkstore.plans import Operation


class Words:
    """The words of one store: it indexes them from its beginning, or never.

    Args:
        tables: Of the store.
        recorded: What the store says of itself.
        settings: Of the backend.
        corpus: How many documents there are.
    """

    def __init__(
        self, tables: Tables, recorded: Recorded, settings: CassandraSettings, corpus: Corpus
    ) -> None:
        self.scan_limit = settings.scan_limit
        self._tables = tables
        self._indexed = recorded.lexical
        self._search = WordSearch(tables, recorded.buckets, corpus)

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[Lookup]:
        """See :meth:`WordSearch.look_up`.

        Raises:
            CapabilityError: If the store has no lexical search; the message says why and what to do.
        """
        if not self._indexed:
            raise CapabilityError(
                f"the store {self._tables.name!r} has no lexical search, because it was created with"
                " lexical=False; create it again without that setting, or use a strategy that does not need"
                " lexical search, such as Eager"
            )
        return (yield from self._search.look_up(words, scope))

"""Lexical search in a store that indexes words, and an error in one that does not."""

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
    """The words of one store, which indexes them or not, as fixed when it is created.

    Args:
        tables: The tables of the store.
        recorded: The settings of the store.
        settings: The settings of the backend.
        corpus: The number of documents.
    """

    def __init__(
        self, tables: Tables, recorded: Recorded, settings: CassandraSettings, corpus: Corpus
    ) -> None:
        self.scan_limit = settings.scan_limit
        self._tables = tables
        self._indexed = recorded.lexical
        self._search = WordSearch(tables, recorded.buckets, corpus)

    def look_up(self, words: Sequence[str], scope: Scope) -> Operation[Lookup]:
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

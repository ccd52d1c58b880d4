"""Determines which documents are in a scope, for one plan; reads no more of each than is needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import DocumentRow, searchable
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.errors import FilterError
from linkstore.filters import Condition
from linkstore.plans import Operation

_FEW: Final = 1_000
"""After so many documents were judged by id, the server's index is asked for all that the scope may hold."""
_LISTED: Final = 20_000
"""If it gives more than so many, documents are judged by id after all."""
_PAGE: Final = 5_000


class Scope:
    """The documents that exist for a plan, each judged once.

    Which of many documents the scope holds is told in one of two ways: by reading the metadata of each, or,
    where the filter has an equality that few documents have, by asking the server's index for those.

    Args:
        condition: What documents must pass.
        tables: Of the store.
        fetcher: Reads documents by id.
        limit: How many documents may be judged.
    """

    def __init__(self, condition: Condition, tables: Tables, fetcher: Fetcher, limit: int) -> None:
        self.condition = condition
        self._limit = limit
        self._judged = 0
        self._tables = tables
        self._fetcher = fetcher
        self._verdicts: dict[str, bool] = {}
        self._listed: set[str] | None = None
        self._equalities = searchable(dict(condition.equalities))

    @property
    def everything(self) -> bool:
        """Whether it holds all documents."""
        return self.condition.always

    def holds(self, row: DocumentRow) -> bool:
        """Whether it holds a document that was read, in that state and when it was judged before."""
        if self.condition.always:
            return True
        verdict = self._verdicts.get(row.id, True) and self.condition.matches(row.metadata())
        self._verdicts[row.id] = verdict
        return verdict

    def of(self, ids: Iterable[str], *, sample: bool = False) -> Operation[set[str]]:
        """Those of the documents that the scope holds.

        Args:
            ids: Their ids.
            sample: Whether the caller reads a bounded number by itself, which then does not count.

        Raises:
            FilterError: If more documents would have to be judged than the limit allows.
        """
        asked = dict.fromkeys(ids)
        unknown = self._unknown(asked)
        if unknown and self._equalities and len(self._verdicts) + len(unknown) > _FEW:
            yield from self._list()
            unknown = self._unknown(asked)
        self._judged += 0 if sample else len(unknown)
        if self._judged > self._limit:
            raise FilterError(
                f"more than scan_limit ({self._limit:,}) documents must be looked at to tell what the filter"
                " leaves: add an equality that few documents have, which the server looks up, or raise"
                " scan_limit"
            )
        for start in range(0, len(unknown), _PAGE):
            yield from self._judge(unknown[start : start + _PAGE])
        return {id for id in asked if self._verdict(id)}

    def _unknown(self, ids: Iterable[str]) -> list[str]:
        return [] if self._listed is not None else [id for id in ids if id not in self._verdicts]

    def _verdict(self, id: str) -> bool:
        known = self._verdicts.get(id)
        return known if known is not None else self._listed is not None and id in self._listed

    def _judge(self, ids: list[str]) -> Operation[None]:
        """By the metadata of each."""
        statement = cql.read_attributes(self._tables)
        rows = yield from self._fetcher.by_id(statement, ids, "read what filters ask for")
        self._verdicts.update(dict.fromkeys(ids, False))
        self._verdicts.update((id, self._passes(attributes)) for id, attributes in rows)

    def _list(self) -> Operation[None]:
        """By the server's index, if it does not give too many."""
        values = (*(part for pair in self._equalities.items() for part in pair), _LISTED + 1)
        text = cql.read_equal(self._tables, len(self._equalities))
        statement = Statement(cql=text, values=values)
        (rows,) = yield Requests(statements=(statement,), what="look up what a filter asks for")
        if len(rows) <= _LISTED:
            self._listed = {id for id, attributes in rows if self._passes(attributes)}
        self._equalities = {}

    def _passes(self, attributes: str) -> bool:
        return self.condition.matches(orjson.loads(attributes))

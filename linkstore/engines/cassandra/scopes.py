"""Which documents are in a scope, for one plan, and what a client has learned about filters.

What a client has learned about equalities of filters. It affects only how documents are found.

Determines which documents are in a scope, for one plan, and reads no more of each than is needed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import orjson

from linkstore.core.filters import Condition
from linkstore.core.plans import Operation
from linkstore.engines.cassandra import statements
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.engines.cassandra.rows import DocumentRow, select_searchable
from linkstore.engines.cassandra.statements import Tables
from linkstore.errors import FilterError

MAX_REMEMBERED_FILTERS: Final = 1_000
"""For how many combinations of equalities."""
FEW_NEAR_LIFETIME: Final = 60.0
"""How long it is remembered that few of the nearest documents satisfy them."""
Equalities = tuple[tuple[str, str], ...]
K = TypeVar("K")
V = TypeVar("V")


class FilterHistory:
    """Remembers how many documents satisfy equalities, and whether most of the nearest ones do.

    Threads may use it without a lock. At worst, something that was learned is forgotten.
    """

    def __init__(self) -> None:
        self._more_than: OrderedDict[Equalities, int] = OrderedDict()
        self._few_near: OrderedDict[Equalities, float] = OrderedDict()

    def more_than(self, asked: Mapping[str, str]) -> int:
        """Return a number that the documents satisfying the equalities exceed, 0 if none is known.

        The number is that of the last listing of these documents, which was not complete.
        """
        return self._more_than.get(_sort_equalities(asked), 0)

    def learn_more_than(self, asked: Mapping[str, str], number: int) -> None:
        """Remember that a listing of this many documents was not complete."""
        remember_value(self._more_than, _sort_equalities(asked), number, MAX_REMEMBERED_FILTERS)

    def may_be_near(self, asked: Mapping[str, str]) -> bool:
        """Say whether enough of the nearest documents may satisfy the equalities."""
        return time.monotonic() >= self._few_near.get(_sort_equalities(asked), 0.0)

    def learn_few_near(self, asked: Mapping[str, str]) -> None:
        """Remember that too few of the nearest documents satisfied the equalities."""
        remember_value(
            self._few_near,
            _sort_equalities(asked),
            time.monotonic() + FEW_NEAR_LIFETIME,
            MAX_REMEMBERED_FILTERS,
        )


def _sort_equalities(asked: Mapping[str, str]) -> Equalities:
    return tuple(sorted(asked.items()))


def remember_value(known: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Store a value, and forget the oldest one if there are too many. Other threads may do so as well."""
    known[key] = value
    with suppress(KeyError):
        known.move_to_end(key)
        if len(known) > most:
            known.popitem(last=False)


_MAX_CHECKED_BY_ID: Final = 1_000
"""Beyond this many documents to check, the server's index is asked for those that may be in the scope."""
_MAX_LISTED: Final = 20_000
"""The index is asked for at most this many."""
_LISTING_GROWTH: Final = 2
"""The index is asked again for at least this many times what it had more of."""
_CHECKS_PER_READ: Final = 5_000
ScopeCheck = Callable[[Sequence[str]], Operation[set[str]]]
"""Finds out which of some documents, named by id, are in a scope."""


class Scope:
    """The documents that exist for a plan, each of which is checked once.

    There are two ways to check many documents: read the metadata of each, or, if the filter has an equality
    that few documents satisfy, ask the server's index for these. A document costs about the same in both
    ways, so the index is asked for at most as many as there are to check. If it has more, this is remembered.

    Args:
        condition: The condition that documents must pass.
        tables: The tables of the store.
        fetcher: Reads documents by id.
        limit: Maximum number of documents to check.
        experience: What is known about the equalities of filters.
    """

    def __init__(
        self, condition: Condition, tables: Tables, fetcher: RowFetcher, limit: int, experience: FilterHistory
    ) -> None:
        self.condition = condition
        self._experience = experience
        self._limit = limit
        self._judged = 0
        self._tables = tables
        self._fetcher = fetcher
        self._verdicts: dict[str, bool] = {}
        self._listed: set[str] | None = None
        self._equalities = select_searchable(dict(condition.equalities))

    @property
    def everything(self) -> bool:
        """Whether all documents are in the scope."""
        return self.condition.always

    def holds(self, row: DocumentRow) -> bool:
        """Say whether a document that was read is in the scope, now and when it was checked before."""
        if self.condition.always:
            return True
        verdict = self._verdicts.get(row.id, True) and self.condition.matches(row.metadata())
        self._verdicts[row.id] = verdict
        return verdict

    def of(self, ids: Iterable[str], *, sample: bool = False) -> Operation[set[str]]:
        """Return the ids of documents in the scope.

        Args:
            ids: The documents to check.
            sample: Whether the caller bounds the number of documents. They do not count to the limit then.

        Raises:
            FilterError: If more documents would have to be checked than the limit allows.
        """
        asked = dict.fromkeys(ids)
        unknown = self._list_unknown(asked)
        if at_most := self._count_worth_listing(unknown):
            yield from self._list(at_most)
            unknown = self._list_unknown(asked)
        if not sample:
            self.charge(len(unknown))
        for start in range(0, len(unknown), _CHECKS_PER_READ):
            yield from self._check(unknown[start : start + _CHECKS_PER_READ])
        return {id for id in asked if self._verdict(id)}

    def charge(self, documents: int) -> None:
        """Count documents that are checked.

        Raises:
            FilterError: If there are now more than the limit allows.
        """
        self._judged += documents
        if self._judged > self._limit:
            raise FilterError(
                f"more than scan_limit ({self._limit:,}) documents must be looked at to tell what the filter"
                " leaves: add an equality that few documents have, which the server looks up, or raise"
                " scan_limit"
            )

    def _list_unknown(self, ids: Iterable[str]) -> list[str]:
        return [] if self._listed is not None else [id for id in ids if id not in self._verdicts]

    def _verdict(self, id: str) -> bool:
        known = self._verdicts.get(id)
        return known if known is not None else self._listed is not None and id in self._listed

    def _check(self, ids: list[str]) -> Operation[None]:
        """Check documents by their metadata."""
        statement = statements.read_attributes(self._tables)
        rows = yield from self._fetcher.by_id(statement, ids, "read what filters ask for")
        self._verdicts.update(dict.fromkeys(ids, False))
        self._verdicts.update((id, self._passes(attributes)) for id, attributes in rows)

    def _count_worth_listing(self, unknown: Sequence[str]) -> int:
        """Return the number of documents to ask the server's index for.

        The number is 0 if the unknown ones are checked by id.
        """
        if not unknown or not self._equalities:
            return 0
        if self._judged + len(unknown) > self._limit:
            return _MAX_LISTED
        to_check = min(len(self._verdicts) + len(unknown), _MAX_LISTED)
        more_than = self._experience.more_than(self._equalities)
        return to_check if to_check > max(_MAX_CHECKED_BY_ID, _LISTING_GROWTH * more_than) else 0

    def _list(self, at_most: int) -> Operation[None]:
        """List the documents of the scope by the server's index, only some of them if there are more."""
        values = (*(part for pair in self._equalities.items() for part in pair), at_most + 1)
        text = statements.read_equal(self._tables, len(self._equalities))
        statement = Statement(cql=text, values=values)
        (rows,) = yield Requests(statements=(statement,), what="look up the documents of a filter")
        if len(rows) <= at_most:
            self._listed = {id for id, attributes in rows if self._passes(attributes)}
            return
        self._experience.learn_more_than(self._equalities, at_most)
        for id, attributes in rows:
            if id not in self._verdicts:
                self._verdicts[id] = self._passes(attributes)
        if at_most == _MAX_LISTED:
            self._equalities = {}

    def _passes(self, attributes: str | None) -> bool:
        return attributes is not None and self.condition.matches(orjson.loads(attributes))

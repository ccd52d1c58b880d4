"""Filters of documents and links: their results on the mirror's columns, kept for recent filters.

A cache of results for recent filters, as columns; the least recently used is dropped first.

A cache of the documents that pass a filter.

The metadata of a mirror's row never change (an update makes a new row), so a verdict stays valid.

A cache of the links that pass a filter on their data, by the entries of a mirror.

Neither the table of links nor the mirror contains link data. A search with such a filter reads them from the
documents that it reaches; other searches cost nothing extra.

A reader within a scope: it sees only the documents that pass a filter, as if there were no others.

:mod:`.verdicts` caches which documents pass. This module caches totals over all of them, for the scopes that
were used last.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, TypeVar

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Floats, Ints
from linkstore.core.documents import collect_weights
from linkstore.core.filters import Condition
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Side
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.lexical import read_lengths
from linkstore.engines.embedded.mirror import Array, Column, Mirror
from linkstore.engines.embedded.schema import convert_row_errors, read_metadata

K = TypeVar("K", bound=Hashable)
MOST_CACHE_BYTES: Final = 64 << 20
"""The most memory that all columns take together."""
LEAST_CACHED_COLUMNS: Final = 4
"""This many columns are kept, however large they are."""


class ResultCache(Generic[K]):
    """A column for each filter, shared by the readers of one process.

    Args:
        unknown: (1,) the value that stands for an unknown result.
        columns: Columns of known results.
    """

    def __init__(self, unknown: Array, columns: Mapping[K, Column] | None = None) -> None:
        self._unknown = unknown
        self._columns: OrderedDict[K, Column] = OrderedDict(columns or {})
        self._lock = threading.Lock()

    def column(self, key: K, last: int) -> Column:
        """Return the column of a filter, with at least ``last + 1`` rows."""
        with self._lock:
            column = self._columns.get(key) or Column.of(self._unknown[:0])
            if len(column) <= last:
                column = column.extended(np.repeat(self._unknown, last + 1 - len(column)))
            self._columns[key] = column
            self._columns.move_to_end(key)
            self._forget()
            return column

    def columns(self) -> dict[K, Column]:
        """Return all columns."""
        with self._lock:
            return dict(self._columns)

    def _forget(self) -> None:
        row = self._unknown.itemsize
        taken = row * sum(map(len, self._columns.values()))
        while taken > MOST_CACHE_BYTES and len(self._columns) > LEAST_CACHED_COLUMNS:
            taken -= row * len(self._columns.popitem(last=False)[1])


_UNKNOWN, _NO, _YES = 0, 1, 2


class Verdicts:
    """The verdicts of recent filters, shared by the readers of one process.

    Args:
        columns: Verdicts by row, for each filter.
    """

    def __init__(self, columns: Mapping[str, Column] | None = None) -> None:
        self._columns = ResultCache(np.array([_UNKNOWN], np.uint8), columns)

    def of(self, condition: Condition, rows: Ints, keys: Column, connection: apsw.Connection) -> Bools:
        """Say whether each document passes (n,), and read documents without a cached verdict.

        Args:
            condition: The filter.
            rows: (n,) rows of documents.
            keys: Document keys, by row.
            connection: In the reader's transaction.
        """
        if condition.always or not len(rows):
            return np.ones(len(rows), dtype=np.bool_)
        column = self._columns.column(condition.key, int(rows.max()))
        verdicts = column.take(rows)
        unknown = np.unique(rows[verdicts == _UNKNOWN])
        if len(unknown):
            column.put(unknown, _judge_documents(condition, keys.take(unknown), connection))
            verdicts = column.take(rows)
        passing: Bools = verdicts == _YES
        return passing

    def carried(self, old: Column, new: Column) -> Verdicts:
        """Return the same verdicts for a mirror with other row numbers.

        Args:
            old: Document keys by the rows of these verdicts.
            new: Document keys by the rows of the other mirror.
        """
        rows, found = old.find(new.rows(0, len(new)))
        known = self._columns.columns()
        return Verdicts({key: _renumber_verdicts(column, rows, found) for key, column in known.items()})


def _renumber_verdicts(column: Column, rows: Ints, found: Bools) -> Column:
    known = found & (rows < len(column))
    moved = np.full(len(rows), _UNKNOWN, np.uint8)
    moved[known] = column.take(rows[known])
    return Column.of(moved)


def _judge_documents(condition: Condition, keys: Ints, connection: apsw.Connection) -> Ints:
    """Return the verdict on each of the keys. A document that was removed does not pass."""
    verdicts = np.full(len(keys), _NO, dtype=np.int64)
    with_links = LINKS_KEY in condition.key
    columns = "key, metadata, links" if with_links else "key, metadata, NULL"
    rows = fetch_rows(
        connection,
        f"SELECT {columns} FROM document WHERE key IN (SELECT value FROM json_each(?))",
        (orjson.dumps(keys.tolist()).decode(),),
    )
    position = dict(zip(keys.tolist(), range(len(keys)), strict=True))
    for key, metadata, links in rows:
        with convert_row_errors("documents"):
            fields = read_metadata(metadata, links)
        if condition.matches(fields):
            verdicts[position[key]] = _YES
    return verdicts


_NO_WEIGHT: Final = np.float32(-1)
_SELECT_LINKS_BY_KEY: Final = "SELECT key, links FROM document WHERE key IN (SELECT value FROM json_each(?))"
DATA_FIELD: Final = '"data":'
"""The JSON of links contains this string if one of them has data."""


class LinkVerdicts:
    """The weights of links that pass recent filters, shared by the readers of one process."""

    def __init__(self) -> None:
        self._columns = ResultCache[tuple[str, Side]](np.array([np.nan], np.float32))

    def weights(
        self, condition: Condition, side: Side, entries: Ints, mirror: Mirror, connection: apsw.Connection
    ) -> Floats:
        """Return for each entry (m,) the highest weight of its links that pass on a side, or -1 if none does.

        Args:
            condition: The filter.
            side: The side of the link groups.
            entries: (m,) entries of the mirror; the reader sees their documents.
            mirror: The mirror that has these entries.
            connection: In the reader's transaction.
        """
        if not len(entries):
            return np.empty(0, np.float32)
        column = self._columns.column((condition.key, side), int(entries.max()))
        unknown = np.unique(entries[np.isnan(column.take(entries))])
        if len(unknown):
            column.put(unknown, _judge_links(condition, side, unknown, mirror, connection))
        weights: Floats = column.take(entries)
        return weights


def _judge_links(
    condition: Condition, side: Side, entries: Ints, mirror: Mirror, connection: apsw.Connection
) -> Floats:
    rows = mirror.link_document.take(entries).astype(np.int64)
    distinct, owner = np.unique(rows, return_inverse=True)
    keys = mirror.keys.take(distinct).tolist()
    stored = dict(fetch_rows(connection, _SELECT_LINKS_BY_KEY, (orjson.dumps(keys).decode(),)))
    written: list[str] = [stored.get(key) or "" for key in keys]
    weights = np.full(len(entries), _NO_WEIGHT, np.float32)
    if condition.matches({}):
        weights[:] = mirror.link_weight.take(entries)
    told = np.array([DATA_FIELD in links for links in written], np.bool_)[owner]
    with convert_row_errors("documents"):
        passing = {
            at: collect_weights(parse_links(read_metadata("{}", written[at])), side, condition)
            for at in np.unique(owner[told]).tolist()
        }
    groups = mirror.link_group.take(entries[told]).astype(np.int64)
    kinds, tags = mirror.group_kind.take(groups).tolist(), mirror.tags.take(groups)
    weights[told] = [
        passing[at].get((mirror.kinds[kind], tag), _NO_WEIGHT)
        for at, kind, tag in zip(owner[told].tolist(), kinds, tags, strict=True)
    ]
    return weights


REMEMBERED_BYTES: Final = 1 << 26
"""How much memory the cached scopes may take; the least recently used is dropped first."""
_OVERHEAD: Final = 1024
_FIRST: Final = 8
"""Multiple of the cap that is read first of a large link group; each further read is this factor larger."""


class ScopeDocuments:
    """The documents of one state that pass a scope.

    Args:
        rows: (n,) rows of documents, ascending.
    """

    def __init__(self, rows: Ints) -> None:
        self.rows = rows
        self._words: int | None = None

    def average(self, lengths: Callable[[Ints], Ints]) -> float:
        """Return how many words a document has on average. ``lengths`` returns the number for each."""
        if self._words is None:
            self._words = int(lengths(self.rows).sum())
        return self._words / max(1, len(self.rows))


class ScopeCache:
    """The documents of recent scopes, shared by the readers of one process."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, ScopeDocuments]] = OrderedDict()
        self._lock = threading.Lock()
        self.lengths = LengthCache()

    def inside(self, scope: Condition, change: int, find: Callable[[], Ints]) -> ScopeDocuments:
        """Return the documents of a scope at a change. ``find`` returns their rows if they are not cached."""
        with self._lock:
            known = self._known.get(scope.key)
            if known is not None and known[0] == change:
                self._known.move_to_end(scope.key)
                return known[1]
        found = ScopeDocuments(find())
        with self._lock:
            self._known[scope.key] = change, found
            self._known.move_to_end(scope.key)
            self._trim()
        return found

    def _trim(self) -> None:
        size = sum(inside.rows.nbytes + _OVERHEAD for _, inside in self._known.values())
        while size > REMEMBERED_BYTES and len(self._known) > 1:
            _, (_, dropped) = self._known.popitem(last=False)
            size -= dropped.rows.nbytes + _OVERHEAD


class LengthCache:
    """A cache of how many words documents have; the text of a row of a mirror never changes."""

    def __init__(self) -> None:
        self._column = Column.of(np.zeros(0, np.int32))
        self._lock = threading.Lock()

    def of(self, rows: Ints, keys: Column, connection: apsw.Connection) -> Ints:
        """Return how many words each document has (n,), and read the numbers that are not cached.

        Args:
            rows: (n,) rows of documents.
            keys: Document keys, by row.
            connection: In the reader's transaction.
        """
        if not len(rows):
            return rows
        column = self._get_covering(int(rows.max()))
        found = column.take(rows)
        unknown = keys.take(rows[found < 0])
        if len(unknown):
            read, counts = read_lengths(connection, int(unknown.min()), int(unknown.max()))
            at, known = keys.find(read)
            known &= at < len(column)
            column.put(at[known], counts[known])
            found = np.maximum(column.take(rows), 0)
        return found.astype(np.int64)

    def _get_covering(self, last_row: int) -> Column:
        with self._lock:
            missing = last_row + 1 - len(self._column)
            if missing > 0:
                self._column = self._column.extended(np.full(missing, -1, np.int32))
            return self._column


def find_large_groups(
    gather: Callable[[Ints, int], tuple[Ints, Ints]],
    sizes: Ints,
    cap: int,
) -> Bools:
    """Say which link groups (g,) have more than ``cap`` members in a scope.

    Large groups are read a part at a time, until enough members in the scope are found.

    Args:
        gather: Takes positions of groups and a number; reads at least that many members of each group, if
            it has them, and returns those in the scope as positions in its first argument and documents.
        sizes: (g,) upper bounds of the sizes of the groups, with all documents counted.
        cap: See above.
    """
    large = np.zeros(len(sizes), np.bool_)
    open_, most = np.flatnonzero(sizes > cap), _FIRST * (cap + 1)
    while len(open_):
        owner, _ = gather(open_, most)
        counted = np.bincount(owner, minlength=len(open_))
        large[open_[counted > cap]] = True
        open_ = open_[(counted <= cap) & (sizes[open_] > most)]
        most *= _FIRST
    return large

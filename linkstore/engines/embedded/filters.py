"""What filters said of documents and links, kept for recent filters by the rows and entries of one mirror.

The metadata, links and words of a mirror's row never change (an update makes a new row), so a result stays
valid as long as the mirror's rows are numbered as they are. Link data are in no table and no column: a search
with a filter on them reads the documents that it reaches, and other searches cost nothing extra.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

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
from linkstore.engines.embedded.schema import DATA_FIELD, convert_row_errors, read_metadata

K = TypeVar("K")
R = TypeVar("R", Column, "ScopeDocuments")
MOST_CACHE_BYTES: Final = 64 << 20
"""The most memory that the results of all filters take together; the least recently used go first."""
LEAST_CACHED_RESULTS: Final = 4
"""This many results are kept, however large they are."""
_UNKNOWN, _NO, _YES = -2, 0, 1
_NO_WEIGHT: Final = np.float32(-1)
_SELECT: Final = "SELECT key, {} FROM document WHERE key IN (SELECT value FROM json_each(?))"


class ScopeDocuments:
    """The documents of one state that pass a scope.

    Args:
        change: The last change of that state.
        rows: (n,) rows of documents, ascending.
    """

    def __init__(self, change: int, rows: Ints) -> None:
        self.change = change
        self.rows = rows
        self.nbytes = rows.nbytes
        self._words: int | None = None

    def average(self, lengths: Callable[[Ints], Ints]) -> float:
        """Return how many words a document has on average. ``lengths`` returns the number for each."""
        if self._words is None:
            self._words = int(lengths(self.rows).sum())
        return self._words / max(1, len(self.rows))


class FilterCache:
    """The results of recent filters and scopes, shared by the readers of one process."""

    def __init__(self) -> None:
        self._columns: OrderedDict[Hashable, Column] = OrderedDict()
        self._scopes: OrderedDict[str, ScopeDocuments] = OrderedDict()
        self._lock = threading.Lock()

    def find_passing(
        self, condition: Condition, rows: Ints, keys: Column, connection: apsw.Connection
    ) -> Bools:
        """Say whether each document passes (n,), and read documents of which that is not known.

        Args:
            condition: The filter.
            rows: (n,) rows of documents.
            keys: Document keys, by row.
            connection: In the reader's transaction.
        """
        if condition.always:
            return np.ones(len(rows), dtype=np.bool_)

        def judge(unknown: Ints) -> Array:
            return _judge_documents(condition, keys.take(unknown), connection)

        passing: Bools = self._look_up(condition.key, np.dtype(np.int8), rows, judge) == _YES
        return passing

    def find_weights(
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

        def judge(unknown: Ints) -> Array:
            return _judge_links(condition, side, unknown, mirror, connection)

        return self._look_up((condition.key, side), np.dtype(np.float32), entries, judge)

    def find_lengths(self, rows: Ints, keys: Column, connection: apsw.Connection) -> Ints:
        """Return how many words each document (n,) has; ``keys`` are document keys by row."""

        def read(unknown: Ints) -> Array:
            wanted = keys.take(unknown)
            found, counts = read_lengths(connection, int(wanted[0]), int(wanted[-1]))
            at = np.minimum(np.searchsorted(found, wanted), max(0, len(found) - 1))
            return np.where(found[at] == wanted, counts[at], 0) if len(found) else np.zeros(len(wanted))

        return self._look_up(None, np.dtype(np.int32), rows, read).astype(np.int64)

    def find_inside(self, scope: Condition, change: int, find: Callable[[], Ints]) -> ScopeDocuments:
        """Return the documents of a scope at a change. ``find`` returns their rows if they are not known."""
        with self._lock:
            known = self._scopes.get(scope.key)
        if known is None or known.change != change:
            known = ScopeDocuments(change, find())
        with self._lock:
            self._scopes[scope.key] = known
            _trim(self._scopes, scope.key, 1)
        return known

    def _look_up(
        self, key: Hashable, dtype: np.dtype[Any], rows: Ints, judge: Callable[[Ints], Array]
    ) -> Array:
        """Return the results of a filter (n,); ``judge`` returns those of ascending rows that lack one."""
        if not len(rows):
            return np.empty(0, dtype)
        column = self._get_column(key, dtype, int(rows.max()) + 1)
        found = column.take(rows)
        unknown = np.unique(rows[found == _UNKNOWN])
        if len(unknown):
            column.put(unknown, judge(unknown))
            found = column.take(rows)
        return found

    def _get_column(self, key: Hashable, dtype: np.dtype[Any], length: int) -> Column:
        """Return the column of a filter, with at least this many rows."""
        with self._lock:
            column = self._columns.get(key) or Column.of(np.empty(0, dtype))
            if len(column) < length:
                column = column.extended(np.full(length - len(column), _UNKNOWN, dtype))
            self._columns[key] = column
            _trim(self._columns, key, LEAST_CACHED_RESULTS)
            return column


def _trim(results: OrderedDict[K, R], latest: K, least: int) -> None:
    """Drop the least recently used results until the others fit into memory, or ``least`` are left."""
    results.move_to_end(latest)
    taken = sum(result.nbytes for result in results.values())
    while taken > MOST_CACHE_BYTES and len(results) > least:
        taken -= results.popitem(last=False)[1].nbytes


def _judge_documents(condition: Condition, keys: Ints, connection: apsw.Connection) -> Array:
    """Return the verdict on each of the keys. A document that was removed does not pass."""
    columns = "metadata, links" if LINKS_KEY in condition.key else "metadata, NULL"
    rows = fetch_rows(connection, _SELECT.format(columns), (orjson.dumps(keys.tolist()).decode(),))
    passing = []
    for key, metadata, links in rows:
        with convert_row_errors("documents"):
            fields = read_metadata(metadata, links)
        if condition.matches(fields):
            passing.append(key)
    return np.where(np.isin(keys, passing), _YES, _NO)


def _judge_links(
    condition: Condition, side: Side, entries: Ints, mirror: Mirror, connection: apsw.Connection
) -> Floats:
    rows = mirror.link_document.take(entries).astype(np.int64)
    distinct, owner = np.unique(rows, return_inverse=True)
    keys = mirror.keys.take(distinct).tolist()
    stored = dict(fetch_rows(connection, _SELECT.format("links"), (orjson.dumps(keys).decode(),)))
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

"""What filters said of documents and links, and ids, kept by the rows and entries of one mirror.

The metadata and links of a mirror's row never change (an update makes a new row), so a result stays
valid as long as the mirror's rows are numbered as they are. Link data are in no table and no column: a search
with a filter on them reads the documents that it reaches, and other searches cost nothing extra.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints, sort_unique
from linkstore.core.documents import collect_weights
from linkstore.core.filters import Condition
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Side
from linkstore.core.processes import Lock
from linkstore.engines.embedded.lexical import Posting
from linkstore.engines.embedded.mirror import Array, Mirror
from linkstore.engines.embedded.schema import (
    DATA_FIELD,
    convert_row_errors,
    fetch_rows,
    read_ids,
    read_metadata,
    read_tags,
)
from linkstore.engines.embedded.vectors import AnnIndex

MOST_CACHE_BYTES: Final = 64 << 20
"""The most memory that the results of all filters take together; the least recently used go first. Of ids,
which are kept in the same way, the references count, and not the strings."""
LEAST_CACHED_RESULTS: Final = 4
"""This many results are kept, however large they are."""
_UNKNOWN, _NO, _YES = -2, 0, 1
_NO_WEIGHT: Final = np.float32(-1)
_SELECT: Final = "SELECT key, {} FROM document WHERE key IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class ScopeDocuments:
    """The documents of one state that pass a scope.

    Args:
        change: The last change of that state.
        rows: (n,) rows of documents, ascending.
        words: How many words they have on average; 1 if there are none.
    """

    change: int
    rows: Ints
    words: float

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return self.rows.nbytes


class FilterCache:
    """The results of recent filters and scopes, shared by the readers of one process."""

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def look_up(
        self, key: Hashable, dtype: type[np.generic], rows: Ints, judge: Callable[[Ints], Array]
    ) -> Array:
        """Return the results of a filter (n,); ``judge`` computes the missing ones, for ascending rows.

        What two threads find at the same time may be kept for one of them alone, and is found once more.
        """
        kept: Array = self._results.get(key, np.empty(0, dtype))
        lacking = int(rows.max(initial=-1)) + 1 - len(kept)
        if lacking > 0:
            kept = np.concatenate((kept, np.full(lacking, _UNKNOWN, dtype)))
        results = kept[rows]
        unknown = sort_unique(rows[results == _UNKNOWN])
        if len(unknown):
            kept[unknown] = judge(unknown)
            results = kept[rows]
        self.keep(key, kept)
        return results

    def get(self, key: Hashable) -> Any:
        """Return what is kept under a key, or None."""
        return self._results.get(key)

    def keep(self, key: Hashable, result: Array | ScopeDocuments | Posting) -> None:
        """Keep a result, and drop those kept longest ago until the others fit into memory.

        A filter is kept again whenever it is used, a posting when it is read.
        """
        with self._lock:
            before = self._results.pop(key, None)
            self._results[key] = result
            # A store with a filter for each user has thousands of results, too many to add up each time.
            self._bytes += result.nbytes - (0 if before is None else before.nbytes)
            while self._bytes > MOST_CACHE_BYTES and len(self._results) > LEAST_CACHED_RESULTS:
                self._bytes -= self._results.popitem(last=False)[1].nbytes


@dataclass(frozen=True, slots=True)
class StoreView:
    """The data that a reader reads, and the results of filters on them.

    Args:
        connection: In a read transaction.
        mirror: A mirror of the state that the transaction sees.
        cache: Shared cache of what filters said, by the mirror's rows and entries.
        index: The approximate index, if there is one that finds enough; without it, searches are exact.
    """

    connection: apsw.Connection
    mirror: Mirror
    cache: FilterCache
    index: AnnIndex | None

    def find_passing(self, condition: Condition, rows: Ints) -> Bools:
        """Say whether each document passes (n,), and read documents whose result is not cached."""
        if condition.always:
            return np.ones(len(rows), dtype=np.bool_)

        def judge(unknown: Ints) -> Array:
            return _judge_documents(condition, self.mirror.keys.take(unknown), self.connection)

        passing: Bools = self.cache.look_up(condition.key, np.int8, rows, judge) == _YES
        return passing

    def find_weights(self, condition: Condition, side: Side, entries: Ints) -> Floats:
        """Return for each entry (m,) the highest weight of its links that pass on a side, or -1 if none does.

        Args:
            condition: The filter.
            side: The side of the link groups.
            entries: (m,) entries of the mirror; the reader sees their documents.
        """

        def judge(unknown: Ints) -> Array:
            return _judge_links(condition, side, unknown, self.mirror, self.connection)

        return self.cache.look_up((condition.key, side), np.float32, entries, judge)

    def find_ids(self, rows: Ints) -> list[str]:
        """Return the ids of documents (n,): the same ones decide many ties."""

        def read(unknown: Ints) -> Array:
            return np.array(read_ids(self.connection, self.mirror.keys.take(unknown)), object)

        ids: list[str] = self.cache.look_up("ids", np.object_, rows, read).tolist()
        return ids

    def find_inside(self, scope: Condition) -> ScopeDocuments:
        """Return the documents of a scope."""
        key, mirror = ("inside", scope.key), self.mirror
        documents: ScopeDocuments | None = self.cache.get(key)
        if documents is None or documents.change != mirror.change:
            rows = mirror.find_living()
            rows = rows[self.find_passing(scope, rows)]
            words = mirror.words.take(rows).sum() / len(rows) if len(rows) else 1.0
            documents = ScopeDocuments(mirror.change, rows, float(words))
        self.cache.keep(key, documents)
        return documents


def _judge_documents(condition: Condition, keys: Ints, connection: apsw.Connection) -> Array:
    """Return the verdict on each of the keys. A document that was removed does not pass."""
    columns = "metadata, links" if LINKS_KEY in condition.key else "metadata, NULL"
    rows = fetch_rows(connection, _SELECT.format(columns), (keys.tolist(),))
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
    stored = dict(fetch_rows(connection, _SELECT.format("links"), (keys,)))
    written: list[str] = [stored.get(key) or "" for key in keys]
    weights = np.full(len(entries), _NO_WEIGHT, np.float32)
    if condition.matches({}):
        weights[:] = mirror.sides[side].weight.take(entries)
    has_data = np.array([DATA_FIELD in links for links in written], np.bool_)[owner]
    with convert_row_errors("documents"):
        passing = {
            at: collect_weights(parse_links(read_metadata("{}", written[at])), side, condition)
            for at in np.unique(owner[has_data]).tolist()
        }
    groups = mirror.link_group.take(entries[has_data]).astype(np.int64)
    tags = read_tags(connection, groups)
    weights[has_data] = [
        passing[at].get(tag, _NO_WEIGHT) for at, tag in zip(owner[has_data].tolist(), tags, strict=True)
    ]
    return weights

"""Access times of documents, in a separate table, so that recording one rewrites nothing else.

The key of a row is a document and when it was added, so a document that is removed and added again has no
access, whatever the clocks say. The time of an access is also the timestamp of its row, so the latest one
stays, in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.transport.requests import Statement, sent
from linkstore.plans import Operation

_AT_ONCE: Final = 50
"""Number of documents whose accesses one statement deletes."""


def key_of(id: str, born: int | None) -> str:
    """Return the key of a document's access: when the document was added (None: not recorded) and its id."""
    return id if born is None else f"{born} {id}"


def forget(tables: Tables, documents: Iterable[tuple[str, int | None]], at: int) -> Iterator[Statement]:
    """Delete the accesses of removed documents: ids, and when they were added.

    Accesses later than ``at`` remain, and are never read.
    """
    keys = [key_of(*one) for one in documents]
    for start in range(0, len(keys), _AT_ONCE):
        values = at, keys[start : start + _AT_ONCE]
        yield Statement(cql=cql.delete_accesses(tables), values=values, level="write")


class Accesses:
    """Records and reads accesses.

    Args:
        tables: The tables of the store.
        fetcher: Reads which documents there are.
        lifetime: Seconds until what is written expires. None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = lifetime

    def touch(self, times: Mapping[str, int]) -> Operation[int]:
        """Record the access times of stored documents, and return the number of documents recorded.

        If a document is removed while its access is recorded, the access remains but is not read.
        """
        there = yield from self._fetcher.present(list(times))
        text = cql.write_access(self._tables, lifetime=self._lifetime is not None)
        lifetime = () if self._lifetime is None else (self._lifetime,)
        rows = ((key_of(id, born), times[id], times[id], *lifetime) for id, born in there.items())
        yield from sent("record accesses", (Statement(cql=text, values=row, level="write") for row in rows))
        return len(there)

    def accessed(self, ids: Sequence[str]) -> Operation[dict[str, int]]:
        """Return the access times of the documents that are stored and have one."""
        there = yield from self._fetcher.present(list(dict.fromkeys(ids)))
        ids_of = {key_of(id, born): id for id, born in there.items()}
        rows = yield from self._fetcher.by_id(cql.read_accesses(self._tables), list(ids_of), "read accesses")
        return {ids_of[key]: time for key, time in rows}

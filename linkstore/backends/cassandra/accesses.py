"""Access times of documents, in a separate table, so that recording one rewrites nothing else.

The time of an access is the timestamp of its row, so the latest one stays, in whatever order they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation


class Accesses:
    """Records and reads accesses.

    Args:
        tables: The tables of the store.
        fetcher: Reads which documents there are.
        lifetime: Seconds until what is written expires; None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = lifetime

    def touch(self, times: Mapping[str, int]) -> Operation[int]:
        """Record the access times of stored documents; return the number of documents recorded.

        If a document is removed while its access is recorded, the access remains but is not read.
        """
        there = yield from self._fetcher.present(list(times))
        text = cql.write_access(self._tables, lifetime=self._lifetime is not None)
        lifetime = () if self._lifetime is None else (self._lifetime,)
        statements = tuple(
            Statement(cql=text, values=(id, times[id], times[id], *lifetime), level="write")
            for id in times
            if id in there
        )
        if statements:
            yield Requests(statements=statements, what="record accesses")
        return len(statements)

    def accessed(self, ids: Sequence[str]) -> Operation[dict[str, int]]:
        """The times of those documents that are stored and have one."""
        rows = yield from self._fetcher.by_id(cql.read_accesses(self._tables), ids, "read accesses")
        times: dict[str, int] = dict(rows)
        there = yield from self._fetcher.present(list(times))
        return {id: time for id, time in times.items() if id in there}

"""Ways to write to Cassandra, each wrong in one point; tests/cassandra/test_schedules.py must notice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.engines.cassandra import writing
from linkstore.engines.cassandra.derived import DerivedRows, RowChange, RowSet
from linkstore.engines.cassandra.statements import run_writes
from linkstore.engines.cassandra.writing import CassandraWriter

Patches = list[tuple[Any, str, Any]]
"""A class or module, the name of a function of it, and what is there instead."""
_finish = DerivedRows.finish
_replace = CassandraWriter._replace
_put_part = CassandraWriter._put_part
_add = DerivedRows.add
_plan = writing._plan_relink


def deletes_at_the_time_of_day() -> Patches:
    """What went is taken out with a new timestamp, which reaches what others added meanwhile."""

    def finish(self, changes):
        now = time.time_ns() // 1_000
        return _finish(self, [replace(change, at=now, gone_at=now) for change in changes])

    return [(DerivedRows, "finish", finish)]


def skips_rows_that_seem_to_be_there() -> Patches:
    """A row that the stored document has already is not added again."""

    def put_part(self, versions):
        stored = yield from self.fetcher.versions([version.id for version in versions])
        before = self.derived.derive(list(stored.values()))

        def add(changes):
            return _add(self.derived, [_without(change, before) for change in changes])

        mine = _Overlaid(self.derived, {"add": add})
        writer, self.derived = self.derived, mine
        try:
            return (yield from _put_part(self, versions))
        finally:
            self.derived = writer

    return [(CassandraWriter, "_put_part", put_part)]


def relinks_with_later_timestamps() -> Patches:
    """A relink wins over writes of the next seconds, and what it takes out is theirs too."""
    return [(writing, "_TIMESTAMP_OFFSET", 10_000_000)]


def adds_rows_after_the_document() -> Patches:
    """Whoever stops in between leaves a document without its members and words."""

    def put(self, ids, versions, rows):
        changes = yield from _replace(self, ids, versions, rows)
        adding = [self._make_change(of) for of in rows.values()]
        yield from run_writes("write members and words", _add(self.derived, adding))
        return changes

    return [(DerivedRows, "add", lambda self, changes: ()), (CassandraWriter, "_replace", put)]


def relinks_all_that_it_read() -> Patches:
    """Links of other kinds are written as they were read, so what others made of them meanwhile is lost."""

    def plan(before, kinds, links):
        known = parse_links({LINKS_KEY: orjson.loads(before.written_links or "[]")}, before.id)
        others = [link for link in known if link.kind not in kinds]
        return _plan(before, {*kinds, *(link.kind for link in others)}, [*links, *others])

    return [(writing, "_plan_relink", plan)]


def adds_without_a_look() -> Patches:
    """What a deletion of a client whose clock is ahead hides is acknowledged."""
    return [(CassandraWriter, "_until_there", lambda *_: iter(()))]


WITH_CLOCKS_THAT_DIFFER: Final = frozenset({"adds_without_a_look"})
BROKEN: Final[Mapping[str, Callable[[], Patches]]] = {
    made.__name__: made
    for made in (
        deletes_at_the_time_of_day,
        skips_rows_that_seem_to_be_there,
        relinks_with_later_timestamps,
        adds_rows_after_the_document,
        relinks_all_that_it_read,
        adds_without_a_look,
    )
}


class _Overlaid:
    """An object with some other methods."""

    def __init__(self, whole: Any, methods: Mapping[str, Any]) -> None:
        self.__dict__.update(methods)
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def _without(change: RowChange, before: Mapping[str, RowSet]) -> RowChange:
    """A change without the rows that the documents have already."""
    known = {key for row_set in before.values() for rows in row_set for key in rows}
    now = tuple({key: state for key, state in rows.items() if key not in known} for rows in change.now)
    return replace(change, now=now)

"""Ways to write to Cassandra, each wrong in one point; tests/cassandra/test_schedules.py must notice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.engines.cassandra import writing
from linkstore.engines.cassandra.derived import DerivedRows
from linkstore.engines.cassandra.statements import run_writes
from linkstore.engines.cassandra.writing import ChangeWriter

Patches = list[tuple[Any, str, Any]]
"""A class or module, the name of a function of it, and what is there instead."""
_finish = DerivedRows.finish
_put = ChangeWriter._put
_put_part = ChangeWriter._put_part
_add = DerivedRows.add
_step = writing._plan_relink


def deletes_at_the_time_of_day() -> Patches:
    """What went is taken out with a new timestamp, which reaches what others added meanwhile."""

    def finish(self, steps, at, lifetime=None):
        return _finish(self, steps, time.time_ns() // 1_000, lifetime)

    return [(DerivedRows, "finish", finish)]


def skips_rows_that_seem_to_be_there() -> Patches:
    """A row that the stored document has already is not added again."""

    def put_part(self, prepared):
        before = yield from self.derived.stored([item.record.id for item in prepared])

        def add(states, at, lifetime=None):
            return _add(self.derived, [_without(state, before.get(state.id)) for state in states], at)

        mine = _Overlaid(self.derived, {"add": add})
        writer, self.derived = self.derived, mine
        try:
            return (yield from _put_part(self, prepared))
        finally:
            self.derived = writer

    return [(ChangeWriter, "_put_part", put_part)]


def relinks_with_later_timestamps() -> Patches:
    """A relink wins over writes of the next seconds, and what it takes out is theirs too."""
    return [(writing, "_TIMESTAMP_OFFSET", 10_000_000)]


def adds_rows_after_the_document() -> Patches:
    """Whoever stops in between leaves a document without its members and words."""

    def put(self, changed, new):
        steps = yield from _put(self, changed, new)
        yield from run_writes("write members and words", _add(self.derived, new.values(), self._at))
        return steps

    return [(DerivedRows, "add", lambda self, states, at, lifetime=None: ()), (ChangeWriter, "_put", put)]


def relinks_all_that_it_read() -> Patches:
    """Links of other kinds are written as they were read, so what others made of them meanwhile is lost."""

    def step(before, kinds, links, buckets):
        known = parse_links({LINKS_KEY: orjson.loads(before.links or "[]")}, before.id)
        others = [link for link in known if link.kind not in kinds]
        return _step(before, {*kinds, *(link.kind for link in others)}, [*links, *others], buckets)

    return [(writing, "_plan_relink", step)]


def adds_without_a_look() -> Patches:
    """What a deletion of a client whose clock is ahead hides is acknowledged."""
    return [(ChangeWriter, "_until_there", lambda *_: iter(()))]


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


def _without(state: Any, before: Any) -> Any:
    """A state without the members and words that the document has already."""
    if before is None:
        return state
    members = {key: state for key, state in state.members.items() if key not in before.members}
    postings = {key: state for key, state in state.postings.items() if key not in before.postings}
    return replace(state, members=members, postings=postings)

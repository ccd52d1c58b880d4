"""Clients that write the same documents at once: what is stored has all its members and words.

A second client writes just before one of the first client's requests; and clients whose requests a seeded
scheduler lets through in any order.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stores import times

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import empty, own_keyspace
from internals import (
    CassandraBackend,
    CassandraSettings,
    Manifest,
    Record,
    Requests,
    Statement,
    WriteBatch,
    normalize_vector,
)

from linkstore import Link
from linkstore.engines.cassandra import statements

CLAIM = Manifest(embedding="overlapping", dimension=4)
LOST = {
    "links of documents that are missing from their link group",
    "documents whose words are not all indexed",
}
LEFT = {
    "members of link groups without a document that has the link",
    "members of link groups that differ from their document",
    "words without a document that has them",
    "words that differ from their document",
}


def record(name: str, text: str, *links: Link, turned: int = 0, **metadata: Any) -> Record:
    """A document with these links; its vector is one of four, and slightly its own."""
    vector = np.full(4, 0.1, np.float32)
    vector[turned % 4] = 1
    fields = {**metadata, "links": [link.to_dict() for link in links]}
    return Record(id=name, text=text, metadata=fields, vector=normalize_vector(vector), links=tuple(links))


X = Link.bidir(kind="k", tag="x")
Y = Link.outgoing(kind="k", tag="y", weight=0.5)
STATES = (
    record("d", "old text zebra", X, Y),
    record("d", "old text zebra", X, Y, v=2),
    record("d", "new text", turned=1),
    record("d", "old zebra zebra", X, turned=2),
    record("d", "new text", Link.bidir(kind="k", tag="x", weight=0.25), Link.incoming(kind="k", tag="z")),
    None,
)
"""What a write may make of a document; None: it is deleted."""


@pytest.fixture(scope="module")
def place(cassandra_session):
    with own_keyspace(cassandra_session, "overlapping") as name:
        yield cassandra_session, name, "t"


@pytest.fixture
def clients(place) -> list[CassandraBackend]:
    empty(*place)
    made = [CassandraBackend(*place, settings=CassandraSettings(settle=1e-6)) for _ in range(3)]
    for one in made:
        one.run(one.claim(CLAIM))
    return made


def change_to(state: Record | None) -> WriteBatch:
    return WriteBatch(remove=["d"]) if state is None else WriteBatch(put=[state])


def write(backend: CassandraBackend, change: WriteBatch) -> None:
    backend.run(backend.write(change))


class Interrupting:
    """Runs requests as the backend's own executor does, and something else before the ``at``-th."""

    def __init__(self, executor: Any, at: int, act: Callable[[], None]) -> None:
        self._executor = executor
        self._left = at
        self._act = act

    def run(self, requests: Requests) -> Any:
        if self._left == 0:
            self._act()
        self._left -= 1
        return self._executor.run(requests)


def meanwhile(backend: CassandraBackend, change: WriteBatch, at: int, act: Callable[[], None]) -> bool:
    """Write, with something else happening before the ``at``-th request; whether there were so many."""
    executor = backend._executor
    backend._executor = interrupting = Interrupting(executor, at, act)
    try:
        write(backend, change)
    finally:
        backend._executor = executor
    return interrupting._left < 0


def problems(backend: CassandraBackend) -> set[str]:
    return {finding.problem for finding in backend.run(backend.verify()).findings}


def pairs() -> list[tuple[Record | None, Record | None]]:
    """All pairs of what two writers make of a document; a few of them where time is short."""
    every = [(a, b) for a, b in itertools.permutations(range(len(STATES)), 2) if a != 0]
    chosen = every if times(0, 1) else random.Random(11).sample(every, 6)
    return [(STATES[a], STATES[b]) for a, b in chosen]


@pytest.mark.parametrize(("first", "second"), pairs())
def test_of_two_writers_the_later_has_all_its_rows(clients, first, second) -> None:
    """Whatever the second does between any two requests of the first, which took its timestamp before."""
    one, other, third = clients
    for at in itertools.count():
        write(third, change_to(STATES[0]))
        if not meanwhile(one, change_to(first), at, lambda: write(other, change_to(second))):
            break
        assert not problems(third) & LOST, at
        assert problems(third) <= LEFT
        third.run(third.repair())
        assert third.run(third.verify()).sound
    assert at >= 3


def test_an_earlier_delete_does_not_reach_what_a_later_write_put(clients) -> None:
    """Also where both began from the same document, and the later one changed nothing but its metadata."""
    one, other, third = clients
    write(third, change_to(STATES[0]))
    for at in range(6):
        write(third, change_to(STATES[0]))
        meanwhile(one, change_to(None), at, lambda: write(other, change_to(STATES[1])))
        assert not problems(third) & LOST


def tags_of(backend: CassandraBackend) -> dict[str, list[str]]:
    """The tags of the links of the document, by kind, in their order."""
    (stored,) = backend.run(backend.scan(None, 10))
    kinds = dict.fromkeys(link.kind for link in stored.links)
    return {kind: [link.tag for link in stored.links if link.kind == kind] for kind in kinds}


def relink_to(backend: CassandraBackend, kind: str, *tags: str) -> None:
    links = [Link.outgoing(kind=kind, tag=tag) for tag in tags]
    assert backend.run(backend.relink({kind}, {"d": links})).updated == 1


def test_links_of_two_kinds_that_two_clients_replace_are_both_replaced(clients) -> None:
    """Whatever the second does between any two requests of the first; also by what a third does later."""
    one, other, third = clients
    old = [Link.outgoing(kind=kind, tag="old") for kind in ("a", "b", "c")]
    for at in itertools.count():
        write(third, change_to(record("d", "text", *old, turned=at)))
        relink = one.relink(
            {"a"}, {"d": [Link.outgoing(kind="a", tag="2"), Link.outgoing(kind="a", tag="1")]}
        )
        executor = one._executor
        one._executor = interrupting = Interrupting(executor, at, lambda: relink_to(other, "b", "new"))
        one.run(relink)
        one._executor = executor
        if interrupting._left >= 0:
            break
        assert tags_of(third) == {"c": ["old"], "a": ["2", "1"], "b": ["new"]}, at
        assert third.run(third.verify()).sound, at
        relink_to(third, "a", "3")
        assert list(tags_of(other).items()) == [("c", ["old"]), ("b", ["new"]), ("a", ["3"])], at
        write(other, change_to(record("d", "text", *old, turned=at + 1)))
        assert tags_of(one) == {"a": ["old"], "b": ["old"], "c": ["old"]}, at
        assert one.run(one.verify()).sound, at
    assert at >= 3


class Scheduler:
    """Lets the statements of several clients through one at a time, in an order that a seed decides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._waiting: list[asyncio.Future[None]] = []
        self.active = 0

    async def turn(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self.release()
        await future

    def release(self) -> None:
        """Let one go on, once all that are active wait."""
        if self._waiting and len(self._waiting) >= self.active:
            self._waiting.pop(self._random.randrange(len(self._waiting))).set_result(None)


class Scheduled:
    """An executor whose statements wait for their turn."""

    def __init__(self, executor: Any, scheduler: Scheduler) -> None:
        self._executor = executor
        self._scheduler = scheduler

    async def arun(self, requests: Requests) -> list[Any]:
        answers = []
        for statement in requests.statements:
            await self._scheduler.turn()
            answers += await self._executor.arun(replace(requests, statements=(statement,)))
        return answers


async def overlap(clients: list[CassandraBackend], seed: int) -> None:
    """Each client writes three states after one another, all at the same time."""
    chance, scheduler = random.Random(seed), Scheduler(seed)

    async def work(backend: CassandraBackend, states: list[Record | None]) -> None:
        executor = backend._executor
        backend._executor = Scheduled(executor, scheduler)  # type: ignore[assignment]
        try:
            for state in states:
                await backend.arun(backend.write(change_to(state)))
        finally:
            backend._executor = executor
            scheduler.active -= 1
            scheduler.release()

    scheduler.active = len(clients)
    await asyncio.gather(*(work(one, chance.choices(STATES, k=3)) for one in clients))


@pytest.mark.parametrize("seed", range(times(6, 200)))
def test_in_any_order_of_requests_nothing_of_what_is_stored_is_missing(clients, seed) -> None:
    asyncio.run(overlap(clients, seed))
    reader = clients[0]
    assert not problems(reader) & LOST
    reader.run(reader.repair())
    assert reader.run(reader.verify()).sound


# --- repair beside writers ------------------------------------------------------------------------


@pytest.fixture
def patient(place) -> CassandraBackend:
    """A client that leaves alone what was written in the last minute."""
    return CassandraBackend(*place, settings=CassandraSettings(settle=60))


@pytest.mark.parametrize("at", range(5))
def test_repair_leaves_the_rows_of_a_write_that_is_under_way(clients, patient, at) -> None:
    one, _, third = clients
    assert patient.run(patient.verify()).sound
    meanwhile(one, change_to(STATES[0]), at, lambda: patient.run(patient.repair()))
    assert third.run(third.verify()).sound


def test_a_stray_is_deleted_at_its_own_write_time(clients, cassandra_session) -> None:
    """So a write that comes between the reading of repair and its deleting keeps its rows."""
    one, other, third = clients
    write(one, change_to(STATES[0]))
    documents = one._tables.name_in("$documents")
    cassandra_session.execute(f"DELETE FROM {documents} WHERE id = 'd'")
    executor = third._executor

    def act() -> None:
        write(other, change_to(STATES[1]))

    for what in ("repair members", "repair words"):
        third._executor = Before(executor, what, act)  # type: ignore[assignment]
        third.run(third.repair())
        third._executor = executor
        assert not problems(other) & LOST, what
        cassandra_session.execute(f"DELETE FROM {documents} WHERE id = 'd'")
    third.run(third.repair())
    assert third.run(third.verify()).sound


class Before:
    """Does something once before the requests of this name."""

    def __init__(self, executor: Any, what: str, act: Callable[[], None]) -> None:
        self._executor = executor
        self._what = what
        self._act: Callable[[], None] | None = act

    def run(self, requests: Requests) -> Any:
        if requests.what == self._what and self._act:
            self._act, act = None, self._act
            act()
        return self._executor.run(requests)


def test_what_a_member_says_is_compared(clients) -> None:
    """Its weight and the code of its vector: a wrong one is found and mended."""
    one, _, third = clients
    write(one, change_to(STATES[0]))
    write(third, WriteBatch(put=[record("other", "text", X, turned=3)]))
    rows = one._executor.run(
        Requests(
            statements=(
                Statement(
                    cql="SELECT id, states FROM $members WHERE kind = 'k'"
                    " AND tag = 'x' AND side = 'in' AND bucket = 0"
                ),
            ),
            what="read",
        )
    )[0]
    wrong = dict(rows)["other"][8:]
    text = statements.write_rows(statements.MEMBER_ROWS, 1, replace=True)
    values = (time.time_ns() // 1000, 0, {wrong}, "k", "x", "in", 0, "d")
    one._executor.run(Requests(statements=(Statement(cql=text, values=values, level="write"),), what="spoil"))
    (finding,) = one.run(one.verify()).findings
    assert finding.problem == "members of link groups that differ from their document"
    assert finding.examples == ("k x (in) d",)
    one.run(one.repair())
    assert one.run(one.verify()).sound

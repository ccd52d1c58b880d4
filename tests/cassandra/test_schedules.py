"""Clients that overlap in every way: what they leave is right, and no acknowledged write is undone.

Each seed is a schedule of the requests of three clients, some of which are cut off. Play one again by
``LINKSTORE_SCHEDULES=17,4711`` in the environment.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import fields, replace
from functools import partial

import pytest
from broken_writers import BROKEN, WITH_CLOCKS_THAT_DIFFER
from cassandra_schedules import CLIENTS, DIMENSION, VECTORS, WORDS, Schedule, Skewed, wrong_winner
from cassandra_tables import own_keyspace, split_early
from conformance.probe import Probe, drive_by_run
from internals import (
    CassandraBackend,
    CassandraSettings,
    Ids,
    Lexical,
    Manifest,
    Tables,
    WriteBatch,
    mark_list,
)
from oracle import OracleBackend
from stores import LONG, long

COUNT = 2_000 if LONG else 20
BROKEN_COUNT = 120
AT_ONCE = 20
"""Schedules in one store, each with documents of its own: it is compared as a whole once for all of them."""
CLAIM = Manifest(embedding="schedules", dimension=DIMENSION)
CHOSEN = [int(seed) for seed in os.environ.get("LINKSTORE_SCHEDULES", "").split(",") if seed]
SEEDS = CHOSEN or range(COUNT)


@pytest.fixture(scope="module")
def space(cassandra_session):
    with own_keyspace(cassandra_session, "schedules") as name:
        yield name


@pytest.fixture(scope="module")
def opened(cassandra_session, space):
    def opened(**options) -> CassandraBackend:
        return CassandraBackend(cassandra_session, space, "kb", settings=CassandraSettings(**options))

    store = opened()
    store.run(store.claim(CLAIM))
    return opened


@pytest.fixture(scope="module")
def clients(opened):
    return [opened() for _ in range(CLIENTS)]


@pytest.fixture
def emptied(cassandra_session, space, opened):
    tables = Tables(space, "kb")
    for name in map(tables.name_in, ("$documents", "$texts", "$members", "$words")):
        cassandra_session.execute(f"TRUNCATE {name}")
    opened().run(mark_list(1))


PARTS = [tuple(SEEDS[at : at + AT_ONCE]) for at in range(0, len(SEEDS), AT_ONCE)]


@pytest.mark.parametrize(
    "seeds", PARTS[: max(1, len(PARTS) // 10)], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_clients_that_split_at_once_leave_what_is_right(opened, clients, emptied, seeds, monkeypatch) -> None:
    """Each splits all that it writes, and reads of the splits of the others or does not."""
    split_early(monkeypatch)
    test_overlapping_clients_leave_what_is_right(opened, clients, emptied, seeds)


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_overlapping_clients_leave_what_is_right(opened, clients, emptied, seeds) -> None:
    schedules = played(clients, seeds)
    store = opened(**settled())
    assert undone(store, schedules) == []
    for schedule in schedules:
        schedule.follow(store)
    assert undone(store, schedules) == [], (
        "who wrote when all others had ended was told so, and it is not there"
    )
    store.run(store.repair())
    assert store.run(store.verify()).findings == (), "a repaired store is not sound"
    wrong = wrong_answers(store, schedules, scores=True)
    assert wrong == [], "searches are wrong after the store was repaired"


@pytest.mark.parametrize(
    "seeds", PARTS[: max(1, len(PARTS) // 10)], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}"
)
def test_clients_whose_clocks_differ_leave_what_is_right(opened, emptied, seeds) -> None:
    """By less than is refused when a store is opened; whoever checks has the latest clock."""
    schedules = played(skewed(opened), seeds)
    late = opened(max_clock_skew=20.0)
    late._clock = Skewed(-20.0)
    assert undone(late, schedules) == []
    late._executor = Waiting(late._executor)
    for schedule in schedules:
        schedule.follow(late)
    store = opened(**settled())
    store._clock = Skewed(100.0)
    assert undone(store, schedules) == []
    assert latest_write(store) <= Skewed(20.0).now() + 10_000, "write times run ahead of all clocks"
    store.run(store.repair())
    assert store.run(store.verify()).findings == ()
    assert wrong_answers(store, schedules, scores=True) == []


@pytest.mark.parametrize("name", [name if not at % 4 else long(name) for at, name in enumerate(BROKEN)])
def test_a_broken_writer_is_noticed(opened, clients, emptied, monkeypatch, name) -> None:
    """What the tests above can find: each of these mistakes, within 120 schedules."""
    store = opened()
    clients = skewed(opened) if name in WITH_CLOCKS_THAT_DIFFER else clients
    for at in range(0, BROKEN_COUNT, AT_ONCE):
        with monkeypatch.context() as patch:
            for of, method, instead in BROKEN[name]():
                patch.setattr(of, method, instead)
            schedules = played(clients, range(at, at + AT_ONCE))
        if undone(store, schedules):
            return
    pytest.fail(f"{BROKEN_COUNT} schedules of a writer that {name} found nothing wrong")


def skewed(opened) -> list[CassandraBackend]:
    """Clients whose clocks differ as much as is allowed."""
    clients = [opened(max_clock_skew=20.0) for _ in range(CLIENTS)]
    for client, ahead in zip(clients, (0.0, 20.0, -20.0), strict=True):
        client._clock = Skewed(ahead)
    return clients


class Waiting:
    """An executor whose requests take no time to wait; the clocks go on as if they did."""

    def __init__(self, executor) -> None:
        self._executor = executor

    def run(self, requests):
        Skewed.waited += requests.wait
        return self._executor.run(replace(requests, wait=0.0))


def latest_write(store) -> int:
    """The latest write time of a document."""
    versions = store.run(store._fetcher.whole(None, 100_000))
    return max((version.written for version in versions), default=0)


def played(clients, seeds) -> list[Schedule]:
    """The schedules of these seeds, carried out one after another."""
    schedules = [Schedule(seed, clients) for seed in seeds]
    for schedule in schedules:
        schedule.play()
    return schedules


def undone(store, schedules) -> list[tuple[object, ...]]:
    """What is wrong before anything is repaired: documents, else answers of searches."""
    documents = [("document", *found) for found in wrong_documents(store, schedules)]
    return documents or [("answers", *found) for found in wrong_answers(store, schedules, scores=False)]


def settled() -> dict[str, float]:
    """Settings with which repair takes nothing for a write that is under way."""
    return {"settle": 1e-6} if "settle" in {one.name for one in fields(CassandraSettings)} else {}


def wrong_documents(store, schedules) -> list[tuple[str, str]]:
    """What is stored and may not be, with the document's id, which begins with the seed."""
    stored = {one.id: one for one in store.run(store.scan(None, 10_000))}
    found = (
        (name, wrong_winner(schedule.history, name, stored.get(name)))
        for schedule in schedules
        for name in schedule.ids
    )
    return [(name, problem) for name, problem in found if problem]


def wrong_answers(store, schedules, *, scores: bool) -> list[tuple[object, object]]:
    """What the oracle, which holds what is stored, answers otherwise; words with or without scores."""
    oracle = OracleBackend()
    probes = Probe(store, drive_by_run), Probe(oracle, drive_by_run)
    probes[1].do(oracle.claim(CLAIM))
    probes[1].do(oracle.write(WriteBatch(put=store.run(store.scan(None, 10_000)))))
    asked = {word: partial(worded, word=word, scores=scores) for word in WORDS}
    asked["near"] = lambda probe: probe.near_scored(1_000, vector=VECTORS[0])
    for schedule, kind, side in itertools.product(schedules, ("k", "m"), ("in", "out")):
        question = f"{schedule.prefix} {kind} {side}"
        asked[question] = partial(members, tags=schedule.tags, kind=kind, side=side)
    answers = ((question, tuple(map(ask, probes))) for question, ask in asked.items())
    return [(question, pair) for question, pair in answers if pair[0] != pair[1]]


def members(probe, tags, kind, side):
    met = probe.met(tags, side, kind=kind)
    return met.of, met.weights, met.sizes


def worded(probe, word, scores):
    def plan():
        found = yield Lexical(terms=(word,), k=1_000)
        ids = yield Ids(refs=found.refs)
        return list(zip(ids, found.score.tolist(), strict=True)) if scores else sorted(ids)

    return probe.plan(plan())

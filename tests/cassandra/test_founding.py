"""A store is made: by a client that stops on the way, and by several at once, of different minds."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from cassandra import ReadFailure
from cassandra_executors import Stopped, Stopping
from cassandra_server import connect
from cassandra_tables import own_keyspace
from conformance.probe import Probe, drive_by_run, link_both, make_record
from fake_cassandra import Request
from internals import CassandraBackend, CassandraSettings, Executor, Manifest, WriteBatch, normalize_vector
from stores import times

from linkstore.errors import BackendError, EmbeddingError, StoreNotFoundError

NUMBERS = itertools.count()
NO_INDEX = ReadFailure(
    "INDEX_NOT_AVAILABLE",
    consistency=10,
    required_responses=1,
    received_responses=0,
    failures=1,
    error_code_map={"127.0.0.1": 6},
)
CLAIM = Manifest(embedding="mine", dimension=4)


@pytest.fixture(scope="module")
def space(cassandra_session):
    with own_keyspace(cassandra_session, "founding") as name:
        yield name


@pytest.fixture
def opened(cassandra_session, space):
    """Opens the same store again and again; a client of its own each time."""
    name = f"t{next(NUMBERS)}"

    def opened(session=cassandra_session, **options) -> CassandraBackend:
        return CassandraBackend(session, space, name, **options)

    return opened


def points(most: int) -> range:
    """After how many requests a client stops; each makes a store of its own, so a sample takes a third."""
    return range(0, most, times(3, 1))


def add(backend: CassandraBackend, name: str, claim: Manifest = CLAIM) -> None:
    backend.run(backend.claim(claim))
    backend.run(
        backend.write(WriteBatch(put=[make_record(name, 0.5, link_both("x"), text=f"text of {name}")]))
    )


def test_a_first_add_may_stop_anywhere(opened, cassandra_session, space) -> None:
    """Clients that were open before, and those that come after, work and complete it."""
    from conformance.probe import drive_by_run

    for allowed in points(40):
        name = f"s{next(NUMBERS)}"
        first, other = (CassandraBackend(cassandra_session, space, name) for _ in range(2))
        whole = first._executor
        first._executor = Stopping(whole, allowed)
        try:
            first.run(first.claim(CLAIM))
            stopped = False
        except Stopped:
            stopped = True
        assert Probe(other, drive_by_run).near(1) == []
        for backend in (other, CassandraBackend(cassandra_session, space, name, create=False)):
            add(backend, "b")
            assert Probe(backend, drive_by_run).met(["x"]).of == {"x": ["b"]}
            assert backend.run(backend.verify()).sound
        first._executor = whole
        add(first, "a")
        assert Probe(first, drive_by_run).met(["x"]).of == {"x": ["a", "b"]}
        if not stopped:
            assert allowed > 4
            return
    pytest.fail("the first claim never ended")


def test_making_the_small_tables_may_stop_anywhere(cassandra_session, space, monkeypatch) -> None:
    run = Executor.run
    for allowed in points(20):
        name, left = f"s{next(NUMBERS)}", [allowed]

        def stopping(self, requests, left=left):
            if not left[0]:
                raise Stopped
            left[0] -= 1
            return run(self, requests)

        monkeypatch.setattr(Executor, "run", stopping)
        try:
            CassandraBackend(cassandra_session, space, name)
            stopped = False
        except Stopped:
            stopped = True
        monkeypatch.setattr(Executor, "run", run)
        add(CassandraBackend(cassandra_session, space, name), "a")
        if not stopped:
            return
    pytest.fail("the store was never made")


def test_a_store_that_was_not_completed_is_none_yet(cassandra_session, space) -> None:
    name = f"s{next(NUMBERS)}"
    CassandraBackend(cassandra_session, space, name)
    cassandra_session.execute(f'TRUNCATE "{space}"."{name}_settings"')
    with pytest.raises(StoreNotFoundError, match=name):
        CassandraBackend(cassandra_session, space, name, create=False)
    add(CassandraBackend(cassandra_session, space, name), "a")


@pytest.mark.parametrize("suffix", ["_texts", "_members", "_words", "_pages", "_accesses", "_settings"])
def test_no_two_stores_share_a_table(cassandra_session, space, suffix) -> None:
    """Whichever is made first; before anything is created."""
    with pytest.raises(BackendError, match=f"cannot name tables .*{suffix}"):
        CassandraBackend(cassandra_session, space, "kb" + suffix)
    assert tables_of(cassandra_session, space, "kb") == set()


@pytest.mark.parametrize("suffix", ["", "_texts", "_members", "_words", "_pages", "_accesses"])
def test_a_table_of_something_else_is_left_alone(cassandra_session, space, suffix) -> None:
    name = f"s{next(NUMBERS)}"
    cassandra_session.execute(f'CREATE TABLE "{space}"."{name}{suffix}" (row_id text PRIMARY KEY)')
    with pytest.raises(
        BackendError, match=f"tables of something else .* {name}{suffix}\\. Take another name"
    ):
        CassandraBackend(cassandra_session, space, name)
    assert tables_of(cassandra_session, space, name) == {name + suffix}


def tables_of(session, keyspace: str, start: str) -> set[str]:
    rows = session.execute(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,)
    )
    return {row.table_name for row in rows if row.table_name.startswith(start)}


def test_a_store_is_made_when_its_indexes_answer(opened, monkeypatch) -> None:
    """A node that is slow to use a new index refuses searches; until it does not, there is no store."""
    send, refused, other = Executor._send, [], opened()

    def slowly(self, attempts, inbox, what):
        if " ANN OF " not in attempts.statement.cql or len(refused) == 5:
            send(self, attempts, inbox, what)
            return
        refused.append(attempts)
        assert other.run(other.manifest()) == Manifest()
        attempts.since = attempts.since or time.monotonic()
        attempts.expires = time.monotonic() + 9
        attempts.future = Request(0, SimpleNamespace(query_string=attempts.statement.cql), {"timeout": 1})
        inbox.put(attempts, attempts.future, True, NO_INDEX)

    monkeypatch.setattr(Executor, "_send", slowly)
    backend = opened()
    assert backend.run(backend.claim(CLAIM)) == CLAIM
    assert len(refused) == 5
    assert other.run(other.manifest()) == CLAIM


@pytest.mark.parametrize("dimensions", [(4, 4, 4, 4), (4, 6, 4, 6)], ids=["of one mind", "of two"])
def test_several_clients_make_a_store_at_once(opened, cassandra, dimensions) -> None:
    """One embedding is settled; who has it can add at once, who has not is told so and changes nothing."""
    together, came = threading.Barrier(len(dimensions)), {}

    def client(number: int, dimension: int) -> None:
        with connect([cassandra.host], cassandra.port) as session:
            together.wait()
            backend = opened(session)
            made = replace(
                make_record(f"d{number}", 0.5, link_both("x")), vector=normalize_vector([1.0] * dimension)
            )
            try:
                backend.run(backend.claim(Manifest(embedding=f"of {dimension}", dimension=dimension)))
                backend.run(backend.write(WriteBatch(put=[made])))
            except EmbeddingError:
                came[number] = None
            else:
                came[number] = dimension

    clients = [threading.Thread(target=client, args=one) for one in enumerate(dimensions)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    store = opened(create=False)
    manifest = store.run(store.manifest())
    assert manifest.embedding == f"of {manifest.dimension}"
    assert came == {n: d if d == manifest.dimension else None for n, d in enumerate(dimensions)}
    stored = {one.id for one in store.run(store.scan(None, 10))}
    assert stored == {f"d{n}" for n, dimension in came.items() if dimension}
    assert store.run(store.verify()).sound


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shards": 2}, "created with shards=4, .*has shards=2"),
        ({"lexical": True}, "lexical=False, .*=True"),
    ],
)
def test_clients_agree_on_what_is_fixed_when_it_is_made(opened, settings, message) -> None:
    """Whoever was first settles into how many partitions words go, and whether there are words."""
    first = opened(settings=CassandraSettings(shards=4, lexical=False))
    with pytest.raises(BackendError, match=message):
        opened(settings=CassandraSettings(**settings))
    opened(settings=CassandraSettings(shards=4, lexical=False))
    second = opened(settings=CassandraSettings())
    for backend, name in ((first, "a"), (second, "b")):
        add(backend, name)
    for backend in (first, second):
        assert Probe(backend, drive_by_run).met(["x"]).of == {"x": ["a", "b"]}
        assert backend.run(backend.verify()).sound

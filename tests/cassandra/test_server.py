"""Real servers do what tests rely on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from awaited import until
from cassandra_server import DURABLE, Endpoint, Server, ServerError, connect, create_keyspace
from cassandra_server.shared import SharedServer, ask

TABLE = "CREATE TABLE IF NOT EXISTS {}.t (id int PRIMARY KEY, v vector<float, 3>)"
INDEX = "CREATE INDEX IF NOT EXISTS t_v ON {}.t (v) USING 'sai'"


class TestSharedNode:
    """What all tests may use."""

    def test_it_has_vector_search(self, cassandra_session, keyspace):
        cassandra_session.execute(TABLE.format(keyspace))
        cassandra_session.execute(INDEX.format(keyspace))
        for number, vector in enumerate([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.7, 0.1]]):
            cassandra_session.execute(f"INSERT INTO {keyspace}.t (id, v) VALUES (%s, %s)", (number, vector))
        nearest = f"SELECT id FROM {keyspace}.t ORDER BY v ANN OF [0, 1, 0] LIMIT 2"
        until(lambda: answers(cassandra_session, nearest))  # the index is used some time after it was made
        found = cassandra_session.execute(nearest)
        assert [row.id for row in found] == [1, 2]

    def test_a_mutation_of_16_mib_passes(self, cassandra_session, keyspace):
        cassandra_session.execute(f"CREATE TABLE {keyspace}.b (id int PRIMARY KEY, b blob)")
        body = bytes(16 << 20)
        put = cassandra_session.prepare(f"INSERT INTO {keyspace}.b (id, b) VALUES (1, ?)")
        cassandra_session.execute(put, [body])
        assert cassandra_session.execute(f"SELECT b FROM {keyspace}.b WHERE id = 1").one().b == body

    def test_it_flushes_when_told_and_says_when_it_was_told_wrongly(
        self, cassandra, cassandra_session, keyspace
    ):
        cassandra_session.execute(TABLE.format(keyspace))
        cassandra_session.execute(f"INSERT INTO {keyspace}.t (id, v) VALUES (1, [1, 2, 3])")
        files = Path(cassandra.folder) / "data" / keyspace
        assert not list(files.rglob("*-Data.db"))
        cassandra.nodetool("flush", keyspace)
        assert list(files.rglob("*-Data.db"))
        with pytest.raises(ServerError, match="no_such_keyspace"):
            cassandra.nodetool("flush", "no_such_keyspace")

    def test_a_driver_goes_through_the_proxy_and_comes_back_after_a_cut(self, proxied):
        with connect([proxied.host], proxied.port) as session:
            ask_it = "SELECT release_version FROM system.local"
            assert session.execute(ask_it).one().release_version.startswith("5.0")
            proxied.cut()
            with pytest.raises(Exception, match=r"hosts|[Cc]onnection"):
                session.execute(ask_it)
            proxied.heal()
            until(lambda: answers(session, ask_it), seconds=30)

    def test_another_process_is_told_where_it_is(self, cassandra, request):
        from cassandra_fixtures import DESK, SHARED

        stash = request.config.stash
        assert ask(stash[SHARED].open_desk() if SHARED in stash else stash[DESK]) == cassandra


def answers(session: Any, question: str) -> bool:
    """Whether it does, by now."""
    from cassandra import DriverException
    from cassandra.cluster import NoHostAvailable

    with suppress(DriverException, NoHostAvailable):
        session.execute(question, timeout=2)
        return True
    return False


def test_a_desk_says_why_there_is_no_node(monkeypatch):
    def fail(self: SharedServer) -> Endpoint:
        raise ServerError("no Java today")

    monkeypatch.setattr(SharedServer, "endpoint", fail)
    shared = SharedServer()
    with pytest.raises(ServerError, match="no Java today"):
        ask(shared.open_desk())
    shared.close()


@pytest.fixture(scope="module")
def server(cassandra_possible) -> Iterator[Server]:
    """A node of this module's own, with a table and durable writes."""
    with Server(settings=DURABLE, heap="512M") as made, made.connect() as session:
        create_keyspace(session, "k")
        session.execute(TABLE.format("k"))
        yield made


def ids(server: Server) -> set[int]:
    """What the table holds."""
    with server.connect("k") as session:
        return {row.id for row in session.execute("SELECT id FROM t")}


def write_until_it_fails(server: Server, acknowledged: list[int], started: threading.Event) -> None:
    """Insert 0, 1, 2 … and keep a list of what was acknowledged."""
    from cassandra import DriverException
    from cassandra.cluster import NoHostAvailable

    with server.connect("k") as session:
        put = session.prepare("INSERT INTO t (id, v) VALUES (?, [1, 2, 3])")
        with suppress(DriverException, NoHostAvailable):
            for number in range(1_000_000):
                session.execute(put, [number], timeout=5)
                acknowledged.append(number)
                if number == 500:
                    started.set()


class TestOwnNode:
    """What a test does to a node of its own."""

    def test_what_was_acknowledged_before_a_sigkill_is_there_after_it(self, server):
        acknowledged: list[int] = []
        started = threading.Event()
        writer = threading.Thread(target=write_until_it_fails, args=[server, acknowledged, started])
        writer.start()
        assert started.wait(30)
        pid = server.pid
        server.kill()
        writer.join(30)
        assert not server.accepts()
        server.start()
        assert server.pid != pid
        assert ids(server) >= set(acknowledged)
        assert len(acknowledged) >= 500

    def test_a_paused_node_is_silent_and_goes_on_when_resumed(self, server):
        from cassandra import OperationTimedOut

        with server.connect("k") as session:
            session.execute("INSERT INTO t (id, v) VALUES (-1, [1, 2, 3])")
            server.pause()
            with pytest.raises(OperationTimedOut):
                session.execute("SELECT id FROM t", timeout=1)
            server.resume()
            until(lambda: answers(session, "SELECT id FROM t"), seconds=30)
        assert -1 in ids(server)

    def test_it_keeps_data_and_port_when_stopped_and_started(self, server):
        with server.connect("k") as session:
            session.execute("INSERT INTO t (id, v) VALUES (-2, [1, 2, 3])")
        before, port = ids(server), server.port
        server.restart()
        assert (ids(server), server.port) == (before, port)
        assert -2 in before

    def test_it_cannot_be_started_twice(self, server):
        with pytest.raises(ServerError, match="runs already"):
            server.start()


def test_a_node_that_cannot_start_says_the_end_of_its_log(cassandra_possible):
    server = Server(settings={"no_such_setting": 1})
    with pytest.raises(ServerError, match="no_such_setting"):
        server.start()
    server.close()
    assert not server.node.folder.exists()

"""Against a real server: what the driver promises holds, and what goes wrong is said and passes."""

from __future__ import annotations

import asyncio
import logging
import struct
import threading
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy
from cassandra.query import dict_factory
from cassandra_server import connect as raw_connect
from internals import (
    CassandraSettings,
    Executor,
    Placement,
    Requests,
    Statement,
    connect_session,
    resolve_session,
    unpack_vector,
)

from linkstore.errors import BackendError, StoreClosedError, StoreUnavailableError

HURRIED = CassandraSettings(timeout=1.5, deadline=3)
SLACK = 5.0
"""Seconds that an error may come late on a busy machine; the settings of a store as it comes give it 30."""


def schema(keyspace):
    columns = "tag text, bucket int, id int, body text, v vector<float, 8>"
    cql = f'CREATE TABLE "{keyspace}".t ({columns}, PRIMARY KEY ((tag, bucket), id))'
    return Requests(statements=(Statement(cql=cql, level="schema"),), what="create the table")


def writes(keyspace, number, tag="a"):
    generator = np.random.default_rng(7)
    cql = f'INSERT INTO "{keyspace}".t (tag, bucket, id, body, v) VALUES (?, 0, ?, ?, ?)'
    rows = [(tag, i, f"body {i}", generator.normal(size=8).astype(np.float32)) for i in range(number)]
    return Requests(
        statements=tuple(Statement(cql=cql, values=row, level="write") for row in rows), what="write"
    ), rows


def read(keyspace, tag="a", **more):
    cql = f'SELECT id, body, v FROM "{keyspace}".t WHERE tag = ? AND bucket = 0'
    return Requests(statements=(Statement(cql=cql, values=(tag,), **more),), what="read the rows")


def one_row(keyspace, row_id=1):
    cql = f'SELECT body FROM "{keyspace}".t WHERE tag = ? AND bucket = 0 AND id = ?'
    return Requests(statements=(Statement(cql=cql, values=("a", row_id)),), what="read a row")


@pytest.fixture
def filled(cassandra_session, keyspace):
    """A keyspace whose table has 300 rows in one partition, and those rows."""
    executor = Executor(cassandra_session)
    executor.run(schema(keyspace))
    wanted, rows = writes(keyspace, 300)
    executor.run(wanted)
    return keyspace, rows


@pytest.fixture
def through(proxied, filled):
    """A connection through a proxy that the test may harm, and its executor in a hurry."""
    connection = connect_session(f"cassandra://{proxied.host}:{proxied.port}/{filled[0]}/t")
    yield connection
    proxied.heal()
    connection.close()


class TestASession:
    """Given, or opened for a URL."""

    def test_what_was_written_is_read_with_and_without_pages(self, cassandra_session, filled):
        keyspace, rows = filled
        executor = Executor(cassandra_session)
        for more in ({}, {"limit": 300}):
            (found,) = executor.run(read(keyspace, **more))
            assert [row[:2] for row in found] == [row[1:3] for row in rows]
            for got, wrote in zip(found, rows, strict=False):
                assert (unpack_vector(got[2]) == wrote[3]).all()

    def test_pages_of_one_row_give_the_same(self, cassandra_session, filled, monkeypatch):
        monkeypatch.setattr("linkstore.engines.cassandra.limits.PAGE_ROWS", 7)
        keyspace, _ = filled
        executor = Executor(cassandra_session)
        (found,) = asyncio.run(executor.arun(read(keyspace)))
        assert [row[0] for row in found] == list(range(300))

    def test_what_was_prepared_works_after_the_server_forgot_it(self, cassandra_session, filled):
        """As it does when a table gets a new column, and when it starts anew; vectors stay bytes."""
        keyspace, rows = filled
        executor = Executor(cassandra_session)
        executor.run(read(keyspace))
        add = Statement(cql=f'ALTER TABLE "{keyspace}".t ADD more int', level="schema")
        executor.run(Requests(statements=(add,), what="add a column"))
        executor.run(writes(keyspace, 301)[0])
        (found,) = executor.run(read(keyspace))
        assert len(found) == len(rows) + 1
        assert all(isinstance(row[2], bytes) for row in found)

    def test_a_session_in_legacy_mode_works_and_keeps_its_row_factory(self, cassandra, filled):
        keyspace, rows = filled
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            policy = RoundRobinPolicy()
            cluster = Cluster([cassandra.host], port=cassandra.port, load_balancing_policy=policy)
        try:
            session = cluster.connect()
            session.row_factory = dict_factory
            (found,) = Executor(session).run(read(keyspace))
            assert [row[:2] for row in found] == [row[1:3] for row in rows]
            assert session.execute("SELECT release_version FROM system.local").one().keys() == {
                "release_version"
            }
        finally:
            cluster.shutdown()

    def test_a_users_defaults_do_not_matter_and_stay(self, cassandra, filled):
        keyspace, rows = filled
        profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), row_factory=dict_factory)
        cluster = Cluster(
            [cassandra.host], port=cassandra.port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}
        )
        try:
            session = cluster.connect(keyspace)
            session.default_fetch_size = 2
            (found,) = Executor(session).run(read(keyspace))
            assert len(found) == len(rows)
            assert resolve_session(session, None) == (session, keyspace)
            assert session.default_fetch_size == 2
            assert session.get_execution_profile(EXEC_PROFILE_DEFAULT).row_factory is dict_factory
        finally:
            cluster.shutdown()

    def test_vector_search_runs_without_warnings(self, cassandra_session, filled, caplog):
        keyspace, rows = filled
        executor = Executor(cassandra_session, CassandraSettings(read_consistency="ALL"))
        index = f"CREATE INDEX ON \"{keyspace}\".t (v) USING 'sai'"
        executor.run(Requests(statements=(Statement(cql=index, level="schema"),), what="index"))
        cql = f'SELECT id FROM "{keyspace}".t ORDER BY v ANN OF ? LIMIT 1000'
        search = Statement(cql=cql, values=(rows[17][3],), level="one")
        caplog.clear()  # the server warns of vector indexes as one is made
        with caplog.at_level(logging.WARNING):
            ((first, *rest),) = executor.run(Requests(statements=(search,), what="search"))
        assert first == (17,)
        assert len(rest) == 299
        assert not caplog.text

    def test_a_missing_keyspace_is_said_with_the_way_to_make_it(self, cassandra):
        with pytest.raises(
            BackendError, match=r'no keyspace \'nowhere\'.*create it: CREATE KEYSPACE "nowhere"'
        ):
            connect_session(f"cassandra://{cassandra.host}:{cassandra.port}/nowhere/t")

    def test_what_the_server_refuses_is_an_error_at_once(self, cassandra_session, keyspace):
        executor = Executor(cassandra_session)
        executor.run(schema(keyspace))
        began = time.monotonic()
        for cql in (f'SELECT missing FROM "{keyspace}".t WHERE tag = ? AND bucket = 0', "SELEC"):
            statement = Statement(cql=cql, values=("x",))
            with pytest.raises(BackendError, match=r"could not look: Cassandra at 127\.0\.0\.1"):
                executor.run(Requests(statements=(statement,), what="look"))
        with pytest.raises(BackendError, match=r"could not make it: Cassandra at 127\.0\.0\.1"):
            executor.run(Requests(statements=(Statement(cql="CREATE", level="schema"),), what="make it"))
        assert time.monotonic() - began < SLACK

    @pytest.mark.parametrize("drive", ["run", "arun"])
    def test_a_table_that_a_node_does_not_know_yet_is_looked_for_again(
        self, cassandra_session, keyspace, drive
    ):
        executor = Executor(cassandra_session)
        late = threading.Timer(1, executor.run, [schema(keyspace)])
        late.start()
        try:
            found = getattr(executor, drive)(read(keyspace))
            assert (asyncio.run(found) if drive == "arun" else found) == [[]]
        finally:
            late.join()

    def test_a_dropped_table_is_an_error_with_what_to_look_at(self, cassandra_session, filled):
        keyspace, _ = filled
        executor = Executor(cassandra_session)
        executor.run(one_row(keyspace))
        cassandra_session.execute(f'DROP TABLE "{keyspace}".t')
        began = time.monotonic()
        with pytest.raises(BackendError, match=r"table t does not exist.*dropped.*describecluster"):
            executor.run(one_row(keyspace))
        assert time.monotonic() - began < 6 + SLACK

    def test_a_closed_session_is_said(self, cassandra, filled):
        keyspace, _ = filled
        connection = connect_session(f"cassandra://{cassandra.host}:{cassandra.port}/{keyspace}/t")
        executor = Executor(connection.session)
        executor.run(one_row(keyspace))
        connection.close()
        connection.close()
        with pytest.raises(StoreClosedError):
            executor.run(one_row(keyspace))


class TestTrouble:
    """A server that is down, slow, hung or cut off, and then well again."""

    @pytest.mark.parametrize("way", ["cut", "stall"])
    @pytest.mark.parametrize("drive", ["run", "arun"])
    def test_trouble_is_a_typed_error_in_time_and_passes(self, proxied, through, filled, way, drive):
        keyspace, _ = filled
        executor = Executor(through.session, HURRIED)
        do = executor.run if drive == "run" else lambda wanted: asyncio.run(executor.arun(wanted))
        assert do(one_row(keyspace)) == [[("body 1",)]]
        getattr(proxied, way)()
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError) as error:
            do(one_row(keyspace))
        assert time.monotonic() - began < HURRIED.deadline + SLACK
        assert error.value.message.startswith(
            f"could not read a row: Cassandra at 127.0.0.1:{proxied.port}: "
        )
        assert "nodetool status" in error.value.message
        proxied.heal()
        assert Executor(through.session).run(one_row(keyspace)) == [[("body 1",)]]
        assert do(one_row(keyspace)) == [[("body 1",)]]

    def test_trouble_that_is_over_before_the_deadline_is_not_noticed(self, proxied, through, filled):
        keyspace, _ = filled
        executor = Executor(through.session)
        executor.run(one_row(keyspace))
        proxied.cut()
        threading.Timer(1.0, proxied.heal).start()
        assert executor.run(one_row(keyspace)) == [[("body 1",)]]

    def test_an_answer_cut_in_the_middle_is_asked_for_again(self, proxied, through, filled):
        keyspace, rows = filled
        executor = Executor(through.session)
        executor.run(one_row(keyspace))
        executor.run(read(keyspace))
        proxied.cut_after(3000)
        threading.Timer(0.5, proxied.heal).start()
        (found,) = executor.run(read(keyspace))
        assert [row[:2] for row in found] == [row[1:3] for row in rows]

    def test_a_slow_server_is_waited_for_up_to_the_timeout(self, proxied, through, filled):
        keyspace, _ = filled
        executor = Executor(through.session, HURRIED)
        executor.run(one_row(keyspace))
        proxied.delay(0.3)
        began = time.monotonic()
        assert executor.run(one_row(keyspace)) == [[("body 1",)]]
        assert time.monotonic() - began > 0.3

    def test_a_server_that_hangs_as_a_store_is_opened_is_said_in_time(self, proxied, filled, monkeypatch):
        monkeypatch.setattr("linkstore.engines.cassandra.session._CONNECT_TIMEOUT", 1.0)
        proxied.stall()
        began = time.monotonic()
        with pytest.raises(
            StoreUnavailableError, match=f"could not connect: Cassandra at 127.0.0.1:{proxied.port}"
        ):
            connect_session(f"cassandra://{proxied.host}:{proxied.port}/{filled[0]}/t")
        assert time.monotonic() - began < SLACK

    def test_a_text_first_met_while_the_server_is_down_is_an_error_in_time(self, proxied, through, filled):
        executor = Executor(through.session, HURRIED)
        proxied.cut()
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError, match=r"could not read a row: Cassandra at 127\.0\.0\.1"):
            asyncio.run(executor.arun(one_row(filled[0])))
        assert time.monotonic() - began < HURRIED.deadline + SLACK


def wait_for_pools(session, count: int) -> None:
    """Until the driver has connections to so many nodes: before that it asks others."""
    deadline = time.monotonic() + 30
    while len(session.get_pool_state()) < count:
        assert time.monotonic() < deadline, session.get_pool_state()
        time.sleep(0.05)


@pytest.mark.xdist_group("ring")
def test_keys_grouped_by_replica_are_answered_by_that_replica(ring):
    """The node that answers a statement about many partitions is the one that owns them."""
    with raw_connect(ring.hosts, ring.port) as admin:
        admin.execute(
            "CREATE KEYSPACE placed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        Executor(admin).run(schema("placed"))
    connection = connect_session(
        f"cassandra://{','.join(f'{host}:{ring.port}' for host in ring.hosts)}/placed/t"
    )
    try:
        session = connection.session
        wait_for_pools(session, len(ring.hosts))
        keys = [(f"tag {i}", 0) for i in range(200)]
        shares = Placement(session, "placed").by_replica(
            {(tag.encode(), struct.pack(">i", n)): tag for tag, n in keys}
        )
        assert len(shares) == 3
        asked = []
        session.add_request_init_listener(asked.append)
        cql = 'SELECT id FROM "placed".t WHERE tag IN ? AND bucket = 0'
        statements = tuple(Statement(cql=cql, values=(tags,), routing=routing) for tags, routing in shares)
        for _ in range(5):
            Executor(session).run(Requests(statements=statements, what="look"))
        replicas = session.cluster.metadata.get_replicas
        for future in asked:
            owner = replicas("placed", future.query.routing_key)[0]
            assert future.coordinator_host == owner
        assert len({future.coordinator_host for future in asked}) == 3
    finally:
        connection.close()

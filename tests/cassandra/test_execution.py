"""Statements are run bounded, page by page, again where that may help, and never for ever."""

from __future__ import annotations

import asyncio
import gc
import re
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from itertools import combinations, product

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteFailure,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import OverloadedErrorMessage, ServerError, SyntaxException
from cassandra.query import tuple_factory
from fake_cassandra import FakeSession
from internals import (
    PAGE_ROWS,
    READ_LEVELS,
    WRITE_LEVELS,
    CassandraSettings,
    ConcurrencyLimit,
    Executor,
    LostTime,
    Requests,
    Statement,
    compute_backoff,
    diagnose,
)

from linkstore.errors import ArgumentError, BackendError, StoreClosedError, StoreUnavailableError

BUSY = OverloadedErrorMessage(code=0x1001, message="too much", info=None)
FAILED = WriteFailure("no", consistency=6, required_responses=2, received_responses=1, failures=1)


def echo(request):
    request.answer([request.values])


def requests(*names, level="read", **more):
    statements = tuple(
        Statement(cql="SELECT a FROM t WHERE a = ?", values=(name,), level=level, **more) for name in names
    )
    return Requests(statements=statements, what="read a thing")


async def arun(executor, wanted):
    return await executor.arun(wanted)


@pytest.fixture(params=["run", "arun"])
def run(request):
    """Either way of running, for they promise the same."""
    if request.param == "run":
        return lambda executor, wanted: executor.run(wanted)
    return lambda executor, wanted: asyncio.run(arun(executor, wanted))


def names(number):
    return [f"n{i}" for i in range(number)]


# --- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0.0005, None], ids=["later", "at once"])
def test_answers_stand_in_the_order_of_the_statements(run, delay):
    executor = Executor(FakeSession(echo, delay=delay))
    assert run(executor, requests(*names(500))) == [[(name,)] for name in names(500)]


def test_answered_requests_are_freed_without_the_garbage_collector(run):
    session = FakeSession(echo, delay=None)
    kept = []
    gc.disable()
    try:
        run(Executor(session), requests(*names(20)))
        kept = [weakref.ref(request) for request in session.requests]
        session.requests.clear()
        assert not [ref for ref in kept if ref()]
    finally:
        gc.enable()
    assert len(kept) == 20


def test_no_statements_have_no_answers(run):
    assert run(Executor(FakeSession(echo)), requests()) == []


def test_a_write_answers_no_rows(run):
    session = FakeSession(lambda request: request.answer(None))
    assert run(Executor(session), requests("a", level="write")) == [[]]


def test_pages_are_followed_and_empty_ones_do_not_end_them(run):
    pages = {None: ([("a",)], b"1"), b"1": ([], b"2"), b"2": ([("b",)], b"3"), b"3": ([("c",)], None)}
    session = FakeSession(lambda request: request.answer(*pages[request.page]))
    assert run(Executor(session), requests("x")) == [[("a",), ("b",), ("c",)]]
    assert [request.page for request in session.requests] == [None, b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("limit", "page"), [(None, PAGE_ROWS), (PAGE_ROWS + 1, PAGE_ROWS), (PAGE_ROWS, None), (1, None)]
)
def test_few_rows_are_asked_for_without_pages(run, limit, page):
    session = FakeSession(lambda request: request.answer([("a",)]))
    run(Executor(session), requests("x", limit=limit))
    assert [request.query.fetch_size for request in session.requests] == [page]


def test_a_page_that_fails_is_asked_for_again_and_no_row_comes_twice(run):
    failures = [OperationTimedOut()]

    def serve(request):
        if request.page and failures:
            request.fail(failures.pop())
        else:
            request.answer([(request.page,)], None if request.page else b"2")

    session = FakeSession(serve)
    assert run(Executor(session), requests("x")) == [[(None,), (b"2",)]]
    assert [request.page for request in session.requests] == [None, b"2", b"2"]


def test_an_answer_that_comes_twice_counts_once(run):
    def serve(request):
        request.answer([request.values])
        request.answer([("again",)])

    assert run(Executor(FakeSession(serve)), requests(*names(50))) == [[(name,)] for name in names(50)]


# --- how statements are sent ------------------------------------------------------------------


def test_levels_and_row_factories_go_with_each_statement():
    session = FakeSession(echo)
    executor = Executor(session, CassandraSettings(read_consistency="ONE", write_consistency="ALL"))
    for level in ("read", "write", "one"):
        executor.run(requests("a", level=level))
    executor.run(Requests(statements=(Statement(cql="CREATE", level="schema"),), what="create"))
    levels = [request.query.consistency_level for request in session.requests]
    assert levels[:3] == [ConsistencyLevel.ONE, ConsistencyLevel.ALL, ConsistencyLevel.LOCAL_ONE]
    assert all(request.query.is_idempotent for request in session.requests)
    assert all(request.row_factory is tuple_factory for request in session.requests)
    assert session.prepared == ["SELECT a FROM t WHERE a = ?"]


@pytest.mark.parametrize(
    ("level", "serial"),
    [
        ("LOCAL_QUORUM", "LOCAL_SERIAL"),
        ("LOCAL_ONE", "LOCAL_SERIAL"),
        ("QUORUM", "SERIAL"),
        ("ALL", "SERIAL"),
    ],
)
def test_lightweight_transactions_are_decided_where_writes_are(level, serial):
    """By a majority of the local datacenter where writes need no other one."""
    session = FakeSession(echo)
    Executor(session, CassandraSettings(write_consistency=level)).run(requests("a", level="write"))
    (request,) = session.requests
    assert request.query.serial_consistency_level == ConsistencyLevel.name_to_value[serial]


def test_nothing_is_set_on_the_session():
    session = FakeSession(echo)
    executor = Executor(session)
    before = set(vars(session)) | set(vars(session.cluster))
    executor.run(requests("x"))
    assert set(vars(session)) | set(vars(session.cluster)) == before


def test_routing_reaches_the_driver():
    session = FakeSession(lambda request: request.answer(None))
    statement = Statement(cql="U ?", values=("x",), level="write", routing=b"key")
    Executor(session).run(Requests(statements=(statement,), what="write"))
    query = session.requests[0].query
    assert (query.values, query.routing_key) == ([b"x"], b"key")


def test_pages_may_be_taken_one_by_one(run):
    pages = {None: ([("a",)], b"1"), b"1": ([("b",)], None)}
    taken = []
    session = FakeSession(lambda request: request.answer(*pages[request.page]))
    assert run(Executor(session), replace(requests("x"), take=taken.append)) == [[]]
    assert taken == [[("a",)], [("b",)]]


def test_a_text_is_prepared_once_and_by_threads_that_meet_it_at_once():
    session = FakeSession(echo)
    executor = Executor(session)
    session.on_prepare = lambda cql: time.sleep(0.02)
    threads = [threading.Thread(target=executor.run, args=(requests("a"),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.requests) == 8
    assert 1 <= (begun := len(session.prepared)) <= 8
    executor.run(requests("a"))
    assert len(session.prepared) == begun


async def test_preparing_does_not_block_the_event_loop():
    session = FakeSession(echo)
    loop_thread, seen = threading.current_thread(), []
    session.on_prepare = lambda cql: seen.append(threading.current_thread())
    await Executor(session).arun(requests("a"))
    assert len(seen) == 1
    assert seen[0] is not loop_thread


# --- concurrency ------------------------------------------------------------------------------


def test_no_more_statements_are_under_way_than_allowed(run):
    session = FakeSession(echo, delay=0.03)
    run(Executor(session, CassandraSettings(in_flight=7)), requests(*names(60)))
    assert session.most == 7


def test_overload_halves_what_is_under_way_for_the_operations_that_follow_too(run):
    """A server that takes three writes at a time is written to completely."""
    busy = threading.Lock()
    now = [0]

    def serve(request):
        with busy:
            now[0] += 1
            refused = now[0] > 3
        time.sleep(0.002)
        with busy:
            now[0] -= 1
        request.fail(FAILED) if refused else request.answer(None)

    session = FakeSession(serve, delay=0.0005)
    executor = Executor(session, CassandraSettings(in_flight=32))
    assert run(executor, requests(*names(60), level="write")) == [[]] * 60
    refused = len(session.requests) - 60
    assert refused > 0
    run(executor, requests(*names(60), level="write"))
    assert len(session.requests) - 120 - refused < refused


def test_after_a_failure_nothing_is_sent_until_all_are_answered_and_the_failed_come_first(run):
    failures = {"n1": 1, "n2": 1}

    def serve(request):
        (name,) = request.values
        failures[name] = failures.get(name, 0) - 1
        request.fail(BUSY) if failures[name] >= 0 else echo(request)

    session = FakeSession(serve, delay=None)
    executor = Executor(session, CassandraSettings(in_flight=4))
    assert run(executor, requests(*names(12))) == [[(name,)] for name in names(12)]
    sent = [request.values[0] for request in session.requests]
    assert sent[:6] == ["n0", "n1", "n2", "n3", "n1", "n2"]
    third, fifth = session.requests[3].sent, session.requests[4].sent
    assert fifth - third >= 0.025


def test_the_limit_is_halved_by_overload_and_recovers_in_a_minute():
    limit = ConcurrencyLimit(64)
    assert limit.at(100.0) == 64
    limit.ease(100.0)
    assert limit.at(100.0) == 32
    limit.ease(101.0)
    assert limit.at(101.0) == 16
    assert 16 < limit.at(111.0) < 64
    assert limit.at(161.0) == 64
    for moment in range(200, 220):
        limit.ease(moment)
    assert limit.at(219.0) == 1


def test_waits_double_to_two_seconds_and_are_never_the_same():
    for tries, longest in [(1, 0.05), (2, 0.1), (4, 0.4), (7, 2.0), (1000, 2.0)]:
        waits = {compute_backoff(tries) for _ in range(50)}
        assert len(waits) > 1
        assert longest / 2 <= min(waits) <= max(waits) <= longest


UNTOLD = (
    InvalidRequest('[Invalid query] message="table kb does not exist"'),
    InvalidRequest('[Invalid query] message="keyspace k3 does not exist"'),
    InvalidRequest("[Invalid query] message=\"Keyspace 'k3' doesn't exist\""),
)
"""What a node of Cassandra 5.0 says of what it has not been told of."""
UNTOLD_REPLICA = ReadFailure(
    "failed",
    consistency=6,
    required_responses=2,
    received_responses=1,
    failures=1,
    error_code_map={"10.0.0.9": 3},
)
NO_INDEX = ReadFailure(
    "failed",
    consistency=6,
    required_responses=1,
    received_responses=0,
    failures=1,
    error_code_map={"10.0.0.9": 6},
)


# --- guardrails -------------------------------------------------------------------------------


def refuse(name, said):
    """What a server says whose operator has set a guardrail."""
    return InvalidRequest(f'[Invalid query] message="Guardrail {name} violated: Aborting query {said}"')


def test_pages_are_as_short_as_a_guardrail_demands(run):
    said = "for table local, page size {} exceeds fail threshold of 1000."

    def serve(request):
        rows = request.query.fetch_size
        request.fail(refuse("page_size", said.format(rows))) if (rows or 0) > 1000 else echo(request)

    session = FakeSession(serve)
    executor = Executor(session)
    for _ in range(2):
        assert run(executor, requests(*names(3))) == [[(name,)] for name in names(3)]
    assert [request.query.fetch_size for request in session.requests][6:] == [1000] * 3


@pytest.mark.parametrize("name", ["in_select_cartesian_product", "partition_keys_in_select"])
def test_keys_are_divided_as_a_guardrail_demands(run, name):
    """Also where two lists together are too many; what is read or deleted is the same."""

    def serve(request):
        lists = [value for value in request.values if isinstance(value, list)]
        keys = len(lists[0]) * len(lists[-1]) if len(lists) == 2 else len(lists[0])
        if keys > 25:
            request.fail(refuse(name, f"because of {keys} values, this exceeds fail threshold of 25."))
        else:
            request.answer([(tag, bucket) for tag in lists[0] for bucket in lists[-1]])

    session = FakeSession(serve)
    executor = Executor(session)
    tags, buckets = names(12), [str(n) for n in range(8)]
    two = Statement(cql="SELECT a FROM t WHERE a IN ? AND b = ? AND c IN ?", values=(tags, "x", buckets))
    other = Statement(cql="SELECT a FROM t WHERE a IN ? AND c IN ?", values=(["one"], names(26)))
    for _ in range(2):
        first, second = run(executor, Requests(statements=(two, other), what="read"))
        assert sorted(first) == sorted((tag, bucket) for tag in tags for bucket in buckets)
        assert sorted(second) == sorted(("one", bucket) for bucket in names(26))
    refused = [
        request for request in session.requests if len(request.values[0]) * len(request.values[-1]) > 25
    ]
    assert len(refused) == 2, "the second time, nothing is asked that is known to be refused"


def test_a_guardrail_that_cannot_be_respected_is_named(run):
    said = "Detected collection searchable with 70 items, this exceeds the failure threshold of 64."
    session = FakeSession(lambda request: request.fail(refuse("items_per_collection", said)))
    with pytest.raises(BackendError, match=r"guardrail items_per_collection .* fewer, .*_fail_threshold"):
        run(Executor(session), requests("x", level="write"))
    session = FakeSession(lambda request: request.fail(refuse("tables", "current number of tables 200.")))
    with pytest.raises(BackendError, match=r"guardrail tables .* Ask the operator"):
        run(Executor(session), requests("x"))
    assert len(session.requests) == 1


# --- trying again -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        FAILED,
        BUSY,
        OperationTimedOut(),
        ReadTimeout("late", consistency=6, required_responses=2, received_responses=1),
        Unavailable("down", consistency=6, required_replicas=2, alive_replicas=1),
        ConnectionShutdown("gone"),
        NoHostAvailable("none", {"10.0.0.7:9042": ConnectionRefusedError("refused")}),
        ServerError(code=0, message="odd", info=None),
        UNTOLD_REPLICA,
        NO_INDEX,
        *UNTOLD,
    ],
    ids=lambda error: f"{type(error).__name__}: {error}"[:70],
)
def test_what_may_pass_is_tried_again(run, error):
    failures = [error, error]
    session = FakeSession(lambda request: request.fail(failures.pop()) if failures else echo(request))
    assert run(Executor(session), requests("x")) == [[("x",)]]
    assert len(session.requests) == 3
    first, second, third = [request.sent for request in session.requests]
    assert second - first >= 0.025
    assert third - second >= 0.05


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("no such table"),
        SyntaxException(code=0x2000, message="no such table", info=None),
        AuthenticationFailed("no such table"),
        RuntimeError("no such table"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_will_not_pass_is_an_error_at_once(run, error):
    session = FakeSession(lambda request: request.fail(error))
    with pytest.raises(
        BackendError, match=r"could not read a thing: Cassandra at 10.0.0.7:9042: .*no such"
    ) as e:
        run(Executor(session), requests("x"))
    assert not isinstance(e.value, StoreUnavailableError)
    assert e.value.__cause__ is error
    assert len(session.requests) == 1


def test_errors_that_may_pass_are_counted_by_their_kind(run):
    """A node that is told of a table may fail at the very moment, after it refused it several times."""
    failures = [ServerError(code=0, message="odd", info=None), *[UNTOLD[0]] * 4]
    session = FakeSession(lambda request: request.fail(failures.pop()) if failures else echo(request))
    assert run(Executor(session), requests("x")) == [[("x",)]]
    assert len(session.requests) == 6


def test_a_server_error_is_tried_three_times(run):
    session = FakeSession(lambda request: request.fail(ServerError(code=0, message="odd", info=None)))
    with pytest.raises(StoreUnavailableError, match=r"the server failed: odd, 3 tries"):
        run(Executor(session), requests("x"))
    assert len(session.requests) == 3


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BUSY, "overloaded"),
        (FAILED, "1 replicas failed on it, and LOCAL_QUORUM needs 2"),
        (
            Unavailable("d", consistency=6, required_replicas=2, alive_replicas=1),
            "1 of the 2 replicas that LOCAL_Q",
        ),
        (
            NoHostAvailable("none", {"10.0.0.9:9042": ConnectionRefusedError("refused")}),
            r"10\.0\.0\.9:9042: .*refused",
        ),
        (NoHostAvailable("none", ["10.0.0.9"]), "10.0.0.9: no node is reachable"),
        (OperationTimedOut(last_host="10.0.0.9:9042"), "10.0.0.9:9042: no answer came in time"),
        (UNTOLD_REPLICA, "a replica does not know the table.*describecluster"),
        (UNTOLD[0], "table kb does not exist.*describecluster"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_after_the_deadline_the_error_names_host_operation_cause_and_remedy(run, error, words):
    session = FakeSession(lambda request: request.fail(error))
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=words) as e:
        run(Executor(session, CassandraSettings(deadline=1.5)), requests("x"))
    assert time.monotonic() - began < 5
    assert len(session.requests) > 1
    assert e.value.message.startswith("could not read a thing: Cassandra at 10.0.0.")
    assert e.value.message.endswith(".")
    assert e.value.__cause__ is error


def fail_with(kind, codes=None):
    """A read or a write on which a replica failed, for reasons given by their codes."""
    counts = {"consistency": 6, "required_responses": 2, "received_responses": 1, "failures": 1}
    return kind("failed", **counts, error_code_map=codes)


@pytest.mark.parametrize(
    ("error", "told", "untold"),
    [
        (fail_with(ReadFailure, {"10.0.0.9": 1}), "a minute for members and words; .* ten days", "try again"),
        (Unauthorized("no MODIFY permission"), "SELECT and MODIFY to use it, .* CREATE and MODIFY", "Grant"),
        (UNTOLD[0], "linkstore doctor --repair", "drop the store"),
        (fail_with(WriteFailure), "concurrent_writes: 2", "tombstone"),
        (fail_with(ReadFailure), "server's log says why", "concurrent_writes"),
    ],
)
def test_advice_is_true_and_does_no_harm(error, told, untold):
    advice = diagnose(error).advice
    assert re.search(told, advice)
    assert untold not in advice


def test_a_login_that_fails_on_all_nodes_is_not_tried_again(run):
    error = NoHostAvailable("none", {"10.0.0.9:9042": AuthenticationFailed("bad")})
    session = FakeSession(lambda request: request.fail(error))
    with pytest.raises(BackendError, match=r"user name and the password.*LINKSTORE_CASSANDRA_PASSWORD"):
        run(Executor(session), requests("x"))
    assert len(session.requests) == 1


@pytest.mark.parametrize(("level", "seconds"), [("read", 0.3), ("write", 0.3), ("schema", 0.8)])
def test_an_attempt_that_is_not_answered_is_given_up_in_time(run, level, seconds):
    """By the caller: also where the driver's thread has died."""
    held = []
    session = FakeSession(lambda request: held.append(request) if len(held) < 1 else echo(request))
    executor = Executor(session, CassandraSettings(timeout=0.3, schema_timeout=0.8))
    schema = Statement(cql="CREATE", level="schema")
    if level == "schema":
        with pytest.raises(StoreUnavailableError, match="no answer came in time"):
            run(executor, Requests(statements=(schema,), what="create"))
    else:
        assert run(executor, requests("a", level=level)) == [[("a",)]]
    assert held[0].timed_out == pytest.approx(seconds, abs=0.25)


def test_an_attempt_is_given_up_in_time_while_others_are_answered(run):
    def serve(request):
        if request.values != ("n0",) or len([one for one in session.requests if one.values == ("n0",)]) > 1:
            echo(request)

    session = FakeSession(serve, delay=0.02)
    executor = Executor(session, CassandraSettings(timeout=0.3, in_flight=2))
    assert run(executor, requests(*names(60))) == [[(name,)] for name in names(60)]
    assert session.requests[0].timed_out == pytest.approx(0.3, abs=0.25)


NODES = ("10.0.0.7:9042", "10.0.0.8:9042", "10.0.0.9:9042")


def answer_unless(*hanging):
    """Answer what is sent to other nodes than these."""
    return lambda request: request.attempted_hosts[-1] in hanging or echo(request)


def test_a_node_that_hangs_is_waited_for_once(run):
    """The next node is asked too, and what is sent later does not ask the silent one first."""
    session = FakeSession(answer_unless(NODES[0]), nodes=NODES)
    executor = Executor(session, CassandraSettings(timeout=0.6))
    began = time.monotonic()
    for _ in range(5):
        assert run(executor, requests("a", "b")) == [[("a",)], [("b",)]]
    assert time.monotonic() - began == pytest.approx(0.3, abs=0.25)
    asked = [request.attempted_hosts for request in session.requests]
    assert asked[:2] == [[*NODES[:2]]] * 2
    assert asked[2:] == [[NODES[1]]] * 8


def test_a_text_is_prepared_by_another_node_if_one_hangs(run):
    session = FakeSession(answer_unless(NODES[0]), nodes=NODES)
    session._pools[NODES[0]]._answer = lambda cql, cb: None
    began = time.monotonic()
    assert run(Executor(session, CassandraSettings(timeout=0.6)), requests("a")) == [[("a",)]]
    assert time.monotonic() - began < 0.6
    assert session.prepared == ["SELECT a FROM t WHERE a = ?"]


def test_nodes_that_are_all_slow_are_not_asked_twice_for_ever(run):
    session = FakeSession(lambda request: time.sleep(0.25) or echo(request), nodes=NODES)
    executor = Executor(session, CassandraSettings(timeout=0.4))
    run(executor, requests("a"))
    for _ in range(3):
        run(executor, requests("b"))
    assert [len(request.attempted_hosts) for request in session.requests[2:]] == [1, 1]


def test_a_slow_statement_goes_to_two_nodes_at_most(run, monkeypatch):
    monkeypatch.setattr("linkstore.engines.cassandra.execution.PATIENCE", 0.1)
    session = FakeSession(lambda request: time.sleep(0.5) or echo(request), nodes=NODES)
    run(Executor(session), requests("a"))
    assert [request.attempted_hosts for request in session.requests] == [[*NODES[:2]]]


def test_changes_of_the_schema_are_made_by_one_node():
    """Two nodes that make one table at once may disagree on it."""
    session = FakeSession(lambda request: time.sleep(0.5) or echo(request), nodes=NODES)
    executor = Executor(session, CassandraSettings(timeout=0.4))
    executor.run(Requests(statements=(Statement(cql="CREATE", level="schema"),), what="create"))
    assert [request.attempted_hosts for request in session.requests] == [[NODES[0]]]


def test_an_attempt_may_take_no_longer_than_is_left_of_the_deadline(run):
    session = FakeSession(lambda request: None)
    with pytest.raises(StoreUnavailableError):
        run(Executor(session, CassandraSettings(timeout=0.9, deadline=1.3)), requests("x"))
    timeouts = [request.timed_out for request in session.requests]
    assert timeouts[0] == pytest.approx(0.9, abs=0.25)
    assert len(timeouts) > 1
    assert timeouts[-1] < 0.6


def test_a_long_ingest_is_not_given_up_because_it_is_long(run):
    """What fails meanwhile loses little time."""
    failures = {"n0": 2, "n4": 2}

    def serve(request):
        name = request.values[0]
        failures[name] = failures.get(name, 0) - 1
        request.fail(BUSY) if failures[name] >= 0 else echo(request)

    session = FakeSession(serve, delay=0.1)
    executor = Executor(session, CassandraSettings(in_flight=1, deadline=2.0))
    assert run(executor, requests(*names(26))) == [[(name,)] for name in names(26)]


def recover_often(run, pause):
    """One operation of requests after one another, of which each fails for a while, and not for too long."""
    session = FakeSession(lambda request: request.fail(BUSY) if request.number % 4 < 3 else echo(request))
    executor, lost = Executor(session, CassandraSettings(deadline=1.2)), LostTime()
    for _ in range(6):
        run(executor, replace(requests("x"), lost=lost))
        time.sleep(pause)


def test_the_deadline_is_that_of_a_whole_operation(run):
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match="overloaded"):
        recover_often(run, 0)
    assert 0.5 < time.monotonic() - began < 2


def test_time_without_failures_makes_up_for_what_was_lost(run):
    recover_often(run, 0.5)


def test_preparing_is_tried_again_and_refused_at_once(run):
    session = FakeSession(echo)
    failures = [NoHostAvailable("none", {"10.0.0.9:9042": OSError("unreachable")})]

    def on_prepare(cql):
        if failures:
            raise failures.pop()

    session.on_prepare = on_prepare
    executor = Executor(session)
    assert run(executor, requests("x")) == [[("x",)]]
    failures.append(InvalidRequest("no such table"))
    other = Statement(cql="SELECT other")
    with pytest.raises(BackendError, match=r"could not do it: Cassandra at 10.0.0.7:9042: .*no such table"):
        run(executor, Requests(statements=(other,), what="do it"))


def test_a_session_that_was_shut_down_is_said_so_at_once(run):
    session = FakeSession(lambda request: request.fail(ConnectionShutdown("pool is shut down")))
    session.is_shutdown = True
    with pytest.raises(StoreClosedError, match="shut down"):
        run(Executor(session), requests("x"))
    assert len(session.requests) == 1


def test_a_session_whose_threads_are_gone_is_asked_nothing(run):
    """As in a forked child, where the driver would wait for ever for what it prepares."""
    session = FakeSession(echo)
    session.cluster.scheduler.is_alive = lambda: False
    with pytest.raises(StoreClosedError, match=r"could not read a thing: .* before this process was forked"):
        run(Executor(session), requests("x"))
    assert (session.prepared, session.requests) == ([], [])


def test_an_index_that_is_never_ready_is_named(run):
    session = FakeSession(lambda request: request.fail(NO_INDEX))
    with pytest.raises(StoreUnavailableError, match=r"the index is not ready on enough nodes, .* tries"):
        run(Executor(session, CassandraSettings(deadline=1)), requests("x"))
    assert len(session.requests) > 2


def test_a_value_that_fits_no_column_is_an_error(run):
    session = FakeSession(echo)
    with pytest.raises(BackendError, match="could not read a thing: a value does not fit"):
        run(Executor(session), requests(3.5))
    with pytest.raises(BackendError, match="a value does not fit"):
        run(Executor(session), requests("\ud800"))
    assert session.requests == []


def test_the_first_failure_ends_the_operation_and_starts_nothing_more(run):
    def serve(request):
        request.fail(InvalidRequest("bad")) if request.values == ("n3",) else echo(request)

    session = FakeSession(serve)
    with pytest.raises(BackendError):
        run(Executor(session, CassandraSettings(in_flight=4)), requests(*names(1000)))
    begun = len(session.requests)
    assert begun < 100
    time.sleep(0.05)
    assert len(session.requests) == begun


# --- threads, loops, cancellation ---------------------------------------------------------------


async def test_a_blocking_run_works_where_an_event_loop_runs():
    assert Executor(FakeSession(echo)).run(requests("x")) == [[("x",)]]


def test_one_executor_serves_several_event_loops_and_threads():
    executor = Executor(FakeSession(echo))
    failed = []

    def work(number):
        wanted = requests(*(f"{number}-{i}" for i in range(100)))
        expected = [[statement.values] for statement in wanted.statements]
        found = asyncio.run(arun(executor, wanted)) if number % 2 else executor.run(wanted)
        if found != expected:
            failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


async def test_the_event_loop_turns_while_statements_are_under_way():
    async def turn():
        while True:
            turns.append(1)
            await asyncio.sleep(0.005)

    turns = []
    turning = asyncio.create_task(turn())
    await Executor(FakeSession(echo, delay=0.2)).arun(requests("x"))
    turning.cancel()
    assert len(turns) > 10


async def test_no_thread_is_made_for_a_query():
    executor = Executor(FakeSession(echo, delay=None))
    await executor.arun(requests("x"))
    before = threading.active_count()
    for _ in range(50):
        await executor.arun(requests(*names(20)))
    assert threading.active_count() == before


async def test_a_cancelled_operation_starts_no_further_statements():
    held, loop, begun = [], asyncio.get_running_loop(), asyncio.Event()

    def hold(request):
        held.append(request)
        if len(held) == 4:
            loop.call_soon_threadsafe(begun.set)

    session = FakeSession(hold)
    task = asyncio.create_task(Executor(session, CassandraSettings(in_flight=4)).arun(requests(*names(100))))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for request in held:
        echo(request)
    await asyncio.sleep(0.2)
    assert len(session.requests) == 4


async def test_a_cancelled_operation_is_not_tried_again():
    session = FakeSession(lambda request: request.fail(BUSY))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await Executor(session).arun(requests("x"))
    begun = len(session.requests)
    await asyncio.sleep(0.3)
    assert len(session.requests) == begun


async def test_cancelled_while_it_prepares_it_prepares_no_more():
    session = FakeSession(echo)
    calls = []

    def on_prepare(cql):
        calls.append(cql)
        raise NoHostAvailable("none", {"10.0.0.9:9042": OSError("unreachable")})

    session.on_prepare = on_prepare
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await Executor(session).arun(requests("x"))
    await asyncio.sleep(0.05)
    begun = len(calls)
    await asyncio.sleep(0.4)
    assert len(calls) == begun > 1


def test_answers_that_come_after_the_loop_is_closed_harm_nobody():
    held = []
    session = FakeSession(held.append)
    executor = Executor(session)
    loop = asyncio.new_event_loop()
    task = loop.create_task(executor.arun(requests(*names(3))))
    while len(held) < 3:
        loop.run_until_complete(asyncio.sleep(0.005))
    loop.close()  # as when a program ends without waiting
    for request in held:
        request.answer([("late",)])
    task._log_destroy_pending = False
    assert executor.run(Requests(statements=(), what="go on")) == []
    held.clear()
    thread = threading.Thread(target=lambda: [time.sleep(0.1), held[0].answer([("on time",)])])
    thread.start()
    assert executor.run(requests("x")) == [[("on time",)]]
    thread.join()


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"read_consistency": "quorum"},
        {"read_consistency": "EACH_QUORUM"},
        {"write_consistency": "ANY"},
        {"timeout": 0},
        {"deadline": -1},
        {"in_flight": 0},
        {"schema_timeout": float("nan")},
        {"timeout": float("inf")},
        {"settle": float("inf")},
        {"shards": 2.0},
        {"shards": True},
        {"scan_limit": 2.5},
        {"ttl": True},
        {"lexical": 1},
    ],
    ids=str,
)
def test_settings_that_cannot_work_are_refused_early(wrong):
    """Not only when the first statement is sent."""
    with pytest.raises((BackendError, ArgumentError), match=next(iter(wrong))):
        CassandraSettings(**wrong)


def replicas_of(level, homes):
    """The fewest replicas that may answer at a level, for a client of datacenter 0: sets of replicas.

    Args:
        level: The level.
        homes: The datacenter of each replica.
    """
    everywhere = range(len(homes))
    local = [at for at in everywhere if homes[at] == 0]
    number = {"ONE": 1, "TWO": 2, "THREE": 3, "ALL": len(homes), "QUORUM": len(homes) // 2 + 1}
    if level.startswith("LOCAL_"):
        return list(combinations(local, 1 if level == "LOCAL_ONE" else len(local) // 2 + 1))
    if level != "EACH_QUORUM":
        return list(combinations(everywhere, number[level]))
    each = [[at for at in everywhere if homes[at] == of] for of in set(homes)]
    choices = [combinations(those, len(those) // 2 + 1) for those in each]
    return [sum(chosen, ()) for chosen in product(*choices)]


@pytest.mark.parametrize("datacenters", [1, 2])
def test_reads_see_writes_where_the_replicas_overlap(datacenters):
    """Compared with all choices of replicas, three in each datacenter."""
    homes = [of for of in range(datacenters) for _ in range(3)]
    for read, write in product(READ_LEVELS, WRITE_LEVELS):
        overlap = all(
            set(asked) & set(written)
            for asked in replicas_of(read, homes)
            for written in replicas_of(write, homes)
        )
        if {"TWO", "THREE"} & {read, write} and "ALL" not in (read, write):
            overlap = False  # with more copies
        settings = CassandraSettings(read_consistency=read, write_consistency=write)
        assert settings.reads_see_writes(datacenters) == overlap, (read, write)


def test_the_levels_known_are_levels_of_the_driver():
    assert set(READ_LEVELS) | set(WRITE_LEVELS) <= set(ConsistencyLevel.name_to_value)


def test_without_the_driver_the_extra_is_named():
    code = (
        "import sys; sys.modules['cassandra'] = None\n"
        "from linkstore.engines.cassandra import settings\n"
        "from linkstore.engines.cassandra import statements\n"
        "from linkstore.errors import MissingExtraError\n"
        "try:\n    from linkstore.engines.cassandra import execution\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'langchain-linkstore[cassandra]'" in done.stdout

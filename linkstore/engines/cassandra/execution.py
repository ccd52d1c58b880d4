"""Runs statements over a session of the driver, blocking or on an event loop: all waiting happens here.

The statements of an operation are a flight. It belongs to one thread or one event loop, which calls
:meth:`StatementFlight.advance` whenever the flight wakes it. The driver's thread only appends results to a
queue. So sync and async callers share one state machine, which needs no locks.

The driver converts a vector<float, n> to a list, at about 0.3 µs per component. So vectors are left as bytes,
and sets and tuples too, which in these tables are links and states. :mod:`.codec` parses and packs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, Final, NamedTuple, Self

from linkstore.core.calls import run_in_thread
from linkstore.engines.cassandra import driver
from linkstore.engines.cassandra.driver import (
    Session,
    cassandra,
    cluster,
    cqltypes,
    policies,
    protocol,
    query,
)
from linkstore.engines.cassandra.errors import Fault, diagnose, make_error
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Level, Requests, Row, Statement
from linkstore.errors import BackendError, StoreClosedError

PAGE_ROWS: Final = 5_000
"""Rows per page; nearest-neighbour search requires at least its LIMIT, which is at most 1,000."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY_SECONDS: Final = 60.0
_MIN_ATTEMPT_SECONDS: Final = 0.25
"""Minimum time in seconds for another attempt."""
_REPORT_GRACE: Final = 5.0
"""Seconds after the timeout of a statement within which the driver should report it."""
_LOST_FAULT: Final = Fault(
    "the driver neither answered nor gave up",
    "Its thread may have died: close the session, and open the store again over another.",
)
_CUSTOM_TYPE_CODE: Final = 0
"""The native protocol's code for types given by name, such as vectors."""
_VECTOR_TYPE: Final = ".VectorType("
_DriverRows: Any = protocol.ProtocolHandler.message_types_by_opcode[protocol.ResultMessage.opcode]
"""The driver's class for results."""


class Executor:
    """Runs requests over a session: with bounded concurrency, page by page, with retries.

    Several threads and event loops may use it at once, also inside a running event loop. It does not change
    the session.

    Args:
        session: The driver's.
        settings: Consistency, timeouts, retries, concurrency.
    """

    def __init__(self, session: Session, settings: CassandraSettings | None = None) -> None:
        self.session = session
        self.settings = settings or CassandraSettings()
        self._sender = Sender(session, self.settings)
        self._reading = ConcurrencyLimit(self.settings.in_flight)
        self._writing = ConcurrencyLimit(self.settings.in_flight)

    def run(self, requests: Requests) -> list[list[Row]]:
        """Run statements and wait for all of them.

        Returns:
            The rows of each statement, in the order of the statements.

        Raises:
            StoreClosedError: If the session was shut down, or opened before this process was forked.
            StoreUnavailableError: If the server cannot be reached or did not answer within the deadline.
            BackendError: If it refused a statement.
        """
        if requests.wait:
            time.sleep(requests.wait)
        self._prepare(requests, threading.Event())
        woken = threading.Event()
        with self._make_flight(requests, woken.set) as flight:
            while not flight.advance():
                woken.wait(flight.pause())
                woken.clear()
        return flight.answers

    async def arun(self, requests: Requests) -> list[list[Row]]:
        """Run statements like :meth:`run`, without blocking the event loop.

        If this is cancelled, no more requests are started.
        """
        if requests.wait:
            await asyncio.sleep(requests.wait)
        if self._sender.unprepared(requests.statements):
            stop = threading.Event()
            try:
                await run_in_thread(self._prepare, requests, stop)  # the driver blocks meanwhile
            finally:
                stop.set()
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits
                loop.call_soon_threadsafe(woken.set)

        with self._make_flight(requests, wake) as flight:
            while not flight.advance():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(flight.pause()):
                        await woken.wait()
                woken.clear()
        return flight.answers

    def _make_flight(self, requests: Requests, wake: Callable[[], object]) -> StatementFlight:
        writes = any(statement.level == "write" for statement in requests.statements)
        limit = self._writing if writes else self._reading
        return StatementFlight(requests, self._sender, limit, self._make_rules(requests.what), wake)

    def _make_rules(self, what: str) -> RetryRules:
        """Return the retry rules of an operation, if its session can answer.

        A session answers by threads, which end when it is shut down and do not exist in a forked child. There
        the driver waits for ever, for instance while it prepares a statement.
        """
        rules = RetryRules(what, self.session, self.settings)
        if not self.session.cluster.scheduler.is_alive():
            raise rules.ended()
        return rules

    def _prepare(self, requests: Requests, stop: threading.Event) -> None:
        """Prepare new statements, with the same timeouts and retries as for running statements."""
        rules = self._make_rules(requests.what)
        for cql in self._sender.unprepared(requests.statements):
            began, failures, done = time.monotonic(), Counter[int](), False
            while not done and not stop.is_set():
                try:
                    self._sender.prepare(cql)
                    done = True
                except driver.ERRORS as error:
                    spent = time.monotonic() - began
                    stop.wait(rules.wait(diagnose(error), error, failures, spent=spent))


class ConcurrencyLimit:
    """The maximum number of concurrent statements: halved by overload, recovers within a minute.

    The operations of a store share it, so an overload slows down later operations too. Threads may call it
    without a lock. At worst, one of two simultaneous halvings is lost.

    Args:
        top: The maximum without overload.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._eased = (float(top), 0.0)

    def limit(self, now: float) -> int:
        """Return the maximum number of concurrent statements at time ``now`` in seconds, at least 1."""
        level, since = self._eased
        return max(1, min(self._top, int(level + self._top * (now - since) / _RECOVERY_SECONDS)))

    def ease(self, started: float, now: float) -> None:
        """Halve the maximum after an overload, unless the statement started before the last halving."""
        if started >= self._eased[1]:
            self._eased = (max(1.0, self.limit(now) / 2), now)


def compute_backoff(tries: int) -> float:
    """Return the seconds to wait after ``tries`` failures: 0.05 doubled each time up to 2, half of it random.

    The random part keeps clients that failed together from coming back together (M. Brooker,
    Exponential Backoff And Jitter, AWS Architecture Blog, 2015: "equal jitter").
    """
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class RetryRules:
    """The retry rules of one operation.

    The driver's own policy of retries knows neither deadlines nor pauses, so it only chooses another node.

    Args:
        what: The operation, as in "could not {what}".
        session: The driver's session, to name its nodes and to check whether it was shut down.
        settings: Timeouts and deadlines.
    """

    def __init__(self, what: str, session: Session, settings: CassandraSettings) -> None:
        self._what = what
        self._session = session
        self._settings = settings

    def timeout(self, level: Level, spent: float) -> float:
        """Return the timeout of an attempt that starts ``spent`` seconds after the first one."""
        each = self._settings.schema_timeout if level == "schema" else self._settings.timeout
        return max(_MIN_ATTEMPT_SECONDS, min(each, self._find_deadline(level) - spent))

    def wait(
        self,
        fault: Fault,
        error: BaseException,
        failures: Counter[int],
        *,
        spent: float,
        level: Level = "read",
        host: object = None,
    ) -> float:
        """Return the seconds until the next attempt.

        Args:
            fault: The description of the error.
            error: What the driver raised.
            failures: The failures so far, by how many of their kind are allowed. This one is added.
            spent: Seconds since the first attempt.
            level: That of the statement.
            host: The node that was asked.

        Raises:
            BackendError: If there is no further attempt. It names the nodes, operation, cause and advice.
        """
        if self._session.is_shutdown:
            raise self.ended() from error
        failures[fault.tries] += 1
        tries = failures.total()
        wait = compute_backoff(tries)
        late = spent + wait + _MIN_ATTEMPT_SECONDS > self._find_deadline(level)
        if late or failures[fault.tries] >= fault.tries:
            raise self.failure(fault, tries=tries, spent=spent, host=host) from error
        return wait

    def failure(
        self, fault: Fault, *, tries: int = 1, spent: float = 0.0, host: object = None
    ) -> BackendError:
        """Return the exception to raise for a fault."""
        hosts = (host,) if host else self._session.cluster.metadata.all_hosts()
        return make_error(fault, self._what, hosts, tries=tries, spent=spent)

    def ended(self) -> BackendError:
        """Return the exception to raise for a session that cannot answer any more."""
        if self._session.is_shutdown:
            why = "was shut down; open the store again"
        else:
            why = (
                "was opened before this process was forked, and does not work in both; open the store in the"
                " process that uses it, over a session of that process"
            )
        return StoreClosedError(f"could not {self._what}: the session with Cassandra {why}")

    def refused(self, error: Exception) -> BackendError:
        """Return the exception to raise for a value that the driver cannot send."""
        return BackendError(f"could not {self._what}: a value does not fit its column in Cassandra: {error}")

    def _find_deadline(self, level: Level) -> float:
        return self._settings.schema_timeout if level == "schema" else self._settings.deadline


@dataclass(slots=True, eq=False)
class _PendingStatement:
    """A statement, the pages of its answer received so far, and the request that is under way."""

    position: int
    statement: Statement
    rows: list[Row] = field(default_factory=list)
    page: bytes | None = None
    failures: Counter[int] = field(default_factory=Counter)
    since: float = 0.0
    started: float = 0.0
    expires: float = 0.0
    future: Any = None


class StatementFlight:
    """Runs the statements of one operation.

    Args:
        requests: The statements.
        sender: Sends statements, which must be prepared.
        limit: Limits the number of concurrent statements.
        rules: Decides on retries and timeouts.
        wake: Called in any thread when :meth:`advance` should be called.
    """

    def __init__(
        self,
        requests: Requests,
        sender: Sender,
        limit: ConcurrencyLimit,
        rules: RetryRules,
        wake: Callable[[], object],
    ) -> None:
        self.answers: list[list[Row]] = [[] for _ in requests.statements]
        self._take_rows = requests.take
        self._sender = sender
        self._limit = limit
        self._rules = rules
        self._wake = wake
        self._ready = deque(_PendingStatement(*each) for each in enumerate(requests.statements))
        self._waiting: list[tuple[float, int, _PendingStatement]] = []
        self._order = count()
        self._running: set[_PendingStatement] = set()
        self._results: deque[tuple[_PendingStatement, Any, bool, Any]] = deque()
        self._woken = False
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ignore the results of requests that are still running."""
        self._open = False

    def advance(self) -> bool:
        """Process results, and start statements.

        Returns:
            Whether all statements are answered.

        Raises:
            BackendError: If a statement failed and is not retried.
        """
        self._woken = False  # before processing results, so that any later result wakes the caller again
        while self._results:
            self._take(*self._results.popleft())
        now = time.monotonic()
        for lost in self._running:
            if lost.expires + _REPORT_GRACE < now:
                raise self._rules.failure(_LOST_FAULT, spent=now - lost.since)
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._waiting)[2])
        for _ in range(min(self._limit.limit(now) - len(self._running), len(self._ready))):
            self._start(self._ready.popleft())
        return not (self._running or self._waiting or self._ready)

    def pause(self) -> float:
        """Return the seconds until :meth:`advance` must be called even without a result."""
        times = [pending.expires + _REPORT_GRACE for pending in self._running]
        times += [due for due, _, _ in self._waiting[:1]]
        return max(0.0, min(times) - time.monotonic())

    def _start(self, pending: _PendingStatement) -> None:
        pending.started = now = time.monotonic()
        pending.since = pending.since or now
        timeout = self._rules.timeout(pending.statement.level, now - pending.since)
        pending.expires = now + timeout
        try:
            future = self._sender.send(pending.statement, page=pending.page, timeout=timeout)
        except (TypeError, ValueError) as error:
            raise self._rules.refused(error) from error
        pending.future = future
        self._running.add(pending)
        future.add_callbacks(
            partial(self._put, pending, future, False), partial(self._put, pending, future, True)
        )

    def _put(self, pending: _PendingStatement, future: Any, failed: bool, result: Any) -> None:
        """Queue the rows or the error of a request. The driver's thread calls this."""
        if self._open:
            self._results.append((pending, future, failed, result))
            if not self._woken:
                self._woken = True
                self._wake()

    def _take(self, pending: _PendingStatement, future: Any, failed: bool, result: Any) -> None:
        if pending.future is not future:
            return  # the driver may call twice for one request
        pending.future = None
        self._running.discard(pending)
        release_future(future)
        if failed:
            self._retry_later(pending, result, getattr(future, "coordinator_host", None))
            return
        rows, limit = convert_rows(result), pending.statement.page_limit
        if self._take_rows:
            self._take_rows(rows)
        else:
            pending.rows += rows
        if future.has_more_pages and (limit is None or len(pending.rows) < limit):
            pending.page = future.result().paging_state
            pending.failures, pending.since = Counter(), 0.0
            self._ready.appendleft(pending)
        else:
            self.answers[pending.position] = pending.rows[:limit]

    def _retry_later(self, pending: _PendingStatement, error: BaseException, host: object) -> None:
        """Schedule the next attempt of a statement that failed."""
        now, fault, level = time.monotonic(), diagnose(error), pending.statement.level
        spent = now - pending.since
        wait = self._rules.wait(fault, error, pending.failures, spent=spent, level=level, host=host)
        if fault.overload:
            self._limit.ease(pending.started, now)
        heapq.heappush(self._waiting, (now + wait, next(self._order), pending))


class Sender:
    """Prepares, binds, routes and sends statements over a session, without changing the session.

    Args:
        session: The driver's, configured by execution profiles or, as before them, by its attributes.
        settings: Consistency levels.
    """

    def __init__(self, session: Session, settings: CassandraSettings) -> None:
        self.session = session
        self._prepared: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._policy = _NextHostPolicy()
        self._profile = session.execution_profile_clone_update(
            cluster.EXEC_PROFILE_DEFAULT, row_factory=query.tuple_factory, retry_policy=self._policy
        )
        self._timeout = settings.timeout
        levels = cassandra.ConsistencyLevel.name_to_value
        self._levels: Mapping[Level, int] = {
            "read": levels[settings.read_consistency],
            "write": levels[settings.write_consistency],
            "one": cassandra.ConsistencyLevel.LOCAL_ONE,
            "schema": levels[settings.write_consistency],
        }

    def unprepared(self, statements: Sequence[Statement]) -> list[str]:
        """Return the texts that are not prepared yet."""
        texts = {statement.cql: None for statement in statements if statement.level != "schema"}
        return [cql for cql in texts if cql not in self._prepared]

    def prepare(self, cql: str) -> None:
        """Prepare a text unless it is prepared. This blocks, and raises the driver's exceptions.

        The driver prepares on one node and then on all others, with the default timeout of the session. So it
        is called with a proxy of the session that has another timeout.
        """
        with self._lock:
            if cql not in self._prepared:
                kind: Any = type(self.session)
                hurried = _Proxy(self.session, default_timeout=self._timeout)
                hurried.prepare_on_all_hosts = partial(kind.prepare_on_all_hosts, hurried)
                self._prepared[cql] = kind.prepare(hurried, cql)

    def send(self, statement: Statement, *, page: bytes | None, timeout: float) -> Any:
        """Send a prepared statement without waiting for its answer.

        The driver reads results with the session's protocol handler. So it is called with a proxy of the
        session that has another handler, which leaves vectors, sets and tuples as bytes.

        Args:
            statement: What to send.
            page: Paging state of the previous page, or None for the first page.
            timeout: Timeout in seconds.

        Raises:
            TypeError: If a value cannot be turned into its column's type.
            ValueError: Likewise.
        """
        limit = PAGE_ROWS if statement.level == "one" else statement.page_limit or PAGE_ROWS
        bound = self._bind(statement)
        bound.consistency_level = self._levels[statement.level]
        bound.retry_policy = self._policy
        bound.is_idempotent = True
        bound.fetch_size = min(PAGE_ROWS, limit)
        options: dict[str, Any] = {"timeout": timeout, "paging_state": page}
        if self.session.cluster._config_mode != cluster._ConfigMode.LEGACY:  # noqa: SLF001 - nothing else tells
            options["execution_profile"] = self._profile
        execute: Any = type(self.session).execute_async
        return execute(_Proxy(self.session, client_protocol_handler=_PackedHandler), bound, **options)

    def _bind(self, statement: Statement) -> Any:
        if statement.level == "schema":
            return query.SimpleStatement(statement.cql)
        bound = _RoutedStatement(self._prepared[statement.cql], statement.routing)
        if statement.packed:
            bound.values = list(statement.values)
            return bound
        try:
            return bound.bind(statement.values)
        except AttributeError as error:  # what the driver raises for a text that is not a str
            raise TypeError(str(error)) from error


class _RoutedStatement(query.BoundStatement):  # type: ignore[misc]
    """A bound statement whose routing key can be set."""

    values: list[Any]

    def __init__(self, prepared: Any, routing: bytes | None) -> None:
        super().__init__(prepared)
        self._given = routing

    @property
    def routing_key(self) -> bytes | None:
        """The given key, otherwise the one that the driver derives from the values."""
        return super().routing_key if self._given is None else self._given


class _NextHostPolicy(policies.RetryPolicy):  # type: ignore[misc]
    """Asks the next node if one is lost, joining or cut off from the others, and raises all other errors.

    The flight, which knows the deadline, decides on further attempts.
    """

    def on_read_timeout(self, *args: Any, **kwargs: Any) -> tuple[int, None]:
        return self.RETHROW, None

    def on_write_timeout(self, *args: Any, **kwargs: Any) -> tuple[int, None]:
        return self.RETHROW, None

    def on_request_error(
        self, query: Any, consistency: int, error: BaseException, retry_num: int
    ) -> tuple[int, None]:
        busy = protocol.OverloadedErrorMessage, protocol.ServerError, protocol.TruncateError
        return (self.RETHROW if isinstance(error, busy) else self.RETRY_NEXT_HOST), None


def release_future(future: Any) -> None:
    """Break the reference cycles of an answered request, so that it is freed without the garbage collector.

    Its callbacks refer to it, and so does its timer, which was cancelled. A request has some forty objects,
    and thousands of requests would have the collector look at all objects of the process again and again.
    """
    future.clear_callbacks()
    future._timer = None  # noqa: SLF001 - the driver keeps it


def convert_rows(rows: Any) -> list[Row]:
    """Return the rows of an answer as tuples. Sessions of legacy clusters have a row factory of the user's.

    Raises:
        BackendError: If rows come in a form that cannot be read.
    """
    if not rows:
        return []
    first = rows[0] if isinstance(rows, list) else None
    if isinstance(first, tuple):
        return rows  # type: ignore[no-any-return]
    if isinstance(first, Mapping):
        return [tuple(row.values()) for row in rows]
    raise BackendError(
        f"the session's row_factory gives rows as {type(rows).__name__} of {type(first).__name__}:"
        " use a session with tuples, named tuples or dicts, or configure its cluster by execution profiles"
    )


class _Proxy:
    """A proxy of an object with a few different attributes."""

    prepare_on_all_hosts: Any

    def __init__(self, thing: Any, **different: Any) -> None:
        self._thing = thing
        vars(self).update(different)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _PackedRows(_DriverRows):  # type: ignore[misc]
    """Results with vectors, sets and tuples as bytes."""

    @classmethod
    def read_type(cls, f: BytesIO, user_type_map: Any) -> Any:
        start = f.tell()
        if protocol.read_short(f) == _CUSTOM_TYPE_CODE and _VECTOR_TYPE in protocol.read_string(f):
            return cqltypes.BytesType
        f.seek(start)
        kind = super().read_type(f, user_type_map)
        return cqltypes.BytesType if issubclass(kind, cqltypes.SetType | cqltypes.TupleType) else kind


class _PackedHandler(protocol.ProtocolHandler):  # type: ignore[misc]
    """The driver's protocol handler, with another class for results."""

    message_types_by_opcode: ClassVar[dict[int, type]] = {
        **protocol.ProtocolHandler.message_types_by_opcode,
        _DriverRows.opcode: _PackedRows,
    }


class NodeShare(NamedTuple):
    """The partitions of one node.

    Attributes:
        positions: Positions of their keys in the list of keys.
        routing: A routing key that sends a statement to that node, None for any node.
    """

    positions: list[int]
    routing: bytes | None = None


class Placement:
    """Groups partition keys by the node to ask, by the driver's metadata of tokens.

    Args:
        session: The driver's.
        keyspace: The tables' keyspace.
    """

    def __init__(self, session: Session, keyspace: str) -> None:
        self._cluster = session.cluster
        self._keyspace = keyspace

    @property
    def is_replicated(self) -> bool:
        """Whether partitions have several replicas, True if this is not known."""
        metadata = self._cluster.metadata
        if self._keyspace not in metadata.keyspaces or not metadata.token_map:
            return True
        return len(metadata.get_replicas(self._keyspace, b"any")) != 1

    def by_replica(self, keys: Sequence[tuple[bytes, ...]]) -> list[NodeShare]:
        """Group partition keys by the first of their replicas that is up and in the local datacenter.

        If there is only one node, or the driver does not know the tokens, there is one group. This takes some
        microseconds per key and sends nothing to the server.

        Args:
            keys: The values of the columns of each partition key, packed.
        """
        if len(keys) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [NodeShare(list(range(len(keys))))] if keys else []
        shares: dict[object, NodeShare] = {}
        for position, key in enumerate(keys):
            routing = make_routing_key(key)
            owner = self._find_owner(routing)
            share = shares.setdefault(owner, NodeShare([], routing if owner else None))
            share.positions.append(position)
        return list(shares.values())

    def _find_owner(self, routing: bytes) -> Any:
        """Return the node to ask: the first replica that is up and local, otherwise the first replica."""
        replicas = self._cluster.metadata.get_replicas(self._keyspace, routing)
        distance = self._cluster.profile_manager.distance
        local = policies.HostDistance.LOCAL
        near = (host for host in replicas if host.is_up and distance(host) == local)
        return next(near, replicas[0] if replicas else None)


def make_routing_key(parts: Sequence[bytes]) -> bytes:
    """Return the routing key of a partition.

    This is its only part, or each part with its length before and a 0 after it.
    """
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(f">H{len(part)}sB", len(part), part, 0) for part in parts)

"""Runs statements over a session of the driver, blocking or on an event loop: all waiting happens here.

One generator carries out the statements of an operation, for blocking and awaiting callers alike: it sends
them, a bounded number at once, and waits for what they come to, which the driver's thread puts into
:class:`Completions`. After a failure it sends nothing until all statements under way are answered and a
pause is over; then the failed ones come first.

The driver converts a vector<float, n> to a list, at about 0.3 µs per component. So vectors are left as bytes,
and sets and tuples too, which in these tables are links and states. :mod:`.codec` parses and packs them.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from linkstore.core import calls
from linkstore.core.calls import Call, Operation, call, request
from linkstore.core.processes import Lock
from linkstore.engines.cassandra import driver
from linkstore.engines.cassandra.driver import (
    Fault,
    Session,
    cassandra,
    cqltypes,
    diagnose,
    make_error,
    metadata,
    policies,
    protocol,
    query,
)
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Level, Requests, Row, Statement, Tables
from linkstore.errors import BackendError, StoreClosedError

T = TypeVar("T")
PartitionKey = TypeVar("PartitionKey", bound=tuple[bytes, ...])
"""The columns of the key of a partition, packed."""
PAGE_ROWS: Final = 5_000
"""Rows per page. An answer that cannot have more rows is asked for without pages."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY_SECONDS: Final = 60.0
_MIN_ATTEMPT_SECONDS: Final = 0.25
"""Minimum time in seconds for another attempt."""
_CUSTOM_TYPE_CODE: Final = 0
"""The native protocol's code for types given by name, such as vectors."""
_VECTOR_TYPE: Final = ".VectorType("
_DriverRows: Any = protocol.ProtocolHandler.message_types_by_opcode[protocol.ResultMessage.opcode]
"""The driver's class for results."""


class Options(NamedTuple):
    """How statements of a level are run: consistency, timeout and deadline in seconds."""

    consistency: int
    timeout: float
    deadline: float


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

    def at(self, now: float) -> int:
        """Return the maximum number of concurrent statements at time ``now`` in seconds, at least 1."""
        level, since = self._eased
        return max(1, min(self._top, int(level + self._top * (now - since) / _RECOVERY_SECONDS)))

    def ease(self, now: float) -> None:
        """Halve the maximum after an overload."""
        self._eased = (max(1.0, self.at(now) / 2), now)


@dataclass(slots=True, eq=False)
class Attempts:
    """The attempts of one statement.

    Args:
        statement: The statement.
        rows: The pages of its answer received so far.
        page: Paging state of the previous page, None for the first page.
        failures: The failed attempts (of this page), by how many of their kind are allowed.
        since: When the first attempt started, 0 before.
        expires: When the attempt under way times out.
        future: Its request.
    """

    statement: Statement
    rows: list[Row] = field(default_factory=list)
    page: bytes | None = None
    failures: Counter[int] = field(default_factory=Counter)
    since: float = 0.0
    expires: float = 0.0
    future: Any = None


class StatementBatch:
    """The statements of one operation.

    Args:
        requests: The operation.

    Attributes:
        answers: The rows of each statement.
        ready: Statements to send.
        running: Statements under way.
        failed: Those that failed since statements were sent last.
        wait: Seconds until they are sent again.
        overload: Whether one of them failed by overload.
    """

    def __init__(self, requests: Requests) -> None:
        self.requests = requests
        self.ready = deque(map(Attempts, requests.statements))
        self.answers = [attempts.rows for attempts in self.ready]
        self.running: set[Attempts] = set()
        self.failed: list[Attempts] = []
        self.wait, self.overload = 0.0, False

    def turn_back(self, limit: ConcurrencyLimit) -> float:
        """Make ready what failed, before all else, and return the seconds to wait until it is sent."""
        if self.overload:
            limit.ease(time.monotonic())
        self.ready.extendleft(reversed(self.failed))
        wait, self.failed, self.wait, self.overload = self.wait, [], 0.0, False
        return wait

    def expire(self, now: float) -> None:
        """Have the driver give up the requests whose time is over, as its own timers do."""
        for attempts in [attempts for attempts in self.running if attempts.expires <= now]:
            attempts.future._on_timeout()  # noqa: SLF001 - see Executor._send

    def take_page(self, attempts: Attempts, future: Any, rows: list[Row]) -> None:
        """Add a page to the answer of a statement, and make it ready for the next page if there is one."""
        if self.requests.take:
            self.requests.take(rows)
        else:
            attempts.rows += rows
        if future.has_more_pages:
            attempts.page = future.result().paging_state
            attempts.failures, attempts.since = Counter(), 0.0
            self.ready.appendleft(attempts)


class Completions:
    """What requests came to: the driver's thread puts it in, one thread or event loop waits for it.

    Attributes:
        items: What was put in.
    """

    def __init__(self) -> None:
        self.items: deque[tuple[Attempts, Any, bool, Any]] = deque()
        self._event = threading.Event()
        self._wake: Any = None

    def put(self, attempts: Attempts, future: Any, failed: bool, result: Any) -> None:
        """Add the rows or the error of a request, and wake whoever waits."""
        self.items.append((attempts, future, failed, result))
        wake, self._wake = self._wake, None
        if wake:
            with suppress(RuntimeError):  # the loop is closed, so nothing waits
                wake()

    def wait(self, seconds: float) -> None:
        """Wait until there is something."""
        self._event.clear()
        self._wake = self._event.set
        if not self.items:
            self._event.wait(seconds)

    async def arrive(self, seconds: float) -> None:
        """Wait as :meth:`wait` does, without blocking the event loop."""
        event = asyncio.Event()
        self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, event.set)
        if not self.items:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()


def compute_backoff(tries: int) -> float:
    """Return the seconds to wait after ``tries`` failures: 0.05 doubled each time up to 2, half of it random.

    The random part keeps clients that failed together from coming back together (M. Brooker,
    Exponential Backoff And Jitter, AWS Architecture Blog, 2015: "equal jitter").
    """
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Executor:
    """Runs requests over a session: with bounded concurrency, page by page, with retries.

    Several threads and event loops may use it at once, also inside a running event loop. It does not change
    the session. The driver's policy of retries, which knows neither deadlines nor pauses, asks the next node
    at once where one is lost; all else is decided here.

    Args:
        session: The driver's, configured by execution profiles or, as before them, by its attributes.
        settings: Consistency, timeouts, retries, concurrency.
        tables: Those that statements name. None: statements name tables as the server does.
    """

    def __init__(
        self, session: Session, settings: CassandraSettings | None = None, tables: Tables | None = None
    ) -> None:
        self.session = session
        self.settings = settings or CassandraSettings()
        self._reading = ConcurrencyLimit(self.settings.in_flight)
        self._writing = ConcurrencyLimit(self.settings.in_flight)
        self._name_tables = tables.name_in if tables else str
        self._prepared: dict[str, Any] = {}
        self._preparing = Lock()
        self._policy = policies.RetryPolicy()
        given, levels = self.settings, cassandra.ConsistencyLevel.name_to_value
        self._options: dict[Level, Options] = {
            "read": Options(levels[given.read_consistency], given.timeout, given.deadline),
            "write": Options(levels[given.write_consistency], given.timeout, given.deadline),
            "one": Options(cassandra.ConsistencyLevel.LOCAL_ONE, given.timeout, given.deadline),
            "schema": Options(levels[given.write_consistency], given.schema_timeout, given.schema_timeout),
        }

    def run(self, requests: Requests) -> list[list[Row]]:
        """Run statements and wait for all of them.

        Returns:
            The rows of each statement, in the order of the statements.

        Raises:
            StoreClosedError: If the session was shut down, or opened before this process was forked.
            StoreUnavailableError: If the server cannot be reached or did not answer within the deadline.
            BackendError: If it refused a statement.
        """
        return calls.run(self._carry_out(requests))

    async def arun(self, requests: Requests) -> list[list[Row]]:
        """Run statements like :meth:`run`, without blocking the event loop.

        If this is cancelled, no more requests are started.
        """
        return await calls.arun(self._carry_out(requests))

    def _carry_out(self, requests: Requests) -> Operation[list[list[Row]]]:
        if requests.wait:
            yield from _pause(requests.wait)
        if not self.session.cluster.scheduler.is_alive():
            raise self._make_ended_error(requests.what)
        for cql in {statement.cql: None for statement in requests.statements if statement.level != "schema"}:
            yield from self._prepare_patiently(cql, requests.what)
        flight, inbox = StatementBatch(requests), Completions()
        levels = {statement.level for statement in requests.statements}
        limit = self._writing if "write" in levels else self._reading
        while flight.ready or flight.running or flight.failed:
            if flight.failed and not flight.running:
                yield from _pause(flight.turn_back(limit))
            now = time.monotonic()
            while flight.ready and not flight.failed and len(flight.running) < limit.at(now):
                attempts = flight.ready.popleft()
                self._send(attempts, inbox, requests.what)
                flight.running.add(attempts)
            soonest = min(attempts.expires for attempts in flight.running)
            yield from call(inbox.wait, inbox.arrive, max(0.0, soonest - time.monotonic()))
            flight.expire(time.monotonic())
            while inbox.items:
                self._take(flight, *inbox.items.popleft())
        return flight.answers

    def _send(self, attempts: Attempts, inbox: Completions, what: str) -> None:
        """Send a statement without waiting for its answer, which goes to the inbox.

        This is the driver's ``execute_async``, with another row factory and protocol handler, which leaves
        vectors, sets and tuples as bytes. It has no timeout, because the driver makes a timer for each, and
        wakes its thread for it; see :meth:`StatementBatch.expire`.
        """
        statement, session, now = attempts.statement, self.session, time.monotonic()
        attempts.since = attempts.since or now
        options = self._options[statement.level]
        left = options.deadline - (now - attempts.since)
        attempts.expires = now + max(_MIN_ATTEMPT_SECONDS, min(options.timeout, left))
        try:
            bound = self._bind(statement)
        except (AttributeError, TypeError, ValueError) as error:  # the first for a text that is not a str
            message = f"could not {what}: a value does not fit its column in Cassandra: {error}"
            raise BackendError(message) from error
        future = session._create_response_future(  # noqa: SLF001 - see above
            bound, None, False, {}, None, paging_state=attempts.page
        )
        future.row_factory = query.tuple_factory
        future._protocol_handler = _PackedHandler  # noqa: SLF001 - see above
        attempts.future = future
        session._on_request(future)  # noqa: SLF001 - see above
        future.send_request()
        put = partial(inbox.put, attempts, future)
        future.add_callbacks(partial(put, False), partial(put, True))

    def _bind(self, statement: Statement) -> Any:
        """Return the driver's form of a statement, whose text must be prepared."""
        if statement.level == "schema":
            bound = query.SimpleStatement(self._name_tables(statement.cql))
        else:
            bound = _RoutedStatement(self._prepared[statement.cql])
            bound.given_key = statement.routing
            if statement.packed:
                bound.values = list(statement.values)
            else:
                bound.bind(statement.values)
        bound.consistency_level = self._options[statement.level].consistency
        bound.retry_policy = self._policy
        bound.is_idempotent = True
        bound.fetch_size = PAGE_ROWS if statement.limit is None or statement.limit > PAGE_ROWS else None
        return bound

    def _take(
        self, flight: StatementBatch, attempts: Attempts, future: Any, is_error: bool, result: Any
    ) -> None:
        """Take what a request came to: rows, after which there may be more to ask for, or an error."""
        if attempts.future is not future:
            return  # the driver may call twice for one request
        attempts.future = None
        flight.running.discard(attempts)
        future.clear_callbacks()  # which refer to it: so it is freed without the garbage collector
        if not is_error:
            flight.take_page(attempts, future, result or [])
            return
        fault, host = diagnose(result), getattr(future, "coordinator_host", None)
        flight.wait = max(flight.wait, self._find_wait(attempts, fault, result, flight.requests.what, host))
        flight.overload |= fault.overload
        flight.failed.append(attempts)

    def _find_wait(
        self, attempts: Attempts, fault: Fault, error: BaseException, what: str, host: object = None
    ) -> float:
        """Return the seconds until the next attempt of what failed.

        Raises:
            BackendError: If there is no further attempt. It names the nodes, operation, cause and advice.
        """
        if self.session.is_shutdown:
            raise self._make_ended_error(what) from error
        attempts.failures[fault.tries] += 1
        tries, spent = attempts.failures.total(), time.monotonic() - attempts.since
        wait = compute_backoff(tries)
        late = spent + wait + _MIN_ATTEMPT_SECONDS > self._options[attempts.statement.level].deadline
        if late or attempts.failures[fault.tries] >= fault.tries:
            hosts = (host,) if host else self.session.cluster.metadata.all_hosts()
            raise make_error(fault, what, hosts, tries=tries, spent=spent) from error
        return wait

    def _make_ended_error(self, what: str) -> BackendError:
        """Return the exception to raise for a session that cannot answer any more.

        A session answers by threads, which end when it is shut down and do not exist in a forked child. There
        the driver waits for ever, for instance while it prepares a statement.
        """
        if self.session.is_shutdown:
            why = "was shut down; open the store again"
        else:
            why = (
                "was opened before this process was forked, and does not work in both; open the store in the"
                " process that uses it, over a session of that process"
            )
        return StoreClosedError(f"could not {what}: the session with Cassandra {why}")

    def _prepare_patiently(self, cql: str, what: str) -> Operation[None]:
        """Prepare a text unless it is prepared, with the same retries as for running statements."""
        attempts = Attempts(Statement(cql=cql), since=time.monotonic())
        while cql not in self._prepared:
            try:
                yield from call(self._prepare, None, cql)  # the driver blocks meanwhile
            except driver.ERRORS as error:
                yield from _pause(self._find_wait(attempts, diagnose(error), error, what))

    def _prepare(self, cql: str) -> None:
        """Prepare a text unless it is prepared. This blocks, and raises the driver's exceptions.

        Each node has the default timeout of the session to answer, which is 10 seconds in the driver.
        """
        with self._preparing:
            if cql not in self._prepared:
                self._prepared[cql] = self.session.prepare(self._name_tables(cql))


def _pause(seconds: float) -> Operation[None]:
    return request(Call(time.sleep, asyncio.sleep, (seconds,)))


class _RoutedStatement(query.BoundStatement):  # type: ignore[misc]
    """A bound statement whose routing key may be given."""

    values: list[Any]
    given_key: bytes | None = None

    @property
    def routing_key(self) -> bytes | None:
        """The given key, otherwise the one that the driver derives from the values."""
        return self.given_key or super().routing_key


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
        return len(self._cluster.metadata.get_replicas(self._keyspace, b"any")) != 1

    @staticmethod
    def compute_token(key: bytes) -> int:
        """Return the token of a partition by its routing key."""
        return int(metadata.Murmur3Token.hash_fn(key))

    def by_replica(self, items: Mapping[PartitionKey, T]) -> list[tuple[list[T], bytes | None]]:
        """Group items by the first replica of their partition that is up and in the local datacenter.

        If there is only one node, or the driver does not know the tokens, there is one group. This takes some
        microseconds per key and sends nothing to the server.

        Args:
            items: The items by partition key.

        Returns:
            The items of each node, and a routing key that sends a statement there, None for any node.
        """
        if len(items) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [([*items.values()], None)] if items else []
        shares: dict[object, tuple[list[T], bytes | None]] = {}
        for key, item in items.items():
            routing = make_routing_key(key)
            owner = self._find_owner(routing)
            share, _ = shares.setdefault(owner, ([], routing if owner else None))
            share.append(item)
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

"""Runs statements over a session of the driver, blocking or on an event loop: all waiting happens here.

One generator carries out the statements of an operation, for blocking and awaiting callers alike: it sends
them, a bounded number at once, and waits for what they come to, which the driver's thread puts into an
:class:`Completions`. After a failure it sends nothing until all statements under way are answered and a
pause is over; then the failed ones come first. A statement that waits long for its node is sent to another
one too, see :mod:`.placement`. A text is prepared by a request like any other.

The driver converts a vector<float, n> to a list, at about 0.3 µs per component. So vectors are left as bytes,
and sets too, which in these tables are states. :mod:`.codec` parses and packs them.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from typing import Any, ClassVar, Final, NamedTuple

from linkstore.core import calls
from linkstore.core.calls import Call, Operation, call, request
from linkstore.engines.cassandra.driver import (
    Fault,
    Session,
    cassandra,
    cluster,
    cqltypes,
    diagnose,
    make_error,
    policies,
    protocol,
    query,
)
from linkstore.engines.cassandra.limits import ConcurrencyLimit, Guardrails, LostTime, compute_backoff
from linkstore.engines.cassandra.placement import PATIENCE, SilentNodes
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Level, Requests, Row, Statement, Tables
from linkstore.errors import BackendError, StoreClosedError

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
        hedges: When it is sent to another node too.
        future: Its request.
    """

    statement: Statement
    rows: list[Row] = field(default_factory=list)
    page: bytes | None = None
    failures: Counter[int] = field(default_factory=Counter)
    since: float = 0.0
    expires: float = 0.0
    hedges: float = 0.0
    future: Any = None


class StatementBatch:
    """The statements of one operation.

    Args:
        requests: The operation.
        guardrails: How many keys a statement may have.

    Attributes:
        lost: The time that the operation has lost to failures.
        answers: The rows of each statement.
        ready: Statements to send.
        running: Statements under way.
        failed: Those that failed since statements were sent last.
        wait: Seconds until they are sent again.
        overload: Whether one of them failed by overload.
    """

    def __init__(self, requests: Requests, guardrails: Guardrails) -> None:
        self.requests = requests
        self.lost = requests.lost or LostTime()
        self.answers: list[list[Row]] = [[] for _ in requests.statements]
        self.ready = deque(
            Attempts(part, rows)
            for statement, rows in zip(requests.statements, self.answers, strict=True)
            for part in guardrails.divide(statement)
        )
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

    def take_page(self, attempts: Attempts, future: Any, rows: list[Row]) -> None:
        """Add a page to the answer of a statement, and make it ready for the next page if there is one."""
        if attempts.failures:
            self.lost.add(attempts.since, time.monotonic())
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
        self._silent = SilentNodes()
        self._guardrails = Guardrails()
        self._policy = policies.RetryPolicy()
        configured, levels = self.settings, cassandra.ConsistencyLevel.name_to_value
        local = configured.write_consistency.startswith("LOCAL_")
        self._serial = levels["LOCAL_SERIAL" if local else "SERIAL"]
        self._patience = min(PATIENCE, configured.timeout / 2)
        self._options: dict[Level, Options] = {
            "read": Options(levels[configured.read_consistency], configured.timeout, configured.deadline),
            "write": Options(levels[configured.write_consistency], configured.timeout, configured.deadline),
            "one": Options(cassandra.ConsistencyLevel.LOCAL_ONE, configured.timeout, configured.deadline),
            "prepare": Options(cassandra.ConsistencyLevel.LOCAL_ONE, configured.timeout, configured.deadline),
            "schema": Options(
                levels[configured.write_consistency], configured.schema_timeout, configured.schema_timeout
            ),
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
        texts = {statement.cql: None for statement in requests.statements if statement.level != "schema"}
        if new := tuple(Statement(cql=cql, level="prepare") for cql in texts if cql not in self._prepared):
            yield from self._run_all(replace(requests, statements=new, take=None))
        return (yield from self._run_all(requests))

    def _run_all(self, requests: Requests) -> Operation[list[list[Row]]]:
        """Run statements whose texts are prepared, or prepare texts."""
        batch, completions = StatementBatch(requests, self._guardrails), Completions()
        levels = {statement.level for statement in requests.statements}
        limit = self._writing if "write" in levels else self._reading
        while batch.ready or batch.running or batch.failed:
            if batch.failed and not batch.running:
                yield from _pause(batch.turn_back(limit))
            now = time.monotonic()
            while batch.ready and not batch.failed and len(batch.running) < limit.at(now):
                attempts = batch.ready.popleft()
                self._send(attempts, completions, batch)
                batch.running.add(attempts)
            soonest = min(min(attempts.expires, attempts.hedges) for attempts in batch.running)
            yield from call(completions.wait, completions.arrive, max(0.0, soonest - time.monotonic()))
            self._keep_time(batch.running, time.monotonic())
            while completions.items:
                self._take(batch, *completions.items.popleft())
        return batch.answers

    def _send(self, attempts: Attempts, completions: Completions, batch: StatementBatch) -> None:
        """Send a statement without waiting for its answer, which goes to the completions.

        The request has no timeout, because the driver makes a timer for each, and wakes its thread for it:
        see :meth:`_keep_time`.
        """
        now = time.monotonic()
        attempts.since = attempts.since or now
        options = self._options[attempts.statement.level]
        left = options.deadline - batch.lost.at(attempts.since, now)
        attempts.expires = now + max(_MIN_ATTEMPT_SECONDS, min(options.timeout, left))
        attempts.hedges = now + self._patience if attempts.statement.level != "schema" else math.inf
        try:
            future = self._make_request(attempts)
        except (AttributeError, TypeError, ValueError) as error:  # the first for a text that is not a str
            message = (
                f"could not {batch.requests.what}: a value does not fit its column in Cassandra: {error}"
            )
            raise BackendError(message) from error
        attempts.future = future
        future.query_plan = self._silent.plan(future.query_plan, now)
        future.send_request()
        put = partial(completions.put, attempts, future)
        future.add_callbacks(partial(put, False), partial(put, True))

    def _make_request(self, attempts: Attempts) -> Any:
        """Return a request that is not sent yet.

        This is the driver's ``prepare``, which would block, and wait for all nodes; or its ``execute_async``,
        with another row factory and protocol handler, which leaves vectors and sets as bytes.
        """
        statement = attempts.statement
        if statement.level == "prepare":
            message = protocol.PrepareMessage(self._name_tables(statement.cql))
            return cluster.ResponseFuture(self.session, message, None, None, retry_policy=self._policy)
        future = self.session._create_response_future(  # noqa: SLF001 - see above
            self._bind(statement), None, False, {}, None, paging_state=attempts.page
        )
        future.row_factory = query.tuple_factory
        future._protocol_handler = _PackedHandler  # noqa: SLF001 - see above
        self.session._on_request(future)  # noqa: SLF001 - see above
        return future

    def _keep_time(self, running: Iterable[Attempts], now: float) -> None:
        """Have the driver give up the requests whose time is over, as its own timers do, and hedge others."""
        for attempts in tuple(running):
            if attempts.expires <= now:
                attempts.future._on_timeout()  # noqa: SLF001 - see _send
            elif attempts.hedges <= now:
                attempts.hedges = math.inf  # a statement that is slow everywhere must not go to all nodes
                self._silent.ask_another(attempts.future, now)

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
        bound.serial_consistency_level = self._serial  # of lightweight transactions alone
        bound.retry_policy = self._policy
        bound.is_idempotent = True
        rows = self._guardrails.page_rows
        bound.fetch_size = rows if statement.limit is None or statement.limit > rows else None
        return bound

    def _take(
        self, batch: StatementBatch, attempts: Attempts, future: Any, is_error: bool, result: Any
    ) -> None:
        """Take the result of a request: rows, perhaps with more to ask for, or an error."""
        if attempts.future is not future:
            return  # the driver may call twice for one request
        attempts.future = None
        batch.running.discard(attempts)
        future.clear_callbacks()  # which refer to it: so it is freed without the garbage collector
        if not is_error and attempts.statement.level == "prepare":
            self._keep_prepared(attempts.statement.cql, result)
            return
        if not is_error:
            batch.take_page(attempts, future, result or [])
            return
        fault, host = diagnose(result), getattr(future, "coordinator_host", None)
        rows = getattr(getattr(future, "query", None), "fetch_size", None)
        if allowed := self._guardrails.adapt(attempts.statement, fault.guardrail, rows or 0):
            batch.ready.extendleft(replace(attempts, statement=part) for part in allowed)
            return
        batch.wait = max(batch.wait, self._find_wait(attempts, fault, result, batch, host))
        batch.overload |= fault.overload
        batch.failed.append(attempts)

    def _find_wait(
        self, attempts: Attempts, fault: Fault, error: BaseException, batch: StatementBatch, host: object
    ) -> float:
        """Return the seconds until the next attempt of what failed.

        Raises:
            BackendError: If there is no further attempt. It names the nodes, operation, cause and advice.
        """
        what = batch.requests.what
        if self.session.is_shutdown:
            raise self._make_ended_error(what) from error
        attempts.failures[fault.tries] += 1
        tries, spent = attempts.failures.total(), batch.lost.at(attempts.since, time.monotonic())
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

    def _keep_prepared(self, cql: str, answer: Any) -> None:
        """Keep a node's answer to a text that it prepared, as the driver's ``prepare`` does.

        Other nodes prepare it when they first meet it.
        """
        driver_cluster = self.session.cluster
        self._prepared[cql] = prepared = query.PreparedStatement.from_message(
            answer.query_id,
            answer.bind_metadata,
            answer.pk_indexes,
            driver_cluster.metadata,
            self._name_tables(cql),
            None,
            driver_cluster.protocol_version,
            answer.column_metadata,
            answer.result_metadata_id,
            driver_cluster.column_encryption_policy,
        )
        driver_cluster.add_prepared(answer.query_id, prepared)


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
    """Results with vectors and sets as bytes."""

    @classmethod
    def read_type(cls, f: BytesIO, user_type_map: Any) -> Any:
        start = f.tell()
        if protocol.read_short(f) == _CUSTOM_TYPE_CODE and _VECTOR_TYPE in protocol.read_string(f):
            return cqltypes.BytesType
        f.seek(start)
        kind = super().read_type(f, user_type_map)
        return cqltypes.BytesType if issubclass(kind, cqltypes.SetType) else kind


class _PackedHandler(protocol.ProtocolHandler):  # type: ignore[misc]
    """The driver's protocol handler, with another class for results."""

    message_types_by_opcode: ClassVar[dict[int, type]] = {
        **protocol.ProtocolHandler.message_types_by_opcode,
        _DriverRows.opcode: _PackedRows,
    }

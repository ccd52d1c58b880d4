"""Runs statements, blocking or on an event loop: all waiting for Cassandra happens here.

The number of concurrent statements, and the time between attempts.

Timeouts and retries of statements.

The state of one operation's statements: which to start, which were answered, which to retry.

A flight belongs to one thread or one event loop, which calls :meth:`Flight.advance` whenever the flight wakes
it. The driver's thread only appends results to a queue. So sync and async callers share one state machine,
which needs no locks.

Runs statements, blocking or on an event loop. All waiting for Cassandra happens here.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from linkstore.core.calls import run_in_thread
from linkstore.engines.cassandra.driver import DRIVER_ERRORS, Host, Session
from linkstore.engines.cassandra.errors import Fault, diagnose, make_error
from linkstore.engines.cassandra.requests import Level, Requests, Row, Statement
from linkstore.engines.cassandra.sending import Sender, convert_rows, release_future
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.errors import BackendError, StoreClosedError

_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY_SECONDS: Final = 60.0


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


_MIN_ATTEMPT_SECONDS: Final = 0.25
"""Minimum time in seconds for another attempt."""


class RetryRules:
    """The retry rules of one operation.

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
        *,
        level: Level,
        tries: int,
        spent: float,
        host: Host | None = None,
    ) -> float:
        """Return the seconds until the next attempt.

        Raises:
            BackendError: If there is no further attempt. It names the nodes, operation, cause and advice.
        """
        if self._session.is_shutdown:
            raise self.ended() from error
        wait = compute_backoff(tries)
        if tries >= fault.tries or spent + wait + _MIN_ATTEMPT_SECONDS > self._find_deadline(level):
            raise self.failure(fault, tries=tries, spent=spent, host=host) from error
        return wait

    def failure(
        self, fault: Fault, *, tries: int = 1, spent: float = 0.0, host: Host | None = None
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


_REPORT_GRACE: Final = 5.0
"""Seconds after the timeout of a statement within which the driver should report it."""
_LOST_FAULT: Final = Fault(
    cause="the driver neither answered nor gave up",
    advice="Its thread may have died: close the session, and open the store again over another.",
)


@dataclass(slots=True, eq=False)
class _PendingStatement:
    """A statement, and the pages of its answer received so far."""

    position: int
    statement: Statement
    rows: list[Row] = field(default_factory=list)
    page: bytes | None = None
    tries: int = 0
    since: float = 0.0

    def missing(self) -> bool:
        """Say whether more rows are requested."""
        limit = self.statement.page_limit
        return limit is None or len(self.rows) < limit


@dataclass(slots=True, eq=False)
class _Attempt:
    """One request to the driver."""

    pending: _PendingStatement
    started: float
    expires: float
    future: Any = None


class _AttemptResult(NamedTuple):
    attempt: _Attempt
    rows: Any
    error: BaseException | None


class StatementFlight:
    """Runs the statements of one operation.

    Args:
        requests: The statements.
        sender: Sends statements, which must be prepared.
        pace: Limits the number of concurrent statements.
        patience: Decides on retries and timeouts.
        wake: Called in any thread when :meth:`advance` should be called.
    """

    def __init__(
        self,
        requests: Requests,
        sender: Sender,
        pace: ConcurrencyLimit,
        patience: RetryRules,
        wake: Callable[[], object],
    ) -> None:
        self._sender = sender
        self._pace = pace
        self._patience = patience
        self._wake = wake
        self._answers: list[list[Row]] = [[] for _ in requests.statements]
        self._ready = deque(_PendingStatement(*each) for each in enumerate(requests.statements))
        self._waiting: list[tuple[float, int, _PendingStatement]] = []
        self._order = count()
        self._running: dict[int, _Attempt] = {}
        self._results: deque[_AttemptResult] = deque()
        self._woken = False
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ignore the results of requests that are still running."""
        self._open = False

    @property
    def answers(self) -> Sequence[list[Row]]:
        """The rows of each statement."""
        return self._answers

    def advance(self) -> bool:
        """Process results, and start statements.

        Returns:
            Whether all statements are answered.

        Raises:
            BackendError: If a statement failed and is not retried.
        """
        self._woken = False  # before processing results, so that any later result wakes the caller again
        while self._results:
            self._take(self._results.popleft())
        now = time.monotonic()
        self._check_lost(now)
        self._start_ready(now)
        return not (self._running or self._waiting or self._ready)

    def pause(self) -> float:
        """Return the seconds until :meth:`advance` must be called even without a result."""
        times = [attempt.expires + _REPORT_GRACE for attempt in self._running.values()]
        times += [due for due, _, _ in self._waiting[:1]]
        return max(0.0, min(times) - time.monotonic())

    def _start_ready(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._waiting)[2])
        room = self._pace.limit(now) - len(self._running)
        for _ in range(min(room, len(self._ready))):
            self._start(self._ready.popleft())

    def _start(self, pending: _PendingStatement) -> None:
        now = time.monotonic()
        pending.since = pending.since or now
        timeout = self._patience.timeout(pending.statement.level, now - pending.since)
        attempt = _Attempt(pending, now, now + timeout)
        self._running[pending.position] = attempt
        try:
            attempt.future = self._sender.send(pending.statement, page=pending.page, timeout=timeout)
        except (TypeError, ValueError) as error:
            raise self._patience.refused(error) from error
        attempt.future.add_callbacks(partial(self._queue_rows, attempt), partial(self._queue_error, attempt))

    def _queue_rows(self, attempt: _Attempt, rows: Any) -> None:
        """Queue the rows of an attempt. The driver's thread calls this."""
        self._put(_AttemptResult(attempt, rows, None))

    def _queue_error(self, attempt: _Attempt, error: BaseException) -> None:
        """Queue the error of an attempt. The driver's thread calls this."""
        self._put(_AttemptResult(attempt, None, error))

    def _put(self, result: _AttemptResult) -> None:
        if self._open:
            self._results.append(result)
            if not self._woken:
                self._woken = True
                self._wake()

    def _take(self, result: _AttemptResult) -> None:
        attempt = result.attempt
        pending = attempt.pending
        if self._running.get(pending.position) is not attempt:
            return  # the driver may call twice for one request
        del self._running[pending.position]
        release_future(attempt.future)
        if result.error is not None:
            self._retry_later(attempt, result.error)
            return
        pending.rows += convert_rows(result.rows)
        if attempt.future.has_more_pages and pending.missing():
            pending.page = attempt.future.result().paging_state
            pending.tries, pending.since = 0, 0.0
            self._ready.appendleft(pending)
        else:
            self._answers[pending.position] = pending.rows[: pending.statement.page_limit]

    def _retry_later(self, attempt: _Attempt, error: BaseException) -> None:
        """Schedule the next attempt of a statement that failed."""
        pending, now = attempt.pending, time.monotonic()
        pending.tries += 1
        fault = diagnose(error)
        wait = self._patience.wait(
            fault,
            error,
            level=pending.statement.level,
            tries=pending.tries,
            spent=now - pending.since,
            host=getattr(attempt.future, "coordinator_host", None),
        )
        if fault.overload:
            self._pace.ease(attempt.started, now)
        heapq.heappush(self._waiting, (now + wait, next(self._order), pending))

    def _check_lost(self, now: float) -> None:
        for attempt in self._running.values():
            if attempt.expires + _REPORT_GRACE < now:
                raise self._patience.failure(_LOST_FAULT, spent=now - attempt.pending.since)


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

    def run(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
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
        return list(flight.answers)

    async def arun(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
        """Run statements like :meth:`run`, without blocking the event loop.

        If this is cancelled, no more requests are started.
        """
        if requests.wait:
            await asyncio.sleep(requests.wait)
        await self._aprepare(requests)
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
        return list(flight.answers)

    def _make_flight(self, requests: Requests, wake: Callable[[], object]) -> StatementFlight:
        writes = any(statement.level == "write" for statement in requests.statements)
        pace = self._writing if writes else self._reading
        return StatementFlight(requests, self._sender, pace, self._make_retry_rules(requests), wake)

    def _make_retry_rules(self, requests: Requests) -> RetryRules:
        """Return the retry rules of an operation, if its session can answer.

        A session answers by threads, which end when it is shut down and do not exist in a forked child. There
        the driver waits for ever, for instance while it prepares a statement.
        """
        patience = RetryRules(requests.what, self.session, self.settings)
        if not self.session.cluster.scheduler.is_alive():
            raise patience.ended()
        return patience

    async def _aprepare(self, requests: Requests) -> None:
        """Prepare new statements in a thread, because the driver blocks meanwhile."""
        if self._sender.unprepared(requests.statements):
            stop = threading.Event()
            try:
                await run_in_thread(self._prepare, requests, stop)
            finally:
                stop.set()

    def _prepare(self, requests: Requests, stop: threading.Event) -> None:
        """Prepare new statements, with the same timeouts and retries as for running statements."""
        patience = self._make_retry_rules(requests)
        for cql in self._sender.unprepared(requests.statements):
            began, tries, done = time.monotonic(), 0, False
            while not done and not stop.is_set():
                try:
                    self._sender.prepare(cql)
                    done = True
                except DRIVER_ERRORS as error:
                    tries += 1
                    fault, spent = diagnose(error), time.monotonic() - began
                    stop.wait(patience.wait(fault, error, level="read", tries=tries, spent=spent))

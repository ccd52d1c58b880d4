"""The state of one operation's statements: which to start, which were answered, which to retry.

A flight belongs to one thread or one event loop, which calls :meth:`Flight.advance` whenever the flight wakes
it. The driver's thread only appends results to a queue. So sync and async callers share one state machine,
which needs no locks.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from linkstore.backends.cassandra.transport.faults import Fault, diagnose
from linkstore.backends.cassandra.transport.pace import Pace
from linkstore.backends.cassandra.transport.patience import Patience
from linkstore.backends.cassandra.transport.requests import Requests, Row, Statement
from linkstore.backends.cassandra.transport.sending import Sender, release, rows_as_tuples

_GRACE: Final = 5.0
"""Seconds after the timeout of a statement within which the driver should report it."""
_LOST: Final = Fault(
    cause="the driver neither answered nor gave up",
    advice="Its thread may have died: close the session, and open the store again over another.",
)


@dataclass(slots=True, eq=False)
class _Pending:
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

    pending: _Pending
    started: float
    expires: float
    future: Any = None


class _Result(NamedTuple):
    attempt: _Attempt
    rows: Any
    error: BaseException | None


class Flight:
    """Runs the statements of one operation.

    Args:
        requests: The statements.
        sender: Sends statements, which must be prepared.
        pace: Limits the number of concurrent statements.
        patience: Decides on retries and timeouts.
        wake: Called in any thread when :meth:`advance` should be called.
    """

    def __init__(
        self, requests: Requests, sender: Sender, pace: Pace, patience: Patience, wake: Callable[[], object]
    ) -> None:
        self._sender = sender
        self._pace = pace
        self._patience = patience
        self._wake = wake
        self._answers: list[list[Row]] = [[] for _ in requests.statements]
        self._ready = deque(_Pending(*each) for each in enumerate(requests.statements))
        self._waiting: list[tuple[float, int, _Pending]] = []
        self._order = count()
        self._running: dict[int, _Attempt] = {}
        self._results: deque[_Result] = deque()
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
        times = [attempt.expires + _GRACE for attempt in self._running.values()]
        times += [due for due, _, _ in self._waiting[:1]]
        return max(0.0, min(times) - time.monotonic())

    def _start_ready(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._waiting)[2])
        room = self._pace.limit(now) - len(self._running)
        for _ in range(min(room, len(self._ready))):
            self._start(self._ready.popleft())

    def _start(self, pending: _Pending) -> None:
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
        self._put(_Result(attempt, rows, None))

    def _queue_error(self, attempt: _Attempt, error: BaseException) -> None:
        """Queue the error of an attempt. The driver's thread calls this."""
        self._put(_Result(attempt, None, error))

    def _put(self, result: _Result) -> None:
        if self._open:
            self._results.append(result)
            if not self._woken:
                self._woken = True
                self._wake()

    def _take(self, result: _Result) -> None:
        attempt = result.attempt
        pending = attempt.pending
        if self._running.get(pending.position) is not attempt:
            return  # the driver may call twice for one request
        del self._running[pending.position]
        release(attempt.future)
        if result.error is not None:
            self._retry_later(attempt, result.error)
            return
        pending.rows += rows_as_tuples(result.rows)
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
            if attempt.expires + _GRACE < now:
                raise self._patience.failure(_LOST, spent=now - attempt.pending.since)

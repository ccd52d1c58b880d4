"""The statements of one operation under way: what to start, what landed, what to try again.

A flight belongs to one thread or one event loop, which calls :meth:`Flight.advance` whenever the flight
wakes it. The driver's own thread only puts answers into the flight's tray. So there is one state
machine for both, it needs no locks, and a flight that nobody advances starts nothing.
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
from linkstore.backends.cassandra.transport.sending import Sender, rows_as_tuples

_GRACE: Final = 5.0
"""Seconds after its timeout in which the driver should have given a statement up."""
_LOST: Final = Fault(
    cause="the driver neither answered nor gave up",
    advice="A session does not survive a fork, nor its shutdown: open the store in the process that uses it.",
)


@dataclass(slots=True, eq=False)
class _Leg:
    """What is still to do for one statement, page by page."""

    position: int
    statement: Statement
    rows: list[Row] = field(default_factory=list)
    page: bytes | None = None
    tries: int = 0
    since: float = 0.0

    def missing(self) -> bool:
        """Whether more rows are wanted."""
        limit = self.statement.page_limit
        return limit is None or len(self.rows) < limit


@dataclass(slots=True, eq=False)
class _Attempt:
    """One request to the driver."""

    leg: _Leg
    started: float
    expires: float
    future: Any = None


class _Landing(NamedTuple):
    attempt: _Attempt
    rows: Any
    error: BaseException | None


class Flight:
    """One operation's statements, from the first start to the last answer.

    Args:
        requests: What to run.
        sender: Sends statements; their texts must be prepared.
        pace: How many at once.
        patience: Decides what is tried again, and when.
        wake: Called, in any thread, when there is something to advance for.
    """

    def __init__(
        self, requests: Requests, sender: Sender, pace: Pace, patience: Patience, wake: Callable[[], object]
    ) -> None:
        self._sender = sender
        self._pace = pace
        self._patience = patience
        self._wake = wake
        self._answers: list[list[Row]] = [[] for _ in requests.statements]
        self._ready = deque(_Leg(*each) for each in enumerate(requests.statements))
        self._resting: list[tuple[float, int, _Leg]] = []
        self._order = count()
        self._flying: dict[int, _Attempt] = {}
        self._tray: deque[_Landing] = deque()
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
        """Take in what landed and start what may start.

        Returns:
            Whether everything is answered.

        Raises:
            BackendError: If a statement failed for good.
        """
        self._woken = False  # before the tray is emptied: what lands from here on wakes again
        while self._tray:
            self._take(self._tray.popleft())
        now = time.monotonic()
        self._look_for_lost(now)
        self._start_what_may(now)
        return not (self._flying or self._resting or self._ready)

    def pause(self) -> float:
        """Seconds until there is something to do even if nothing lands."""
        times = [attempt.expires + _GRACE for attempt in self._flying.values()]
        times += [due for due, _, _ in self._resting[:1]]
        return max(0.0, min(times) - time.monotonic())

    def _start_what_may(self, now: float) -> None:
        while self._resting and self._resting[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._resting)[2])
        room = self._pace.limit(now) - len(self._flying)
        for _ in range(min(room, len(self._ready))):
            self._start(self._ready.popleft())

    def _start(self, leg: _Leg) -> None:
        now = time.monotonic()
        leg.since = leg.since or now
        timeout = self._patience.timeout(leg.statement.level, now - leg.since)
        attempt = _Attempt(leg, now, now + timeout)
        self._flying[leg.position] = attempt
        try:
            attempt.future = self._sender.send(leg.statement, page=leg.page, timeout=timeout)
        except (TypeError, ValueError) as error:
            raise self._patience.refused(error) from error
        attempt.future.add_callbacks(partial(self._land, attempt), partial(self._fall, attempt))

    def _land(self, attempt: _Attempt, rows: Any) -> None:
        """Called by the driver, in its own thread."""
        self._put(_Landing(attempt, rows, None))

    def _fall(self, attempt: _Attempt, error: BaseException) -> None:
        """Called by the driver, in its own thread."""
        self._put(_Landing(attempt, None, error))

    def _put(self, landing: _Landing) -> None:
        if self._open:
            self._tray.append(landing)
            if not self._woken:
                self._woken = True
                self._wake()

    def _take(self, landing: _Landing) -> None:
        attempt = landing.attempt
        leg = attempt.leg
        if self._flying.get(leg.position) is not attempt:
            return  # the driver may call twice for one request
        del self._flying[leg.position]
        if landing.error is not None:
            self._rest(attempt, landing.error)
            return
        leg.rows += rows_as_tuples(landing.rows)
        if attempt.future.has_more_pages and leg.missing():
            leg.page = attempt.future.result().paging_state
            leg.tries, leg.since = 0, 0.0
            self._ready.appendleft(leg)
        else:
            self._answers[leg.position] = leg.rows[: leg.statement.page_limit]

    def _rest(self, attempt: _Attempt, error: BaseException) -> None:
        """Put a statement that failed aside until its next try."""
        leg, now = attempt.leg, time.monotonic()
        leg.tries += 1
        fault = diagnose(error)
        wait = self._patience.wait(
            fault,
            error,
            level=leg.statement.level,
            tries=leg.tries,
            spent=now - leg.since,
            host=getattr(attempt.future, "coordinator_host", None),
        )
        if fault.overload:
            self._pace.ease(attempt.started, now)
        heapq.heappush(self._resting, (now + wait, next(self._order), leg))

    def _look_for_lost(self, now: float) -> None:
        for attempt in self._flying.values():
            if attempt.expires + _GRACE < now:
                raise self._patience.failure(_LOST, spent=now - attempt.leg.since)

"""Runs statements, blocking or on an event loop. All waiting for Cassandra happens here."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import DRIVER_ERRORS, Session
from linkstore.backends.cassandra.transport.faults import diagnose
from linkstore.backends.cassandra.transport.flight import Flight
from linkstore.backends.cassandra.transport.pace import Pace
from linkstore.backends.cassandra.transport.patience import Patience
from linkstore.backends.cassandra.transport.requests import Requests
from linkstore.backends.cassandra.transport.sending import Sender
from linkstore.drivers import in_thread


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
        self._reading = Pace(self.settings.in_flight)
        self._writing = Pace(self.settings.in_flight)

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

    def _make_flight(self, requests: Requests, wake: Callable[[], object]) -> Flight:
        writes = any(statement.level == "write" for statement in requests.statements)
        pace = self._writing if writes else self._reading
        return Flight(requests, self._sender, pace, self._make_retry_rules(requests), wake)

    def _make_retry_rules(self, requests: Requests) -> Patience:
        """Return the retry rules of an operation, if its session can answer.

        A session answers by threads, which end when it is shut down and do not exist in a forked child. There
        the driver waits for ever, for instance while it prepares a statement.
        """
        patience = Patience(requests.what, self.session, self.settings)
        if not self.session.cluster.scheduler.is_alive():
            raise patience.ended()
        return patience

    async def _aprepare(self, requests: Requests) -> None:
        """Prepare new statements in a thread, because the driver blocks meanwhile."""
        if self._sender.unprepared(requests.statements):
            stop = threading.Event()
            try:
                await in_thread(self._prepare, requests, stop)
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

"""Timeouts and retries of statements."""

from __future__ import annotations

from typing import Final

from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import Host, Session
from linkstore.backends.cassandra.transport.faults import Fault, failure
from linkstore.backends.cassandra.transport.pace import wait_before
from linkstore.backends.cassandra.transport.requests import Level
from linkstore.errors import BackendError, StoreClosedError

_LEAST: Final = 0.25
"""Minimum time in seconds for another attempt."""


class Patience:
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
        return max(_LEAST, min(each, self._find_deadline(level) - spent))

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
        wait = wait_before(tries)
        if tries >= fault.tries or spent + wait + _LEAST > self._find_deadline(level):
            raise self.failure(fault, tries=tries, spent=spent, host=host) from error
        return wait

    def failure(
        self, fault: Fault, *, tries: int = 1, spent: float = 0.0, host: Host | None = None
    ) -> BackendError:
        """Return the exception to raise for a fault."""
        hosts = (host,) if host else self._session.cluster.metadata.all_hosts()
        return failure(fault, self._what, hosts, tries=tries, spent=spent)

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

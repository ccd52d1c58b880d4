"""How long a statement is waited for, and whether one that failed is tried again."""

from __future__ import annotations

from typing import Final

from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import Host, Session
from linkstore.backends.cassandra.transport.faults import Fault, failure
from linkstore.backends.cassandra.transport.pace import wait_before
from linkstore.backends.cassandra.transport.requests import Level
from linkstore.errors import BackendError, StoreClosedError

_LEAST: Final = 0.25
"""Seconds that must be left for another try."""


class Patience:
    """The retry rules of one operation.

    Args:
        what: The operation, in words.
        session: To name its nodes where an error names none, and to see whether it was shut down.
        settings: Timeouts and deadlines.
    """

    def __init__(self, what: str, session: Session, settings: CassandraSettings) -> None:
        self._what = what
        self._session = session
        self._settings = settings

    def timeout(self, level: Level, spent: float) -> float:
        """Seconds to wait for one try, ``spent`` seconds after the first began."""
        each = self._settings.schema_timeout if level == "schema" else self._settings.timeout
        return max(_LEAST, min(each, self._deadline(level) - spent))

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
        """Seconds to wait before the next try.

        Raises:
            BackendError: If there is to be none; it names nodes, operation, cause and remedy.
        """
        if self._session.is_shutdown:
            raise StoreClosedError(
                f"could not {self._what}: the session with Cassandra was shut down; open the store anew"
            ) from error
        wait = wait_before(tries)
        if tries >= fault.tries or spent + wait + _LEAST > self._deadline(level):
            raise self.failure(fault, tries=tries, spent=spent, host=host) from error
        return wait

    def failure(
        self, fault: Fault, *, tries: int = 1, spent: float = 0.0, host: Host | None = None
    ) -> BackendError:
        """The error to raise for a fault."""
        hosts = (host,) if host else self._session.cluster.metadata.all_hosts()
        return failure(fault, self._what, hosts, tries=tries, spent=spent)

    def refused(self, error: Exception) -> BackendError:
        """The error to raise for a value that the driver cannot send."""
        return BackendError(f"could not {self._what}: a value does not fit its column in Cassandra: {error}")

    def _deadline(self, level: Level) -> float:
        return self._settings.schema_timeout if level == "schema" else self._settings.deadline

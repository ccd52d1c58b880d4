"""Prepares, binds, routes and sends statements with the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import (
    EXEC_PROFILE_DEFAULT,
    UNSET_VALUE,
    BoundStatement,
    ConfigMode,
    ConsistencyLevel,
    OverloadedErrorMessage,
    PreparedStatement,
    ResponseFuture,
    RetryPolicy,
    ServerError,
    Session,
    SimpleStatement,
    TruncateError,
    tuple_factory,
)
from linkstore.backends.cassandra.transport.requests import UNSET, Level, Row, Statement
from linkstore.backends.cassandra.transport.wire import execute_with_arrays, prepare_within, take_arrays
from linkstore.errors import BackendError

PAGE_ROWS: Final = 5_000
"""Rows per page; nearest-neighbour search requires at least its LIMIT, which is at most 1,000."""


class Sender:
    """Sends statements over a session, without changing the session.

    Args:
        session: The driver's, configured by execution profiles or, as before them, by its attributes.
        settings: Consistency levels.
    """

    def __init__(self, session: Session, settings: CassandraSettings) -> None:
        self.session = session
        self._prepared: dict[str, PreparedStatement] = {}
        self._lock = threading.Lock()
        self._policy = _NextHost()
        self._profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=tuple_factory, retry_policy=self._policy
        )
        self._timeout = settings.timeout
        levels = ConsistencyLevel.name_to_value
        self._levels: Mapping[Level, int] = {
            "read": levels[settings.read_consistency],
            "write": levels[settings.write_consistency],
            "one": ConsistencyLevel.LOCAL_ONE,
            "schema": levels[settings.write_consistency],
        }

    def unprepared(self, statements: Sequence[Statement]) -> list[str]:
        """Return the texts that are not prepared yet."""
        texts = {statement.cql: None for statement in statements if statement.level != "schema"}
        return [cql for cql in texts if cql not in self._prepared]

    def prepare(self, cql: str) -> None:
        """Prepare a text unless it is prepared. This blocks, and raises the driver's exceptions."""
        with self._lock:
            if cql not in self._prepared:
                self._prepared[cql] = take_arrays(prepare_within(self.session, cql, self._timeout))

    def send(self, statement: Statement, *, page: bytes | None, timeout: float) -> ResponseFuture:
        """Send a prepared statement without waiting for its answer.

        Args:
            statement: What to send.
            page: Paging state of the previous page, or None for the first page.
            timeout: Timeout in seconds.

        Raises:
            TypeError: If a value cannot be turned into its column's type.
            ValueError: Likewise.
        """
        query = self._make_query(statement)
        query.consistency_level = self._levels[statement.level]
        query.retry_policy = self._policy
        query.is_idempotent = True
        query.fetch_size = _page_rows(statement)
        options = {"timeout": timeout, "paging_state": page}
        if self.session.cluster._config_mode != ConfigMode.LEGACY:  # noqa: SLF001 - nothing else tells
            options["execution_profile"] = self._profile
        return execute_with_arrays(self.session, query, **options)

    def _make_query(self, statement: Statement) -> Any:
        if statement.level == "schema":
            return SimpleStatement(statement.cql)
        prepared = self._prepared[statement.cql]
        if statement.packed:
            bound = _Routed(prepared, statement.routing)
            bound.values = list(statement.values)
            return bound
        values = [UNSET_VALUE if value is UNSET else value for value in statement.values]
        try:
            return _Routed(prepared, statement.routing).bind(values)
        except AttributeError as error:  # what the driver raises for a text that is not a str
            raise TypeError(str(error)) from error


class _Routed(BoundStatement):
    """A bound statement whose routing key can be set."""

    values: list[Any]

    def __init__(self, prepared: PreparedStatement, routing: bytes | None) -> None:
        super().__init__(prepared)
        self._given = routing

    @property
    def routing_key(self) -> bytes | None:
        """The given key, otherwise the one that the driver derives from the values."""
        return super().routing_key if self._given is None else self._given


class _NextHost(RetryPolicy):
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
        if isinstance(error, OverloadedErrorMessage | ServerError | TruncateError):
            return self.RETHROW, None
        return self.RETRY_NEXT_HOST, None


def release(future: ResponseFuture) -> None:
    """Break the reference cycles of an answered request, so that it is freed without the garbage collector.

    Its callbacks refer to it, and so does its timer, which was cancelled. A request has some forty objects,
    and thousands of requests would have the collector look at all objects of the process again and again.
    """
    future.clear_callbacks()
    future._timer = None  # noqa: SLF001 - the driver keeps it


def rows_as_tuples(rows: Any) -> list[Row]:
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


def _page_rows(statement: Statement) -> int:
    if statement.level == "one" or statement.page_limit is None:
        return PAGE_ROWS
    return min(PAGE_ROWS, statement.page_limit)

"""Describes the driver's errors: the cause, advice for the user, and whether a retry may help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Final

from linkstore.engines.cassandra.driver import (
    AuthenticationFailed,
    ConnectionBusy,
    ConnectionException,
    ConsistencyLevel,
    ErrorMessage,
    Host,
    IsBootstrappingErrorMessage,
    NoConnectionsAvailable,
    NoHostAvailable,
    OperationTimedOut,
    OverloadedErrorMessage,
    ProtocolVersionUnsupported,
    ReadFailure,
    RequestValidationException,
    ServerError,
    Timeout,
    TruncateError,
    Unauthorized,
    Unavailable,
    WriteFailure,
)
from linkstore.errors import BackendError, StoreUnavailableError

_ONCE: Final = 1
_NO_LIMIT: Final = 1_000_000
_AFTER_A_SERVER_ERROR: Final = 3
_UNTIL_TOLD: Final = 8
"""About five seconds. A node that missed a change of the schema asks for it after up to a minute
(``cassandra.migration_delay_ms``); until then other nodes can answer."""
_UNKNOWN_NAME: Final = re.compile(r"\b(?:table|keyspace) '?\w+'? (?:does not|doesn't) exist", re.IGNORECASE)
_LOOK_AT_SERVER: Final = (
    "Check that the server is up (nodetool status) and reachable from here, then try again."
)
_LOOK_AT_LOAD: Final = (
    "Check the load and the log of the server; fewer statements at once (in_flight) or a longer timeout"
    " in CassandraSettings may help."
)
_LOOK_AT_REPLICAS: Final = (
    "Bring the missing nodes back (nodetool status), or use a consistency level that needs fewer of them."
)
_LOOK_AT_LOG: Final = (
    "The server's log says why. A small server refuses concurrent writes to a vector index;"
    " concurrent_writes: 2 in its cassandra.yaml cures that."
)
_TOO_MANY_TOMBSTONES: Final = 1
"""The code READ_TOO_MANY_TOMBSTONES of the native protocol."""
_OTHER_SCHEMA: Final = 3
"""The code INCOMPATIBLE_SCHEMA of Cassandra."""
_NO_INDEX: Final = 6
"""The code INDEX_NOT_AVAILABLE of Cassandra."""
_LOOK_AT_INDEX: Final = (
    "A node builds it after it was created, or after data were restored, and the table"
    " system_views.sai_column_indexes of each node says whether it is done: try again then."
)
_LOOK_AT_TOMBSTONES: Final = (
    "Members and words that were deleted no longer count after gc_grace_seconds of their tables, which is a"
    " minute unless you changed it: try again then. If it lasts, compact the table (nodetool compact), or"
    " raise the threshold."
)
_LOOK_AT_SCHEMA: Final = (
    "It was dropped or changed, or a node has not been told of that yet: nodetool describecluster shows"
    " whether the nodes agree on the schema."
)
_LOOK_AT_LOGIN: Final = "Check the user name and the password."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Description of an error of the driver.

    Args:
        cause: What went wrong.
        advice: What to do about it, in sentences.
        tries: Maximum number of attempts within the deadline.
        overload: Whether fewer concurrent statements may help.
        hosts: The nodes that the error names.
    """

    cause: str
    advice: str
    tries: int = _ONCE
    overload: bool = False
    hosts: tuple[str, ...] = ()


@singledispatch
def diagnose(error: BaseException) -> Fault:
    """Describe an error of the driver. An unknown error is not retried."""
    return Fault(cause=_format_message(error), advice="The server's log may say more.")


@diagnose.register(OperationTimedOut)
def _(error: Any) -> Fault:
    hosts = (error.last_host,) if error.last_host else tuple(error.errors or ())
    return Fault(
        cause="no answer came in time",
        advice=_LOOK_AT_SERVER,
        tries=_NO_LIMIT,
        overload=True,
        hosts=_format_hosts(hosts),
    )


@diagnose.register(Timeout)
def _(error: Any) -> Fault:
    got, needed = error.received_responses, error.required_responses
    cause = f"{got} of the {needed} replicas that {_format_level(error)} needs answered in time"
    return Fault(cause=cause, advice=_LOOK_AT_LOAD, tries=_NO_LIMIT, overload=True)


@diagnose.register(Unavailable)
def _(error: Any) -> Fault:
    got, needed = error.alive_replicas, error.required_replicas
    cause = f"{got} of the {needed} replicas that {_format_level(error)} needs are up"
    return Fault(cause=cause, advice=_LOOK_AT_REPLICAS, tries=_NO_LIMIT)


@diagnose.register(ReadFailure)
@diagnose.register(WriteFailure)
def _(error: Any) -> Fault:
    codes = (getattr(error, "error_code_map", None) or {}).values()
    if _TOO_MANY_TOMBSTONES in codes:
        cause = "the read met more deleted rows than tombstone_failure_threshold in cassandra.yaml allows"
        return Fault(cause=cause, advice=_LOOK_AT_TOMBSTONES)
    if _NO_INDEX in codes:
        cause = "the index is not ready on enough nodes"
        return Fault(cause=cause, advice=_LOOK_AT_INDEX, tries=_NO_LIMIT)
    if _OTHER_SCHEMA in codes:
        cause = "a replica does not know the table or has another form of it"
        return Fault(cause=cause, advice=_LOOK_AT_SCHEMA, tries=_NO_LIMIT)
    failed, needed = error.failures, error.required_responses
    cause = f"{failed} replicas failed on it, and {_format_level(error)} needs {needed} that succeed"
    return Fault(cause=cause, advice=_LOOK_AT_LOG, tries=_NO_LIMIT, overload=True)


@diagnose.register(OverloadedErrorMessage)
def _(_error: Any) -> Fault:
    return Fault(cause="the server is overloaded", advice=_LOOK_AT_LOAD, tries=_NO_LIMIT, overload=True)


@diagnose.register(IsBootstrappingErrorMessage)
def _(_error: Any) -> Fault:
    return Fault(cause="the node is still joining its cluster", advice=_LOOK_AT_SERVER, tries=_NO_LIMIT)


@diagnose.register(ServerError)
@diagnose.register(TruncateError)
def _(error: Any) -> Fault:
    cause = f"the server failed: {error.message}"
    return Fault(cause=cause, advice="The server's log says more.", tries=_AFTER_A_SERVER_ERROR)


@diagnose.register(ConnectionException)
@diagnose.register(ConnectionBusy)
@diagnose.register(NoConnectionsAvailable)
@diagnose.register(OSError)
def _(error: Any) -> Fault:
    hosts = (error.endpoint,) if getattr(error, "endpoint", None) else ()
    cause = f"the connection was lost or refused ({_format_message(error)})"
    return Fault(cause=cause, advice=_LOOK_AT_SERVER, tries=_NO_LIMIT, hosts=_format_hosts(hosts))


@diagnose.register(ProtocolVersionUnsupported)
def _(error: Any) -> Fault:
    return Fault(cause=_format_message(error), advice="linkstore needs Apache Cassandra 5.0 or Astra DB.")


@diagnose.register(NoHostAvailable)
def _(error: Any) -> Fault:
    """All nodes were tried: describe the error with the most attempts, and name all nodes."""
    if not isinstance(error.errors, Mapping) or not error.errors:
        hosts = _format_hosts(error.errors or ())
        return Fault(cause="no node is reachable", advice=_LOOK_AT_SERVER, tries=_NO_LIMIT, hosts=hosts)
    said = [diagnose(each) for each in error.errors.values()]
    worst = max(said, key=lambda fault: fault.tries)
    return replace(worst, hosts=_format_hosts(error.errors), overload=any(fault.overload for fault in said))


@diagnose.register(RequestValidationException)
@diagnose.register(ErrorMessage)
def _(error: Any) -> Fault:
    cause = f"the server refused the statement ({_format_message(error)})"
    if _UNKNOWN_NAME.search(str(error)):
        return Fault(cause=cause, advice=_LOOK_AT_SCHEMA, tries=_UNTIL_TOLD)
    return Fault(cause=cause, advice="Check that the tables were made by this version of linkstore.")


@diagnose.register(Unauthorized)
def _(error: Any) -> Fault:
    return Fault(
        cause=_format_message(error), advice="Grant the role SELECT, MODIFY and CREATE on the keyspace."
    )


@diagnose.register(AuthenticationFailed)
def _(error: Any) -> Fault:
    return Fault(cause=f"the login failed ({_format_message(error)})", advice=_LOOK_AT_LOGIN)


def make_error(
    fault: Fault, what: str, hosts: Iterable[object], *, tries: int = 1, spent: float = 0
) -> BackendError:
    """Return the exception to raise for a fault.

    Args:
        fault: The description of the error.
        what: The operation, as in "could not {what}".
        hosts: The nodes to name if the fault names none.
        tries: Number of attempts.
        spent: Seconds since the first attempt.
    """
    where = ", ".join(fault.hosts or _format_hosts(hosts)) or "an unknown address"
    tried = f", {tries} tries in {spent:.1f} s" if tries > 1 else ""
    message = f"could not {what}: Cassandra at {where}: {fault.cause}{tried}. {fault.advice}"
    return (BackendError if fault.tries == _ONCE else StoreUnavailableError)(message)


def _format_hosts(hosts: Iterable[Any]) -> tuple[str, ...]:
    """Return addresses of nodes, as host:port where the driver knows the port."""
    return tuple(sorted({str(host.endpoint if isinstance(host, Host) else host) for host in hosts}))


def _format_level(error: Any) -> str:
    return str(ConsistencyLevel.value_to_name.get(error.consistency, "the consistency level"))


def _format_message(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__

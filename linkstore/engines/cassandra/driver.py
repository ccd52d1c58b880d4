"""The parts of cassandra-driver that the backend uses, and its errors: the cause, advice, retries.

Importing this needs the extra ``cassandra``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from linkstore.errors import BackendError, MissingExtraError, StoreUnavailableError

try:
    import cassandra
    from cassandra import (  # noqa: F401
        auth,
        cluster,
        connection,
        cqltypes,
        metadata,
        policies,
        pool,
        protocol,
        query,
    )
except ImportError as error:
    raise MissingExtraError("a store in Cassandra", "cassandra") from error

Session = cluster.Session
_LOST: Final = (
    connection.ConnectionException,
    connection.ConnectionBusy,
    pool.NoConnectionsAvailable,
    OSError,
)
ERRORS = (cassandra.DriverException, cluster.NoHostAvailable, protocol.ErrorMessage, *_LOST)
"""Every exception that the driver raises for a request."""

_ONCE: Final = 1
_NO_LIMIT: Final = 1_000_000
_AFTER_A_SERVER_ERROR: Final = 3
_UNTIL_TOLD: Final = 8
"""About five seconds. A node that missed a change of the schema asks for it after up to a minute
(``cassandra.migration_delay_ms``); until then other nodes can answer."""
_UNKNOWN_NAME: Final = re.compile(r"\b(?:table|keyspace) '?\w+'? (?:does not|doesn't) exist", re.IGNORECASE)
_GUARDRAIL: Final = re.compile(r"Guardrail (?P<name>\w+) violated(?:.* threshold of (?P<threshold>\d+)\b)?")
_GUARDRAIL_ADVICE: Final = {
    "items_per_collection": (
        "A document can have only so many metadata fields that filters may ask for: give it fewer, or ask the"
        " operator to raise items_per_collection_fail_threshold in cassandra.yaml."
    ),
    "write_consistency_levels": "Set another write_consistency in CassandraSettings.",
    "read_consistency_levels": (
        "Set another read_consistency in CassandraSettings. Nearest-neighbour search needs LOCAL_ONE."
    ),
}
"""What to do about guardrails by name, where more is known than to ask the operator."""
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
_LOOK_AT_LOG: Final = "The server's log says why."
_LOOK_AT_WRITES: Final = (
    f"{_LOOK_AT_LOG} A small server refuses concurrent writes to a vector index; concurrent_writes: 2 in its"
    " cassandra.yaml cures that."
)
_LOOK_AT_ROLE: Final = (
    "A role needs SELECT on the tables of a store to read it, SELECT and MODIFY to use it, and CREATE"
    " and MODIFY on the keyspace to create it."
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
    "Deleted and expired rows count until gc_grace_seconds of their table have passed and it was"
    " compacted: a minute for members and words; for the other tables three hours in a store made with a"
    " ttl, else ten days. Raise the threshold for a time, or lower gc_grace_seconds of the table (not"
    " below the longest outage of a node that is not repaired afterwards) and run nodetool compact."
)
_LOOK_AT_SCHEMA: Final = (
    "It was dropped or changed, or a node has not been told of that yet: nodetool describecluster shows"
    " whether the nodes agree on the schema. If the table is that of members or words, linkstore doctor"
    " --repair makes and writes it again. Restore any other from a backup."
)
_TLS: Final = "[SSL: "
"""What the driver keeps of an error of Python's module ssl."""
_LOOK_AT_TLS: Final = (
    "Check the certificates: ca=… in the URL names the file of who signed those of the nodes, and"
    " tls=verify-ca does not ask whether they name the hosts."
)
_LOOK_AT_LOGIN: Final = (
    "Check the user name and the password: those of the session's auth_provider or, for a URL, those in the"
    " environment variables LINKSTORE_CASSANDRA_USERNAME and LINKSTORE_CASSANDRA_PASSWORD."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Description of an error of the driver.

    Args:
        cause: What went wrong.
        advice: What to do about it, in sentences.
        tries: Maximum number of attempts within the deadline that fail in this way.
        overload: Whether fewer concurrent statements may help.
        hosts: The nodes that the error names.
        guardrail: Name and threshold of the server's guardrail that refused the statement.
    """

    cause: str
    advice: str
    tries: int = _ONCE
    overload: bool = False
    hosts: tuple[str, ...] = ()
    guardrail: tuple[str, int] | None = None


def diagnose(error: Any) -> Fault:
    """Describe an error of the driver. An unknown error is not retried."""
    message = " ".join(str(error).split()) or type(error).__name__
    match error:
        case cassandra.OperationTimedOut():
            hosts = _format_hosts((error.last_host,) if error.last_host else error.errors or ())
            return Fault("no answer came in time", _LOOK_AT_SERVER, _NO_LIMIT, overload=True, hosts=hosts)
        case connection.ProtocolVersionUnsupported():
            return Fault(message, "linkstore needs Apache Cassandra 5.0 or Astra DB.")
        case OSError() if _TLS in message:
            return Fault(f"no encrypted connection came about ({message})", _LOOK_AT_TLS)
        case _ if isinstance(error, _LOST):
            cause = f"the connection was lost or refused ({message})"
            endpoint = getattr(error, "endpoint", None)
            hosts = _format_hosts((endpoint,) if endpoint else ())
            return Fault(cause, _LOOK_AT_SERVER, _NO_LIMIT, hosts=hosts)
        case cluster.NoHostAvailable():
            return _diagnose_all_hosts(error)
        case cassandra.Unauthorized():
            return Fault(message, _LOOK_AT_ROLE)
        case cassandra.AuthenticationFailed():
            return Fault(f"the login failed ({message})", _LOOK_AT_LOGIN)
    return _diagnose_answer(error, message)


def _diagnose_answer(error: Any, message: str) -> Fault:
    """Describe an error that the server answered with."""
    match error:
        case cassandra.Timeout():
            got, needed = error.received_responses, error.required_responses
            cause = f"{got} of the {needed} replicas that {_format_level(error)} needs answered in time"
            return Fault(cause, _LOOK_AT_LOAD, _NO_LIMIT, overload=True)
        case cassandra.Unavailable():
            got, needed = error.alive_replicas, error.required_replicas
            cause = f"{got} of the {needed} replicas that {_format_level(error)} needs are up"
            return Fault(cause, _LOOK_AT_REPLICAS, _NO_LIMIT)
        case cassandra.ReadFailure() | cassandra.WriteFailure():
            return _diagnose_failure(error)
        case protocol.OverloadedErrorMessage():
            return Fault("the server is overloaded", _LOOK_AT_LOAD, _NO_LIMIT, overload=True)
        case protocol.IsBootstrappingErrorMessage():
            return Fault("the node is still joining its cluster", _LOOK_AT_SERVER, _NO_LIMIT)
        case protocol.ServerError() | protocol.TruncateError():
            cause = f"the server failed: {error.message}"
            return Fault(cause, "The server's log says more.", _AFTER_A_SERVER_ERROR)
        case cassandra.RequestValidationException() | protocol.ErrorMessage():
            if met := _GUARDRAIL.search(message):
                return _diagnose_guardrail(met, message)
            cause = f"the server refused the statement ({message})"
            if _UNKNOWN_NAME.search(message):
                return Fault(cause, _LOOK_AT_SCHEMA, _UNTIL_TOLD)
            return Fault(cause, "Check that the tables were made by this version of linkstore.")
    return Fault(message, "The server's log may say more.")


def _diagnose_guardrail(met: re.Match[str], message: str) -> Fault:
    name, threshold = met["name"], int(met["threshold"] or 0)
    cause = f"the guardrail {name} of the server forbids the statement ({message})"
    advice = _GUARDRAIL_ADVICE.get(name, "Ask the operator to change it in cassandra.yaml.")
    return Fault(cause, advice, guardrail=(name, threshold))


def _diagnose_failure(error: Any) -> Fault:
    codes = (getattr(error, "error_code_map", None) or {}).values()
    if _TOO_MANY_TOMBSTONES in codes:
        cause = "the read met more deleted rows than tombstone_failure_threshold in cassandra.yaml allows"
        return Fault(cause, _LOOK_AT_TOMBSTONES)
    if _NO_INDEX in codes:
        return Fault("the index is not ready on enough nodes", _LOOK_AT_INDEX, _NO_LIMIT)
    if _OTHER_SCHEMA in codes:
        cause = "a replica does not know the table or has another form of it"
        return Fault(cause, _LOOK_AT_SCHEMA, _NO_LIMIT)
    failed, needed = error.failures, error.required_responses
    cause = f"{failed} replicas failed on it, and {_format_level(error)} needs {needed} that succeed"
    advice = _LOOK_AT_WRITES if isinstance(error, cassandra.WriteFailure) else _LOOK_AT_LOG
    return Fault(cause, advice, _NO_LIMIT, overload=True)


def _diagnose_all_hosts(error: Any) -> Fault:
    """All nodes were tried: describe the error with the most attempts, and name all nodes."""
    if not isinstance(error.errors, Mapping) or not error.errors:
        hosts = _format_hosts(error.errors or ())
        return Fault("no node is reachable", _LOOK_AT_SERVER, _NO_LIMIT, hosts=hosts)
    faults = [diagnose(each) for each in error.errors.values()]
    worst = max(faults, key=lambda fault: fault.tries)
    return replace(worst, hosts=_format_hosts(error.errors), overload=any(fault.overload for fault in faults))


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
    return tuple(sorted({str(host.endpoint if isinstance(host, pool.Host) else host) for host in hosts}))


def _format_level(error: Any) -> str:
    levels: Any = cassandra.ConsistencyLevel
    return str(levels.value_to_name.get(error.consistency, "the consistency level"))

"""The parts of cassandra-driver that the backend uses. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

from linkstore.errors import MissingExtraError

try:
    import cassandra
    from cassandra import auth, cluster, connection, cqltypes, policies, pool, protocol, query
except ImportError as error:
    raise MissingExtraError("a store in Cassandra", "cassandra") from error

Session = cluster.Session
ERRORS = (
    cassandra.DriverException,
    cluster.NoHostAvailable,
    connection.ConnectionException,
    connection.ConnectionBusy,
    pool.NoConnectionsAvailable,
    protocol.ErrorMessage,
)
"""Every exception that the driver raises for a request."""

__all__ = [
    "ERRORS",
    "Session",
    "auth",
    "cassandra",
    "cluster",
    "connection",
    "cqltypes",
    "policies",
    "pool",
    "protocol",
    "query",
]

"""The names of cassandra-driver that the backend uses. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

from linkstore.errors import MissingExtraError

try:
    from cassandra import (
        AuthenticationFailed,
        ConsistencyLevel,
        DriverException,
        OperationTimedOut,
        ReadFailure,
        RequestValidationException,
        Timeout,
        Unauthorized,
        Unavailable,
        UnresolvableContactPoints,
        WriteFailure,
    )
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import (
        EXEC_PROFILE_DEFAULT,
        Cluster,
        ExecutionProfile,
        NoHostAvailable,
        ResponseFuture,
        Session,
        _ConfigMode,
    )
    from cassandra.connection import ConnectionBusy, ConnectionException, ProtocolVersionUnsupported
    from cassandra.cqltypes import BytesType, FloatType, SetType, TupleType, VectorType, lookup_casstype
    from cassandra.policies import (
        ConstantReconnectionPolicy,
        DCAwareRoundRobinPolicy,
        HostDistance,
        RetryPolicy,
        TokenAwarePolicy,
    )
    from cassandra.pool import Host, NoConnectionsAvailable
    from cassandra.protocol import (
        ErrorMessage,
        IsBootstrappingErrorMessage,
        OverloadedErrorMessage,
        ProtocolHandler,
        ResultMessage,
        ServerError,
        TruncateError,
        read_short,
        read_string,
    )
    from cassandra.query import (
        UNSET_VALUE,
        BoundStatement,
        PreparedStatement,
        SimpleStatement,
        tuple_factory,
    )
except ImportError as error:
    raise MissingExtraError("a store in Cassandra", "cassandra") from error

ConfigMode = _ConfigMode
"""Whether a cluster was configured by execution profiles, or by attributes of its sessions (legacy)."""
ResultRows = ProtocolHandler.message_types_by_opcode[ResultMessage.opcode]
"""The driver's class for results."""
DRIVER_ERRORS = (
    DriverException,
    NoHostAvailable,
    ConnectionException,
    ConnectionBusy,
    NoConnectionsAvailable,
    ErrorMessage,
)
"""Every exception that the driver raises for a request."""

__all__ = [
    "AuthenticationFailed",
    "BoundStatement",
    "BytesType",
    "Cluster",
    "ConfigMode",
    "ConnectionBusy",
    "ConnectionException",
    "ConsistencyLevel",
    "ConstantReconnectionPolicy",
    "DCAwareRoundRobinPolicy",
    "DRIVER_ERRORS",
    "DriverException",
    "EXEC_PROFILE_DEFAULT",
    "ErrorMessage",
    "ExecutionProfile",
    "FloatType",
    "Host",
    "HostDistance",
    "IsBootstrappingErrorMessage",
    "NoConnectionsAvailable",
    "NoHostAvailable",
    "OperationTimedOut",
    "OverloadedErrorMessage",
    "PlainTextAuthProvider",
    "PreparedStatement",
    "ProtocolHandler",
    "ProtocolVersionUnsupported",
    "ReadFailure",
    "RequestValidationException",
    "ResponseFuture",
    "ResultRows",
    "RetryPolicy",
    "ServerError",
    "Session",
    "SetType",
    "SimpleStatement",
    "Timeout",
    "TokenAwarePolicy",
    "TruncateError",
    "TupleType",
    "UNSET_VALUE",
    "Unauthorized",
    "Unavailable",
    "UnresolvableContactPoints",
    "VectorType",
    "WriteFailure",
    "lookup_casstype",
    "read_short",
    "read_string",
    "tuple_factory",
]

"""Prepares, binds, routes and sends statements with the driver.

Converts values between Python and the server's format where the driver is too slow.

The driver converts a vector<float, n> to a list, at about 0.3 µs per component. In the native protocol a
vector is big-endian float32, which numpy reads and writes in one step. Sets and tuples, which in these tables
are links and states, are left as bytes and parsed where they are needed.

Groups partitions by the node that owns them, for statements about many partitions.
"""

from __future__ import annotations

import struct
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO
from typing import Any, ClassVar, Final

import numpy as np

from linkstore.core.arrays import Floats
from linkstore.engines.cassandra.driver import (
    EXEC_PROFILE_DEFAULT,
    UNSET_VALUE,
    BoundStatement,
    BytesType,
    ConfigMode,
    ConsistencyLevel,
    FloatType,
    Host,
    HostDistance,
    OverloadedErrorMessage,
    PreparedStatement,
    ProtocolHandler,
    ResponseFuture,
    ResultRows,
    RetryPolicy,
    ServerError,
    Session,
    SetType,
    SimpleStatement,
    TruncateError,
    TupleType,
    VectorType,
    lookup_casstype,
    read_short,
    read_string,
    tuple_factory,
)
from linkstore.engines.cassandra.requests import UNSET, Level, Row, Statement
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.errors import BackendError

_CUSTOM_TYPE_CODE: Final = 0
"""The native protocol's code for types given by name, such as vectors."""


def accept_arrays(prepared: PreparedStatement) -> PreparedStatement:
    """Make a prepared statement accept vectors as arrays (d,), and return the statement."""
    columns = prepared.column_metadata or ()
    prepared.column_metadata = [column._replace(type=_make_array_type(column.type)) for column in columns]
    return prepared


def execute_with_arrays(session: Session, query: Any, **options: Any) -> ResponseFuture:
    """Call ``session.execute_async`` with vectors as float32 arrays (d,), and sets and tuples as bytes.

    The driver reads results with the session's protocol handler. So it is called with a proxy of the session
    that has another handler.
    """
    execute: Any = type(session).execute_async
    return execute(_Proxy(session, client_protocol_handler=_ArrayHandler), query, **options)


def prepare_within(session: Session, query: str, timeout: float) -> PreparedStatement:
    """Call ``session.prepare`` with a timeout in seconds for nodes that do not answer.

    The driver prepares on one node and then on all others, with the default timeout of the session. So it is
    called with a proxy of the session that has another timeout.
    """
    kind: Any = type(session)
    hurried = _Proxy(session, default_timeout=timeout)
    hurried.prepare_on_all_hosts = partial(kind.prepare_on_all_hosts, hurried)
    statement: PreparedStatement = kind.prepare(hurried, query)
    return statement


class _Proxy:
    """A proxy of an object with a few different attributes."""

    prepare_on_all_hosts: Any

    def __init__(self, thing: Any, **different: Any) -> None:
        self._thing = thing
        vars(self).update(different)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _ArrayRows(ResultRows):
    """Results with vectors as arrays, and sets and tuples as bytes."""

    @classmethod
    def read_type(cls, f: BytesIO, user_type_map: Any) -> Any:
        start = f.tell()
        if read_short(f) == _CUSTOM_TYPE_CODE:
            return _find_custom_type(read_string(f))
        f.seek(start)
        kind = super().read_type(f, user_type_map)
        return BytesType if issubclass(kind, SetType | TupleType) else kind


class _ArrayHandler(ProtocolHandler):
    """The driver's protocol handler, with another class for results."""

    message_types_by_opcode: ClassVar[dict[int, type]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultRows.opcode: _ArrayRows,
    }


@cache
def _find_custom_type(name: str) -> Any:
    """Return the type of a column by the server's name, cached because each result repeats the name."""
    return _make_array_type(lookup_casstype(name))


def _make_array_type(kind: Any) -> Any:
    """Return a type that converts to and from arrays, for a vector of floats.

    For any other type, return the type itself.
    """
    if not issubclass(kind, VectorType) or kind.subtype is not FloatType:
        return kind

    def serialize(vector: Floats, _protocol_version: int) -> bytes:
        packed = np.asarray(vector, dtype=">f4")
        if packed.shape != (kind.vector_size,):
            raise ValueError(
                f"a vector of shape {packed.shape} where the table has {kind.vector_size} dimensions"
            )
        return packed.tobytes()

    def deserialize(packed: bytes, _protocol_version: int) -> Floats:
        return np.frombuffer(packed, dtype=">f4").astype(np.float32)

    methods = {"serialize": staticmethod(serialize), "deserialize": staticmethod(deserialize)}
    return type(kind.__name__, (kind,), methods)


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
        self._policy = _NextHostPolicy()
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
                self._prepared[cql] = accept_arrays(prepare_within(self.session, cql, self._timeout))

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
        query.fetch_size = _choose_page_rows(statement)
        options = {"timeout": timeout, "paging_state": page}
        if self.session.cluster._config_mode != ConfigMode.LEGACY:  # noqa: SLF001 - nothing else tells
            options["execution_profile"] = self._profile
        return execute_with_arrays(self.session, query, **options)

    def _make_query(self, statement: Statement) -> Any:
        if statement.level == "schema":
            return SimpleStatement(statement.cql)
        prepared = self._prepared[statement.cql]
        if statement.packed:
            bound = _RoutedStatement(prepared, statement.routing)
            bound.values = list(statement.values)
            return bound
        values = [UNSET_VALUE if value is UNSET else value for value in statement.values]
        try:
            return _RoutedStatement(prepared, statement.routing).bind(values)
        except AttributeError as error:  # what the driver raises for a text that is not a str
            raise TypeError(str(error)) from error


class _RoutedStatement(BoundStatement):
    """A bound statement whose routing key can be set."""

    values: list[Any]

    def __init__(self, prepared: PreparedStatement, routing: bytes | None) -> None:
        super().__init__(prepared)
        self._given = routing

    @property
    def routing_key(self) -> bytes | None:
        """The given key, otherwise the one that the driver derives from the values."""
        return super().routing_key if self._given is None else self._given


class _NextHostPolicy(RetryPolicy):
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


def release_future(future: ResponseFuture) -> None:
    """Break the reference cycles of an answered request, so that it is freed without the garbage collector.

    Its callbacks refer to it, and so does its timer, which was cancelled. A request has some forty objects,
    and thousands of requests would have the collector look at all objects of the process again and again.
    """
    future.clear_callbacks()
    future._timer = None  # noqa: SLF001 - the driver keeps it


def convert_rows(rows: Any) -> list[Row]:
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


def _choose_page_rows(statement: Statement) -> int:
    if statement.level == "one" or statement.page_limit is None:
        return PAGE_ROWS
    return min(PAGE_ROWS, statement.page_limit)


_Packer = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """The partitions of one node.

    Args:
        positions: Positions of their keys in the list of keys.
        routing: A routing key that sends a statement to that node, None for any node.
    """

    positions: list[int]
    routing: bytes | None = None


class Placement:
    """Groups partition keys by the node to ask, using the driver's token metadata.

    Args:
        session: The driver's.
        keyspace: The tables' keyspace.
    """

    def __init__(self, session: Session, keyspace: str) -> None:
        self._cluster = session.cluster
        self._keyspace = keyspace
        self._ring: tuple[Any, list[Any]] = (None, [])

    @property
    def is_replicated(self) -> bool:
        """Whether partitions have several replicas, True if this is not known."""
        metadata = self._cluster.metadata
        if self._keyspace not in metadata.keyspaces or not metadata.token_map:
            return True
        tokens = metadata.token_map
        return not tokens.ring or len(tokens.get_replicas(self._keyspace, tokens.ring[0])) != 1

    def by_replica(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[NodeShare]:
        """Group partition keys by the first of their replicas that is up and in the local datacenter.

        If there is only one node, or the driver does not know the tokens or the table's key, there is one
        group. This takes some microseconds per key and sends nothing to the server.

        Args:
            table: The table, spelled as in the schema.
            keys: Values of the partition key columns, in the order of the key.
        """
        packers = self._find_packers(table)
        if packers is None or len(keys) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [NodeShare(positions=list(range(len(keys))))] if keys else []
        owner_of: dict[int, Host | None] = {}
        shares: dict[Host | None, NodeShare] = {}
        for position, (point, routing) in enumerate(self._locate_keys(packers, keys)):
            if point not in owner_of:
                owner_of[point] = self._find_owner(point)
            share = shares.setdefault(owner_of[point], NodeShare(positions=[], routing=routing))
            share.positions.append(position)
        return list(shares.values())

    def _locate_keys(
        self, packers: Sequence[_Packer], keys: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield, for each key, the position of its token range in the ring, and its routing key."""
        tokens, ring = self._cluster.metadata.token_map, self._list_ring_values()
        hashed = tokens.token_class.hash_fn
        for key in keys:
            routing = make_routing_key([pack(value) for pack, value in zip(packers, key, strict=True)])
            point = bisect_left(ring, hashed(routing))
            yield point if point < len(ring) else 0, routing

    def _list_ring_values(self) -> list[Any]:
        """Return the tokens of the ring as plain values, cached for the driver's current token map."""
        tokens = self._cluster.metadata.token_map
        known, values = self._ring
        if known is not tokens:
            values = [token.value for token in tokens.ring]
            self._ring = (tokens, values)
        return values

    def _find_owner(self, point: int) -> Host | None:
        """Return the node to ask: the first replica that is up and local, otherwise the first replica."""
        tokens = self._cluster.metadata.token_map
        replicas = tokens.get_replicas(self._keyspace, tokens.ring[point])
        near = (host for host in replicas if host.is_up and self._is_near(host))
        return next(near, replicas[0] if replicas else None)

    def _is_near(self, host: Host) -> bool:
        return bool(self._cluster.profile_manager.distance(host) == HostDistance.LOCAL)

    def _find_packers(self, table: str) -> list[_Packer] | None:
        """Return functions that serialise the columns of a table's partition key, or None if not known."""
        metadata = self._cluster.metadata
        keyspace = metadata.keyspaces.get(self._keyspace)
        known = keyspace.tables.get(table) if keyspace else None
        if not known or not metadata.token_map or not metadata.can_support_partitioner():
            return None
        packers = [_PACKERS.get(column.cql_type) for column in known.partition_key]
        return [pack for pack in packers if pack] if all(packers) else None


def make_routing_key(parts: Sequence[bytes]) -> bytes:
    """Return the routing key of a partition.

    This is its only part, or each part with its length before and a 0 after it.
    """
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(f">H{len(part)}sB", len(part), part, 0) for part in parts)


_PACKERS: Final[Mapping[str, _Packer]] = {
    "text": str.encode,
    "ascii": str.encode,
    "tinyint": struct.Struct(">b").pack,
    "smallint": struct.Struct(">h").pack,
    "int": struct.Struct(">i").pack,
    "bigint": struct.Struct(">q").pack,
    "blob": bytes,
}
"""Serialisation of values by column type, in the format of the native protocol."""

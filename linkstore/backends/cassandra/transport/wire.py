"""Converts values between Python and the server's format where the driver is too slow.

The driver converts a vector<float, n> to a list, at about 0.3 µs per component. In the native protocol a
vector is big-endian float32, which numpy reads and writes in one step. Sets and tuples, which in these tables
are links and states, are left as bytes and parsed where they are needed.
"""

from __future__ import annotations

from functools import cache, partial
from io import BytesIO
from typing import Any, ClassVar, Final

import numpy as np

from linkstore.backends.cassandra.transport.driver import (
    BytesType,
    FloatType,
    PreparedStatement,
    ProtocolHandler,
    ResponseFuture,
    ResultRows,
    Session,
    SetType,
    TupleType,
    VectorType,
    lookup_casstype,
    read_short,
    read_string,
)
from linkstore.vectors import Floats

_CUSTOM: Final = 0
"""The native protocol's code for types given by name, such as vectors."""


def take_arrays(prepared: PreparedStatement) -> PreparedStatement:
    """Make a prepared statement accept vectors as arrays (d,), and return the statement."""
    columns = prepared.column_metadata or ()
    prepared.column_metadata = [column._replace(type=_as_array(column.type)) for column in columns]
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
        if read_short(f) == _CUSTOM:
            return _custom_type(read_string(f))
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
def _custom_type(name: str) -> Any:
    """Return the type of a column by the server's name, cached because each result repeats the name."""
    return _as_array(lookup_casstype(name))


def _as_array(kind: Any) -> Any:
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

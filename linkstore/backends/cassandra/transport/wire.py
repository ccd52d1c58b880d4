"""Converts values between Python and the server where the driver's own conversion is too slow.

The driver turns a vector<float, n> into a list, one component at a time, at some 0.3 µs each. Its bytes are
big-endian float32, as the native protocol has it, and numpy reads and writes those in one step. Sets and
tuples, which in these tables are links, come as the bytes they are and are read where they are needed.
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
"""The native protocol's code of types that go by their name, as vectors do."""


def take_arrays(prepared: PreparedStatement) -> PreparedStatement:
    """Let a prepared statement take vectors as anything numpy reads as shape (d,); itself, for chaining."""
    columns = prepared.column_metadata or ()
    prepared.column_metadata = [column._replace(type=_as_array(column.type)) for column in columns]
    return prepared


def execute_with_arrays(session: Session, query: Any, **options: Any) -> ResponseFuture:
    """``session.execute_async`` whose rows have vectors as float32 arrays (d,), sets and tuples as bytes.

    The driver takes from the session how answers are read. So it is given one that differs in that only.
    """
    execute: Any = type(session).execute_async
    return execute(_But(session, client_protocol_handler=_ArrayHandler), query, **options)


def prepare_within(session: Session, query: str, timeout: float) -> PreparedStatement:
    """``session.prepare`` that waits no longer than this for nodes that hang; seconds.

    The driver prepares with one node and then with all others, and takes from the session how long it waits.
    """
    kind: Any = type(session)
    hurried = _But(session, default_timeout=timeout)
    hurried.prepare_on_all_hosts = partial(kind.prepare_on_all_hosts, hurried)
    statement: PreparedStatement = kind.prepare(hurried, query)
    return statement


class _But:
    """Something in all but a few attributes; the thing itself stays as it is."""

    prepare_on_all_hosts: Any

    def __init__(self, thing: Any, **different: Any) -> None:
        self._thing = thing
        vars(self).update(different)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


class _ArrayRows(ResultRows):
    """Answers whose vectors are arrays and whose sets are bytes."""

    @classmethod
    def read_type(cls, f: BytesIO, user_type_map: Any) -> Any:
        start = f.tell()
        if read_short(f) == _CUSTOM:
            return _custom_type(read_string(f))
        f.seek(start)
        kind = super().read_type(f, user_type_map)
        return BytesType if issubclass(kind, SetType | TupleType) else kind


class _ArrayHandler(ProtocolHandler):
    """The driver's handler, with other answers."""

    message_types_by_opcode: ClassVar[dict[int, type]] = {
        **ProtocolHandler.message_types_by_opcode,
        ResultRows.opcode: _ArrayRows,
    }


@cache
def _custom_type(name: str) -> Any:
    """The type of a column by the server's name for it; remembered, for it comes with each answer."""
    return _as_array(lookup_casstype(name))


def _as_array(kind: Any) -> Any:
    """A type with the same bytes and arrays for values, if it is a vector of floats; else itself."""
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

"""Short texts that users of a store keep in its table of settings."""

from __future__ import annotations

from typing import Final

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

_PREFIX: Final = "note "


def read(tables: Tables, name: str) -> Operation[str | None]:
    """Return the note of a name, or None if there is none."""
    statement = Statement(cql=cql.read_named_settings(tables), values=([_PREFIX + name],))
    (rows,) = yield Requests(statements=(statement,), what="read a note")
    return rows[0][1] if rows else None


def exchange(tables: Tables, name: str, value: str | None, expected: str | None) -> Operation[str | None]:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards.

    This is a lightweight transaction. If the driver repeats one that the server had applied, the second does
    not apply. So success is determined by reading the note afterwards.
    """
    if value == expected:
        return (yield from read(tables, name))
    key = _PREFIX + name
    if expected is None:
        statement = Statement(cql=cql.settle_setting(tables), values=(key, value), level="write")
    elif value is None:
        statement = Statement(cql=cql.remove_setting(tables), values=(key, expected), level="write")
    else:
        values = (value, key, expected)
        statement = Statement(cql=cql.exchange_setting(tables), values=values, level="write")
    yield Requests(statements=(statement,), what="write a note")
    return (yield from read(tables, name))

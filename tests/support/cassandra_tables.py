"""Tables on the shared server that tests use again and again: to make some takes a second or more."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cassandra_server import create_keyspace

from linkstore.engines.cassandra import listing
from linkstore.engines.cassandra.statements import Tables

NUMBERS = itertools.count()
_DROP_SECONDS = 180
_LISTED = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"


def new_name(start: str) -> str:
    """A name that no other worker and no test before had."""
    return f"{start}_{os.getpid()}_{next(NUMBERS)}"


@contextmanager
def own_keyspace(session: Any, start: str) -> Iterator[str]:
    """A new keyspace (RF 1), dropped in the end: the tables of a whole run would fill the server's memory."""
    name = new_name(start)
    create_keyspace(session, name, durable=False)
    yield name
    session.execute(f'DROP KEYSPACE "{name}"', timeout=_DROP_SECONDS)


def empty(session: Any, keyspace: str, name: str) -> None:
    """Make a store as if it were new; its tables stay, and with them the dimension of its vectors."""
    tables = Tables(keyspace, name)
    there = {row.table_name for row in session.execute(_LISTED, (keyspace,))}
    if name in there:
        documents = tables.name_in("$documents")
        _delete(session, f"SELECT id FROM {documents}", f"DELETE FROM {documents} WHERE id = ?")
        _delete_partitions(session, tables.name_in("$members"), "kind, tag, side, bucket")
    if f"{tables.name}_words" in there:
        _delete_partitions(session, tables.name_in("$words"), "shard, bucket")
    if f"{tables.name}_settings" in there:
        for table in ("$pages", "$settings", "$accesses"):
            session.execute(tables.name_in(f"TRUNCATE {table}"))


def _delete_partitions(session: Any, table: str, key: str) -> None:
    where = " AND ".join(f"{column} = ?" for column in key.split(", "))
    _delete(session, f"SELECT DISTINCT {key} FROM {table}", f"DELETE FROM {table} WHERE {where}")


def _delete(session: Any, select: str, delete: str) -> None:
    prepared = session.prepare(delete)
    for waiting in [session.execute_async(prepared, tuple(row)) for row in session.execute(select)]:
        waiting.result()


def split_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each document ask for sizes, and split each word of two documents and group of one."""
    for name, value in (("CHECKED", 1), ("LARGEST_GROUP_BYTES", 1), ("MAX_POSTINGS", 1)):
        monkeypatch.setattr(listing, name, value)
    monkeypatch.setattr(listing, "_POSTINGS_COUNTED", 2)

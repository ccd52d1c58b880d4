"""Accesses on Cassandra: in a table of their own, the latest by the timestamps of its rows."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import new_name, own_keyspace
from conformance.probe import link_both, make_record
from internals import CassandraBackend, Manifest, WriteBatch
from stores import times

NOON = 1_700_000_000_000_000
COUNTED = ("", "_members", "_words", "_pages")


@pytest.fixture(scope="module")
def space(cassandra_session):
    with own_keyspace(cassandra_session, "accesses") as name:
        yield name


@pytest.fixture
def opened(cassandra_session, space):
    name = new_name("t")

    def opened() -> CassandraBackend:
        return CassandraBackend(cassandra_session, space, name)

    opened.table = f'"{space}"."{name}'
    return opened


@pytest.fixture
def backend(opened):
    made = opened()
    made.run(made.claim(Manifest(embedding="mine", dimension=4)))
    made.run(
        made.write(WriteBatch(put=[make_record(f"d{n:03}", 0.5, link_both(f"{n % 9}")) for n in range(200)]))
    )
    return made


def rows(session, opened) -> dict[str, object]:
    """All rows of the other tables, with the times when they were written."""
    written = {"": "WRITETIME(digest), WRITETIME(vector)", "_members": "WRITETIME(states)"}
    found = {}
    for suffix in COUNTED:
        columns = written.get(suffix, "*")
        found[suffix] = sorted(map(str, session.execute(f'SELECT {columns} FROM {opened.table}{suffix}"')))
    return found


def test_thousands_of_accesses_write_to_no_other_table(backend, opened, cassandra_session):
    before, turns = rows(cassandra_session, opened), times(10, 50)
    for turn in range(turns):
        accesses = {f"d{n:03}": NOON + turn for n in range(200)}
        assert backend.run(backend.touch(accesses)) == 200
    assert rows(cassandra_session, opened) == before
    found = backend.run(backend.accessed([f"d{n:03}" for n in range(200)]))
    assert set(found.values()) == {NOON + turns - 1}
    assert len(found) == 200


def test_an_access_that_outlives_its_document_is_not_told(backend, opened, cassandra_session):
    """As when a client records it while another one removes the document."""
    insert = f'INSERT INTO {opened.table}_accesses" (id, at) VALUES (%s, %s)'
    cassandra_session.execute(insert, ("gone", NOON))
    assert backend.run(backend.accessed(["gone", "d000"])) == {}


@pytest.mark.parametrize("ahead", [-86_400, 0, 2, 86_400])
def test_an_access_belongs_to_the_document_that_was_there(backend, ahead):
    """Whatever time it has: a deletion forgets it, and one of the next document is kept."""
    at = time.time_ns() // 1000 + ahead * 1_000_000
    assert backend.run(backend.touch({"d000": at})) == 1
    backend.run(backend.write(WriteBatch(put=[make_record("d000", 0.25, link_both("other"))])))
    assert backend.run(backend.accessed(["d000"])) == {"d000": at}, "an update keeps it"
    backend.run(backend.write(WriteBatch(remove=["d000"])))
    backend.run(backend.write(WriteBatch(put=[make_record("d000", 0.5)])))
    assert backend.run(backend.accessed(["d000"])) == {}
    for later in (at - 5, at - 9, at - 7):
        assert backend.run(backend.touch({"d000": later})) == 1
    assert backend.run(backend.accessed(["d000", "d000"])) == {"d000": at - 5}

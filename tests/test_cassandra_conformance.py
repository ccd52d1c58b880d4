"""The Cassandra backend keeps the contract, on a real server."""

from __future__ import annotations

import itertools

import pytest

from linkstore.testing.conformance import BackendConformance

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def tables(cassandra_session):
    """A keyspace of this module."""
    from cassandra_server import create_keyspace

    name = f"conformance_{next(NUMBERS)}"
    create_keyspace(cassandra_session, name)
    yield name
    cassandra_session.execute(f'DROP KEYSPACE "{name}"')


class TestCassandra(BackendConformance):
    @pytest.fixture
    def place(self, cassandra_session, tables):
        return cassandra_session, tables, f"t{next(NUMBERS)}"

    @pytest.fixture
    def backend(self, place):
        from linkstore.backends.cassandra.backend import CassandraBackend

        backend = CassandraBackend(*place)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, backend, place):
        from linkstore.backends.cassandra.backend import CassandraBackend

        return lambda: CassandraBackend(*place, create=False)

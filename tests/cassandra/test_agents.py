"""Facts and agents on Cassandra: the same cases as on the embedded engine."""

from __future__ import annotations

import os

import pytest
from cassandra_server import create_keyspace
from fact_cases import FactCases
from reader_cases import ReaderCases, filled

from linkstore import LinkStore


class TestFactsOnCassandra(FactCases):
    @pytest.fixture
    def store(self, cassandra_session, keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace) as store:
            yield store


@pytest.fixture(scope="module")
def reused(cassandra_session):
    """A store for all readers, since its tables take longer to make than the tests take."""
    name = f"readers_{os.getpid()}"
    create_keyspace(cassandra_session, name)
    with LinkStore.cassandra(session=cassandra_session, keyspace=name) as store:
        yield store
    cassandra_session.execute(f'DROP KEYSPACE "{name}"')


class TestReaderOnCassandra(ReaderCases):
    """All over one store, which each test gets as it should be."""

    many = 2_000

    @pytest.fixture
    def store(self, reused):
        return filled(reused)

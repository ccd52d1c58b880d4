"""Compiled contexts on Cassandra: the same cases as on the embedded engine."""

import pytest
from context_cases import ContextCases

from linkstore import LinkStore


class TestOnCassandra(ContextCases):
    @pytest.fixture
    def store(self, cassandra_session, keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace) as store:
            yield store

"""Compiled contexts on Cassandra: the same cases as on the embedded engine."""

import pytest
from context_cases import ContextCases

from linkstore import LinkStore


class TestOnCassandra(ContextCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

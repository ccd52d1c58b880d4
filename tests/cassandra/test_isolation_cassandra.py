"""Sessions and namespaces stay apart on Cassandra: the same cases as on the embedded engine."""

import pytest
from isolation_cases import IsolationCases

from linkstore import LinkStore


class TestOnCassandra(IsolationCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

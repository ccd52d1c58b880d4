"""Sessions and namespaces stay apart on Cassandra: a sample, for engines answer alike."""

import pytest
from isolation_cases import IsolationCases

from linkstore import LinkStore


@pytest.mark.sample("test_recalls_of_all_sessions_stay_with_the_user_and_the_agent")
class TestOnCassandra(IsolationCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

"""Facts and agents on Cassandra: the same cases as on the embedded engine."""

import pytest
from fact_cases import FactCases

from linkstore import LinkStore


class TestFactsOnCassandra(FactCases):
    @pytest.fixture
    def store(self, cassandra_session, keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace) as store:
            yield store

"""The LangGraph store on Cassandra: the same cases as on the embedded engine."""

import pytest
from graph_store_cases import GraphStoreCases

from linkstore import LinkStore


class TestOnCassandra(GraphStoreCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

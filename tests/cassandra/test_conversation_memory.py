"""Conversation memory on Cassandra: the same cases as on the embedded engine."""

import pytest
from memory_cases import MemoryCases

from linkstore import LinkStore


class TestOnCassandra(MemoryCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

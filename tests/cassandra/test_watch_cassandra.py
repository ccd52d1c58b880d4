"""Watches and checkups on Cassandra: the same cases as on the embedded engine."""

import pytest
from stores import embedding
from watch_cases import WatchCases

from linkstore import LinkStore


class TestOnCassandra(WatchCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

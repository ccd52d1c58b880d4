"""Compiled contexts on Cassandra: a sample of the cases, for engines answer alike."""

import pytest
from context_cases import ContextCases

from linkstore import LinkStore


@pytest.mark.sample("test_chunks_that_follow_each_other_are_joined", "test_what_was_touched_is_strong_again")
class TestOnCassandra(ContextCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

"""Watches and checkups on Cassandra: a sample of the cases, for engines answer alike."""

import pytest
from checkup_cases import CheckupCases
from stores import embedding

from linkstore import LinkStore


@pytest.mark.sample("test_a_clean_store_has_nothing_to_report")
class TestOnCassandra(CheckupCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

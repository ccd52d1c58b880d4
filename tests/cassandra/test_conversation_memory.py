"""Conversation memory on Cassandra: a sample of the cases, for engines answer alike."""

import pytest
from memory_cases import MemoryCases

from linkstore import LinkStore


@pytest.mark.sample(
    "test_the_answer_behind_a_question_is_found",
    "test_a_session_is_forgotten",
    "test_what_is_written_while_its_session_is_forgotten_is_found",
)
class TestOnCassandra(MemoryCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

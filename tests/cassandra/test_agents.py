"""Facts and agents on Cassandra: a sample of the cases, for engines answer alike."""

from __future__ import annotations

import pytest
from cassandra_tables import empty, own_keyspace
from fact_cases import FactCases
from reader_cases import ReaderCases, extracted, filled

from linkstore import LinkStore


@pytest.mark.sample("test_a_chunk_that_is_gone_takes_its_facts_with_it")
class TestFactsOnCassandra(FactCases):
    many = 300

    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

    @pytest.fixture
    def facts(self, cassandra_session, emptied_keyspace):
        place = {"session": cassandra_session, "keyspace": emptied_keyspace, "table": "facts"}
        with LinkStore.cassandra(**place) as facts:
            yield facts
        empty(cassandra_session, emptied_keyspace, "facts")


@pytest.fixture(scope="module")
def reused(cassandra_session):
    """Stores for all readers, since their tables take longer to make than the tests take."""
    with (
        own_keyspace(cassandra_session, "readers") as name,
        LinkStore.cassandra(session=cassandra_session, keyspace=name) as store,
        LinkStore.cassandra(session=cassandra_session, keyspace=name, table="facts") as facts,
    ):
        yield store, facts


@pytest.mark.sample("test_statements_cite_chunks_by_id_and_url")
class TestReaderOnCassandra(ReaderCases):
    """All over the same stores, which each test gets as they should be."""

    many = 2_000

    @pytest.fixture
    def store(self, reused):
        return filled(reused[0])

    @pytest.fixture
    def facts(self, store, reused):
        return extracted(store, reused[1])

"""Facts and agents on Cassandra: a sample of the cases, for engines answer alike."""

from __future__ import annotations

import pytest
from cassandra_tables import empty, own_keyspace
from fact_cases import FactCases
from reader_cases import ReaderCases, filled
from rule_facts import RuleExtractor
from scripted_model import ScriptedChatModel

from linkstore import LinkStore
from linkstore.agents import fact_store, graph_reader, index_facts
from linkstore.cli import ask
from linkstore.errors import BackendError, StoreNotFoundError


@pytest.mark.sample("test_a_chunk_that_is_gone_takes_its_facts_and_elements_with_it")
class TestFactsOnCassandra(FactCases):
    many = 300
    changes = range(1, 4)

    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store
        empty(cassandra_session, emptied_keyspace, "linkstore_facts")


def test_a_name_that_is_too_long_for_a_store_beside_it_has_none(
    cassandra_session, emptied_keyspace, monkeypatch
):
    noted = []
    monkeypatch.setattr(ask, "note", noted.append)
    with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace, table="a" * 33) as store:
        with pytest.raises(StoreNotFoundError, match="too long"):
            fact_store(store)
        with pytest.raises(BackendError, match="cannot name tables"):
            index_facts(store, RuleExtractor())
        with graph_reader(store, ScriptedChatModel(script=[])) as reader:
            assert reader.facts is None
        ask.note_facts(store, "cassandra://host/ks/a")
    assert noted == []


@pytest.fixture(scope="module")
def reused(cassandra_session):
    """A store for all readers, since its tables take longer to make than the tests take."""
    with (
        own_keyspace(cassandra_session, "readers") as name,
        LinkStore.cassandra(session=cassandra_session, keyspace=name) as store,
    ):
        yield store


@pytest.mark.sample("test_statements_cite_chunks_by_id_and_url")
class TestReaderOnCassandra(ReaderCases):
    """All over one store, which each test gets as it should be."""

    many = 2_000

    @pytest.fixture
    def store(self, reused):
        return filled(reused)

"""Facets of the page on Cassandra: the cases of all engines, with the server's own filters."""

import pytest
from facet_cases import FacetCases
from stores import embedding

from linkstore import LinkStore


class TestOnCassandra(FacetCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store

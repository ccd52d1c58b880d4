"""``AllPaths`` on Cassandra: the chains and the ranking that the embedded engine gives."""

from __future__ import annotations

import drugs
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import own_keyspace
from differential import compare_hits
from stores import times

from linkstore import LinkStore
from linkstore.strategies import AllPaths


@pytest.fixture(scope="module")
def pharmacies(cassandra_session):
    """The same documents on both engines."""
    with (
        own_keyspace(cassandra_session, "paths") as space,
        LinkStore() as embedded,
        LinkStore.cassandra(session=cassandra_session, keyspace=space, table="drugs") as clustered,
    ):
        for store in (embedded, clustered):
            store.add_documents(list(drugs.documents()))
        yield embedded, clustered


@pytest.mark.parametrize("drug", drugs.drugs()[:: times(50, 20)], ids=lambda drug: drug.name)
def test_both_arms_and_their_intersection_come_first(pharmacies, drug):
    embedded, clustered = pharmacies
    hits = clustered.search(drugs.question(drug), strategy=AllPaths())
    assert hits[0].document.id == f"regulation/{drug.regulation}"
    assert [len(chain) for chain in hits[0].chains if chain.independent] == [2, 3]
    assert compare_hits(hits, embedded.search(drugs.question(drug), strategy=AllPaths())) == []

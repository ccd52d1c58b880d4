"""The recorded minimum similarity of a store in Cassandra: another client uses it."""

from __future__ import annotations

import asyncio

import drugs
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import own_keyspace
from internals import Report

from linkstore import LinkStore
from linkstore.evaluate import GoldQuestion, calibrate_min_similarity
from linkstore.strategies import Eager

OFF_TOPIC = "Simmer the onions slowly in butter."


def test_a_proposal_is_recorded_used_and_removed(cassandra_session):
    with own_keyspace(cassandra_session, "floor") as space:

        def opened() -> LinkStore:
            return LinkStore.cassandra(session=cassandra_session, keyspace=space, table="kb")

        with opened() as store, LinkStore() as embedded:
            assert store.search_settings.min_similarity is None
            store.configure(min_similarity=0.5)  # before the first document
            for one in (store, embedded):
                one.add_documents(list(drugs.documents()))
            asked = [
                GoldQuestion(question=f"What is {drug.name}?", gold=(f"drug/{drug.name}",))
                for drug in drugs.drugs()[:30]
            ]
            proposals = [calibrate_min_similarity(one, asked) for one in (store, embedded)]
            found, same = proposals
            assert (found.gold, found.pairs) == (same.gold, same.pairs)
            assert found.min_similarity == pytest.approx(same.min_similarity, abs=1e-3)
            asyncio.run(store.aconfigure(min_similarity=found.min_similarity))
        with opened() as other:
            assert other.search_settings.min_similarity == found.min_similarity
            assert not other.search(OFF_TOPIC, strategy=Eager())
            assert other.search(OFF_TOPIC, strategy=Eager(min_similarity=-1))
            assert other.search(asked[0].question, strategy=Eager())
            assert other.verify() == Report()
            other.configure(min_similarity=None)
        with opened() as last:
            assert last.search_settings.min_similarity is None
            assert last.search(OFF_TOPIC, strategy=Eager())

"""Queries about typed links on Cassandra: equal to the oracle of the embedded engine's tests."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

import random

from cassandra_tables import own_keyspace
from graph_cases import check_queries, make_graph
from stores import times

from linkstore import LinkStore


@pytest.fixture
def keyspace(cassandra_session):
    with own_keyspace(cassandra_session, "matching") as space:
        yield space


@pytest.mark.parametrize("seed", range(times(3, 30)))
def test_answers_are_those_of_an_oracle(cassandra_session, keyspace, seed):
    with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace, table="kb") as store:
        check_queries(store, seed, 12, store.match)


def test_async_answers_are_those_of_an_oracle(cassandra_session, keyspace):
    with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace, table="kb") as store:
        check_queries(store, 50, 6, lambda query, **rest: asyncio.run(store.amatch(query, **rest)))


def test_paths_are_those_of_the_embedded_engine(cassandra_session, keyspace):
    rng = random.Random(4)
    documents = make_graph(rng, 30)
    with (
        LinkStore.cassandra(session=cassandra_session, keyspace=keyspace, table="kb") as clustered,
        LinkStore() as embedded,
    ):
        for store in (clustered, embedded):
            store.add_documents(documents)
        for _ in range(8):
            start, end = (f"d{n}" for n in rng.sample(range(30), 2))
            assert clustered.links.paths(start, end) == embedded.links.paths(start, end)

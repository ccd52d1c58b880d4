"""The Cassandra backend keeps the contract, on a real server."""

from __future__ import annotations

import math

import pytest
from cassandra_tables import split_early
from conformance import BackendConformance, SmallStoreCases
from conformance.lexical import LexicalCases
from conformance.probe import drive_by_arun, drive_by_run
from differential import assert_congruent
from oracle import OracleBackend
from stores import times


@pytest.fixture(scope="module")
def tables(cassandra_session):
    """A keyspace of this module."""
    from cassandra_tables import own_keyspace

    with own_keyspace(cassandra_session, "conformance") as name:
        yield name


def store_name(test: str) -> str:
    """Tests share tables; those whose vectors are of other dimensions, or none, have their own."""
    for part in ("random_graphs", "first_claim", "before_any_claim", "whatever_its_vectors"):
        if part in test:
            return part
    return "cases"


@pytest.fixture
def place(request, cassandra_session, tables):
    """Where a store is that was never used."""
    from cassandra_tables import empty

    name = store_name(request.node.name)
    empty(cassandra_session, tables, name)
    return cassandra_session, tables, name


@pytest.fixture
def backend(place):
    from internals import CassandraBackend

    backend = CassandraBackend(*place)
    yield backend
    backend.close()


class OnCassandra(BackendConformance, LexicalCases):
    @pytest.fixture
    def backend(self, backend):
        return backend

    @pytest.fixture
    def reopen(self, backend, place):
        from internals import CassandraBackend

        return lambda: CassandraBackend(*place, create=False)


@pytest.mark.sample(
    "test_the_k_most_similar_best_first",
    "test_ties_at_the_cut_go_to_the_smallest_ids",
    "test_a_filter_that_leaves_few_still_gives_k",
    "test_a_filter_that_none_passes_gives_none",
    "test_more_than_there_are_gives_all",
    "test_an_empty_store_gives_none",
    "test_random_graphs_answer_as_the_oracle_does",
    "test_random_graphs_show_nothing_of_what_is_outside",
)
class TestCassandraByIndex(OnCassandra):
    """What the server's index proposes, as in a store that is not small."""

    @pytest.fixture
    def backend(self, backend):
        backend._history.large_until = math.inf
        return backend

    @pytest.fixture
    def drive(self):
        return drive_by_run


class TestCassandra(OnCassandra, SmallStoreCases):
    @pytest.fixture
    def drive(self):
        return drive_by_run


@pytest.mark.sample(
    "test_random_graphs_answer_as_the_oracle_does",
    "test_random_graphs_show_nothing_of_what_is_outside",
    "test_random_texts_answer_as_the_oracle_does",
)
class TestCassandraSplit(OnCassandra):
    """Everything is split as soon as it can be."""

    @pytest.fixture
    def backend(self, backend, monkeypatch):
        split_early(monkeypatch)
        return backend

    @pytest.fixture
    def drive(self):
        return drive_by_run


@pytest.mark.sample(
    "test_what_was_written_is_there_again",
    "test_any_difference_is_an_update",
    "test_links_come_back_as_written",
    "test_random_graphs_answer_as_the_oracle_does",
    "test_random_texts_answer_as_the_oracle_does",
)
class TestCassandraAsync(OnCassandra):
    """A sample: only the executor differs, for which there are tests of its own."""

    @pytest.fixture
    def drive(self):
        return drive_by_arun


@pytest.mark.parametrize("seed", range(times(3, 100)))
def test_it_answers_as_the_oracle_on_random_graphs(backend, seed) -> None:
    assert_congruent(backend, OracleBackend(), seed=seed)

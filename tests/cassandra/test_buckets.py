"""Where a side of a link group is split into several partitions, all answers stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from differential import assert_congruent
from internals import WriteBatch
from oracle import OracleBackend
from stores import times

from linkstore.errors import BackendError

BUCKETS = 3


@pytest.fixture
def split(cassandra_session, keyspace) -> Iterator:
    """A new backend with several buckets."""
    from internals import CassandraBackend, CassandraSettings

    settings = CassandraSettings(buckets=BUCKETS)
    backend = CassandraBackend(cassandra_session, keyspace, "t", settings=settings)
    yield backend
    backend.close()


@pytest.mark.parametrize("seed", range(100, 100 + times(1, 20)))
def test_it_answers_as_the_oracle_on_random_graphs(split, cassandra_session, keyspace, seed) -> None:
    """Link groups do lie in all of the partitions, and nothing of them is stray."""
    assert_congruent(split, OracleBackend(), seed=seed)
    found = cassandra_session.execute(f'SELECT DISTINCT kind, tag, side, bucket FROM "{keyspace}".t_members')
    assert {row.bucket for row in found if row.kind} == set(range(BUCKETS))
    assert split.run(split.verify()).sound


def test_how_many_there_are_is_fixed_when_the_store_is_made(split, cassandra_session, keyspace) -> None:
    """Whoever opens it later reads and writes those that there are, and nobody takes another number."""
    from conformance.probe import CLAIM, link_both, make_record
    from internals import CassandraBackend, CassandraSettings

    split.run(split.claim(CLAIM))
    names = [f"d{n}" for n in range(12)]
    split.run(split.write(WriteBatch(put=[make_record(name, 0.5, link_both("t")) for name in names[:6]])))
    with pytest.raises(BackendError, match=r"created with buckets=3, and CassandraSettings has buckets=1"):
        CassandraBackend(cassandra_session, keyspace, "t", settings=CassandraSettings(buckets=1))
    other = CassandraBackend(cassandra_session, keyspace, "t")
    other.run(other.write(WriteBatch(put=[make_record(name, 0.5, link_both("t")) for name in names[6:]])))
    for one in (split, other):
        survey = one.run(one.survey())
        assert (survey.documents, survey.groups) == (12, 1)
        assert one.run(one.verify()).sound

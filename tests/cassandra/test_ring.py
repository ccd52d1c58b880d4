"""Three real nodes do what tests of faults rely on."""

from __future__ import annotations

from typing import Any

import pytest
from cassandra_server import Ring, create_keyspace

pytestmark = [pytest.mark.xdist_group("ring"), pytest.mark.long]
REPLICAS = 3


def put(session: Any, number: int) -> None:
    """Write a row at LOCAL_QUORUM."""
    from cassandra import ConsistencyLevel
    from cassandra.query import SimpleStatement

    statement = SimpleStatement(
        f"INSERT INTO ring_test.t (id) VALUES ({number})",
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        is_idempotent=True,
    )
    session.execute(statement)


def test_a_quorum_writes_with_one_node_down_not_with_two_and_goes_on_when_healed(ring: Ring):
    from cassandra import ConsistencyLevel, Unavailable, WriteTimeout
    from cassandra.query import SimpleStatement

    with ring.connect() as session:
        create_keyspace(session, "ring_test", REPLICAS)
        session.execute("CREATE TABLE IF NOT EXISTS ring_test.t (id int PRIMARY KEY)")
        put(session, 1)
        ring.nodes[1].kill()
        put(session, 2)
        ring.nodes[2].kill()
        with pytest.raises((WriteTimeout, Unavailable)):
            put(session, 3)
    ring.nodes[0].pause()
    ring.heal()
    with ring.connect() as session:
        put(session, 4)
        everything = SimpleStatement("SELECT id FROM ring_test.t", consistency_level=ConsistencyLevel.ALL)
        assert {row.id for row in session.execute(everything)} >= {1, 2, 4}

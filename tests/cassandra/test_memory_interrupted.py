"""A client that stops between any two statements of a turn's write leaves the turn whole or absent."""

from __future__ import annotations

from itertools import count

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_executors import Stopped, Stopping

from linkstore import LinkStore
from linkstore.memory import ConversationMemory

SAID = {
    "query": "What is Kubernetes?",
    "response": "An orchestrator of containers.",
    "entities": ["Kubernetes", "containers"],
    "sources": ["chunk-1", "chunk-2"],
}


@pytest.fixture
def store(cassandra_session, keyspace):
    with LinkStore.cassandra(session=cassandra_session, keyspace=keyspace) as store:
        yield store


@pytest.mark.parametrize("turns_before", [0, 1])
def test_a_turn_is_whole_or_absent_wherever_its_writer_stops(store, turns_before) -> None:
    backend = store.backend
    executor = backend._executor
    memory = ConversationMemory(store)
    memory.add("first", "so that the embedding is claimed")
    seen = set()
    for allowed in count():
        session = f"chat {allowed}"
        for number in range(turns_before):
            memory.add(session, f"message {number}", entities=[])
        backend._executor = Stopping(executor, allowed)
        try:
            memory.add(session, **SAID)
            stopped = False
        except Stopped:
            stopped = True
        finally:
            backend._executor = executor
        found = memory.turns(session)[turns_before:]
        for turn in found:
            assert (turn.query, turn.response) == (SAID["query"], SAID["response"])
            assert (list(turn.entities), list(turn.sources)) == (SAID["entities"], SAID["sources"])
        assert len(found) <= 1
        seen.add(len(found))
        memory.add(session, "and now?", entities=[])
        assert [turn.query for turn in memory.turns(session)][turns_before + len(found) :] == ["and now?"]
        recall = memory.recall(session, "Kubernetes orchestrator")
        assert (found[0].id if found else None) in {None, *(turn.id for turn in recall.turns)}
        if not stopped:
            break
    assert seen == {0, 1}

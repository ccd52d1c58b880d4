"""Clients with and without a lifetime write the same documents: links and words live as long as these."""

from __future__ import annotations

import itertools
import time

import pytest
from cassandra_tables import own_keyspace
from conformance.probe import CLAIM, Probe, drive_by_run, link_both, link_in, make_record
from internals import CassandraBackend, CassandraSettings, Ids, Lexical, WriteCounts

NUMBERS = itertools.count()
SHORT = 8


@pytest.fixture(scope="module")
def space(cassandra_session):
    with own_keyspace(cassandra_session, "lifetimes") as name:
        yield name


@pytest.fixture
def clients(cassandra_session, space) -> tuple[Probe, Probe]:
    """One whose documents expire, one whose documents stay."""
    name = f"t{next(NUMBERS)}"
    settings = CassandraSettings(ttl=SHORT), CassandraSettings()
    backends = [CassandraBackend(cassandra_session, space, name, settings=one) for one in settings]
    expiring, lasting = (Probe(backend, drive_by_run) for backend in backends)
    lasting.do(lasting.backend.claim(CLAIM))
    return expiring, lasting


def found(probe: Probe, word: str) -> list[str]:
    def plan():
        return (yield Ids(refs=(yield Lexical(terms=(word,), k=10)).refs))

    return sorted(probe.plan(plan()))


def gone(probe: Probe, *ids: str) -> None:
    """Wait until these documents have expired."""
    until = time.monotonic() + SHORT + 60
    while set(ids) & set(probe.ids()):
        assert time.monotonic() < until
        time.sleep(0.2)


def test_a_document_written_without_one_stays_whole(clients) -> None:
    """Its links and words too, changed or not; what only expires goes, with links and words."""
    expiring, lasting = clients
    same, before = (
        make_record("same", 0.5, link_both("x"), text="zebra"),
        make_record("other", 0.5, link_both("x"), text="quagga"),
    )
    expiring.put(same, before, make_record("gone", 0.5, link_both("x"), text="zebra"))
    assert lasting.put(same) == WriteCounts(updated=1)
    lasting.put(make_record("other", 0.5, link_both("x"), text="quagga", n=2))
    gone(lasting, "gone")
    time.sleep(1)
    assert lasting.ids() == ["other", "same"]
    assert lasting.met(["x"]).of == {"x": ["other", "same"]}
    assert (found(lasting, "zebra"), found(lasting, "quagga")) == (["same"], ["other"])
    assert lasting.do(lasting.backend.verify()).findings == ()


def test_replaced_links_leave_a_document_the_rest_of_its_life(clients) -> None:
    """And expire with it, and so does a document that a client with a lifetime took over."""
    expiring, lasting = clients
    lasting.put(
        make_record("target", 0.9, link_in("x")), make_record("taken", 0.5, link_both("x"), text="zebra")
    )
    expiring.put(
        make_record("a", 0.5, link_both("x"), text="zebra"),
        make_record("taken", 0.5, link_both("x"), text="zebra"),
    )
    assert lasting.do(lasting.backend.relink({"k"}, {"a": (link_both("y"),)})) == WriteCounts(updated=1)
    assert lasting.met(["y"]).of == {"y": ["a"]}
    gone(lasting, "a", "taken")
    time.sleep(2)
    assert lasting.ids() == ["target"]
    assert lasting.met(["x", "y"]).of == {"x": ["target"], "y": []}
    assert found(lasting, "zebra") == []
    assert lasting.do(lasting.backend.verify()).findings == ()

"""Clients with and without a lifetime write the same documents: links and words live as long as these."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from cassandra_tables import own_keyspace
from conformance.probe import CLAIM, Probe, drive_by_run, link_both, link_in, make_record
from documented import site
from internals import CassandraBackend, CassandraSettings, Ids, Lexical, WriteBatch, WriteCounts
from oracle import OracleBackend
from stores import document, embedding

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Eager

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


def test_words_expire_with_their_documents(clients) -> None:
    """A search by words scores the rest as if the expired documents had never been there."""
    expiring, lasting = clients
    rest = make_record("a", text="needle"), make_record("c", text="hay")
    oracle = OracleBackend()
    oracle.run(oracle.claim(CLAIM))
    oracle.run(oracle.write(WriteBatch(put=rest)))
    lasting.put(*rest)
    expiring.put(make_record("b", text="needle"))
    assert found(lasting, "needle") == ["a", "b"]
    until = time.monotonic() + 60  # rows that were written one after another may expire a second apart
    while score(lasting.backend) != score(oracle) and time.monotonic() < until:
        time.sleep(0.1)
    assert score(lasting.backend) == score(oracle)
    assert lasting.do(lasting.backend.verify()).findings == ()


def score(backend: Any) -> list[tuple[str, float]]:
    """The documents that have a word, with their scores."""

    def plan():
        matches = yield Lexical(terms=("needle",), k=10)
        return list(zip((yield Ids(refs=matches.refs)), matches.score.tolist(), strict=True))

    return backend.run(backend.answer(plan()))


def test_documents_with_a_lifetime_expire_with_their_links(cassandra_session, space):
    options = {"table": f"t{next(NUMBERS)}", "session": cassandra_session, "keyspace": space}
    lasting, passing = document(1), document(35)  # they share a keyword
    with (
        LinkStore.cassandra(embedding(), **options) as store,
        LinkStore.cassandra(embedding(), settings=CassandraSettings(ttl=10), **options) as brief,
    ):
        store.add_documents([lasting])
        started = time.monotonic()
        brief.add_documents([passing])
        search = Eager(start_k=1, depth=1)
        assert [hit.document.id for hit in store.search("doc 1 v0", strategy=search)] == ["d1", "d35"]
        while store.get_by_ids(["d35"]) and time.monotonic() < started + 60:
            time.sleep(0.2)
        assert 8 < time.monotonic() - started < 60
        assert [hit.document.id for hit in store.search("doc 1 v0", strategy=search)] == ["d1"]
        assert store.search("doc 35 v0")[0].document.id == "d1"
        assert store.survey().documents == 1
        assert store.verify().sound


def test_pages_expire_with_their_documents(cassandra_session, keyspace):
    """Indexing again brings back what expired."""
    settings = CassandraSettings(ttl=4)
    with (
        LinkStore.cassandra(session=cassandra_session, keyspace=keyspace, settings=settings) as store,
        site() as pages,
    ):
        index(store, FolderSource(pages), name="demo")
        time.sleep(6)
        assert store.survey().documents == 0
        assert index(store, FolderSource(pages), name="demo").pages.added == 15
